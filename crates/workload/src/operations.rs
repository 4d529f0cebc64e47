//! Figures of workloads whose operations are requests: rate and response times, what the verdict is about, and when there are none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tare_model::drive::DriveResult;
use tare_model::load::LoadModel;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::trial::Measurement;
use tare_model::{count, histogram};

use crate::Driven;
use crate::figures::{Figures, too_few};
use crate::together::together;

/// Quantiles of the response time.
const QUANTILES: [(&str, &str, f64); 4] = [
    ("response_time_p50_s", "response time, median", 0.5),
    ("response_time_p90_s", "response time, 90th percentile", 0.9),
    ("response_time_p99_s", "response time, 99th percentile", 0.99),
    ("response_time_p999_s", "response time, 99.9th percentile", 0.999),
];
/// Later than this after its intended start a request counts as late, nanoseconds.
const LATE_NS: u64 = 1_000_000;
/// Name of the count of those, where there is an intended start.
pub(crate) const LATE: &str = "sent more than 1 ms late";
/// Largest part of the requests that may fail or stay unfinished, as for any request and response.
const FAILED_MAX: f64 = 0.01;

/// Which figure the verdict is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictOn {
    /// Requests in a second.
    Rate,
    /// Mean response time.
    Mean,
    /// Its median.
    P50,
    /// Its 99th percentile.
    P99,
    /// Its 99.9th percentile.
    P999,
}

impl VerdictOn {
    /// Id of the metric.
    pub(crate) const fn metric(self) -> &'static str {
        match self {
            Self::Rate => "operations_per_s",
            Self::Mean => "response_time_mean_s",
            Self::P50 => "response_time_p50_s",
            Self::P99 => "response_time_p99_s",
            Self::P999 => "response_time_p999_s",
        }
    }

    /// What was asked for, or what is usual under this load: the rate in a closed loop, the median response time in an open one.
    pub(crate) fn under(load: &LoadModel, asked: Option<Self>) -> Self {
        let usual = match load {
            LoadModel::Closed { .. } => Self::Rate,
            LoadModel::Open { .. } => Self::P50,
        };
        asked.unwrap_or(usual)
    }
}

/// All metrics, the one that the verdict is about first; `more` are the workload's own.
pub(crate) fn specs(verdict: VerdictOn, more: impl IntoIterator<Item = MetricSpec>) -> Vec<MetricSpec> {
    let time = |id: &str, label: &str| MetricSpec::new(id, label, Unit::Seconds, Better::Lower);
    let mut specs = vec![
        MetricSpec::new("operations_per_s", "requests", Unit::OperationsPerSecond, Better::Higher),
        time("response_time_mean_s", "response time, mean"),
    ];
    specs.extend(QUANTILES.map(|(id, label, _)| time(id, label)));
    specs.extend(more);
    MetricSpec::with_primary(specs, verdict.metric())
}

/// How many entries were late, where operations have an intended start.
pub(crate) fn late(result: &DriveResult) -> Option<u64> {
    let late = || result.lateness.bins.iter().filter(|bin| bin.low > LATE_NS).map(|bin| bin.count).sum();
    (!result.lateness.is_empty()).then(late)
}

/// Why figures must not be used in which so many requests got no answer, or none did.
pub(crate) fn failed(result: &DriveResult) -> Option<String> {
    let failed: u64 = result.errors.iter().map(|(_, count)| count).sum();
    let all = result.operations + failed + result.unfinished;
    let most = result.errors.iter().max_by_key(|(_, count)| *count);
    let most = most.map(|(reason, _)| format!("; most often: {reason}")).unwrap_or_default();
    if result.operations == 0 {
        return Some(format!("no request was answered in steady state{most}"));
    }
    let unfinished = result.unfinished;
    ((failed + unfinished) as f64 > FAILED_MAX * all as f64).then(|| {
        let allowed = FAILED_MAX * 100.0;
        format!(
            "of {all} requests {failed} failed and {unfinished} were unfinished; together {allowed} % are allowed{most}"
        )
    })
}

/// Rate and response times from what was counted over a window of so many seconds.
fn figures(measured: &Measurement, window_s: f64) -> Figures {
    let operations = measured.counts.get(count::OPERATIONS).map_or(0.0, |count| *count as f64);
    let mut figures = Figures::of([("operations_per_s", Some(operations / window_s))]);
    if let Some(response) = measured.histograms.get(histogram::RESPONSE) {
        figures.mean("response_time_mean_s", response);
        QUANTILES.iter().for_each(|(id, _, q)| figures.percentile(id, response, *q));
    }
    figures
}

/// The trial's figures from those of its guests; `add` adds the workload's own.
pub(crate) fn combine(
    guests: Vec<Driven>,
    verdict: VerdictOn,
    add: impl FnOnce(&mut Figures, &Measurement),
) -> Option<Driven> {
    let mut all = together(guests)?;
    let mut figures = figures(&all.measurement, all.measured_s());
    add(&mut figures, &all.measurement);
    figures.put(&mut all.measurement);
    let wanted = verdict.metric();
    if all.invalid.is_none() && too_few(&all.measurement, wanted) {
        all.invalid = Some(format!(
            "there were too few requests for {wanted}, on which the verdict is to be: ten must lie beyond it"
        ));
    }
    Some(all)
}
