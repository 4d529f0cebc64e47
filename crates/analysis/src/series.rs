//! Samples as series over time, and the timelines that a report shows.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::findings::Timeline;
use tare_model::metric::common;
use tare_model::sample::{BY_COMMAND, BY_HYPERVISOR, Sample, Source};
use tare_model::trial::TrialRecord;

use crate::distribution::completed;
use crate::run::Run;
use crate::steady::{POINTS_MIN, averaged};
use crate::turns;

/// Points of a series in the findings at most.
pub(crate) const TIMELINE_POINTS_MAX: usize = 400;

/// The driver's rate, in a workload of operations or of bytes.
pub(crate) const RATES: [&str; 2] = [common::OPERATIONS, common::BITS];

/// (nanoseconds, value) of one series, in order of time, finite values only.
fn points<'a>(samples: &'a [Sample], source: &Source, series: &str) -> Vec<(u64, f64)> {
    let of = |sample: &&'a Sample| sample.source == *source && sample.series == series && sample.value.is_finite();
    let mut points: Vec<_> = samples.iter().filter(of).map(|sample| (sample.at_ns, sample.value)).collect();
    points.sort_by_key(|point| point.0);
    points
}

/// A counter's change a second, at the end of each interval. An interval in which it fell (a counter that began anew)
/// is left out.
fn rates(counter: &[(u64, f64)]) -> Vec<(u64, f64)> {
    counter
        .windows(2)
        .filter(|pair| pair[1].0 > pair[0].0 && pair[1].1 >= pair[0].1)
        .map(|pair| (pair[1].0, (pair[1].1 - pair[0].1) / ((pair[1].0 - pair[0].0) as f64 * 1e-9)))
        .collect()
}

const fn in_seconds((at_ns, value): (u64, f64)) -> (f64, f64) {
    (at_ns as f64 * 1e-9, value)
}

/// The driver's rate inside the measured window, of an arm in turns that of each turn: (seconds of the host's clock, rate).
pub(crate) fn rate_in_window(record: &TrialRecord) -> Vec<(f64, f64)> {
    let Some((start, end)) = record.window_ns else { return Vec::new() };
    if let Some(taken) = &record.turns {
        return turns::rates(taken).1.into_iter().map(in_seconds).collect();
    }
    let rate =
        RATES.iter().map(|series| points(&record.samples, &Source::Client, series)).find(|found| !found.is_empty());
    let inside = |(at, _): &(u64, f64)| *at > start && *at <= end;
    rate.unwrap_or_default().into_iter().filter(inside).map(in_seconds).collect()
}

/// The mean response time of what ended in each interval of the measured window, of an arm in turns in each turn: (seconds of the host's clock,
/// seconds). Empty where the driver does not time single operations.
pub(crate) fn response_in_window(record: &TrialRecord) -> Vec<(f64, f64)> {
    if let Some(taken) = &record.turns {
        return turns::responses(taken).into_iter().map(in_seconds).collect();
    }
    let Some((start, end)) = record.window_ns else { return Vec::new() };
    let rates: BTreeMap<u64, f64> = points(&record.samples, &Source::Client, common::OPERATIONS).into_iter().collect();
    let sums = points(&record.samples, &Source::Client, common::RESPONSE_SUM).into_iter();
    let mean = |(at, sum): (u64, f64)| rates.get(&at).filter(|rate| **rate > 0.0).map(|rate| (at, sum / rate));
    sums.filter(|(at, _)| *at > start && *at <= end).filter_map(mean).map(in_seconds).collect()
}

/// The longest pause between two looks at the host that touches the window, seconds.
pub(crate) fn longest_gap_s(record: &TrialRecord) -> Option<f64> {
    let (start, end) = record.window_ns?;
    let mut at: Vec<u64> = record.samples.iter().filter(|s| s.source == Source::Host).map(|s| s.at_ns).collect();
    at.sort_unstable();
    at.dedup();
    let touching = at.windows(2).filter(|pair| pair[1] > start && pair[0] < end);
    touching.map(|pair| (pair[1] - pair[0]) as f64 * 1e-9).max_by(f64::total_cmp)
}

