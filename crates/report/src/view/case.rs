//! One case: its figures and tables.

use serde::Serialize;
use tare_model::findings::{
    ArmGroups, ArmObjective, ArmSteps, CaseFindings, Comparison, Distribution, Findings, MetricFindings, Verdict,
};
use tare_model::metric::{Better, common};

use super::parts::Parts;
use super::requests::RequestsView;
use super::section::SectionView;
use super::table::Table;
use super::{
    account, capacity, cpu_targets, density, exits, fold, measures, primary, resources, section, setting,
    steps as step_tables,
};
use crate::format;
use crate::plot::arms::{ArmLook, Arms};
use crate::plot::{Figure, ccdf, cpu, dots, ratios, steps, timeline};
use crate::words;

/// One case arranged for reading.
#[derive(Debug, Serialize)]
pub(crate) struct CaseView {
    /// Fragment id, `case-1` and so on: never a user's text.
    pub(crate) anchor: String,
    pub(crate) label: String,
    /// Whether a section above sums it up, so that it is opened by who wants it.
    pub(crate) folded: bool,
    /// Workload, load and guest, in a line.
    pub(crate) setting: String,
    /// What ran and how, in full.
    pub(crate) setup: String,
    pub(crate) verdicts: Vec<VerdictView>,
    /// The figure of what the verdict is about.
    pub(crate) main: Option<FigureView>,
    /// Tables that belong to the answer, the first of which is shown: by guest and driver, and what an operation takes.
    pub(crate) lead: Vec<Titled>,
    /// The figure that the case is about, where it is not that of the metric alone.
    pub(crate) shown: Option<FigureView>,
    pub(crate) figures: Vec<FigureView>,
    /// What the workload itself says of the case.
    pub(crate) sections: Vec<SectionView>,
    /// Requests by type, where the workload has them.
    pub(crate) requests: Option<RequestsView>,
    /// What was used of host and guest at a load that the case is about.
    pub(crate) used: Option<Titled>,
    pub(crate) tables: Vec<Table>,
    /// The objectives, judged, in sentences.
    pub(crate) objectives: Vec<ObjectiveView>,
    /// What is missing from the figures of the answer, in sentences.
    pub(crate) missing: Vec<String>,
    /// What was not measured beside them.
    pub(crate) left_out: Vec<String>,
}

/// The verdict on one arm.
#[derive(Debug, Serialize)]
pub(crate) struct VerdictView {
    /// The arm, for where the sentence is not there to name it.
    pub(crate) arm: String,
    /// Whether it is the baseline's on itself.
    pub(crate) floor: bool,
    pub(crate) verdict: &'static str,
    pub(crate) class: &'static str,
    pub(crate) sentence: String,
}

/// An objective judged on one arm.
#[derive(Debug, Serialize)]
pub(crate) struct ObjectiveView {
    pub(crate) verdict: &'static str,
    pub(crate) class: &'static str,
    pub(crate) sentence: String,
    /// The value of each block, those that missed the bound marked.
    pub(crate) blocks: String,
}

impl ObjectiveView {
    pub(crate) fn new(objective: &ArmObjective) -> Self {
        let met = objective.blocks.iter().filter(|(.., met)| *met).count();
        let (verdict, class) = match (met, objective.planned as usize) {
            (_, planned) if met == planned && planned > 0 => ("objective met", "better"),
            (0, _) => ("objective not met", "worse"),
            _ => ("objective met at times", "unknown"),
        };
        let value = |(block, value, met): &(u32, f64, bool)| {
            let missed = if *met { "" } else { " (missed)" };
            format!("{}: {}{missed}", block, format::value(*value, &objective.spec.unit))
        };
        let blocks: Vec<String> = objective.blocks.iter().map(value).collect();
        Self { verdict, class, sentence: objective.sentence.clone(), blocks: blocks.join(", ") }
    }
}

