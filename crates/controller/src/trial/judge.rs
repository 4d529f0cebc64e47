//! What a case's trials yield, and whether its objectives were met: the same for a number of guests and for a load.

use std::collections::BTreeMap;

use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::study::{Case, CaseLoad, QosObjective};
use tare_model::trial::{Incomplete, Measurement};
use tare_model::written::value as written;
use tare_model::{capacity, density};

use super::Task;

/// The metrics of a case's trials, primary first: those of its workload, and in front of them those of a scale-up or of a search
/// where it is one.
pub(super) fn metrics(task: &Task<'_>) -> Vec<MetricSpec> {
    in_front(task.case, task.workload.metrics())
}

fn in_front(case: &Case, own: Vec<MetricSpec>) -> Vec<MetricSpec> {
    let mut all = match &case.load {
        CaseLoad::Density { .. } => density::metric_specs(),
        CaseLoad::Capacity(spec) => vec![capacity::metric_spec(spec.kind)],
        CaseLoad::Fixed { .. } | CaseLoad::ShareOf { .. } | CaseLoad::CpuTarget { .. } => return own,
    };
    for mut spec in own {
        spec.primary = false;
        if all.iter().all(|known| known.id != spec.id) {
            all.push(spec);
        }
    }
    all
}

/// Figures that are judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Figures<'a> {
    /// By metric id.
    pub(super) metrics: &'a BTreeMap<String, f64>,
    /// What they leave out: a percentile that was not reached is in here alone.
    pub(super) incomplete: &'a BTreeMap<String, Incomplete>,
}

impl<'a> Figures<'a> {
    /// Those of a trial.
    pub(super) const fn of(measurement: &'a Measurement) -> Self {
        Self { metrics: &measurement.metrics, incomplete: &measurement.incomplete }
    }
}

/// Objectives that were not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missed {
    /// Which, with their figures.
    pub(super) why: String,
    /// Whether one of them has a figure at all.
    pub(super) measured: bool,
}

/// The objectives of a case that these figures have missed; `None`: all are met. One without a figure is missed.
pub(super) fn missed(task: &Task<'_>, figures: &Figures<'_>) -> Option<Missed> {
    by(&task.case.qos, &super::metrics(task), figures)
}

fn by(objectives: &[QosObjective], specs: &[MetricSpec], figures: &Figures<'_>) -> Option<Missed> {
    let mut measured = false;
    let judged = objectives.iter().filter_map(|objective| {
        let (id, bound) = (&objective.metric, objective.bound);
        let spec = specs.iter().find(|spec| spec.id == *id);
        let label = spec.map_or(id, |spec| &spec.label);
        let way = |spec: &MetricSpec| if spec.better == Better::Lower { "at most" } else { "at least" };
        let (Some(value), Some(spec)) = (figures.metrics.get(id).copied(), spec) else {
            let left_out = figures.incomplete.get(id).zip(spec);
            measured |= left_out.is_some();
            return Some(left_out.map_or_else(
                || format!("{label} has no figure, and an objective is about it"),
                |(one, spec)| {
                    let (why, bound) = (tare_model::written::not_reached(one.missing), written(bound, &spec.unit));
                    format!("{label} was {why}, and should be {} {bound}", way(spec))
                },
            ));
        };
        let met = if spec.better == Better::Lower { value <= bound } else { value >= bound };
        measured |= !met;
        (!met).then(|| {
            let was = was(value, bound, &spec.unit);
            format!("{label} was {was} and should be {} {}", way(spec), written(bound, &spec.unit))
        })
    });
    let missed: Vec<String> = judged.collect();
    (!missed.is_empty()).then(|| Missed { why: missed.join("; "), measured })
}

/// A figure with its unit, and with the digits in which it differs from the bound that it has missed.
fn was(value: f64, bound: f64, unit: &Unit) -> String {
    if !value.is_finite() {
        return "no number".to_owned();
    }
    let text = written(value, unit);
    if text == written(bound, unit) { format!("{text} ({value:.6})") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_objective_is_missed_by_its_direction_and_by_having_no_figure() {
        let specs = [
            MetricSpec::new("p99", "response time", Unit::Seconds, Better::Lower),
            MetricSpec::new("rate", "operations", Unit::OperationsPerSecond, Better::Higher),
        ];
        let judge = |metric: &str, bound, figures: &[(&str, f64)]| {
            let metrics = &figures.iter().map(|(id, value)| ((*id).to_owned(), *value)).collect();
            let figures = Figures { metrics, incomplete: &BTreeMap::new() };
            by(&[QosObjective { metric: metric.into(), bound }], &specs, &figures).map(|missed| missed.why)
        };
        assert_eq!(judge("p99", 0.1, &[("p99", 0.1)]), None);
        assert_eq!(judge("rate", 5.0, &[("rate", 5.0)]), None);
        assert!(
            judge("p99", 0.1, &[("p99", 0.2)])
                .is_some_and(|why| why == "response time was 200 ms and should be at most 100 ms")
        );
        let hardly = judge("p99", 1.0, &[("p99", 1.0004)]).unwrap_or_default();
        assert_eq!(hardly, "response time was 1.00 s (1.000400) and should be at most 1.00 s", "it says by how much");
        assert!(judge("rate", 5.0, &[("rate", 4.0)]).is_some_and(|why| why.ends_with("at least 5.00 op/s")));
        assert!(judge("rate", 5.0, &[("p99", 4.0)]).is_some_and(|why| why.contains("no figure")));
        assert!(
            judge("p99", 0.1, &[("p99", f64::NAN)]).is_some_and(|why| why.contains("no number")),
            "what is no number has not met a bound"
        );
        let other = judge("other", 5.0, &[("other", 9.0)]);
        assert!(other.is_some_and(|why| why.contains("other has no figure")), "which way it is better is not known");
        let objective = |metric: &str| QosObjective { metric: metric.into(), bound: 1.0 };
        let measured = |metrics: &[&str]| {
            let objectives: Vec<QosObjective> = metrics.iter().map(|metric| objective(metric)).collect();
            let figures = Figures { metrics: &[("p99".to_owned(), 2.0)].into(), incomplete: &BTreeMap::new() };
            by(&objectives, &specs, &figures).map(|missed| missed.measured)
        };
        assert_eq!((measured(&["rate"]), measured(&["rate", "p99"]), measured(&[])), (Some(false), Some(true), None));
    }

    #[test]
    fn a_percentile_that_was_not_reached_misses_its_objective_however_few_operations_there_were() {
        let specs = [MetricSpec::new("p99", "response time", Unit::Seconds, Better::Lower)];
        let incomplete = [("p99".to_owned(), Incomplete { missing: 0.021, completed_only: Some(0.001) })].into();
        let figures = Figures { metrics: &BTreeMap::new(), incomplete: &incomplete };
        let missed = by(&[QosObjective { metric: "p99".into(), bound: 0.1 }], &specs, &figures);
        let why = "response time was not reached: 2.1 % of operations did not complete, and should be at most 100 ms";
        assert_eq!(missed, Some(Missed { why: why.to_owned(), measured: true }));
    }
}
