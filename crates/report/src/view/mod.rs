//! Findings arranged for reading: what stands where, as text, tables and figures. No output format here.

pub(crate) mod account;
pub(crate) mod audit;
pub(crate) mod capacity;
pub(crate) mod case;
pub(crate) mod consolidation;
pub(crate) mod cpu_targets;
pub(crate) mod density;
mod disclosure;
mod exits;
pub(crate) mod fold;
pub(crate) mod glance;
mod hardware;
pub(crate) mod isolation;
mod layout;
pub(crate) mod limits;
mod measures;
mod method;
mod once;
pub(crate) mod parts;
pub(crate) mod published;
mod requests;
mod resources;
mod score;
pub(crate) mod section;
pub(crate) mod setting;
pub(crate) mod sizing;
pub(crate) mod steps;
pub(crate) mod table;
pub(crate) mod test_bed;
pub(crate) mod trust;

use serde::Serialize;
use tare_model::findings::{Answer, CaseFindings, Findings, MetricFindings, Verdict};
use tare_model::metric::{MetricSpec, common};

use crate::format;
use crate::plot::arms::Arms;
use crate::plot::{Figure, ratios};
use crate::words;
use audit::AuditView;
use case::{CaseView, FigureView};
use consolidation::ConsolidationView;
use disclosure::Disclosure;
use fold::Folded;
use glance::Glance;
use isolation::IsolationView;
use limits::LimitsView;
use published::PublishedView;
use score::ScoreView;
use sizing::SizingView;
use table::Table;

/// A whole report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Where the figures are from, where others published them.
    pub(crate) published: Option<PublishedView>,
    /// What must be read before any figure.
    pub(crate) warnings: Vec<String>,
    /// The same, each with its first sentence apart.
    pub(crate) cautions: Vec<Caution>,
    pub(crate) study: String,
    pub(crate) question: String,
    pub(crate) run_id: String,
    pub(crate) date: String,
    pub(crate) version: String,
    /// Whether more than one arm is compared with the baseline, so that sentences must name theirs.
    pub(crate) several: bool,
    /// Whether there is but one arm, and so nothing to compare.
    pub(crate) alone: bool,
    /// One line an arm: in how many cases which verdict fell.
    pub(crate) summary: Vec<String>,
    /// What the study says of neighbours, of several instances and of sizing, in a few sentences.
    pub(crate) headlines: Vec<String>,
    pub(crate) answers: Vec<AnswerView>,
    /// How many of the answers are shown before the others are folded away.
    pub(crate) shown: usize,
    /// What to build, where models of load could be made.
    pub(crate) sizing: Option<SizingView>,
    /// Several instances of an application in one guest.
    pub(crate) consolidation: Option<ConsolidationView>,
    /// What neighbours do to each victim.
    pub(crate) isolation: Option<IsolationView>,
    /// What makes the answer believable, or not, in a few words each.
    pub(crate) grounds: Vec<String>,
    /// All arms in one table, where the study has several of them and several cases, or many of them.
    pub(crate) glance: Option<Glance>,
    /// One figure over several cases, where the study asks for it.
    pub(crate) score: Option<ScoreView>,
    /// What was looked at before any verdict.
    pub(crate) audit: Option<AuditView>,
    /// What was flagged in trials, a line a kind.
    pub(crate) flags: Vec<String>,
    /// Whether there is anything that qualifies the answer.
    pub(crate) reservations: bool,
    /// Capacities, and response times at equal load, of all cases.
    pub(crate) serving: Vec<FigureView>,
    pub(crate) overview: Option<Figure>,
    pub(crate) overview_caption: String,
    /// What a guest itself takes to start and in memory, against the baseline.
    pub(crate) of_guests: Option<Figure>,
    /// Whether the overview is long, and so is opened by who wants it.
    pub(crate) overview_folded: bool,
    /// What the figures of the cases have in common.
    pub(crate) legend: &'static str,
    pub(crate) cases: Vec<CaseView>,
    /// The heads of cases that are folded away, because a section above sums them up; `None` where each stands for itself.
    pub(crate) folded: Option<Folded>,
    /// Where load and guests were, one for each way in which guests stood.
    pub(crate) test_beds: Vec<test_bed::TestBed>,
    /// What limits the precision of cases in turns.
    pub(crate) limits: Option<LimitsView>,
    pub(crate) start_times: Option<Table>,
    pub(crate) parity: Vec<Table>,
    pub(crate) parity_summary: String,
    /// What is otherwise than in the published original.
    pub(crate) deviations: Option<Table>,
    /// What differs from the study as written.
    pub(crate) differences: Vec<String>,
    pub(crate) not_completed: Option<Table>,
    pub(crate) flagged: Option<Table>,
    pub(crate) trials_summary: String,
    /// Checks that could not be made.
    pub(crate) unchecked: Vec<String>,
    /// What the platforms say about themselves, arm by arm.
    pub(crate) platforms: Vec<Table>,
    pub(crate) method: Vec<String>,
    /// The method in a few lines.
    pub(crate) brief: Vec<String>,
    /// What is folded away, in a sentence: print does not show it.
    pub(crate) holds: String,
    pub(crate) disclosure: Disclosure,
    /// How a reader finds out that a copy of the run folder is this run.
    pub(crate) checking: String,
}

