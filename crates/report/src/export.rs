//! Effects and values with their intervals, in the formats of programs that watch figures from run to run.
//!
//! An effect is the ratio of an arm to the baseline of its own run: what moved the whole host cancels in it. The baseline has values alone.
//! A ratio whose verdict is withheld is no figure and is not exported. `docs/reference/ci.md` describes each format as it is written here.

mod action;
mod bencher;
mod openmetrics;
mod otava;

pub use action::action;
pub use bencher::bencher;
pub use openmetrics::openmetrics;
pub use otava::{OtavaRow, otava};

use tare_model::findings::{Comparison, Estimate, Findings, MetricFindings};
use tare_model::metric::{Better, MetricSpec, common};

/// Which figures are exported.
pub struct Selection<'a> {
    /// Whether the metric of an arm in a case is; the case of what is the guest's own over all cases is `None`.
    pub has: &'a dyn Fn(Option<&str>, &str, &str) -> bool,
    /// Whether metrics are that do not answer the study, too.
    pub all_metrics: bool,
    /// Only metrics that are better this way.
    pub better: Option<Better>,
}

/// A metric of an arm.
#[derive(Debug, Clone, Copy)]
pub struct Figure<'a> {
    /// Case id; `None` of what is the guest's own over all cases.
    pub case: Option<&'a str>,
    /// Arm id.
    pub arm: &'a str,
    /// The metric.
    pub spec: &'a MetricSpec,
    /// The arm's value.
    pub value: Option<&'a Estimate>,
    /// Its ratio to the baseline of the run.
    pub effect: Option<&'a Estimate>,
    /// Why there is no effect of an arm that was compared.
    pub withheld: Option<&'a str>,
}

impl Figure<'_> {
    /// `case/arm`, or the arm alone of what is the guest's own.
    fn place(&self) -> String {
        self.case.map_or_else(|| self.arm.to_owned(), |case| format!("{case}/{}", self.arm))
    }
}

/// The figures of a run that are exported, in the order of the study. The baseline's second run measures the study itself and is not among
/// them.
pub fn figures<'a>(findings: &'a Findings, selection: &Selection<'_>) -> Vec<Figure<'a>> {
    let arms: Vec<&str> =
        findings.plan.study.arms.iter().filter(|arm| arm.replica_of.is_none()).map(|arm| arm.id.as_str()).collect();
    let cases =
        findings.cases.iter().flat_map(|case| case.metrics.iter().map(move |metric| (Some(case.id.as_str()), metric)));
    let of_guests = findings.across.iter().map(|metric| (None, metric));
    let mut all = Vec::new();
    for (case, metric) in cases.chain(of_guests) {
        let spec = &metric.spec;
        let answers = if case.is_some() { spec.primary } else { common::OF_THE_GUEST.contains(&spec.id.as_str()) };
        let wanted = (answers || selection.all_metrics) && selection.better.is_none_or(|better| better == spec.better);
        let chosen = arms.iter().filter(|arm| wanted && (selection.has)(case, arm, &spec.id));
        all.extend(chosen.filter_map(|arm| figure(case, arm, metric)));
    }
    all
}

fn figure<'a>(case: Option<&'a str>, arm: &'a str, metric: &'a MetricFindings) -> Option<Figure<'a>> {
    let value = metric.arms.iter().find(|own| own.arm == arm).map(|own| &own.estimate);
    let comparison = metric.comparisons.iter().find(|own| own.arm == arm);
    let withheld = comparison.and_then(|own| own.withheld.as_deref());
    let effect = comparison.filter(|own| is_figure(own)).map(|own| &own.ratio);
    let figure = Figure { case, arm, spec: &metric.spec, value, effect, withheld };
    (value.is_some() || comparison.is_some()).then_some(figure)
}

fn is_figure(comparison: &Comparison) -> bool {
    comparison.withheld.is_none() && comparison.ratio.n > 0
}
