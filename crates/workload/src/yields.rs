//! What a workload yields, made the same way from every driver's result.

use std::collections::BTreeMap;

use tare_model::deviation::Deviation;
use tare_model::drive::DriveResult;
use tare_model::metric::common;
use tare_model::sample::{Sample, Source};
use tare_model::trial::{Flag, Measurement, Part, Step};
use tare_model::turns::TurnsDone;
use tare_model::{count, fact, flag, histogram};
use tare_wire::ServeReport;

/// What service demand is counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitOfWork {
    /// CPU seconds an operation.
    Operation,
    /// CPU seconds a byte.
    Byte,
}

impl UnitOfWork {
    /// How many units counts are given for: those of one byte are small.
    pub const fn counted(self) -> f64 {
        match self {
            Self::Operation => 1.0,
            Self::Byte => 1e6,
        }
    }
}

/// What one trial's load came to. By default nothing was done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Driven {
    /// Metrics, histograms, counts.
    pub measurement: Measurement,
    /// Start and end of the measured window, CLOCK_MONOTONIC nanoseconds of the client's host.
    pub window_ns: (u64, u64),
    /// What was done in turns; `None` where the arm had the window to itself.
    pub turns: Option<TurnsDone>,
    /// Units of work done in the window.
    pub work: f64,
    /// The driver's own series over all phases.
    pub samples: Vec<Sample>,
    /// What was granted and other facts for disclosure.
    pub facts: BTreeMap<String, String>,
    /// What a reader must know.
    pub flags: Vec<Flag>,
    /// What the workload does otherwise than the published one that it repeats, in this case; no ids.
    pub deviations: Vec<Deviation>,
    /// Why the figures must not be used, if the driver itself saw that.
    pub invalid: Option<String>,
}

impl Driven {
    /// Time in which load was measured, seconds: the window, or its part that was this arm's turn.
    pub fn measured_s(&self) -> f64 {
        let window = self.window_ns.1.saturating_sub(self.window_ns.0);
        self.turns.as_ref().map_or(window, |turns| turns.measured_ns) as f64 / 1e9
    }

    /// Adds counts by their names.
    pub(crate) fn count<const N: usize>(&mut self, counts: [(&str, u64); N]) {
        self.measurement.counts.extend(counts.map(|(name, count)| (name.to_owned(), count)));
    }

    /// The figures of one guest under its number among its trial's parts, before all others.
    pub(crate) fn with_own_part(mut self) -> Self {
        let metrics = self.measurement.metrics.clone();
        self.measurement.parts.insert(0, Part { guest: 1, driver: None, metrics, instance: None });
        self
    }
}

/// Driver threads that waited for a CPU longer than this part of the window are flagged: their own delay
/// is then in what they measured.
const STARVED: f64 = 0.01;

/// What the driver waited for CPUs, as a part of its threads' time in the window.
fn starved(result: &DriveResult) -> Option<f64> {
    let all = result.measured_s() * 1e9 * f64::from(result.threads);
    result.run_delay_ns.filter(|_| all > 0.0).map(|ns| ns as f64 / all)
}

/// Everything in a driver's result that does not depend on the workload; the workload adds its metrics.
pub fn from_result(result: DriveResult, unit: UnitOfWork) -> Driven {
    let mut counts = BTreeMap::from([(count::OPERATIONS.to_owned(), result.operations)]);
    counts.insert(count::BYTES.into(), result.bytes_to_guest + result.bytes_from_guest);
    counts.insert(count::LOST.into(), result.lost);
    counts.insert(count::UNFINISHED.into(), result.unfinished);
    counts.insert(count::BACKLOG_MAX.into(), result.backlog_max);
    counts.insert(count::DRIVER_CPU_NS.into(), result.cpu_user_ns + result.cpu_system_ns);
    if let Some(ns) = result.run_delay_ns {
        counts.insert(count::DRIVER_RUN_DELAY_NS.into(), ns);
    }
    for (reason, n) in &result.errors {
        counts.insert(count::error(reason), *n);
    }
    let window = result.measured_s();
    let apart_ns = result.began_ns.1.saturating_sub(result.began_ns.0);
    let mut facts: BTreeMap<String, String> =
        result.granted.iter().map(|(name, value)| (format!("driver {name}"), value.clone())).collect();
    if window > 0.0 {
        let share = |ns: u64| format!("{:.1} % of one CPU", ns as f64 / 1e7 / window);
        facts.insert("driver CPU, user".into(), share(result.cpu_user_ns));
        facts.insert("driver CPU, system".into(), share(result.cpu_system_ns));
    }
    if result.began_ns.0 > 0 && apart_ns > 0 {
        facts.insert(fact::DRIVERS_BEGAN_WITHIN.into(), format!("{:.3} ms", apart_ns as f64 / 1e6));
    }
    let mut flags = Vec::new();
    if let Some(part) = starved(&result) {
        let waited = format!("{:.2} % of its threads' time", part * 100.0);
        facts.insert("driver waited for a CPU".into(), waited.clone());
        if part > STARVED {
            let detail = format!("the driver waited for a CPU {waited}, more than {} %", STARVED * 100.0);
            flags.push(Flag { kind: flag::DRIVER_STARVED.into(), detail });
        }
    }
    let work = match unit {
        UnitOfWork::Operation => result.operations as f64,
        UnitOfWork::Byte => (result.bytes_to_guest + result.bytes_from_guest) as f64,
    };
    let samples = series(&result, unit);
    let window_ns = (result.steady_start_ns, result.steady_end_ns);
    let histograms = [
        (histogram::RESPONSE, result.response),
        (histogram::SERVICE, result.service),
        (histogram::LATENESS, result.lateness),
    ];
    let histograms = histograms
        .into_iter()
        .filter(|(_, histogram)| !histogram.is_empty())
        .map(|(name, histogram)| (name.to_owned(), histogram))
        .collect();
    let measurement = Measurement { histograms, counts, ..Measurement::default() };
    Driven {
        measurement,
        window_ns,
        turns: result.turns,
        work,
        samples,
        facts,
        flags,
        deviations: Vec::new(),
        invalid: None,
    }
}

