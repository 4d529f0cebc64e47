//! The largest load that meets every objective, from the searches of a case.

use tare_model::capacity::{CapacitySearch, metric};
use tare_model::findings::{ArmCapacity, Comparison, MetricFindings, SearchFindings, Verdict};
use tare_model::load::LoadKind;
use tare_model::plan::Plan;
use tare_model::study::{Arm, Case, CaseLoad};
use tare_model::trial::TrialRecord;

use crate::distribution::completed;
use crate::words;

/// The metric of a search that is compared between arms whatever the loads: all others are those of a load, which is
/// another on each arm.
pub(crate) const COMPARED: &str = metric::CAPACITY;

/// The case's searches by arm, in the order of the study; empty where the case looks for no capacity.
pub(crate) fn of_case<'a>(
    case: &Case,
    arms: impl Iterator<Item = (&'a Arm, &'a [&'a TrialRecord])>,
) -> Vec<ArmCapacity> {
    if !case.load.is_capacity() {
        return Vec::new();
    }
    let of_arm = |(arm, trials): (&Arm, &[&TrialRecord])| {
        let searches: Vec<SearchFindings> = searches(trials).map(|(block, search)| findings(block, search)).collect();
        (!searches.is_empty()).then(|| ArmCapacity { arm: arm.id.clone(), searches })
    };
    arms.filter_map(of_arm).collect()
}

/// (block, search) of the completed trials.
fn searches<'a>(trials: &[&'a TrialRecord]) -> impl Iterator<Item = (u32, &'a CapacitySearch)> {
    trials.iter().filter_map(|record| Some((record.planned.block, completed(record)?.search.as_ref()?)))
}

fn findings(block: u32, search: &CapacitySearch) -> SearchFindings {
    SearchFindings {
        block,
        held: search.held,
        missed: search.missed,
        iterations: search.iterations().count() as u32,
        tried: search.probes.iter().map(|probe| (probe.load, probe.failed.clone())).collect(),
        ended: search.ended.clone(),
    }
}

/// Whether two arms held the same load in every block that both have, so that figures at that load are of equal work.
pub(crate) fn same_load(one: &[&TrialRecord], other: &[&TrialRecord]) -> bool {
    let mut both = searches(one).filter_map(|(block, search)| {
        let (_, beside) = searches(other).find(|(own, _)| *own == block)?;
        Some((search.held - beside.held).abs() < 1e-9 && search.held > 0.0)
    });
    both.next().is_some_and(|first| first && both.all(|same| same))
}

/// Says that metrics other than the capacity are not compared, and names the cases that compare them at equal load.
pub(crate) fn not_compared(plan: &Plan, case: &Case) -> String {
    let at_equal_load = |other: &&Case| matches!(&other.load, CaseLoad::ShareOf { share, .. } if share.case == case.id);
    let others: Vec<&str> = plan.study.cases.iter().filter(at_equal_load).map(|other| other.label.as_str()).collect();
    let where_else = if others.is_empty() {
        String::new()
    } else {
        format!(" They are compared at equal load in: {}.", others.join("; "))
    };
    format!(
        "Metrics other than the capacity were measured at each arm's own capacity. This load differs between arms, so \
         they are not compared here.{where_else}"
    )
}

/// One arm's searches, with its figure over the blocks.
struct Side<'a> {
    label: &'a str,
    value: f64,
    searches: &'a [SearchFindings],
    /// The largest load that may be tried held in some block: the figure is a lower bound.
    capped: bool,
    /// Whether others published it.
    published: bool,
}

impl<'a> Side<'a> {
    fn of(plan: &'a Plan, arm: &str, found: &'a [ArmCapacity], figures: &MetricFindings) -> Option<Self> {
        let searches = found.iter().find(|own| own.arm == arm)?.searches.as_slice();
        let value = figures.arms.iter().find(|own| own.arm == arm)?.estimate.value;
        // Whoever publishes a figure does not say what was tried beyond it: that bounds nothing.
        let open_end = |search: &SearchFindings| search.missed.is_none() && search.held > 0.0;
        let published = plan.study.published.is_some();
        let capped = !published && searches.iter().any(open_end);
        let label = plan.study.arms.iter().find(|own| own.id == arm).map_or("", |own| own.label.as_str());
        Some(Self { label, value, searches, capped, published })
    }

    fn none_held(&self) -> bool {
        self.searches.iter().all(|search| search.held <= 0.0)
    }

    /// How far the search can tell loads apart: the largest step between what held and what did not, relative.
    fn step(&self) -> f64 {
        let step = |search: &SearchFindings| search.missed.filter(|_| search.held > 0.0).map(|m| m / search.held - 1.0);
        self.searches.iter().filter_map(step).fold(0.0, f64::max)
    }

