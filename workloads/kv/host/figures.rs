//! The figures of a trial, made the same way from one driver, from several, and from several guests.

use tare_model::drive::DriveResult;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::trial::Measurement;

use super::parameters::VerdictOn;
use super::spec::KvDone;
use crate::figures::{Figures, too_few};
use crate::together::together;
use crate::yields::from_result;
use crate::{Driven, UnitOfWork};

const GETS: &str = "gets";
const MISSES: &str = "misses";
const HIT_SHARE: &str = "hit_share";

/// Quantiles of the response time.
const QUANTILES: [(&str, &str, f64); 4] = [
    ("response_time_p50_s", "response time, median", 0.5),
    ("response_time_p90_s", "response time, 90th percentile", 0.9),
    ("response_time_p99_s", "response time, 99th percentile", 0.99),
    ("response_time_p999_s", "response time, 99.9th percentile", 0.999),
];

/// Later than this after its intended start a request counts as late, nanoseconds.
const LATE_NS: u64 = 1_000_000;
/// Largest part of the requests that may fail or stay unfinished, as for any request and response.
const FAILED_MAX: f64 = 0.01;

/// All metrics, the one that the verdict is about first.
pub(super) fn specs(verdict: VerdictOn) -> Vec<MetricSpec> {
    let time = |id: &str, label: &str| MetricSpec::new(id, label, Unit::Seconds, Better::Lower);
    let mut specs = vec![
        MetricSpec::new("operations_per_s", "requests", Unit::OperationsPerSecond, Better::Higher),
        time("response_time_mean_s", "response time, mean"),
    ];
    specs.extend(QUANTILES.map(|(id, label, _)| time(id, label)));
    specs.push(MetricSpec::new(HIT_SHARE, "share of GETs with a value", Unit::Share, Better::Higher));
    let primary = specs.iter().position(|spec| spec.id == verdict.metric()).unwrap_or(0);
    let chosen = specs.remove(primary).primary();
    specs.insert(0, chosen);
    specs
}

/// What the drivers of a guest came to, whose results are merged. `depth` requests were sent together.
pub(super) fn yields(result: DriveResult, done: &KvDone, depth: u32, eviction: bool) -> Driven {
    let late = result.lateness.bins.iter().filter(|bin| bin.low > LATE_NS).map(|bin| bin.count).sum::<u64>();
    let open = !result.lateness.is_empty();
    let failed = failed(&result);
    let mut driven = from_result(result, UnitOfWork::Operation);
    let steady = &done.steady;
    let counts = [
        (GETS, steady.gets),
        ("hits", steady.gets - steady.misses.min(steady.gets)),
        (MISSES, steady.misses),
        ("sets", steady.sets),
        ("requests in all phases", done.all.gets + done.all.sets),
        ("requests in doubt", done.in_doubt.0 + done.in_doubt.1),
        ("refused", done.refused),
        ("wrong answers", done.wrong),
    ];
    driven.measurement.counts.extend(counts.map(|(name, count)| (name.to_owned(), count)));
    if open {
        driven.measurement.counts.insert("sent more than 1 ms late".to_owned(), late * u64::from(depth));
    }
    driven.invalid = wrong(done, eviction).or(failed);
    driven
}

/// Why figures must not be used in which answers were wrong.
fn wrong(done: &KvDone, eviction: bool) -> Option<String> {
    if done.wrong > 0 {
        return Some(format!("{} answers were wrong; the first: {}", done.wrong, done.first_wrong));
    }
    let misses = done.all.misses;
    (misses > 0 && !eviction)
        .then(|| format!("{misses} GETs found no value, although all keys were set and the server may drop none"))
}

/// Why figures must not be used in which so many requests got no answer, or none did.
fn failed(result: &DriveResult) -> Option<String> {
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

/// The metrics from counts and response times over a window.
fn figures(measured: &Measurement, window_s: f64) -> Figures {
    let count = |name: &str| measured.counts.get(name).map_or(0.0, |count| *count as f64);
    let mut figures = Figures::of([
        ("operations_per_s", Some(count("operations") / window_s)),
        (HIT_SHARE, Some(1.0 - count(MISSES) / count(GETS))),
    ]);
    if let Some(response) = measured.histograms.get("response") {
        figures.mean("response_time_mean_s", response);
        QUANTILES.iter().for_each(|(id, _, q)| figures.percentile(id, response, *q));
    }
    figures
}

/// The trial's figures from those of its guests.
pub(super) fn combine(guests: Vec<Driven>, verdict: VerdictOn) -> Option<Driven> {
    let mut all = together(guests)?;
    figures(&all.measurement, all.measured_s()).put(&mut all.measurement);
    let wanted = verdict.metric();
    if all.invalid.is_none() && too_few(&all.measurement, wanted) {
        all.invalid = Some(format!(
            "there were too few requests for {wanted}, on which the verdict is to be: ten must lie beyond it"
        ));
    }
    Some(all)
}

#[cfg(test)]
#[path = "../tests/figures.rs"]
mod tests;