/// A table with its heading.
#[derive(Debug, Serialize)]
pub(crate) struct Titled {
    pub(crate) title: String,
    pub(crate) table: Table,
}

/// A figure with its heading.
#[derive(Debug, Serialize)]
pub(crate) struct FigureView {
    pub(crate) title: String,
    pub(crate) caption: String,
    pub(crate) figure: Figure,
    /// Whether it is long and secondary, and so is opened by who wants it.
    pub(crate) folded: bool,
}

impl FigureView {
    pub(super) fn new(title: String, caption: &str, figure: Option<Figure>) -> Option<Self> {
        figure.map(|figure| Self { title, caption: caption.to_owned(), figure, folded: false })
    }
}

impl CaseView {
    pub(crate) fn new(index: usize, case: &CaseFindings, findings: &Findings, arms: &Arms) -> Self {
        let anchor = format!("case-{}", index + 1);
        let comparisons = primary(case).map_or(&[][..], |metric| &metric.comparisons);
        // What the study asks comes first, the floor that it is judged by after it.
        let (floor, compared): (Vec<&Comparison>, _) = comparisons.iter().partition(|c| arms.get(&c.arm).is_replica);
        let verdicts = compared.into_iter().chain(floor).map(|c| VerdictView {
            arm: arms.label(&c.arm),
            floor: arms.get(&c.arm).is_replica,
            verdict: words::verdict(c.verdict),
            class: words::verdict_class(c.verdict),
            sentence: c.sentence.clone(),
        });
        let (shown, figures) = figures(&anchor, case, findings, arms);
        Self {
            label: case.label.clone(),
            folded: fold::is_folded(findings, &case.id),
            setting: setting::line(case, findings),
            setup: setting::in_full(case, findings),
            verdicts: verdicts.collect(),
            main: main_figure(&anchor, case, findings, arms),
            lead: lead(case, findings, arms),
            shown,
            figures,
            sections: section::sections(&anchor, case, arms),
            requests: RequestsView::new(case, findings, arms),
            used: used(case, findings, arms),
            tables: tables(case, findings, arms),
            objectives: case.objectives.iter().map(ObjectiveView::new).collect(),
            missing: missing(case, findings, arms),
            left_out: left_out(case, findings),
            anchor,
        }
    }
}

/// The comparisons of a metric as rows of a figure.
pub(crate) fn rows(metric: &MetricFindings, arms: &Arms, label: impl Fn(&ArmLook) -> String) -> Vec<ratios::Row> {
    let row = |comparison: &Comparison| {
        let arm = arms.get(&comparison.arm);
        ratios::Row {
            label: label(&arm),
            ratio: comparison.ratio.clone(),
            blocks: comparison.blocks.clone(),
            floor: comparison.floor,
            verdict: words::verdict_short(comparison.verdict),
            arm,
        }
    };
    // What must not be compared has no place on an axis of ratios.
    metric.comparisons.iter().filter(|comparison| comparison.verdict != Verdict::NotComparable).map(row).collect()
}

/// A group of rows of one metric.
pub(crate) fn group(heading: String, metric: &MetricFindings, rows: Vec<ratios::Row>) -> ratios::Group {
    ratios::Group { heading, less_is_better: metric.spec.better == Better::Lower, rows }
}

fn main_figure(anchor: &str, case: &CaseFindings, findings: &Findings, arms: &Arms) -> Option<FigureView> {
    let metric = primary(case)?;
    let published = findings.plan.study.published.is_some();
    let others = || findings.cases.iter().filter(|other| !other.capacity.is_empty()).count();
    if published && !case.capacity.is_empty() && others() > 1 {
        // The figure of all cases has it.
        return None;
    }
    FigureView::new(
        words::sentence_case(&metric.spec.label),
        "",
        dots::figure(&format!("fig-{anchor}-dots"), metric, arms),
    )
}