    /// `at least 320`; `not even 50` where no load held.
    fn amount(&self, noun: &Noun) -> String {
        let bound = if self.capped { "at least " } else { "" };
        match self.least().filter(|_| self.none_held()) {
            Some(least) => format!("not even {}", noun.number(least)),
            None => format!("{bound}{}", noun.number(self.value)),
        }
    }

    /// The same with what is counted, and its verb: `320 sessions meet`.
    fn meets(&self, noun: &Noun) -> String {
        let amount = self.amount(noun);
        let one = amount.ends_with(" 1") || amount == "1";
        format!("{amount} {} {}", noun.word(one), if one { "meets" } else { "meet" })
    }

    fn least(&self) -> Option<f64> {
        self.searches.iter().flat_map(|search| &search.tried).map(|(load, _)| *load).reduce(f64::min)
    }
}

/// What loads are counted in.
enum Noun {
    Sessions,
    Clients,
    Arrivals,
}

impl Noun {
    fn of(case: &Case, sessions: bool) -> Self {
        match case.load.kind() {
            LoadKind::Open { .. } => Self::Arrivals,
            LoadKind::Closed { .. } if sessions => Self::Sessions,
            LoadKind::Closed { .. } => Self::Clients,
        }
    }

    const fn word(&self, one: bool) -> &'static str {
        match (self, one) {
            (Self::Sessions, true) => "session",
            (Self::Sessions, false) => "sessions",
            (Self::Clients, true) => "client",
            (Self::Clients, false) => "clients",
            (Self::Arrivals, true) => "arrival a second",
            (Self::Arrivals, false) => "arrivals a second",
        }
    }

    /// Whole clients; of arrivals as many digits as count.
    fn number(&self, value: f64) -> String {
        let value = match self {
            Self::Arrivals if value < 100.0 => return format!("{value:.1}"),
            _ => value.round(),
        };
        words::grouped(&format!("{value:.0}"))
    }
}

/// Says of each comparison of capacities how many sessions, clients or arrivals meet the objectives on both arms, and takes back what
/// the searches cannot tell apart. `sessions`: clients of this workload are people's sessions.
pub(crate) fn qualify(plan: &Plan, case: &Case, found: &[ArmCapacity], capacity: &mut MetricFindings, sessions: bool) {
    let noun = Noun::of(case, sessions);
    let mut comparisons = std::mem::take(&mut capacity.comparisons);
    for comparison in &mut comparisons {
        let sides =
            Side::of(plan, &comparison.arm, found, capacity).zip(Side::of(plan, &comparison.baseline, found, capacity));
        if let Some((arm, base)) = sides.filter(|_| speaks(comparison)) {
            said(comparison, &arm, &base, &noun);
        }
    }
    capacity.comparisons = comparisons;
}

/// Whether a comparison has something to say about both arms.
fn speaks(comparison: &Comparison) -> bool {
    !matches!(comparison.verdict, Verdict::NotComparable | Verdict::NoiseFloor)
}

fn said(comparison: &mut Comparison, arm: &Side<'_>, base: &Side<'_>, noun: &Noun) {
    let (first, second) = (arm.meets(noun), base.amount(noun));
    let beside = match (arm.none_held(), base.none_held()) {
        (true, true) => format!("nor on {}", base.label),
        (true, false) => format!("on {} {second} do", base.label),
        (false, _) => format!("on {} {second}", base.label),
    };
    let head = format!("On {} {first} every objective, {beside}", arm.label);
    let (verdict, tail) = judged(comparison, arm, base);
    if verdict != comparison.verdict && verdict == Verdict::CannotSay {
        comparison.detectable = None;
    }
    if comparison.ratio.n > 1 && verdict == Verdict::NoDifferenceSeen {
        // Nothing finer than a step of the search can be detected.
        let step = arm.step().max(base.step());
        comparison.detectable = Some(comparison.detectable.unwrap_or(0.0).max(step)).filter(|size| *size > 0.0);
    }
    comparison.verdict = verdict;
    comparison.sentence = format!("{head}{tail}");
}

