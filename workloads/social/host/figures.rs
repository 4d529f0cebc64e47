//! The figures of a trial: of one instance, of one guest and of all together, made the same way.

use crate::social::spec::{Operation, SocialDone, stationary};
use tare_model::drive::DriveResult;
use tare_model::metric::{Better, MetricSpec, Unit, common};
use tare_model::trial::{Incomplete, Measurement, Part, RequestType};
use tare_model::{Histogram, histogram};

use super::merge::both_done;
use crate::faults;
use crate::figures::{Figures, too_few};
use crate::requests::{add_types, times, total};
use crate::together::together;
use crate::yields::{from_result, merge};
use crate::{Driven, UnitOfWork};

/// The primary metric.
pub(super) const RESPONSE_P90: &str = "response_time_p90_s";
/// The published measure where there are several instances: each counts alike, however many operations it has.
const RESPONSE_P90_INSTANCES: &str = "response_time_p90_instances_s";
/// Requests that were sent, static files and pictures counted.
const EXCHANGES: &str = "exchanges";
const NOT_MODIFIED: &str = "not_modified";
/// Users at one time.
const USERS: &str = "users";
/// Cycles that ended in the window, and the sum of their lengths as drawn and as they were, milliseconds.
const CYCLES: &str = "cycles";
const CYCLES_DRAWN: &str = "cycles_drawn_ms";
const CYCLES_WERE: &str = "cycles_were_ms";
/// Instances that were looked at, and the sum of their largest resident sizes.
pub(super) const LOOKED_AT: &str = "instances looked at";
pub(super) const RESIDENT: &str = "instances_resident_bytes";
/// Operations of kinds that are not in the primary metric because there were too few of them.
pub(super) const LEFT_OUT: &str = "operations left out of the 90th percentile";

/// Fewest operations of a kind whose 90th percentile is in the weighted mean: at least one lies beyond it. Fewer are left out and the
/// weights of the others raised alike: of rare kinds (registration: 0.84 %) the weight is so small that their percentile's own
/// uncertainty hardly counts, which is why the ten operations beyond it that a percentile by itself takes are not asked for here.
const LEAST: u64 = 10;
/// Weight that may be left out altogether, which is flagged; with more, there is no such figure: home, the search and the event, four
/// fifths of all operations, are always in it.
const LEFT_OUT_MOST: f64 = 0.2;

/// Quantiles that are reported of the response times of all operations together.
const QUANTILES: [(&str, &str, f64); 2] = [
    ("response_time_p50_s", "response time of all operations, median", 0.5),
    ("response_time_p99_s", "response time of all operations, 99th percentile", 0.99),
];

/// Id of the 90th percentile of one operation.
fn own_p90(operation: Operation) -> String {
    format!("p90_{}_s", operation.name())
}

/// All metrics, the primary first.
pub(super) fn specs() -> Vec<MetricSpec> {
    let lower = |id: &str, label: &str, unit| MetricSpec::new(id, label, unit, Better::Lower);
    let higher = |id: &str, label: &str, unit| MetricSpec::new(id, label, unit, Better::Higher);
    let primary = "response time, 90th percentile of each operation, mean by frequency";
    let mut specs = vec![
        lower(RESPONSE_P90, primary, Unit::Seconds).primary(),
        lower(RESPONSE_P90_INSTANCES, "the same of each instance, mean over the instances", Unit::Seconds),
        higher("operations_per_s", "operations", Unit::OperationsPerSecond),
        lower("response_time_mean_s", "response time of all operations, mean", Unit::Seconds),
    ];
    specs.extend(QUANTILES.map(|(id, label, _)| lower(id, label, Unit::Seconds)));
    specs.extend(Operation::ALL.map(|operation| {
        let label = format!("response time of {}, 90th percentile", operation.name().replace('_', " "));
        lower(&own_p90(operation), &label, Unit::Seconds)
    }));
    specs.extend([
        lower("failed_share", "share of operations with a wrong answer or none", Unit::Count),
        lower(common::INSTANCE_MEMORY, "resident memory of an instance, largest, mean", Unit::Bytes),
        lower("cycle_ratio", "cycle time over what was drawn", Unit::Count),
        lower("users_over_rate_s", "users over operations a second", Unit::Seconds),
        higher("not_modified_share", "share of requests answered with \"not modified\"", Unit::Count),
        lower("bytes_per_operation", "bytes an operation, its files counted", Unit::Bytes),
    ]);
    specs
}

