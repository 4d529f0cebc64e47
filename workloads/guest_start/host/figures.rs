//! What the starts of a trial come to.

use std::collections::BTreeMap;

use tare_model::metric::common;
use tare_model::trial::Measurement;
use tare_model::turns::{TurnCount, TurnsDone};
use tare_model::{Histogram, count, histogram};

use super::burst::{Burst, Started};
use crate::figures::Figures;
use crate::{Driven, PageFaults};

/// Median of a start, seconds.
pub const START_P50: &str = "start_p50_s";
/// 99th percentile of a start, seconds.
pub const START_P99: &str = "start_p99_s";
/// Median from the first act of making a guest to the end of its command, seconds.
pub const TASK_P50: &str = "task_p50_s";
/// 99th percentile of that, seconds.
pub const TASK_P99: &str = "task_p99_s";
/// From the first act of a burst to the last answer, seconds, mean.
pub const BURST_MEAN: &str = "burst_mean_s";
/// What it takes to take a guest away, seconds, mean.
pub const STOP_MEAN: &str = "stop_mean_s";
/// Page faults of the guest's processes on this host, from the first act of a start to the first answer, mean.
pub const START_FAULTS: [&str; 2] = ["start_page_faults", "start_major_page_faults"];
/// The same from there to the end of the command: what the first work in a guest touches first.
pub const TASK_FAULTS: [&str; 2] = ["task_page_faults", "task_major_page_faults"];
/// Starts that failed.
const FAILED: &str = "starts_failed";

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The figures of all bursts; with a `command`, of tasks as well.
pub fn driven(bursts: &[Burst], command: bool, in_turns: bool) -> Driven {
    let all = || bursts.iter().flat_map(|burst| &burst.started);
    let failed: u64 = bursts.iter().map(|burst| burst.failed.len() as u64).sum();
    let times = |of: fn(&Started) -> u64| Histogram::of_values(&all().map(of).collect::<Vec<u64>>(), failed);
    let (starts, tasks) = (times(Started::answer_ns), times(Started::task_ns));
    let mut figures = Figures::default();
    figures.mean(common::STARTS_MEAN, &starts);
    figures.percentile(START_P50, &starts, 0.5);
    figures.percentile(START_P99, &starts, 0.99);
    if command {
        figures.mean(common::TASKS_MEAN, &tasks);
        figures.percentile(TASK_P50, &tasks, 0.5);
        figures.percentile(TASK_P99, &tasks, 0.99);
    }
    let burst_s = |burst: &Burst| burst.answered_ns.saturating_sub(burst.window_ns.0) as f64 / 1e9;
    if bursts.iter().any(|burst| burst.started.len() + burst.failed.len() > 1) {
        // A burst of which a start failed has no last answer.
        let whole = bursts.iter().filter(|burst| burst.failed.is_empty());
        figures.add(BURST_MEAN, mean(whole.map(burst_s)));
    }
    for (at, ids) in [START_FAULTS, TASK_FAULTS].into_iter().enumerate() {
        let of = |count: fn(PageFaults) -> u64| mean(all().filter_map(|one| Some(count(one.faults[at]?) as f64)));
        figures.add(ids[0], of(|faults| faults.all));
        figures.add(ids[1], of(|faults| faults.major));
    }
    figures.add(STOP_MEAN, mean(all().map(|one| one.stop_ns as f64 / 1e9)));
    let mut measurement = Measurement {
        histograms: BTreeMap::from([(histogram::RESPONSE.to_owned(), if command { tasks } else { starts })]),
        counts: BTreeMap::from([(count::OPERATIONS.to_owned(), all().count() as u64), (FAILED.to_owned(), failed)]),
        ..Measurement::default()
    };
    figures.put(&mut measurement);
    let (first, last) = (bursts.first().map(|own| own.window_ns.0), bursts.last().map(|own| own.window_ns.1));
    Driven {
        measurement,
        window_ns: (first.unwrap_or_default(), last.unwrap_or_default()),
        turns: in_turns.then(|| turns(bursts)),
        work: all().count() as f64,
        facts: facts(bursts),
        ..Driven::default()
    }
}

/// What each turn did: the sum of what is compared, of the starts that came to their end.
fn turns(bursts: &[Burst]) -> TurnsDone {
    let count = |burst: &Burst| TurnCount {
        operations: burst.started.len() as u64,
        bytes: 0,
        measured_ns: burst.window_ns.1.saturating_sub(burst.window_ns.0),
        response_ns: burst.started.iter().map(Started::task_ns).sum(),
    };
    let counts: Vec<TurnCount> = bursts.iter().map(count).collect();
    TurnsDone {
        measured_ns: counts.iter().map(|count| count.measured_ns).sum(),
        counts,
        overran: 0,
        began_ns: bursts.iter().map(|burst| burst.window_ns.0).collect(),
    }
}