/// A warning: what it says, and what follows from it.
#[derive(Debug, Serialize)]
pub(crate) struct Caution {
    pub(crate) first: String,
    pub(crate) rest: String,
}

impl Caution {
    fn new(warning: &str) -> Self {
        let (first, rest) = warning.split_once(". ").map_or((warning, ""), |(first, rest)| (first, rest));
        Self { first: words::ended(first), rest: rest.to_owned() }
    }
}

/// One sentence of the answer.
#[derive(Debug, Serialize)]
pub(crate) struct AnswerView {
    pub(crate) verdict: &'static str,
    pub(crate) class: &'static str,
    pub(crate) case: String,
    pub(crate) arms: String,
    pub(crate) sentence: String,
    /// The finding where nothing stands beside it: `worse: container takes longer to start than native: +22 % [+18, +27]`.
    pub(crate) line: String,
    /// Target of the link to the case.
    pub(crate) anchor: String,
}

impl Report {
    pub(crate) fn new(findings: &Findings) -> Self {
        let study = &findings.plan.study;
        let arms = Arms::of(findings);
        let (audit, flags) = (AuditView::new(findings, &arms), trust::flags(findings));
        let cases = findings.cases.iter().enumerate().map(|(i, case)| CaseView::new(i, case, findings, &arms));
        Self {
            published: PublishedView::new(findings),
            warnings: findings.warnings.clone(),
            cautions: findings.warnings.iter().map(|warning| Caution::new(warning)).collect(),
            study: study.name.clone(),
            question: study.question.clone(),
            run_id: findings.run.id.clone(),
            date: findings.run.started_at.chars().take(10).collect(),
            version: findings.run.tare_version.clone(),
            several: several(&arms),
            alone: arms.iter().count() == 1,
            summary: summary(findings, &arms),
            headlines: fold::headlines(findings, &arms),
            shown: fold::shown(findings),
            sizing: SizingView::new(findings, &arms),
            consolidation: ConsolidationView::new(findings, &arms),
            isolation: IsolationView::new(findings, &arms),
            answers: findings.answer.iter().map(|answer| answer_view(answer, findings, &arms)).collect(),
            grounds: trust::grounds(findings, &arms),
            glance: Glance::new(findings, &arms),
            score: ScoreView::new(findings, &arms),
            reservations: !flags.is_empty() || audit.as_ref().is_some_and(|audit| !audit.uncertain.is_empty()),
            audit,
            flags,
            serving: [capacity::overview(findings, &arms), capacity::latencies(findings, &arms)]
                .into_iter()
                .flatten()
                .collect(),
            overview: overview(findings, &arms),
            overview_caption: overview_caption(findings),
            of_guests: of_guests(findings, &arms),
            overview_folded: fold::Folded::new(findings).is_some(),
            legend: legend(findings),
            cases: cases.collect(),
            folded: Folded::new(findings),
            test_beds: test_bed::of_run(findings),
            limits: LimitsView::new(findings, &arms),
            start_times: measures::start_times(findings, &arms),
            parity: trust::parity(findings, &arms),
            parity_summary: trust::parity_summary(findings),
            deviations: trust::deviations(findings, &arms),
            differences: trust::differences(findings),
            not_completed: trust::not_completed(findings, &arms),
            flagged: trust::flagged(findings, &arms),
            trials_summary: trust::trials_summary(findings),
            unchecked: findings.unchecked.clone(),
            platforms: disclosure::sections(findings, |title| title == "Platforms"),
            method: findings.method.clone(),
            brief: method::brief(findings, &arms),
            holds: holds(findings),
            disclosure: Disclosure::new(findings, &arms),
            checking: checking(&findings.run.root_hash),
        }
    }
}

