//! The figures of a trial: of one driver, of one guest, and of all guests together, made the same way.

use crate::store::spec::StoreDone;
use tare_model::drive::{CUT_OFF, DriveResult};
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::trial::{Flag, Measurement, Part};
use tare_model::{count, histogram};

use super::parameters::VerdictOn;
use crate::figures::{Figures, too_few};
use crate::together::together;
use crate::yields::{from_result, merge};
use crate::{Driven, UnitOfWork};

/// Id of the metric that is the part of all orders that were rolled back because stock was short.
const ROLLBACK_SHARE: &str = "rollback_share";

/// Counts that belong to a guest's server. Their sum over guests is reported only where every guest has reported its own.
pub(super) const WAL_BYTES: &str = "server: WAL bytes";
/// Bytes of tables and indexes that the server wrote.
pub(super) const WRITTEN_BYTES: &str = "server: data bytes written";
const NOT_OF_SOME: [&str; 3] = [WAL_BYTES, WRITTEN_BYTES, count::DRIVER_RUN_DELAY_NS];

const OPERATIONS: &str = count::OPERATIONS;
pub(super) const ROLLED_BACK: &str = "rolled_back";
const STATEMENTS: &str = "statements";
pub(super) const GAVE_UP: &str = "clients that gave up";
pub(super) const DEADLOCKS: &str = "deadlocks tried again";
pub(super) const NAMES_TAKEN: &str = "names tried again";
pub(super) const RECONNECTS: &str = "reconnects";
pub(super) const IN_DOUBT: &str = "orders in doubt";

/// Quantiles of the response time that are reported.
const QUANTILES: [(&str, &str, f64); 5] = [
    ("response_time_p50_s", "response time, median", 0.5),
    ("response_time_p90_s", "response time, 90th percentile", 0.9),
    ("response_time_p95_s", "response time, 95th percentile", 0.95),
    ("response_time_p99_s", "response time, 99th percentile", 0.99),
    ("response_time_p999_s", "response time, 99.9th percentile", 0.999),
];

/// The longest of a trial, which the published driver tells beside the mean. One order decides it.
const MAXIMUM: &str = "response_time_max_s";

/// All metrics, the one that the verdict is about first.
pub(super) fn specs(verdict: VerdictOn) -> Vec<MetricSpec> {
    let per_minute = || Unit::Other("orders/min".to_owned());
    let time = |id: &str, label: &str| MetricSpec::new(id, label, Unit::Seconds, Better::Lower);
    let mut specs = vec![
        MetricSpec::new("orders_per_minute", "orders a minute (OPM)", per_minute(), Better::Higher),
        MetricSpec::new("goodput_per_minute", "goodput, orders a minute", per_minute(), Better::Higher),
        time("response_time_mean_s", "response time, mean"),
    ];
    specs.extend(QUANTILES.map(|(id, label, _)| time(id, label)));
    specs.push(time(MAXIMUM, "response time, maximum"));
    let count = |id: &str, label: &str, unit, better| MetricSpec::new(id, label, unit, better);
    specs.extend([
        count(ROLLBACK_SHARE, "share of orders rolled back", Unit::Share, Better::Lower),
        count("wal_bytes_per_order", "WAL written an order", Unit::Bytes, Better::Lower),
        count("data_bytes_written_per_order", "data files written an order", Unit::Bytes, Better::Lower),
        count("statements_per_s", "statements", Unit::OperationsPerSecond, Better::Higher),
    ]);
    let primary = specs.iter().position(|spec| spec.id == verdict.metric()).unwrap_or(0);
    let chosen = specs.remove(primary).primary();
    specs.insert(0, chosen);
    specs
}

