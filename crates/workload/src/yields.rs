//! What a workload yields, made the same way from every driver's result.

use std::collections::BTreeMap;

use tare_model::drive::DriveResult;
use tare_model::sample::{Sample, Source};
use tare_model::trial::Measurement;

/// What service demand is counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitOfWork {
    /// CPU seconds an operation.
    Operation,
    /// CPU seconds a byte.
    Byte,
}

/// What one trial's load came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Driven {
    /// Metrics, histograms, counts.
    pub measurement: Measurement,
    /// Start and end of the measured window, CLOCK_MONOTONIC nanoseconds of the client's host.
    pub window_ns: (u64, u64),
    /// Units of work done in the window.
    pub work: f64,
    /// The driver's own series over all phases.
    pub samples: Vec<Sample>,
    /// What was granted and other facts for disclosure.
    pub facts: BTreeMap<String, String>,
    /// Why the figures must not be used, if the driver itself saw that.
    pub invalid: Option<String>,
}

/// Length of the measured window in seconds.
pub fn window_s(result: &DriveResult) -> f64 {
    result.steady_end_ns.saturating_sub(result.steady_start_ns) as f64 / 1e9
}

/// Everything in a driver's result that does not depend on the workload; the workload adds its metrics.
pub fn from_result(result: DriveResult, unit: UnitOfWork) -> Driven {
    let mut counts = BTreeMap::from([("operations".to_owned(), result.operations)]);
    counts.insert("bytes".into(), result.bytes_to_guest + result.bytes_from_guest);
    counts.insert("lost".into(), result.lost);
    counts.insert("unfinished".into(), result.unfinished);
    counts.insert("backlog_max".into(), result.backlog_max);
    for (reason, count) in &result.errors {
        counts.insert(format!("errors: {reason}"), *count);
    }
    let window = window_s(&result);
    let mut facts: BTreeMap<String, String> =
        result.granted.iter().map(|(name, value)| (format!("driver {name}"), value.clone())).collect();
    if window > 0.0 {
        let share = |ns: u64| format!("{:.1} % of one CPU", ns as f64 / 1e7 / window);
        facts.insert("driver CPU, user".into(), share(result.cpu_user_ns));
        facts.insert("driver CPU, system".into(), share(result.cpu_system_ns));
    }
    let work = match unit {
        UnitOfWork::Operation => result.operations as f64,
        UnitOfWork::Byte => (result.bytes_to_guest + result.bytes_from_guest) as f64,
    };
    let samples = series(&result, unit);
    let window_ns = (result.steady_start_ns, result.steady_end_ns);
    let histograms = [("response", result.response), ("service", result.service), ("lateness", result.lateness)]
        .into_iter()
        .filter(|(_, histogram)| !histogram.is_empty())
        .map(|(name, histogram)| (name.to_owned(), histogram))
        .collect();
    let measurement = Measurement { metrics: BTreeMap::new(), histograms, counts };
    Driven { measurement, window_ns, work, samples, facts, invalid: None }
}

/// The driver's rate over time, as a gauge at the end of each interval.
fn series(result: &DriveResult, unit: UnitOfWork) -> Vec<Sample> {
    let (name, scale) = match unit {
        UnitOfWork::Operation => ("operations_per_s", 1.0),
        UnitOfWork::Byte => ("bits_per_s", 8.0),
    };
    let mut samples = Vec::with_capacity(result.intervals.len());
    for pair in result.intervals.windows(2) {
        let seconds = pair[1].end_ns.saturating_sub(pair[0].end_ns) as f64 / 1e9;
        if seconds <= 0.0 {
            continue;
        }
        let work = if unit == UnitOfWork::Byte { pair[1].bytes } else { pair[1].operations };
        samples.push(Sample {
            at_ns: pair[1].end_ns,
            source: Source::Client,
            series: name.into(),
            value: work as f64 * scale / seconds,
        });
    }
    samples
}