/// What the marks in the figures of the cases are.
fn legend(findings: &Findings) -> &'static str {
    if findings.plan.study.published.is_some() {
        "In the figures below a mark is the published figure."
    } else {
        "Large mark: the estimate over the blocks, with its interval as a line, which runs beyond the axis where it has no bound. Small dots: \
         every completed trial."
    }
}

/// What the folds hold, for a reader on paper.
fn holds(findings: &Findings) -> String {
    let of_cases = "Every metric of each case, with its comparison, distribution, CPU time and course";
    let more = if findings.plan.study.published.is_some() {
        "deviations, disclosure and raw numbers"
    } else {
        "parity, deviations, the trials that failed or carry a flag, the method in full, disclosure and raw numbers"
    };
    format!(
        "{of_cases}; {more}. All of it is folded here and left out of print: open the file in a browser, and what you unfold prints as well."
    )
}

fn checking(root_hash: &str) -> String {
    format!(
        "Root hash: {root_hash}. \u{201c}tare verify DIR --root HASH\u{201d} checks that a copy of the run folder is \
         the run of this report. Take the hash from the place where the run was published: a person who alters the \
         folder can also replace the report in it."
    )
}

/// The metric that the verdict of a case is about.
pub(crate) fn primary(case: &CaseFindings) -> Option<&MetricFindings> {
    case.metrics.iter().find(|metric| metric.spec.primary).or_else(|| case.metrics.first())
}

/// Name of what is the guest's own, in place of a case.
fn of_guests_own(findings: &Findings, metric: &str) -> String {
    let found = findings.across.iter().find(|own| own.spec.id == metric);
    found.map_or("all cases", |own| own.spec.label.as_str()).to_owned()
}

/// Name of a case for people.
pub(crate) fn case_label(findings: &Findings, id: &str) -> String {
    let found = findings.cases.iter().find(|case| case.id == id).map(|case| &case.label);
    let planned = || findings.plan.study.cases.iter().find(|case| case.id == id).map(|case| &case.label);
    found.or_else(planned).map_or_else(|| id.to_owned(), Clone::clone)
}

/// Name of a metric where there is little room: that of a capacity goes on to say what it is.
fn short_label(spec: &MetricSpec) -> String {
    let short = if spec.id == tare_model::capacity::metric::CAPACITY { spec.label.split(':').next() } else { None };
    short.unwrap_or(&spec.label).to_owned()
}

fn several(arms: &Arms) -> bool {
    arms.iter().filter(|arm| !arm.is_baseline && !arm.is_replica).count() > 1
}

/// Only better and worse are not in the sentence itself; the case is named where there are several, and the sentence does not name it.
fn answer_line(answer: &Answer, findings: &Findings) -> String {
    let verdict =
        matches!(answer.verdict, Verdict::Better | Verdict::Worse).then(|| words::verdict(answer.verdict).to_owned());
    let said = &answer.sentence;
    let case = answer.case.as_deref().filter(|_| findings.cases.len() > 1).map(|id| case_label(findings, id));
    let case = case.filter(|label| !said.contains(label.as_str()));
    match (verdict, case) {
        (Some(verdict), Some(case)) => format!("{verdict} ({case}): {said}"),
        (Some(head), None) | (None, Some(head)) => format!("{head}: {said}"),
        (None, None) => said.clone(),
    }
}

fn answer_view(answer: &Answer, findings: &Findings, arms: &Arms) -> AnswerView {
    let baseline = arms.label(&findings.plan.study.baseline);
    let case = answer.case.as_deref();
    let position = case.and_then(|id| findings.cases.iter().position(|case| case.id == id));
    AnswerView {
        verdict: words::verdict(answer.verdict),
        class: words::verdict_class(answer.verdict),
        line: answer_line(answer, findings),
        case: case.map_or_else(|| of_guests_own(findings, &answer.metric), |id| case_label(findings, id)),
        arms: format!("{} against {baseline}", arms.label(&answer.arm)),
        sentence: answer.sentence.clone(),
        anchor: match (position, case) {
            (Some(i), _) => format!("case-{}", i + 1),
            (None, Some(_)) => "cases".to_owned(),
            (None, None) => "guests".to_owned(),
        },
    }
}