/// The results of drivers that worked side by side, as of one, without what only a workload can add up
/// ([`outcomes`](crate::site::outcomes)). Their windows are the same but for the clocks'
/// uncertainty, and the merged one spans all.
pub fn merge(results: Vec<DriveResult>) -> Option<DriveResult> {
    let turns: Vec<TurnsDone> = results.iter().filter_map(|result| result.turns.clone()).collect();
    let merged = results.into_iter().reduce(|mut all, one| {
        all.began_ns = (all.began_ns.0.min(one.began_ns.0), all.began_ns.1.max(one.began_ns.1));
        all.steady_start_ns = all.steady_start_ns.min(one.steady_start_ns);
        all.steady_end_ns = all.steady_end_ns.max(one.steady_end_ns);
        all.operations += one.operations;
        all.answered_total += one.answered_total;
        all.bytes_to_guest += one.bytes_to_guest;
        all.bytes_from_guest += one.bytes_from_guest;
        all.bytes_to_guest_total += one.bytes_to_guest_total;
        all.bytes_from_guest_total += one.bytes_from_guest_total;
        all.lost += one.lost;
        all.unfinished += one.unfinished;
        all.response.merge(&one.response);
        all.service.merge(&one.service);
        all.lateness.merge(&one.lateness);
        all.backlog_max = all.backlog_max.max(one.backlog_max);
        all.cpu_user_ns += one.cpu_user_ns;
        all.cpu_system_ns += one.cpu_system_ns;
        all.run_delay_ns = all.run_delay_ns.zip(one.run_delay_ns).map(|(a, b)| a + b);
        all.threads += one.threads;
        all.verified &= one.verified;
        add_named(&mut all.errors, one.errors);
        for granted in one.granted {
            if !all.granted.contains(&granted) {
                all.granted.push(granted);
            }
        }
        // Intervals are counted from the common start; a driver that ended a little later has some more, of no load.
        all.intervals.truncate(one.intervals.len());
        for (sum, interval) in all.intervals.iter_mut().zip(one.intervals) {
            sum.add(interval);
        }
        merge_steps(&mut all.steps, one.steps);
        all.own = Vec::new();
        all
    });
    merged.map(|all| DriveResult { turns: TurnsDone::together(&turns), ..all })
}

/// Adds counts to those of the same name.
pub(crate) fn add_named(all: &mut Vec<(String, u64)>, more: Vec<(String, u64)>) {
    for (name, count) in more {
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known += count,
            None => all.push((name, count)),
        }
    }
}

/// Adds steps to those of the same name.
pub fn merge_steps(all: &mut Vec<Step>, more: Vec<Step>) {
    for step in more {
        match all.iter_mut().find(|known| known.name == step.name) {
            Some(known) => known.times.merge(&step.times),
            None => all.push(step),
        }
    }
}

/// Adds what the server tells to what a trial tells: what it was granted as facts, its errors as counts and one
/// flag. How many errors there are, if any.
pub fn add_server(report: &ServeReport, driven: &mut Driven) -> Option<u64> {
    let granted = report.granted.iter().map(|(name, value)| (format!("server {name}"), value.clone()));
    driven.facts.extend(granted);
    if report.strangers > 0 {
        let detail = format!(
            "{} connections or datagrams to the guest's server were not of this trial's drivers: they did not show its token. They were not answered and \
             are in no count; what they took of the guest's time and of the network is in the figures",
            report.strangers
        );
        driven.flags.push(Flag { kind: flag::STRANGER_CONNECTED.to_owned(), detail });
    }
    let (first, _) = report.errors.first()?;
    let count = report.errors.iter().map(|(_, count)| count).sum();
    for (reason, n) in &report.errors {
        driven.measurement.counts.insert(count::server_error(reason), *n);
    }
    let detail = format!("the guest's server counts {count} errors, first: {first}");
    driven.flags.push(Flag { kind: "server-errors".into(), detail });
    Some(count)
}