/// The metrics from counts and response times over a window of so many seconds.
pub(super) fn figures(measured: &Measurement, window_s: f64) -> Figures {
    let count = |name: &str| measured.counts.get(name).map(|count| *count as f64);
    let orders = count(OPERATIONS).unwrap_or(0.0);
    let rolled_back = count(ROLLED_BACK).unwrap_or(0.0);
    let mut figures = Figures::of([
        ("orders_per_minute", Some(60.0 * orders / window_s)),
        ("goodput_per_minute", Some(60.0 * (orders - rolled_back) / window_s)),
        (ROLLBACK_SHARE, Some(rolled_back / orders)),
        ("wal_bytes_per_order", count(WAL_BYTES).map(|bytes| bytes / orders)),
        ("data_bytes_written_per_order", count(WRITTEN_BYTES).map(|bytes| bytes / orders)),
        ("statements_per_s", count(STATEMENTS).map(|statements| statements / window_s)),
    ]);
    if let Some(response) = measured.histograms.get(histogram::RESPONSE) {
        figures.mean("response_time_mean_s", response);
        QUANTILES.iter().for_each(|(id, _, q)| figures.percentile(id, response, *q));
        figures.maximum(MAXIMUM, response);
    }
    figures
}

/// What one driver, or several as one, came to.
fn yields(result: DriveResult, store: &StoreDone) -> Driven {
    let steps = result.steps.clone();
    let mut driven = from_result(result, UnitOfWork::Operation);
    let counts = [
        (ROLLED_BACK, store.rolled_back),
        (STATEMENTS, store.statements),
        ("orders committed in all phases", store.orders),
        ("orders rolled back in all phases", store.rolled_back_total),
        ("customers made in all phases", store.new_customers),
        (DEADLOCKS, store.deadlock_retries),
        (NAMES_TAKEN, store.name_retries),
        (RECONNECTS, store.reconnects),
        (IN_DOUBT, (store.in_doubt.len() + store.unnumbered.len()) as u64),
        (GAVE_UP, store.gave_up.into()),
    ];
    driven.count(counts);
    driven.measurement.steps = steps;
    figures(&driven.measurement, driven.measured_s()).put(&mut driven.measurement);
    if !store.ramp.is_empty() {
        driven.facts.insert("clients started".to_owned(), store.ramp.clone());
    }
    driven
}

/// Largest part of the orders that may fail or stay unfinished, as for any request and response.
const FAILED_MAX: f64 = 0.01;

/// Why figures must not be used in which so many orders failed. A server that is killed on purpose fails what it was doing.
fn unanswered(measured: &Measurement, killed: bool) -> Option<String> {
    let counts = &measured.counts;
    let number = |name: &str| counts.get(name).copied().unwrap_or(0);
    let all: u64 = counts.iter().filter(|(name, _)| count::reason(name).is_some()).map(|(_, n)| n).sum();
    let (failed, unfinished, gave_up) = (all - cut_off(measured), number(count::UNFINISHED), number(GAVE_UP));
    let orders = number(OPERATIONS);
    let most =
        |excuse: bool| commonest(measured, excuse).map_or_else(String::new, |reason| format!("; most often: {reason}"));
    if gave_up > 0 {
        return Some(format!("{gave_up} clients gave up after too many failures{}", most(true)));
    }
    if orders == 0 {
        let cut = measured.counts.get(&count::error(CUT_OFF)).copied().unwrap_or(0);
        return Some(format!(
            "no order was completed in steady state, and {cut} were under way when the run ended{}; longer phases, fewer clients or a \
             guest with more CPUs would let some end",
            most(true)
        ));
    }
    let all = orders + failed + unfinished;
    let bad = !killed && (failed + unfinished) as f64 > FAILED_MAX * all as f64;
    bad.then(|| {
        let allowed = FAILED_MAX * 100.0;
        let most = most(cut_off(measured) > 0);
        format!(
            "of {all} orders {failed} failed and {unfinished} were unfinished; together {allowed} % are allowed{most}"
        )
    })
}

/// The error that most orders failed with; those that were cut off at the end are none if they are excused.
fn commonest(measured: &Measurement, excuse: bool) -> Option<&str> {
    let errors = measured.counts.iter().filter_map(|(name, n)| Some((count::reason(name)?, *n)));
    errors
        .filter(|(reason, n)| *n > 0 && !(excuse && *reason == CUT_OFF))
        .max_by_key(|(_, n)| *n)
        .map(|(reason, _)| reason)
}

/// Half of the 5 s that a driver waits for answers after the load. Where an order takes so long as a rule, many are still
/// under way then; where it does not, one that is has met a server that hangs, and failed.
const LONG_ORDER_NS: f64 = 2.5e9;