/// The trial whose value of `metric` is the (lower) median of `trials`, over time.
pub(crate) fn timeline(arm: &str, trials: &[&TrialRecord], metric: &str, steady_offset_ns: u64) -> Option<Timeline> {
    let value = |record: &TrialRecord| completed(record)?.metrics.get(metric).copied().filter(|v| v.is_finite());
    let mut ranked: Vec<(f64, &TrialRecord)> =
        trials.iter().filter_map(|record| Some((value(record)?, *record))).collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (_, record) = ranked.get(ranked.len().checked_sub(1)? / 2)?;
    let (start, end) = record.window_ns?;
    let zero = record.turns.as_ref().map_or(start.saturating_sub(steady_offset_ns), |taken| taken.start_ns);
    let seconds = |at: u64| (at as f64 - zero as f64) * 1e-9;
    let series = shown(record)
        .into_iter()
        .filter(|(_, points)| points.len() > 1)
        .map(|(name, points)| {
            let points: Vec<_> = points.into_iter().map(|(at, value)| (seconds(at), value)).collect();
            (name, averaged(&points, TIMELINE_POINTS_MAX))
        })
        .collect();
    Some(Timeline {
        arm: arm.to_owned(),
        block: record.planned.block,
        steady_s: (seconds(start), seconds(end)),
        series,
    })
}

/// The series that tell how a trial went: the driver's rate, the SUT's CPUs by kind, each guest's CPU, what waited.
fn shown(record: &TrialRecord) -> BTreeMap<String, Vec<(u64, f64)>> {
    let of = |source: &Source, series: &str| points(&record.samples, source, series);
    let mut shown = BTreeMap::new();
    for series in RATES {
        shown.insert(series.to_owned(), without_stubs(of(&Source::Client, series)));
    }
    if let Some(taken) = &record.turns {
        // Between its turns an arm does nothing: the driver's own intervals show the order of turns and no rate.
        RATES.iter().for_each(|series| _ = shown.remove(*series));
        let (series, by_turn) = turns::rates(taken);
        shown.insert(series.to_owned(), by_turn);
    }
    for kind in ["user", "system", "irq", "softirq", "steal"] {
        let sut = of(&Source::Host, &format!("sut_cpu_{kind}_s"));
        let counter = if sut.is_empty() { of(&Source::Host, &format!("cpu_{kind}_s")) } else { sut };
        shown.insert(format!("host_cpu_{kind}_cpus"), rates(&counter));
    }
    shown.insert("host_cpu_busy_cpus".to_owned(), rates(&busy(record)));
    for series in ["run_queue_tasks", "memory_available_bytes"] {
        shown.insert(format!("host_{series}"), of(&Source::Host, series));
    }
    for resource in ["cpu", "memory", "io"] {
        let stalled = rates(&of(&Source::Host, &format!("pressure_{resource}_some_s")));
        shown.insert(format!("host_pressure_{resource}_share"), stalled);
    }
    for guest in guests(record) {
        let source = Source::Guest(guest.to_owned());
        for kind in ["total", "user", "system"] {
            shown.insert(format!("guest_{guest}_cpu_{kind}_cpus"), rates(&of(&source, &format!("cpu_{kind}_s"))));
        }
        shown.insert(format!("guest_{guest}_throttled_share"), rates(&of(&source, "throttled_s")));
    }
    for (source, prefix) in [(Source::UserCommand, BY_COMMAND), (Source::Hypervisor, BY_HYPERVISOR)] {
        for name in names(record, &source) {
            shown.insert(format!("{prefix}{name}"), of(&source, name));
        }
    }
    let targets: Vec<&str> = guests(record).into_iter().filter(|guest| is_measured(guest)).collect();
    if targets.len() > 1 {
        let counters = targets.iter().map(|guest| of(&Source::Guest((*guest).to_owned()), "cpu_total_s"));
        shown.insert("guests_measured_cpu_total_cpus".to_owned(), rates(&added(counters, targets.len())));
    }
    shown
}

