//! The figures of a trial, or of one number of guests: of one guest and of all together, made the same way.

use crate::java::spec::JavaDone;
use tare_model::density::metric;
use tare_model::drive::DriveResult;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::trial::{Flag, Measurement};
use tare_model::{count, histogram};

use crate::figures::Figures;
use crate::together::together;
use crate::yields::from_result;
use crate::{Driven, UnitOfWork};

const OPERATIONS: &str = count::OPERATIONS;
/// Guests that a count is the sum of.
const GUESTS: &str = "guests";
/// Of the application's transactions in all phases, those of one kind.
const TRANSACTIONS: &str = "transactions: ";
const LIVE_HEAP: &str = "live_heap_bytes";
const HEAP_USED: &str = "heap_used_bytes";
const HEAP_COMMITTED: &str = "heap_committed_bytes";
const ALLOCATED: &str = "allocated_bytes";
const COLLECTIONS: &str = "collections";
const COLLECTION_MS: &str = "collection_ms";
const APPLICATION_CPU: &str = "application_cpu_ns";
/// Largest resident size of the application.
pub(super) const RESIDENT: &str = "application_resident_peak_bytes";
/// Memory that the guest's system still holds.
pub(super) const HELD: &str = "memory_held_bytes";
/// What the driver calls starts that the application gave up: an error, which in no operation happened.
const GIVEN_UP: &str = "starts dropped";
/// The same here.
const DROPPED: &str = "starts_dropped";
/// Where they belong among the counts of every driver: due in the window, and not done.
const UNFINISHED: &str = count::UNFINISHED;
/// How the driver begins the names of what the application said of itself.
const SAID: &str = "driver application_";

/// Quantiles of the response time that are reported.
const QUANTILES: [(&str, &str, f64); 4] = [
    ("response_time_p50_s", "response time, median", 0.5),
    ("response_time_p90_s", "response time, 90th percentile", 0.9),
    (metric::RESPONSE_P99, "response time, 99th percentile", 0.99),
    ("response_time_p999_s", "response time, 99.9th percentile", 0.999),
];

/// All metrics, the primary first.
pub(super) fn specs() -> Vec<MetricSpec> {
    let rate = |id: &str, label: &str| MetricSpec::new(id, label, Unit::OperationsPerSecond, Better::Higher);
    let lower = |id: &str, label: &str, unit| MetricSpec::new(id, label, unit, Better::Lower);
    let mut specs = vec![
        rate(metric::OPERATIONS, "operations, all guests").primary(),
        rate(metric::PER_GUEST, "operations a guest"),
        lower("response_time_mean_s", "response time, mean", Unit::Seconds),
    ];
    specs.extend(QUANTILES.map(|(id, label, _)| lower(id, label, Unit::Seconds)));
    specs.extend([
        lower(HEAP_USED, "heap in use at the end, a guest", Unit::Bytes),
        lower(HEAP_COMMITTED, "heap that the virtual machine holds, a guest", Unit::Bytes),
        lower("allocated_bytes_per_operation", "allocated an operation", Unit::Bytes),
        lower(COLLECTIONS, "collections of garbage, a guest, all phases", Unit::Count),
        lower("collection_time_s", "time in collections, a guest, all phases", Unit::Seconds),
    ]);
    specs
}

/// The metrics from counts and response times over a window of so many seconds.
fn figures(measured: &Measurement, window_s: f64) -> Figures {
    let count = |name: &str| measured.counts.get(name).map(|count| *count as f64);
    let guests = count(GUESTS).unwrap_or(1.0);
    let of_guest = |name: &str| count(name).map(|sum| sum / guests);
    let transactions = transactions(measured).map(|(_, count)| count as f64).sum::<f64>();
    let rate = count(OPERATIONS).unwrap_or(0.0) / window_s;
    let mut figures = Figures::of([
        (metric::OPERATIONS, Some(rate)),
        (metric::PER_GUEST, Some(rate / guests)),
        (HEAP_USED, of_guest(HEAP_USED)),
        (HEAP_COMMITTED, of_guest(HEAP_COMMITTED)),
        ("allocated_bytes_per_operation", count(ALLOCATED).map(|bytes| bytes / transactions)),
        (COLLECTIONS, of_guest(COLLECTIONS)),
        ("collection_time_s", of_guest(COLLECTION_MS).map(|ms| ms / 1e3)),
    ]);
    if let Some(response) = measured.histograms.get(histogram::RESPONSE) {
        figures.mean("response_time_mean_s", response);
        QUANTILES.iter().for_each(|(id, _, q)| figures.percentile(id, response, *q));
    }
    figures
}

fn transactions(measured: &Measurement) -> impl Iterator<Item = (&str, u64)> {
    measured.counts.iter().filter_map(|(name, count)| Some((name.strip_prefix(TRANSACTIONS)?, *count)))
}

