//! Metrics of a trial from what was counted and timed, and what those of response time leave out.

use std::collections::BTreeMap;

use tare_model::Histogram;
use tare_model::histogram::Percentile;
use tare_model::trial::{Incomplete, Measurement};

/// Metrics of a trial, of a guest or of an instance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// By metric id.
    pub metrics: BTreeMap<String, f64>,
    /// By metric id, those in which operations are missing that did not complete; also of percentiles that are no number for that.
    pub incomplete: BTreeMap<String, Incomplete>,
}

impl Figures {
    /// Metrics by their ids, without those that have no value.
    pub fn of<S: Into<String>>(values: impl IntoIterator<Item = (S, Option<f64>)>) -> Self {
        let mut figures = Self::default();
        values.into_iter().for_each(|(id, value)| figures.add(id, value));
        figures
    }

    /// Adds a metric if it has a value.
    pub fn add(&mut self, id: impl Into<String>, value: Option<f64>) {
        self.metrics.extend(value.filter(|value| value.is_finite()).map(|value| (id.into(), value)));
    }

    /// Adds the percentile `q` of times as a metric, seconds: over all operations that were due, of which those that did not complete took
    /// longer than all others. There is no such metric where it lies among those, or where too few operations lie beyond it.
    pub fn percentile(&mut self, id: &str, times: &Histogram, q: f64) {
        let found = times.percentile(q);
        let completed = times.completed().quantile(q);
        if found != Percentile::TooFew && found.value() != completed {
            self.leaves_out(id, times, completed);
        }
        self.add(id, found.value().map(|ns| ns / 1e9));
    }

    /// Adds the mean of times as a metric, seconds.
    pub fn mean(&mut self, id: &str, times: &Histogram) {
        self.add(id, times.mean().map(|ns| ns / 1e9));
        self.note_mean(id, times);
    }

    /// Adds the longest time as a metric, seconds; what did not complete took longer, so that there is none where something did not.
    pub fn maximum(&mut self, id: &str, times: &Histogram) {
        let longest = (!times.bins.is_empty()).then_some(times.max as f64);
        if times.not_completed() > 0 {
            return self.leaves_out(id, times, longest);
        }
        self.add(id, longest.map(|ns| ns / 1e9));
    }

    /// Notes of a mean of times that is a metric already what it leaves out.
    pub fn note_mean(&mut self, id: &str, times: &Histogram) {
        if times.not_completed() > 0 && self.metrics.contains_key(id) {
            self.leaves_out(id, times, times.completed().mean());
        }
    }

    fn leaves_out(&mut self, id: &str, times: &Histogram, completed_ns: Option<f64>) {
        let completed_only = completed_ns.map(|ns| ns / 1e9);
        self.incomplete.insert(id.to_owned(), Incomplete { missing: times.missing(), completed_only });
    }

    /// Replaces the metrics of a measurement by these.
    pub fn put(self, measurement: &mut Measurement) {
        (measurement.metrics, measurement.incomplete) = (self.metrics, self.incomplete);
    }
}

/// Why a percentile that a verdict is to be about has no figure, if that is because there were too few operations: one that was not reached
/// is a finding.
pub fn too_few(measurement: &Measurement, metric: &str) -> bool {
    !measurement.metrics.contains_key(metric) && !measurement.incomplete.contains_key(metric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yields::tests::histogram;

    fn figures(times: &Histogram) -> Figures {
        let mut figures = Figures::default();
        figures.percentile("p50", times, 0.5);
        figures.percentile("p99", times, 0.99);
        figures.mean("mean", times);
        figures
    }

    #[test]
    fn a_percentile_that_lies_among_what_failed_is_no_metric() {
        let mut times = histogram(2_000_000, 979);
        times.merge(&histogram(1_000_000, 1_000));
        let whole = figures(&times);
        assert_eq!((whole.metrics["p50"], whole.metrics["p99"]), (0.001, 0.002));
        assert!(whole.incomplete.is_empty(), "{:?}", whole.incomplete);
        times.failed = 21;
        let failed = figures(&times);
        assert_eq!(failed.metrics.get("p99"), None, "of 2,000 the 1,980th failed");
        assert_eq!(failed.incomplete["p99"], Incomplete { missing: 0.0105, completed_only: Some(0.002) });
        assert_eq!(failed.metrics["p50"], 0.001, "the 1,000th of 2,000 completed");
        assert!(!failed.incomplete.contains_key("p50"), "it is that of the completed ones");
        let mean = failed.incomplete["mean"];
        assert_eq!((failed.metrics["mean"], mean.missing), (mean.completed_only.unwrap(), 0.0105));
        assert!(!too_few(&measurement(failed), "p99"), "it is known to be long");
    }

    fn measurement(figures: Figures) -> Measurement {
        let mut measurement = Measurement::default();
        figures.put(&mut measurement);
        measurement
    }

    #[test]
    fn a_percentile_that_failures_move_has_the_one_of_completed_operations_beside_it() {
        let mut times = histogram(1_000_000, 995);
        times.merge(&histogram(9_000_000, 995));
        times.failed = 10;
        let figures = figures(&times);
        assert_eq!(figures.metrics["p50"], 0.009);
        assert_eq!(figures.incomplete["p50"], Incomplete { missing: 0.005, completed_only: Some(0.001) });
    }

    #[test]
    fn too_few_operations_are_no_failure() {
        let few = measurement(figures(&histogram(1_000_000, 999)));
        assert!(few.incomplete.is_empty() && too_few(&few, "p99"));
    }

    #[test]
    fn time_outs_are_in_the_mean_with_the_time_that_was_waited() {
        let mut times = histogram(1_000_000, 99);
        (times.given_up, times.waited_ns) = (1, 1_000_000_000);
        let figures = figures(&times);
        assert!((figures.metrics["mean"] - 0.01099).abs() < 1e-9, "{figures:?}");
        assert_eq!(figures.incomplete["mean"], Incomplete { missing: 0.01, completed_only: Some(0.001) });
    }
}