/// For each arm that is neither the baseline nor its replica, how many of its findings have which verdict.
fn summary(findings: &Findings, arms: &Arms) -> Vec<String> {
    const ORDER: [Verdict; 9] = [
        Verdict::Worse,
        Verdict::Better,
        Verdict::Lead,
        Verdict::Equivalent,
        Verdict::WithinFloor,
        Verdict::NoDifferenceSeen,
        Verdict::TooNoisy,
        Verdict::CannotSay,
        Verdict::NotComparable,
    ];
    let baseline = arms.label(&findings.plan.study.baseline);
    let compared = arms.iter().filter(|arm| !arm.is_baseline && !arm.is_replica);
    let line = |arm: &crate::plot::arms::ArmLook| {
        let count = |verdict: Verdict| {
            let own = findings.answer.iter().filter(|own| own.arm == arm.id && own.verdict == verdict).count();
            (own > 0).then(|| format!("{own} {}", words::verdict(verdict)))
        };
        let said: Vec<String> = ORDER.into_iter().filter_map(count).collect();
        (!said.is_empty()).then(|| format!("{} against {baseline}: {}.", arm.label, said.join(", ")))
    };
    compared.filter_map(line).collect()
}

/// All comparisons of primary metrics in one figure.
fn overview(findings: &Findings, arms: &Arms) -> Option<Figure> {
    let mut groups: Vec<ratios::Group> = Vec::new();
    let several = several(arms);
    for case in &findings.cases {
        let Some(metric) = primary(case) else { continue };
        let heading = short_label(&metric.spec);
        let rows = case::rows(metric, arms, |arm| {
            if several || arm.is_replica { format!("{}: {}", case.label, arm.label) } else { case.label.clone() }
        });
        // The replica has its say as the band; a row of its own would stand between reader and answer.
        let rows: Vec<ratios::Row> = rows.into_iter().filter(|row| !row.arm.is_replica).collect();
        match groups.iter_mut().find(|group| group.heading == heading) {
            Some(group) => group.rows.extend(rows),
            None => groups.push(case::group(heading, metric, rows)),
        }
    }
    let baseline = arms.label(&findings.plan.study.baseline);
    ratios::figure("fig-overview", "Every case against the baseline", &baseline, &groups)
}

/// What is the guest's own over all cases, in a figure for itself: a start that takes ten times as long would flatten all others.
fn of_guests(findings: &Findings, arms: &Arms) -> Option<Figure> {
    let whole = findings.across.iter().filter(|metric| !common::START_PARTS.contains(&metric.spec.id.as_str()));
    let several = several(arms);
    let groups: Vec<ratios::Group> = whole
        .map(|metric| {
            let label = metric.spec.label.clone();
            let rows = case::rows(metric, arms, |arm| if several { arm.label.clone() } else { label.clone() });
            let rows = rows.into_iter().filter(|row| !row.arm.is_replica).collect();
            case::group(label.clone(), metric, rows)
        })
        .filter(|group| !group.rows.is_empty())
        .collect();
    let baseline = arms.label(&findings.plan.study.baseline);
    ratios::figure("fig-guests", "Start and memory of a guest against the baseline", &baseline, &groups)
}

fn overview_caption(findings: &Findings) -> String {
    if findings.plan.study.published.is_some() {
        return "Mark: the ratio of the published figures.".to_owned();
    }
    let mut comparisons = findings.cases.iter().filter_map(primary).flat_map(|metric| &metric.comparisons);
    let level = comparisons.clone().next().map_or(0.95, |c| c.ratio.level);
    let floor = if comparisons.any(|c| c.floor.is_some()) {
        "Grey band: the noise floor, which is the difference of the baseline to itself."
    } else {
        "No noise floor was measured in this run."
    };
    format!(
        "Large mark: the estimate. Line: its {} interval. Small dots: one ratio per block. {floor}",
        format::share((level * 1000.0).round() / 1000.0)
    )
}