/// The driver's rate over time, and the response times of what ended a second, as gauges at the end of each interval. Both add up over drivers
/// and guests; the one over the other is the mean response time of an interval.
fn series(result: &DriveResult, unit: UnitOfWork) -> Vec<Sample> {
    let (name, scale) = match unit {
        UnitOfWork::Operation => (common::OPERATIONS, 1.0),
        UnitOfWork::Byte => (common::BITS, 8.0),
    };
    let timed = result.intervals.iter().any(|interval| interval.response_ns > 0);
    let mut samples = Vec::with_capacity(result.intervals.len());
    for pair in result.intervals.windows(2) {
        let seconds = pair[1].end_ns.saturating_sub(pair[0].end_ns) as f64 / 1e9;
        if seconds <= 0.0 {
            continue;
        }
        let work = if unit == UnitOfWork::Byte { pair[1].bytes } else { pair[1].operations };
        let mut add = |series: &str, value| {
            samples.push(Sample { at_ns: pair[1].end_ns, source: Source::Client, series: series.into(), value });
        };
        add(name, work as f64 * scale / seconds);
        if timed {
            add(common::RESPONSE_SUM, pair[1].response_ns as f64 / 1e9 / seconds);
        }
    }
    samples
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use tare_model::Histogram;

    /// The result of a driver of one thread and its watcher over a second, in which all went well.
    pub fn result(operations: u64) -> DriveResult {
        DriveResult {
            steady_end_ns: 1_000_000_000,
            operations,
            answered_total: operations,
            cpu_user_ns: 1,
            cpu_system_ns: 2,
            run_delay_ns: Some(0),
            threads: 2,
            verified: true,
            ..DriveResult::default()
        }
    }

    #[test]
    fn a_driver_that_waited_for_its_cpu_is_flagged_with_how_long() {
        let with = |run_delay_ns| from_result(DriveResult { run_delay_ns, ..result(10) }, UnitOfWork::Operation);
        let fine = with(Some(19_000_000));
        assert!(fine.flags.is_empty());
        assert_eq!(
            (fine.measurement.counts["driver_cpu_ns"], fine.measurement.counts["driver_run_delay_ns"]),
            (3, 19_000_000)
        );
        let starved = with(Some(50_000_000));
        assert_eq!(starved.flags[0].kind, "driver-starved");
        assert!(starved.flags[0].detail.contains("2.50 %"), "{}", starved.flags[0].detail);
        let unknown = with(None);
        assert!(unknown.flags.is_empty() && !unknown.measurement.counts.contains_key("driver_run_delay_ns"));
    }

    /// One value, recorded so many times.
    pub fn histogram(value: u64, count: u64) -> Histogram {
        let bins = vec![tare_model::histogram::Bin { low: value, high: value, count }];
        Histogram { bins, min: value, max: value, sum: u128::from(value) * u128::from(count), ..Histogram::default() }
    }

    #[test]
    fn drivers_side_by_side_add_up() {
        let step = |name: &str, count| Step { name: name.into(), within: true, times: histogram(5, count) };
        let interval =
            |end_ns, operations| tare_model::drive::DriveInterval { end_ns, operations, bytes: 1, response_ns: 2 };
        let one = DriveResult {
            errors: vec![("40P01".into(), 1)],
            steps: vec![step("login", 1), step("purchase", 1)],
            intervals: vec![interval(0, 0), interval(5, 4), interval(10, 5)],
            response: histogram(10, 3),
            backlog_max: 7,
            ..result(3)
        };
        let other = DriveResult {
            errors: vec![("53300".into(), 2), ("40P01".into(), 1)],
            steps: vec![step("login", 2)],
            intervals: vec![interval(0, 0), interval(5, 6)],
            response: histogram(10, 4),
            backlog_max: 3,
            steady_end_ns: 1_000_000_001,
            run_delay_ns: None,
            ..result(4)
        };
        let all = merge(vec![one, other]).unwrap();
        assert_eq!((all.operations, all.response.count(), all.threads, all.backlog_max), (7, 7, 4, 7));
        assert_eq!((all.steady_end_ns, all.run_delay_ns, all.verified), (1_000_000_001, None, true));
        assert_eq!(all.errors, [("40P01".to_owned(), 2), ("53300".to_owned(), 2)]);
        let steps: Vec<u64> = all.steps.iter().map(|step| step.times.count()).collect();
        assert_eq!((steps, all.intervals.len(), all.intervals[1].operations), (vec![3, 1], 2, 10));
        assert_eq!(merge(Vec::new()), None);
    }
}