/// A driver's rate without the stubs at the end of its run: one operation in a thousandth of an interval is no rate.
fn without_stubs(mut points: Vec<(u64, f64)>) -> Vec<(u64, f64)> {
    let mut gaps: Vec<u64> = points.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    gaps.sort_unstable();
    let usual = gaps.get(gaps.len() / 2).copied().unwrap_or(0);
    while let [.., before, last] = points[..]
        && last.0 - before.0 < usual / 2
    {
        points.pop();
    }
    points
}

/// Whether a guest is one of the measured ones: `target`, `target-2` and so on.
fn is_measured(guest: &str) -> bool {
    guest == "target" || guest.strip_prefix("target-").is_some_and(|n| n.parse::<u32>().is_ok())
}

/// Counters added up, at the moments at which each of the `n` was read.
fn added(counters: impl Iterator<Item = Vec<(u64, f64)>>, n: usize) -> Vec<(u64, f64)> {
    let mut sums: BTreeMap<u64, (usize, f64)> = BTreeMap::new();
    for (at, value) in counters.flatten() {
        let sum = sums.entry(at).or_default();
        *sum = (sum.0 + 1, sum.1 + value);
    }
    sums.into_iter().filter(|(_, (read, _))| *read == n).map(|(at, (_, sum))| (at, sum)).collect()
}

/// Busy CPU seconds of the SUT's CPUs, or of the host's where it has none of its own: all kinds but idle, waiting and stolen.
fn busy(record: &TrialRecord) -> Vec<(u64, f64)> {
    let sum_of = |prefix: &str| {
        let mut sum: BTreeMap<u64, f64> = BTreeMap::new();
        for kind in ["user", "nice", "system", "irq", "softirq"] {
            for (at, value) in points(&record.samples, &Source::Host, &format!("{prefix}cpu_{kind}_s")) {
                *sum.entry(at).or_default() += value;
            }
        }
        sum
    };
    let sut = sum_of("sut_");
    if sut.is_empty() { sum_of("") } else { sut }.into_iter().collect()
}

fn guests(record: &TrialRecord) -> BTreeSet<&str> {
    record
        .samples
        .iter()
        .filter_map(|s| if let Source::Guest(name) = &s.source { Some(name.as_str()) } else { None })
        .collect()
}

/// Names of the series of a source.
fn names<'a>(record: &'a TrialRecord, source: &Source) -> BTreeSet<&'a str> {
    let own = record.samples.iter().filter(|sample| sample.source == *source);
    own.map(|sample| sample.series.as_str()).collect()
}