/// What one guest came to: what its driver saw and what its application reports. `before` is what its application had reported when it was last driven: what it counts since its
/// start is reported since then.
pub(super) fn of_guest(result: DriveResult, done: &JavaDone, before: &JavaDone) -> Driven {
    let mut driven = from_result(result, UnitOfWork::Operation);
    let counts = [
        (GUESTS, 1),
        (LIVE_HEAP, done.live_heap_bytes),
        (HEAP_USED, done.heap_used_bytes),
        (HEAP_COMMITTED, done.heap_committed_bytes),
        (ALLOCATED, done.allocated_bytes.saturating_sub(before.allocated_bytes)),
        (COLLECTIONS, done.collections.saturating_sub(before.collections)),
        (COLLECTION_MS, done.collection_ms.saturating_sub(before.collection_ms)),
        (APPLICATION_CPU, done.cpu_ns.saturating_sub(before.cpu_ns)),
    ];
    driven.count(counts);
    for (kind, count) in &done.transactions {
        let since = count.saturating_sub(before.transactions.get(kind).copied().unwrap_or(0));
        driven.measurement.counts.insert(format!("{TRANSACTIONS}{kind}"), since);
    }
    // The application times its operations itself: a driver that waits for a CPU only sees the window's edges late, which it
    // tells as facts.
    driven.flags.retain(|flag| flag.kind != tare_model::flag::DRIVER_STARVED);
    let facts = std::mem::take(&mut driven.facts);
    driven.facts = facts.into_iter().map(|(name, value)| (said(name), value)).collect();
    figures(&driven.measurement, driven.measured_s()).put(&mut driven.measurement);
    let mut driven = driven.with_own_part();
    let operations = driven.measurement.counts.get(OPERATIONS).copied().unwrap_or(0);
    if operations == 0 {
        driven.invalid = Some("no operation was completed in steady state".to_owned());
    }
    tell_dropped(&mut driven);
    driven
}

/// What the application said of itself, by names for people.
fn said(name: String) -> String {
    match name.strip_prefix(SAID) {
        Some(own) => format!("application: {}", own.replace('_', " ")),
        None => name,
    }
}

/// Tells starts that the application gave up as what they are.
fn tell_dropped(driven: &mut Driven) {
    let counts = &mut driven.measurement.counts;
    let given_up: Vec<String> = counts
        .keys()
        .filter(|name| count::reason(name).is_some_and(|why| why.starts_with(GIVEN_UP)))
        .cloned()
        .collect();
    let dropped: u64 = given_up.iter().filter_map(|name| counts.remove(name)).sum();
    if dropped == 0 {
        return;
    }
    counts.insert(DROPPED.to_owned(), dropped);
    *counts.entry(UNFINISHED.to_owned()).or_default() += dropped;
}

/// That starts were given up, in so many of so many guests; `None` where none was.
fn dropped(all: &Measurement, in_guests: usize, guests: usize) -> Option<Flag> {
    let count = |name: &str| all.counts.get(name).copied().unwrap_or(0);
    let (dropped, done) = (count(DROPPED), count(OPERATIONS));
    let share = dropped as f64 * 100.0 / (dropped + done) as f64;
    let detail = format!(
        "{in_guests} of {guests} guests could not keep up: {dropped} operations ({share:.1} % of those of all guests) were more \
         than 1 s late and never started"
    );
    (dropped > 0).then(|| Flag { kind: "starts-dropped".to_owned(), detail })
}