/// The published measure, and what is not in it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct WeightedP90 {
    /// Seconds; `None`: too few operations, or one of them was not reached.
    pub seconds: Option<f64>,
    /// The same of the operations that completed; `None`: too few operations.
    pub completed_only: Option<f64>,
    /// Whether so many operations of each kind completed that its percentile is a number.
    pub reached: bool,
    /// Kinds of operations of which there were too few.
    pub left_out: Vec<&'static str>,
    /// Operations of those.
    pub operations: u64,
    /// Their share in the long run.
    pub weight: f64,
}

/// The 90th percentile of each operation's response time, averaged with the share of each in the long run.
pub(super) fn weighted_p90(types: &[RequestType]) -> WeightedP90 {
    let (mut p90, mut sum, mut completed, mut weights) = (WeightedP90::default(), 0.0, Some(0.0), 0.0);
    p90.reached = true;
    for (operation, share) in Operation::ALL.into_iter().zip(stationary()) {
        let times = types.iter().find(|one| one.name == operation.name()).map(|one| &one.times);
        let count = times.map_or(0, Histogram::operations);
        match times.filter(|_| count >= LEAST) {
            Some(times) => {
                p90.reached &= times.quantile(0.9).is_some();
                let done = times.completed().quantile(0.9);
                completed = completed.zip(done).map(|(sum, ns)| sum + share * ns / 1e9);
                sum += share * times.quantile(0.9).unwrap_or(0.0) / 1e9;
                weights += share;
            }
            None => {
                p90.left_out.push(operation.name());
                p90.operations += count;
                p90.weight += share;
            }
        }
    }
    let enough = weights > 0.0 && p90.weight <= LEFT_OUT_MOST;
    p90.seconds = (enough && p90.reached).then(|| sum / weights);
    p90.completed_only = completed.filter(|_| enough).map(|sum| sum / weights);
    p90
}

/// Operations that were answered rightly.
fn right(all: &RequestType) -> u64 {
    all.requests.saturating_sub(all.validation_errors)
}

/// The metrics from operations and counts over a window of so many seconds.
fn figures(measured: &Measurement, window_s: f64) -> Figures {
    let count = |name: &str| measured.counts.get(name).map(|count| *count as f64);
    let over = |name: &str, of: &str| count(name).zip(count(of)).map(|(part, whole)| part / whole);
    let mut figures = of_types(&measured.requests, window_s);
    let rate = figures.metrics.get("operations_per_s").copied();
    let more = [
        (RESPONSE_P90_INSTANCES, over_instances(measured)),
        (common::INSTANCE_MEMORY, over(RESIDENT, LOOKED_AT)),
        ("cycle_ratio", over(CYCLES_WERE, CYCLES_DRAWN)),
        ("users_over_rate_s", count(USERS).zip(rate).map(|(users, rate)| users / rate)),
        ("not_modified_share", over(NOT_MODIFIED, EXCHANGES)),
    ];
    more.into_iter().for_each(|(id, value)| figures.add(id, value));
    if let Some(response) = measured.histograms.get(histogram::RESPONSE) {
        QUANTILES.iter().for_each(|(id, _, q)| figures.percentile(id, response, *q));
    }
    figures
}

/// The mean over the instances of their 90th percentiles, seconds; `None` where that of one is missing. One instance has no part of its
/// own: it is the whole.
fn over_instances(measured: &Measurement) -> Option<f64> {
    let parts: Vec<_> = measured.parts.iter().filter(|part| part.instance.is_some()).collect();
    if parts.is_empty() {
        return weighted_p90(&measured.requests).seconds;
    }
    let sum: Option<f64> = parts.iter().map(|part| part.metrics.get(RESPONSE_P90)).sum();
    sum.map(|sum| sum / parts.len() as f64)
}

/// What follows from operations alone.
fn of_types(types: &[RequestType], window_s: f64) -> Figures {
    let all = total(types);
    let requests = all.requests as f64;
    let (weighted, all_times) = (weighted_p90(types), times(types));
    let mut figures = Figures::of([
        (RESPONSE_P90, weighted.seconds),
        ("operations_per_s", Some(right(&all) as f64 / window_s)),
        ("response_time_mean_s", Some(all.response_s / requests)),
        ("failed_share", Some(all.validation_errors as f64 / requests)),
        ("bytes_per_operation", Some(all.bytes as f64 / requests)),
    ]);
    figures.note_mean("response_time_mean_s", &all_times);
    if weighted.seconds != weighted.completed_only {
        let (missing, completed_only) = (all_times.missing(), weighted.completed_only);
        figures.incomplete.insert(RESPONSE_P90.to_owned(), Incomplete { missing, completed_only });
    }
    for operation in Operation::ALL {
        if let Some(one) = types.iter().find(|one| one.name == operation.name()) {
            figures.percentile(&own_p90(operation), &one.times, 0.9);
        }
    }
    figures
}