/// What could not be checked, and in how many trials.
pub(crate) fn unchecked(run: &Run<'_>) -> Vec<String> {
    if run.plan.study.published.is_some() {
        return Vec::new();
    }
    let done: Vec<_> = run.trials.iter().filter(|record| completed(record).is_some()).collect();
    let intervals = done.iter().map(|record| rate_in_window(record).len());
    let short: Vec<usize> = intervals.filter(|n| *n < POINTS_MIN).collect();
    let (Some(least), Some(most)) = (short.iter().min(), short.iter().max()) else { return Vec::new() };
    let range = if least == most { least.to_string() } else { format!("{least} to {most}") };
    vec![format!(
        "Steady state was not checked in {} of {} completed trials: their windows hold {range} intervals of the driver's rate, \
         and the check needs {}.",
        short.len(),
        done.len(),
        POINTS_MIN
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_record::testing;

    #[test]
    fn counters_become_rates_and_time_starts_with_the_load() {
        let plan = testing::plan(3);
        let trials: Vec<_> = (0..9).map(|i| testing::trial(&plan, i)).filter(|t| t.planned.arm == "native").collect();
        let trials: Vec<_> = trials.iter().collect();
        let timeline = timeline("native", &trials, "response_time_p50_s", 1_000_000_000).unwrap();
        assert_eq!(timeline.steady_s, (1.0, 9.0));
        let user = &timeline.series["host_cpu_user_cpus"];
        assert_eq!(user.len(), 40);
        // 0.05 CPU seconds each 0.25 s.
        assert!(user.iter().all(|(_, cpus)| (cpus - 0.2).abs() < 1e-6), "{user:?}");
        let busy = &timeline.series["host_cpu_busy_cpus"];
        assert!(busy.iter().zip(user).all(|(busy, user)| busy.1 >= user.1), "user mode is part of what is busy");
        assert!(timeline.series.contains_key("guest_target_cpu_system_cpus"));
        assert!(!timeline.series.contains_key("bits_per_s"), "a series without points is not there");
        assert_eq!(timeline.series["operations_per_s"][0].0, 0.0);
    }

    #[test]
    fn what_the_users_command_printed_is_shown_as_it_was_printed() {
        let plan = testing::plan(1);
        let mut record = testing::trial(&plan, 0);
        let (start, _) = record.window_ns.unwrap();
        let printed = |n: u64, series: &str, value| Sample {
            at_ns: start + n * 1_000_000_000,
            source: Source::UserCommand,
            series: series.into(),
            value,
        };
        record.samples.extend([printed(0, "esx:ready_percent", 5.0), printed(1, "esx:ready_percent", 2.0)]);
        record.samples.push(printed(1, "once", 2.0));
        let counted = |n| Sample { source: Source::Hypervisor, ..printed(n, "vm1_cpu_ready_percent", 3.0) };
        record.samples.extend([counted(0), counted(1)]);
        let timeline = timeline("native", &[&record], "response_time_p50_s", 0).unwrap();
        assert_eq!(timeline.series["by_command_esx:ready_percent"], [(0.0, 5.0), (1.0, 2.0)]);
        assert_eq!(timeline.series["by_hypervisor_vm1_cpu_ready_percent"], [(0.0, 3.0), (1.0, 3.0)]);
        assert!(!timeline.series.contains_key("by_command_once"), "one point is no line");
    }

    #[test]
    fn an_arm_in_turns_is_shown_by_the_rate_of_its_turns() {
        let plan = testing::turns_plan(1);
        let record = testing::turns_trial(&plan, 0);
        let timeline = timeline("native", &[&record], "operations_per_s", 0).unwrap();
        let rate = &timeline.series["operations_per_s"];
        // Fifty rounds of three turns of 20 ms, 1 ms apart, before the first measured one, which is this arm's of its round.
        assert!((3.15..3.24).contains(&timeline.steady_s.0), "{:?}", timeline.steady_s);
        assert!(rate[0].0 > timeline.steady_s.0 && rate.len() == 400);
        assert!(rate.iter().all(|(_, rate)| (30_000.0..60_000.0).contains(rate)), "{rate:?}");
        assert_eq!(rate_in_window(&record).len(), 400);
    }

    #[test]
    fn a_stub_at_the_end_of_a_run_makes_no_peak() {
        let steady: Vec<(u64, f64)> = (1..=9).map(|tick| (tick * 200, 50.0)).collect();
        let ended = [steady.clone(), vec![(1860, 20.0), (1861, 1600.0)]].concat();
        assert_eq!(without_stubs(ended), steady);
        assert_eq!(without_stubs(steady.clone()), steady);
        assert_eq!(without_stubs(vec![(5, 1.0)]), [(5, 1.0)]);
    }

    #[test]
    fn the_representative_is_the_median_trial() {
        let plan = testing::plan(5);
        let mut trials: Vec<_> =
            (0..15).map(|i| testing::trial(&plan, i)).filter(|t| t.planned.arm == "native").collect();
        for (record, value) in trials.iter_mut().zip([5.0, 1.0, 4.0, 2.0, 3.0]) {
            if let tare_model::trial::Outcome::Completed(m) = &mut record.outcome {
                m.metrics.insert("m".to_owned(), value);
            }
        }
        let trials: Vec<_> = trials.iter().collect();
        assert_eq!(timeline("native", &trials, "m", 0).unwrap().block, 5);
        assert_eq!(timeline("native", &[], "m", 0), None);
    }

    #[test]
    fn a_counter_that_starts_anew_makes_no_negative_rate() {
        let counter = [(0, 5.0), (1_000_000_000, 7.0), (2_000_000_000, 1.0), (3_000_000_000, 2.0)];
        assert_eq!(rates(&counter), vec![(1_000_000_000, 2.0), (3_000_000_000, 1.0)]);
    }
}