/// The figure that the case is about where that is a curve, and all others.
fn figures(
    anchor: &str,
    case: &CaseFindings,
    findings: &Findings,
    arms: &Arms,
) -> (Option<FigureView>, Vec<FigureView>) {
    let mut own = density::figures(anchor, case, findings, arms).into_iter();
    let searched = [capacity::figure(anchor, case, findings, arms), cpu_targets::figure(anchor, case, arms)];
    let mut own = own.by_ref().chain(searched.into_iter().flatten());
    let shown = own.next();
    (shown, own.chain(details(anchor, case, findings, arms)).collect())
}

/// The figures of any case beside that of its primary metric.
fn details(anchor: &str, case: &CaseFindings, findings: &Findings, arms: &Arms) -> Vec<FigureView> {
    let mut out = Vec::new();
    let mut add =
        |title: String, caption: &str, figure: Option<Figure>| out.extend(FigureView::new(title, caption, figure));
    let (noun, one) = (case.operation.as_str(), step_tables::one(case));
    add(
        format!("Where the time of {one} goes"),
        &format!(
            "The mean time of one {noun}, split into its steps, in order. A step that {one} has several times \
             counts with the sum of its times. The driver times the steps, so each includes network, guest and server. \
             \u{201c}Between the steps\u{201d}: time outside all steps, such as the driver\u{2019}s own. The number \
             behind a bar is the total."
        ),
        steps::figure(&format!("fig-{anchor}-steps"), &comparable(case), noun, arms),
    );
    out.extend(forests(anchor, case, findings, arms));
    let mut add =
        |title: String, caption: &str, figure: Option<Figure>| out.extend(FigureView::new(title, caption, figure));
    for (i, name) in distribution_names(case).iter().enumerate() {
        let of_name: Vec<&Distribution> = case.distributions.iter().filter(|d| &d.name == name).collect();
        add(
            format!("Distribution of the {name} time"),
            "Share of operations that took longer than the time on the axis. Blocks are merged with equal weight. \
             Marks: percentiles. Lines: intervals from the percentiles of the single blocks; where blocks differ much, \
             the merged value may lie outside.",
            ccdf::figure(&format!("fig-{anchor}-ccdf-{i}"), name, &of_name, arms),
        );
    }
    add(
        "Where the CPU went".to_owned(),
        "CPU time of the system under test for one unit of work, the host's own work included. Length of a bar: the \
         estimate in the metrics table. Its parts: their shares in the mean of the completed trials. Neighbours are \
         left out; the table lists them separately.",
        cpu::figure(&format!("fig-{anchor}-cpu"), &case.cpu, arms),
    );
    if case.density.is_some() {
        // One number of guests of many is no picture of a trial; the scale-up above is.
        return out;
    }
    let left_out = timeline::series(&case.timelines).len().saturating_sub(timeline::PANELS);
    let planned = findings.plan.study.cases.iter().find(|planned| planned.id == case.id);
    let turns = match planned.and_then(|planned| planned.schedule.turns()) {
        Some(_) => {
            " The driver\u{2019}s rate is that of each turn of the arm. Host and guest are shown all the time, also while other arms \
             had their turns."
        }
        None => "",
    };
    let more = if left_out > 0 { format!(" {left_out} more series are in findings.json.") } else { String::new() };
    add(
        "One trial over time".to_owned(),
        &format!(
            "For each arm the trial whose primary value is the median. Shaded: steady state, the only part that is measured.{turns}{more}"
        ),
        timeline::figure(&format!("fig-{anchor}-time"), &case.timelines, arms),
    );
    out
}

/// The steps of the arms that may be compared, for the figure: an emulated arm takes many times as long, and would leave
/// the others no room. The tables have all.
fn comparable(case: &CaseFindings) -> Vec<ArmSteps> {
    let apart = |arm: &str| {
        let mut own = primary(case).into_iter().flat_map(|metric| &metric.comparisons).filter(|c| c.arm == arm);
        own.any(|comparison| comparison.verdict == Verdict::NotComparable)
    };
    case.steps.iter().filter(|own| !apart(&own.arm)).cloned().collect()
}