fn facts(bursts: &[Burst]) -> BTreeMap<String, String> {
    let all = || bursts.iter().flat_map(|burst| &burst.started);
    let mut facts = BTreeMap::new();
    // What the call took beyond the start is the ledger, which waits for the disk.
    let own = mean(all().map(|one| one.call_ns.saturating_sub(one.start_ns) as f64 / 1e6));
    facts.extend(own.map(|ms| ("tare's own share, beside each start".to_owned(), format!("{ms:.2} ms, mean"))));
    let waited = mean(all().map(|one| one.wait_ns as f64 / 1e6)).filter(|ms| *ms > 0.0);
    facts.extend(waited.map(|ms| ("wait from when a start was due".to_owned(), format!("{ms:.2} ms, mean"))));
    for (at, name) in ["firmware", "kernel", "agent"].into_iter().enumerate() {
        let parts = all().map(|one| one.parts_s.map(|parts| parts[at])).collect::<Option<Vec<f64>>>();
        let part = parts.and_then(|parts| mean(parts.into_iter()));
        facts.extend(part.map(|s| (format!("start, {name}"), format!("{:.1} ms, mean", s * 1e3))));
    }
    let first = bursts.iter().flat_map(|burst| &burst.failed).next();
    facts.extend(first.map(|why| ("first start that failed".to_owned(), why.clone())));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(start_ms: u64, command_ms: u64) -> Started {
        let (start_ns, command_ns) = (start_ms * 1_000_000, command_ms * 1_000_000);
        let faults =
            [Some(PageFaults { all: 100, major: 1 }), (command_ns > 0).then_some(PageFaults { all: 40, major: 0 })];
        Started {
            wait_ns: 0,
            start_ns,
            command_ns,
            call_ns: start_ns + 500_000,
            stop_ns: 2_000_000,
            parts_s: None,
            faults,
        }
    }

    #[test]
    fn starts_that_failed_have_no_time_and_count_as_the_longest() {
        let burst = |from: u64, started: Vec<Started>, failed: usize| Burst {
            window_ns: (from, from + 100_000_000),
            answered_ns: if failed > 0 { from } else { from + 40_000_000 },
            started,
            failed: vec!["refused".to_owned(); failed],
        };
        let mut bursts: Vec<Burst> =
            (0..15).map(|n| burst(n * 1_000_000_000, vec![started(10, 5), started(30, 5)], 0)).collect();
        bursts.push(burst(20_000_000_000, vec![started(20, 5)], 12));
        let all = driven(&bursts, true, true);
        let metrics = &all.measurement.metrics;
        let near = |id: &str, expected: f64| (metrics[id] - expected).abs() < 1e-3 * expected;
        assert!(near(common::STARTS_MEAN, 0.020) && near(common::TASKS_MEAN, 0.025), "{metrics:?}");
        // Of 43 the 22nd: 15 took 10 ms, one 20 ms, 15 took 30 ms, and twelve failed.
        assert!(near(START_P50, 0.030) && near(BURST_MEAN, 0.040) && near(STOP_MEAN, 0.002), "{metrics:?}");
        let faults = [START_FAULTS, TASK_FAULTS].map(|ids| ids.map(|id| metrics[id]));
        assert_eq!(faults, [[100.0, 1.0], [40.0, 0.0]]);
        assert!(!metrics.contains_key(START_P99) && all.measurement.incomplete.contains_key(START_P99));
        assert_eq!((all.work, all.measurement.counts[FAILED]), (31.0, 12));
        let turns = all.turns.unwrap();
        assert_eq!((turns.counts[0].operations, turns.counts[0].response_ns), (2, 50_000_000), "what is compared");
        assert_eq!(all.facts["first start that failed"], "refused");
        assert_eq!(all.facts["tare's own share, beside each start"], "0.50 ms, mean");
        let late = driven(&[burst(0, vec![started(10, 5)], 0).waited(20_000_000)], true, false);
        let means = [common::STARTS_MEAN, common::TASKS_MEAN].map(|id| late.measurement.metrics[id]);
        assert!((means[0] - 0.030).abs() < 3e-5 && (means[1] - 0.035).abs() < 4e-5, "from when it was due: {means:?}");
        assert_eq!(late.facts["wait from when a start was due"], "20.00 ms, mean");
        let alone = driven(&[burst(0, vec![started(10, 0)], 0)], false, false);
        assert!(!alone.measurement.metrics.contains_key(TASK_FAULTS[0]), "without a command");
        assert!(alone.turns.is_none() && !alone.measurement.metrics.contains_key(BURST_MEAN));
    }
}