/// Makes metrics anew from what they are made of.
pub(super) fn finish(driven: &mut Driven) {
    figures(&driven.measurement, driven.measured_s()).put(&mut driven.measurement);
    let weighted = weighted_p90(&driven.measurement.requests);
    driven.measurement.counts.remove(LEFT_OUT);
    driven.facts.remove(LEFT_OUT);
    if weighted.left_out.is_empty() {
        return;
    }
    driven.measurement.counts.insert(LEFT_OUT.to_owned(), weighted.operations);
    let why = format!(
        "{}: fewer than {LEAST} each; {:.1} % of operations in the long run",
        weighted.left_out.join(", "),
        weighted.weight * 100.0
    );
    driven.facts.insert(LEFT_OUT.to_owned(), why);
}

/// What one guest came to, by what its drivers saw; `None` without a driver.
pub(super) fn of_guest(results: Vec<(DriveResult, SocialDone)>) -> Option<(Driven, SocialDone)> {
    let (results, done): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    let (result, done) = (merge(results)?, done.into_iter().reduce(both_done)?);
    let mut driven = from_result(result, UnitOfWork::Operation);
    let window = driven.measured_s();
    for (instance, number) in done.instances.iter().zip(1..) {
        add_types(&mut driven.measurement.requests, instance.operations.clone());
        let metrics = of_types(&instance.operations, window).metrics;
        driven.measurement.parts.push(Part { guest: 1, driver: None, instance: Some(number), metrics });
    }
    let all = total(&driven.measurement.requests);
    driven.work = right(&all) as f64;
    count(&mut driven, &done, &all);
    finish(&mut driven);
    if right(&all) == 0 {
        driven.invalid = Some("no operation was completed rightly in steady state".to_owned());
    } else if too_few(&driven.measurement, RESPONSE_P90) {
        let why = driven.facts.get(LEFT_OUT).cloned().unwrap_or_default();
        driven.invalid = Some(format!("too few operations in steady state for their 90th percentiles: {why}"));
    }
    Some((driven, done))
}

fn count(driven: &mut Driven, done: &SocialDone, all: &RequestType) {
    let sum = |of: fn(&crate::social::spec::InstanceDone) -> u64| done.instances.iter().map(of).sum::<u64>();
    let ms = |seconds: f64| (seconds * 1e3).round() as u64;
    let drawn: f64 = done.instances.iter().map(|one| one.cycles.1).sum();
    let were: f64 = done.instances.iter().map(|one| one.cycles.2).sum();
    let counts = [
        (EXCHANGES, sum(|one| one.requests)),
        (NOT_MODIFIED, sum(|one| one.not_modified)),
        (USERS, sum(|one| one.users.into())),
        (CYCLES, sum(|one| one.cycles.0)),
        (CYCLES_DRAWN, ms(drawn)),
        (CYCLES_WERE, ms(were)),
        ("validation_errors", all.validation_errors),
        ("people added, all phases", sum(|one| one.added.people)),
        ("events added, all phases", sum(|one| one.added.events)),
        ("attendances added, all phases", sum(|one| one.added.attendances)),
    ];
    driven.count(counts);
    faults::count(driven, &done.faults);
    let facts = [
        ("connections opened, all phases", done.connections),
        ("driver's memory a user, bytes", done.memory_per_user_bytes),
    ];
    driven.facts.extend(facts.map(|(name, count)| (name.to_owned(), count.to_string())));
}

/// Adds the largest resident size of each instance, bytes, in order; `None` where it is unknown.
pub(super) fn add_resident(driven: &mut Driven, resident: &[Option<u64>]) {
    for (part, bytes) in driven.measurement.parts.iter_mut().filter(|part| part.instance.is_some()).zip(resident) {
        part.metrics.extend(bytes.map(|bytes| (common::INSTANCE_MEMORY.to_owned(), bytes as f64)));
    }
    let known: Vec<u64> = resident.iter().copied().flatten().collect();
    if !known.is_empty() {
        let counts = &mut driven.measurement.counts;
        counts.insert(LOOKED_AT.to_owned(), known.len() as u64);
        counts.insert(RESIDENT.to_owned(), known.iter().sum());
    }
    finish(driven);
}

/// The figures of all guests together.
pub(super) fn combine(guests: Vec<Driven>) -> Option<Driven> {
    let number = guests.len();
    let mut all = together(guests.into_iter().map(Driven::with_own_part).collect())?;
    finish(&mut all);
    let parts = &mut all.measurement.parts;
    // One guest has no parts but its instances, and one instance is the whole.
    if number == 1 {
        parts.retain(|part| part.instance.is_some());
        if parts.len() == 1 {
            parts.clear();
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests;