/// Most rows of a figure of ratios that are all shown at once: what two screens hold.
const RATIO_ROWS: usize = 40;

/// Metrics that tell most where there is no room for all, beside the one that the verdict is about.
const TELLING: [&str; 3] = [common::RESPONSE_P50, common::RESPONSE_P99, common::SERVICE_DEMAND];

/// Every metric against the baseline: in one figure, or, where that would be long, the telling ones and the others folded.
fn forests(anchor: &str, case: &CaseFindings, findings: &Findings, arms: &Arms) -> Vec<FigureView> {
    // Start times differ by orders of magnitude and would flatten everything else; they have a section.
    let is_start = |id: &str| id == common::START_TIME || common::START_PARTS.contains(&id);
    let compared = case.metrics.iter().filter(|metric| !is_start(&metric.spec.id) && !exits::is_reason(metric));
    let groups: Vec<(bool, ratios::Group)> = compared
        .map(|metric| {
            let tells = metric.spec.primary || TELLING.contains(&metric.spec.id.as_str());
            let heading = metric.spec.label.clone();
            (tells, group(heading, metric, rows(metric, arms, |arm| arm.label.clone())))
        })
        .filter(|(_, group)| !group.rows.is_empty())
        .collect();
    let rows: usize = groups.iter().map(|(_, group)| group.rows.len()).sum();
    let (first, others): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(tells, _)| *tells || rows <= RATIO_ROWS);
    let baseline = arms.label(&findings.plan.study.baseline);
    let draw = |id: &str, title: &str, groups: Vec<(bool, ratios::Group)>, folded: bool| {
        let groups: Vec<ratios::Group> = groups.into_iter().map(|(_, group)| group).collect();
        let figure = ratios::figure(&format!("fig-{anchor}-{id}"), title, &baseline, &groups);
        let caption = if findings.plan.study.published.is_some() {
            "Ratios of the published figures."
        } else {
            "Ratios within blocks. Line: interval. Small dots: one ratio per block. Band: the noise floor of that \
             metric, if measured."
        };
        FigureView::new(title.to_owned(), caption, figure).map(|view| FigureView { folded, ..view })
    };
    let (title, folded) = match (first.is_empty(), others.is_empty()) {
        (_, true) => ("Every metric against the baseline", "Other metrics against the baseline"),
        (true, _) => ("Main metrics against the baseline", "Every metric against the baseline"),
        _ => ("Main metrics against the baseline", "Other metrics against the baseline"),
    };
    draw("ratios", title, first, false).into_iter().chain(draw("others", folded, others, true)).collect()
}

fn distribution_names(case: &CaseFindings) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for distribution in &case.distributions {
        if !names.contains(&distribution.name) {
            names.push(distribution.name.clone());
        }
    }
    names
}

fn lead(case: &CaseFindings, findings: &Findings, arms: &Arms) -> Vec<Titled> {
    let parts = Parts::new(case, findings, arms)
        .map(|parts| Titled { title: parts.title(), table: parts.table(findings, arms) });
    density::lead(case, findings, arms)
        .into_iter()
        .chain(capacity::lead(case, findings, arms))
        .chain(cpu_targets::lead(case, findings, arms))
        .chain(parts)
        .collect()
}

/// What was used of host and guest, in the form of published tables.
fn used(case: &CaseFindings, findings: &Findings, arms: &Arms) -> Option<Titled> {
    let table = resources::table(case, findings, arms)?;
    Some(Titled { title: "What host and guest used".to_owned(), table })
}