/// The verdict as the searches allow it, and the end of the sentence.
fn judged(comparison: &Comparison, arm: &Side<'_>, base: &Side<'_>) -> (Verdict, String) {
    let ratio = &comparison.ratio;
    if arm.none_held() || base.none_held() {
        return (Verdict::CannotSay, String::new());
    }
    if ratio.n == 0 {
        return (Verdict::CannotSay, ": no ratio, because in some block no load held".to_owned());
    }
    if arm.capped && base.capped {
        let why = ": cannot say which serves more, because both held the largest load allowed";
        return (Verdict::CannotSay, why.to_owned());
    }
    let bound = match (arm.capped, base.capped) {
        (true, _) => "at least ",
        (_, true) => "at most ",
        _ => "",
    };
    let times = format!(": {bound}{} times as many", multiple(ratio.value));
    let Some((low, high)) = ratio.low.zip(ratio.high) else {
        let once = if arm.published { "published once" } else { "from a single block" };
        return (Verdict::CannotSay, format!("{times}, {once}, so there is no interval"));
    };
    let level = (ratio.level * 100.0).round();
    let times = format!("{times} ({level:.0} % interval {} to {})", multiple(low), multiple(high));
    let against_bound = match comparison.verdict {
        Verdict::Better => base.capped,
        Verdict::Worse => arm.capped,
        _ => arm.capped || base.capped,
    };
    if against_bound {
        let why = "; cannot say which serves more, because one of them held the largest load allowed";
        return (Verdict::CannotSay, format!("{times}{why}"));
    }
    unbounded(comparison, base, arm.step().max(base.step()), times)
}

/// The same where neither arm's loads bound what can be said. `step`: how far the searches tell loads apart, relative.
fn unbounded(comparison: &Comparison, base: &Side<'_>, step: f64, times: String) -> (Verdict, String) {
    let ratio = &comparison.ratio;
    let size = words::size(comparison.detectable.unwrap_or(0.0).max(step));
    let one_step = words::percent(step);
    match comparison.verdict {
        Verdict::Better | Verdict::Worse | Verdict::Lead if ratio.value.ln().abs() <= step.ln_1p() => {
            (Verdict::NoDifferenceSeen, format!("{times}, which is within a step of the search ({one_step})"))
        }
        Verdict::WithinFloor => {
            let floor = words::size(comparison.floor.unwrap_or(0.0));
            (Verdict::WithinFloor, format!("{times}, but {} differs from itself by {floor}", base.label))
        }
        Verdict::NoDifferenceSeen if comparison.blocks.iter().all(|(_, own)| (own - 1.0).abs() < 1e-9) => {
            (Verdict::NoDifferenceSeen, format!(": the same in every block, measured in steps of {one_step}"))
        }
        Verdict::NoDifferenceSeen => {
            let detected = format!("this study would detect {size} or more (80 % power)");
            (Verdict::NoDifferenceSeen, format!("{times}: no difference detected; {detected}"))
        }
        Verdict::TooNoisy => {
            let unseen = format!("this study would detect only {size} or more (80 % power)");
            (Verdict::TooNoisy, format!("{times}: too noisy to tell; {unseen}"))
        }
        other => (other, times),
    }
}

/// A multiple with the digits that count: `0.63`, `1.9`, `12`.
fn multiple(ratio: f64) -> String {
    match ratio {
        r if r > 100.0 => "over 100".to_owned(),
        r if r < 0.01 => "under 0.01".to_owned(),
        r if r >= 9.95 => format!("{r:.0}"),
        r if r >= 2.0 => format!("{r:.1}"),
        r => format!("{r:.2}"),
    }
}

/// What is said of the method where capacity was searched, or a share of it offered.
pub(crate) fn method(plan: &Plan) -> Vec<String> {
    let cases = &plan.study.cases;
    if plan.study.published.is_some() || !cases.iter().any(|case| case.load.is_capacity()) {
        return Vec::new();
    }
    let mut said = vec![
        "A trial of a capacity case is one search: every load is tried in a fresh instance. Loads are doubled until \
         one misses an objective (or halved, if the first one does). Then the distance between the largest load that \
         held and the smallest that did not is halved until it is as small as the study asks. The largest load that \
         held is tried again, each time in a fresh instance, until it has held as often as the study asks; one miss \
         refutes it. The capacity is the largest load that held every time. The true capacity lies between it and the \
         smallest load that did not hold, so a difference between arms within one such step does not count as \
         detected. A try that failed, or whose work was wrong, is repeated once; the second time counts as a miss. \
         Capacities are compared within blocks, as all metrics are. Other metrics of a trial are those of the last \
         iteration at its capacity. Loads differ between arms, so those are not compared unless the loads are equal."
            .to_owned(),
    ];
    if cases.iter().any(|case| matches!(case.load, CaseLoad::ShareOf { .. })) {
        said.push(
            "A case that is offered a share of a capacity has the same load on every arm: that share of the median of \
             the baseline's capacity over the blocks."
                .to_owned(),
        );
    }
    said
}