/// Orders that were under way when a closed loop ended, one a client at most, where orders take long as a rule: they are no
/// failures, and longer than all that ended.
fn cut_off(measured: &Measurement) -> u64 {
    let median = measured.histograms.get(histogram::RESPONSE).and_then(|response| response.completed().quantile(0.5));
    if median.is_none_or(|ns| ns < LONG_ORDER_NS) {
        return 0;
    }
    measured.counts.get(&count::error(CUT_OFF)).copied().unwrap_or(0)
}

/// Says that orders were under way at the end, if so many were that it matters.
fn under_way(measured: &Measurement) -> Option<Flag> {
    let cut = cut_off(measured);
    let orders = measured.counts.get(OPERATIONS).copied().unwrap_or(0);
    (cut as f64 > FAILED_MAX * orders as f64).then(|| Flag {
        kind: "cut-at-the-end".to_owned(),
        detail: format!(
            "{cut} orders were under way when the run ended, beside {orders} that ended in steady state: orders take long for phases so short"
        ),
    })
}

/// What the drivers of one guest came to, with the guest and each of them as parts, and what they did in its store. `guest`
/// is from 1.
pub(super) fn of_guest(
    results: Vec<(DriveResult, StoreDone)>,
    guest: u32,
    killed: bool,
) -> (Driven, Option<StoreDone>) {
    let part =
        |driver, driven: &Driven| Part { guest, driver, metrics: driven.measurement.metrics.clone(), instance: None };
    let drivers: Vec<Part> =
        (1..).zip(&results).map(|(number, (result, done))| part(Some(number), &yields(result.clone(), done))).collect();
    let (results, done): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    let done = done.into_iter().reduce(both_done);
    let merged = merge(results).zip(done.as_ref());
    let mut driven = merged.map_or_else(nothing, |(result, done)| yields(result, done));
    driven.measurement.parts = std::iter::once(part(None, &driven)).chain(drivers).collect();
    driven.invalid = unanswered(&driven.measurement, killed);
    driven.flags.extend(under_way(&driven.measurement));
    (driven, done)
}

/// What two drivers did in one store.
fn both_done(mut a: StoreDone, b: StoreDone) -> StoreDone {
    if a.ramp != b.ramp {
        a.ramp = format!("{}; {}", a.ramp, b.ramp);
    }
    a.add(&b);
    a
}

/// The figures where no driver reported anything.
fn nothing() -> Driven {
    Driven { invalid: Some("no driver was there".to_owned()), ..Driven::default() }
}

/// The metrics of a guest again, after counts have come that they rest on.
pub(super) fn finish(driven: &mut Driven) {
    figures(&driven.measurement, driven.measured_s()).put(&mut driven.measurement);
    if let Some(whole) = driven.measurement.parts.iter_mut().find(|part| part.driver.is_none()) {
        whole.metrics.clone_from(&driven.measurement.metrics);
    }
}

/// Whether the verdict has its figure. It is about the whole trial: what one guest has too few of, all may have enough of.
fn judge(driven: &mut Driven, verdict: VerdictOn) {
    let wanted = verdict.metric();
    if driven.invalid.is_none() && too_few(&driven.measurement, wanted) {
        let orders = driven.measurement.counts.get(OPERATIONS).copied().unwrap_or(0);
        driven.invalid = Some(format!(
            "{orders} orders are too few for {wanted}, on which the verdict is to be: ten must lie beyond it"
        ));
    }
}

/// The trial's figures from those of its guests.
pub(super) fn combine(guests: Vec<Driven>, verdict: VerdictOn) -> Option<Driven> {
    let missing = NOT_OF_SOME.map(|name| guests.iter().any(|guest| !guest.measurement.counts.contains_key(name)));
    let mut all = together(guests)?;
    for (name, _) in NOT_OF_SOME.iter().zip(missing).filter(|(_, missing)| *missing) {
        all.measurement.counts.remove(*name);
    }
    figures(&all.measurement, all.measured_s()).put(&mut all.measurement);
    // One guest with one driver has no parts but the whole.
    if all.measurement.parts.len() <= 2 {
        all.measurement.parts.clear();
    }
    judge(&mut all, verdict);
    Some(all)
}

#[cfg(test)]
mod tests;