fn tables(case: &CaseFindings, findings: &Findings, arms: &Arms) -> Vec<Table> {
    let mut tables: Vec<Option<Table>> = vec![
        capacity::tries(case, findings, arms),
        step_tables::shares(case, arms),
        step_tables::percentiles(case, arms),
        measures::metrics(case, findings, arms),
        measures::comparisons(case, findings, arms),
        exits::table(case, arms),
        account::operations(case, arms).filter(|_| findings.plan.study.published.is_none()),
    ];
    for name in distribution_names(case) {
        tables.push(measures::percentiles(case, &name, arms));
    }
    tables.push(measures::cpu(case, arms));
    let tables = tables.into_iter().chain(density::tables(case, arms).into_iter().map(Some));
    tables.flatten().collect()
}

/// The blocks that spare ones replace, and what the answer would be with them.
pub(crate) fn replaced(case: &CaseFindings, arms: &Arms) -> Option<String> {
    let blocks: Vec<String> = case.replaced.iter().map(|own| format!("{} ({})", own.block, own.why)).collect();
    let with: Vec<String> =
        case.over_all.iter().map(|own| format!("{} {}", arms.label(&own.arm), format::ratio(&own.ratio))).collect();
    (!blocks.is_empty()).then(|| {
        format!(
            "Disturbed from outside and replaced by spare blocks: {}. With them the ratios to the baseline would be: {}.",
            blocks.join("; "),
            with.join("; ")
        )
    })
}

/// That an estimate lies between two groups of blocks, and is the figure of none of them.
pub(crate) fn in_groups(own: &ArmGroups, metric: &MetricFindings, arms: &Arms) -> String {
    let group = |(blocks, value): &(Vec<u32>, f64)| {
        let numbers: Vec<String> = blocks.iter().map(|block| block.to_string()).collect();
        format!(
            "near {} (block{} {})",
            format::value(*value, &metric.spec.unit),
            if blocks.len() == 1 { "" } else { "s" },
            numbers.join(", ")
        )
    };
    format!(
        "{}: the blocks fall into two groups of {}, {} {} and {} {}. The estimate is of both together, and may be the figure of no block.",
        arms.label(&own.arm),
        metric.spec.label,
        own.low.0.len(),
        group(&own.low),
        own.high.0.len(),
        group(&own.high)
    )
}

fn missing(case: &CaseFindings, findings: &Findings, arms: &Arms) -> Vec<String> {
    if findings.plan.study.published.is_some() {
        return Vec::new();
    }
    let mut out = Vec::new();
    let Some(metric) = primary(case) else {
        return vec!["No trial of this case completed: there are no figures.".to_owned()];
    };
    if metric.arms.is_empty() {
        return vec!["No trial of any arm completed in this case.".to_owned()];
    }
    let mut few: Vec<(u32, Vec<&str>)> = Vec::new();
    for arm in arms.iter() {
        match metric.arms.iter().find(|estimate| estimate.arm == arm.id) {
            None => out.push(format!("No trial of {} completed in this case.", arm.label)),
            Some(found) if format::bounds(&found.estimate).is_none() => {
                match few.iter_mut().find(|(n, _)| *n == found.estimate.n) {
                    Some((_, labels)) => labels.push(&arm.label),
                    None => few.push((found.estimate.n, vec![&arm.label])),
                }
            }
            Some(_) => {}
        }
    }
    for (n, labels) in few {
        let n = format::plural(u64::from(n), "completed trial", "completed trials");
        let each = if labels.len() > 1 { " each" } else { "" };
        out.push(format!("{}: {n}{each}, too few for an interval.", labels.join("; ")));
    }
    out.extend(replaced(case, arms));
    out.extend(case.groups.iter().map(|own| in_groups(own, metric, arms)));
    out
}

/// What was not measured, beside what the verdict is about.
fn left_out(case: &CaseFindings, findings: &Findings) -> Vec<String> {
    let mut out = case.not_measured.clone();
    if case.cpu.is_empty() && findings.plan.study.published.is_none() && primary(case).is_some() {
        out.push("No CPU account: CPU for one unit of work is unknown.".to_owned());
    }
    out
}
