//! The largest load that meets every objective, from the searches of a case.

use tare_model::capacity::{CapacitySearch, Probe, ProbeCause, metric};
use tare_model::findings::{ArmCapacity, Comparison, MetricFindings, SearchFindings, Thresholds, Verdict};
use tare_model::load::LoadKind;
use tare_model::plan::Plan;
use tare_model::study::{Arm, Case, CaseLoad};
use tare_model::trial::TrialRecord;

use crate::distribution::completed;
use crate::held::{self, Ends, Ground, Tried};
use crate::threshold::Seen;
use crate::words;

/// The metric of a search that is compared between arms whatever the loads: all others are those of a load, which is
/// another on each arm.
pub(crate) const COMPARED: &str = metric::CAPACITY;

/// The case's searches by arm, in the order of the study; empty where the case looks for no capacity.
pub(crate) fn of_case<'a>(
    plan: &Plan,
    case: &Case,
    arms: impl Iterator<Item = (&'a Arm, &'a [&'a TrialRecord])>,
) -> Vec<ArmCapacity> {
    if !case.load.is_capacity() {
        return Vec::new();
    }
    let all: Vec<(&Arm, &[&TrialRecord])> = arms.filter(|(_, trials)| searches(trials).next().is_some()).collect();
    // Whoever publishes a figure does not say what was tried beside it: no distribution follows from that.
    let fits = match plan.study.published {
        Some(_) => vec![None; all.len()],
        None => {
            let tried = all.iter().map(|(arm, trials)| Tried { arm: &arm.id, seen: seen(trials), unit: None });
            held::thresholds(&tried.collect::<Vec<_>>(), &plan.study.baseline)
        }
    };
    let of_arm = |((arm, trials), fit): ((&Arm, &[&TrialRecord]), Option<Thresholds>)| {
        let searches = searches(trials).map(|(block, search)| findings(block, search)).collect();
        ArmCapacity { arm: arm.id.clone(), searches, fit }
    };
    all.into_iter().zip(fits).map(of_arm).collect()
}

/// Every try, which is of an instance of its own. Loads that were too small to be judged show nothing; of a load whose work was wrong, or
/// that broke off, only the second time in a row counts.
fn seen(trials: &[&TrialRecord]) -> Vec<Seen> {
    let broken = |probe: &Probe| matches!(probe.cause, Some(ProbeCause::Invalid | ProbeCause::Failed));
    let of_search = |(block, search): (u32, &CapacitySearch)| {
        let of = |n: usize, probe: &Probe| {
            let again = n > 0 && broken(&search.probes[n - 1]) && (search.probes[n - 1].load - probe.load).abs() < 1e-9;
            let (low, high) = match (&probe.failed, probe.cause) {
                (None, _) => (probe.load.ln(), f64::INFINITY),
                (_, Some(ProbeCause::TooFew)) => return None,
                _ if broken(probe) && !again => return None,
                _ => (f64::NEG_INFINITY, probe.load.ln()),
            };
            Some(Seen { block, low, high })
        };
        search.probes.iter().enumerate().filter_map(|(n, probe)| of(n, probe)).collect::<Vec<_>>()
    };
    searches(trials).flat_map(of_search).collect()
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
    fit: Option<&'a Thresholds>,
}

impl<'a> Side<'a> {
    fn of(plan: &'a Plan, arm: &str, found: &'a [ArmCapacity], figures: &MetricFindings) -> Option<Self> {
        let own = found.iter().find(|own| own.arm == arm)?;
        let value = figures.arms.iter().find(|own| own.arm == arm)?.estimate.value;
        let label = plan.study.arms.iter().find(|own| own.id == arm).map_or("", |own| own.label.as_str());
        Some(Self { label, value, searches: &own.searches, fit: own.fit.as_ref() })
    }

    fn ends(&self) -> Ends {
        let none_held = self.fit.map_or_else(|| self.searches.iter().all(|own| own.held <= 0.0), |fit| fit.none_held);
        // Whoever publishes a figure does not say what was tried beyond it: that bounds nothing.
        Ends { none_held, all_held: self.fit.is_some_and(|fit| fit.all_held) }
    }

    /// `at least 320`; `not even 50` where no load held.
    fn amount(&self, noun: &Noun) -> String {
        let bound = if self.ends().all_held { "at least " } else { "" };
        match self.least().filter(|_| self.ends().none_held) {
            Some(least) => format!("not even {}", noun.number(least)),
            None => format!("{bound}{}", noun.number(self.value)),
        }
    }

    /// The same with what is counted: `320 sessions`.
    fn counted(&self, noun: &Noun) -> String {
        let amount = self.amount(noun);
        format!("{amount} {}", noun.word(amount.ends_with(" 1") || amount == "1"))
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

/// Puts the loads that half of the instances hold in the place of what the blocks found, and their ratios into comparisons.
pub(crate) fn put_in(found: &[ArmCapacity], capacity: &mut MetricFindings) {
    let fit = |arm: &str| found.iter().find(|own| own.arm == arm)?.fit.as_ref();
    for arm in &mut capacity.arms {
        if let Some(fit) = fit(&arm.arm) {
            arm.estimate = fit.half.clone();
        }
    }
    held::put_in(&mut capacity.comparisons, |arm| fit(arm)?.against.clone());
}

/// Judges the comparisons of capacities.
/// `sessions`: clients of this workload are people's sessions.
pub(crate) fn qualify(plan: &Plan, case: &Case, found: &[ArmCapacity], capacity: &mut MetricFindings, sessions: bool) {
    let noun = Noun::of(case, sessions);
    let mut comparisons = std::mem::take(&mut capacity.comparisons);
    for comparison in comparisons.iter_mut().filter(|own| own.verdict != Verdict::NotComparable) {
        let side = |arm: &str| Side::of(plan, arm, found, capacity);
        if let Some((arm, base)) = side(&comparison.arm).zip(side(&comparison.baseline)) {
            said(plan, comparison, &arm, &base, &noun);
        }
    }
    capacity.comparisons = comparisons;
}

fn said(plan: &Plan, comparison: &mut Comparison, arm: &Side<'_>, base: &Side<'_>, noun: &Noun) {
    let (first, second) = (arm.counted(noun), base.amount(noun));
    let published = plan.study.published.is_some();
    let who = if published || comparison.ratio.n < 2 { "" } else { "half of the instances " };
    let head = match who {
        "" => format!("On {}, {first} meet every objective, on {} {second}", arm.label, base.label),
        _ => format!("On {}, {who}meet every objective with {first}, on {} with {second}", arm.label, base.label),
    };
    let ground = Ground {
        arm: arm.ends(),
        base: base.ends(),
        label: base.label,
        published,
        verb: "serves",
        capped: "held the largest load allowed",
    };
    comparison.sentence = format!("{head}{}", held::judge(comparison, &ground));
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
         refutes it. A try that failed, or whose work was wrong, is repeated once; the second time counts as a miss. \
         Other metrics of a trial are those of the last iteration at the largest load that held every time in it. Loads \
         differ between arms, so those are not compared unless the loads are equal."
            .to_owned(),
        format!(
            "The capacity of an arm is the load that half of its instances hold. It is fitted to every try of all blocks, \
             held or missed: {}. The load that 95 of 100 instances hold is that of the same fit, with a one-sided bound.",
            held::METHOD
        ),
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