/// The figures of all guests together.
pub(super) fn combine(guests: Vec<Driven>) -> Option<Driven> {
    let missing = |name: &&str| !guests.iter().all(|guest| guest.measurement.counts.contains_key(*name));
    let of_some: Vec<&str> = [RESIDENT, HELD, count::DRIVER_RUN_DELAY_NS].into_iter().filter(missing).collect();
    let behind = guests.iter().filter(|guest| guest.measurement.counts.contains_key(DROPPED)).count();
    let number = guests.len();
    let mut all = together(guests)?;
    all.flags.extend(dropped(&all.measurement, behind, number));
    // A sum over some guests would be taken for one over all.
    all.measurement.counts.retain(|name, _| !of_some.contains(&name.as_str()));
    figures(&all.measurement, all.measured_s()).put(&mut all.measurement);
    // One guest has no parts but the whole.
    if all.measurement.parts.len() == 1 {
        all.measurement.parts.clear();
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yields::tests::{histogram, result};

    fn done(scale: u64) -> JavaDone {
        let kinds = [("new-order", 10), ("payment", 10), ("customer-report", 10)];
        let rare = ["order-status", "delivery", "stock-level"].map(|kind| (kind, 1));
        JavaDone {
            transactions: kinds.into_iter().chain(rare).map(|(kind, n)| (kind.to_owned(), n * scale)).collect(),
            groups: 6,
            live_heap_bytes: 150,
            heap_used_bytes: 200,
            heap_committed_bytes: 400,
            allocated_bytes: 33_000 * scale,
            collections: 2 * scale,
            collection_ms: 10 * scale,
            cpu_ns: 1000 * scale,
            wrong: None,
        }
    }

    /// A guest that did so many operations of so many milliseconds in one second.
    fn guest(operations: u64, ms: u64, dropped: u64) -> Driven {
        let errors =
            if dropped > 0 { vec![("starts dropped: more than 1 s late".to_owned(), dropped)] } else { vec![] };
        let granted = vec![("application_heap_max_bytes".to_owned(), "900".to_owned())];
        let response = histogram(ms * 1_000_000, operations);
        let driven = DriveResult { errors, granted, response, ..result(operations) };
        of_guest(driven, &done(100), &done(60))
    }

    #[test]
    fn what_the_application_counts_since_its_start_is_reported_since_the_last_drive() {
        let driven = guest(2000, 2, 0);
        let (metrics, counts) = (&driven.measurement.metrics, &driven.measurement.counts);
        assert_eq!((counts["transactions: payment"], counts["transactions: delivery"]), (400, 40));
        assert_eq!((counts[COLLECTIONS], counts[APPLICATION_CPU]), (80, 40_000));
        assert!((metrics["allocated_bytes_per_operation"] - 1000.0).abs() < 1e-9, "{metrics:?}");
        assert!((metrics["collection_time_s"] - 0.4).abs() < 1e-12);
        assert!((metrics["operations_per_s"] - 2000.0).abs() < 1e-9);
        assert!((metrics["response_time_p99_s"] - 0.002).abs() < 1e-9);
        assert!(!metrics.contains_key("response_time_p999_s"), "2000 are too few");
        assert_eq!(driven.facts["application: heap max bytes"], "900");
        assert_eq!((driven.flags.len(), driven.invalid), (0, None), "a driver without a CPU is none of its figures");
    }

    #[test]
    fn guests_add_up_and_what_each_has_is_a_mean() {
        let (mut first, mut second) = (guest(3000, 1, 0), guest(1000, 9, 50));
        first.measurement.counts.insert(RESIDENT.into(), 7);
        first.measurement.counts.insert(HELD.into(), 5);
        second.measurement.counts.insert(HELD.into(), 6);
        second.facts.insert("live heap".into(), "another".into());
        let all = combine(vec![first, second]).unwrap();
        let metrics = &all.measurement.metrics;
        assert!((metrics["operations_per_s"] - 4000.0).abs() < 1e-9, "{metrics:?}");
        assert!((metrics["operations_per_guest_per_s"] - 2000.0).abs() < 1e-9);
        assert!((metrics["heap_used_bytes"] - 200.0).abs() < 1e-9);
        assert!((metrics["allocated_bytes_per_operation"] - 1000.0).abs() < 1e-9);
        assert!((metrics["response_time_p50_s"] - 0.001).abs() < 1e-9, "of the merged histogram, no mean");
        assert!((metrics["response_time_p90_s"] - 0.009).abs() < 1e-9);
        let parts: Vec<(u32, f64)> =
            all.measurement.parts.iter().map(|part| (part.guest, part.metrics["operations_per_s"])).collect();
        assert_eq!(parts, [(1, 3000.0), (2, 1000.0)]);
        assert_eq!(all.measurement.counts.get(HELD), Some(&11));
        assert_eq!(all.measurement.counts.get(RESIDENT), None, "only one guest reported it");
        assert_eq!(all.facts["guest 2: live heap"], "another");
        assert!(!all.facts.contains_key("guest 2: application: heap max bytes"), "{:?}", all.facts);
        assert_eq!((all.measurement.counts[DROPPED], all.measurement.counts[UNFINISHED]), (50, 50));
        assert!(all.measurement.counts.keys().all(|name| !name.starts_with("errors")), "{:?}", all.measurement.counts);
        assert_eq!((all.flags[0].kind.as_str(), all.work), ("starts-dropped", 4000.0));
        let detail = &all.flags[0].detail;
        assert!(detail.starts_with("1 of 2 guests") && detail.contains("50 operations (1.2 % of"), "{detail}");
        assert_eq!(all.flags.len(), 1, "guests that are all behind tell it once");
    }

    #[test]
    fn one_guest_is_the_whole_and_one_without_operations_tells_nothing() {
        assert!(combine(vec![guest(10, 1, 0)]).unwrap().measurement.parts.is_empty());
        let idle = combine(vec![guest(10, 1, 0), guest(0, 1, 0)]).unwrap();
        assert_eq!(idle.invalid.as_deref(), Some("guest 2: no operation was completed in steady state"));
        assert_eq!(combine(Vec::new()), None);
    }

    #[test]
    fn every_metric_that_is_reported_is_declared() {
        let declared: Vec<String> = specs().into_iter().map(|spec| spec.id).collect();
        let driven = guest(20_000, 1, 0);
        assert!(driven.measurement.metrics.keys().all(|id| declared.contains(id)));
        assert_eq!(driven.measurement.metrics.len(), declared.len(), "{:?}", driven.measurement.metrics);
    }
}
