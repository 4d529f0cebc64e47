//! `resident-task`: a guest that stays and does nothing, or runs a command of the user's every so often, as sandboxes of agents and functions do.
//!
//! Made for `density`: how many such guests a host carries, what one costs it, and how long a task takes among so many. Tasks are due at
//! moments that are fixed in advance, from a random one in the first interval on, so that those of different guests do not fall together. A
//! guest without a command is asked for an answer of its agent instead: it shows that the guest is alive, and how late it answers.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::load::LoadModel;
use tare_model::metric::{Better, MetricSpec, Unit, common};
use tare_model::random::SplitMix64;
use tare_model::trial::Measurement;
use tare_model::{Histogram, Span, count, density, histogram};
use tare_wire::{ExecSpec, Reply, Request, WireError};

use crate::clock::monotonic_ns;
use crate::command::{self, OUTPUT_BYTES};
use crate::entry::{Entry, normalise, read, schema};
use crate::figures::Figures;
use crate::together::together;
use crate::{Driven, Prepared, Schedule, Traits, WorkSite, Workload, WorkloadError};

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "resident-task",
    summary: "a guest that stays, and runs a command of yours every so often or does nothing: how many a host carries (`density`)",
    schema: schema::<Parameters>,
    make: |parameters, load| {
        let parameters = checked(parameters)?;
        if !matches!(load, LoadModel::Closed { clients: 1, think_time: Span::ZERO }) {
            return Err(FieldError::new(&["load"], "a guest has one task at a time, due every so often")
                .help("leave `load` out, and write `parameters = { every = \"10s\" }`"));
        }
        Ok(Box::new(Resident(Arc::new(parameters))))
    },
    normalise: |parameters: &Value| -> Result<Value, FieldError> {
        checked(parameters)?;
        normalise::<Parameters>(parameters)
    },
    view: None,
};

/// Parameters of `resident-task`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Parameters {
    /// Program and arguments that each guest runs whenever a task is due. No shell is used; write `["sh", "-c", "..."]` for one. Without it a guest is idle, and its agent is asked for an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// From one task of a guest to the next. The first is due at a random moment of so long.
    #[serde(default = "ten_seconds")]
    pub every: Span,
    /// The command is killed, and the task counted as failed, after this long.
    #[serde(default = "command::minute")]
    pub timeout: Span,
}

const fn ten_seconds() -> Span {
    Span::from_secs(10)
}

/// Shortest interval: below it tasks are a load, and `exec` or `rr` measure it.
const SHORTEST: Span = Span::from_millis(10);
/// How long an agent may take to answer beyond the time of its command.
const GRACE: Duration = Duration::from_secs(10);
/// How long nobody looks whether the guest is lost or the trial is to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Median from when a task was due to its end, seconds.
const TASK_P50: &str = "task_p50_s";
/// 99th percentile of that, seconds.
const TASK_P99: &str = "task_p99_s";
/// Tasks that failed.
const FAILED: &str = "tasks_failed";

fn checked(parameters: &Value) -> Result<Parameters, FieldError> {
    let read: Parameters = read(parameters)?;
    command::check(&read.command, read.timeout)?;
    if read.every < SHORTEST {
        return Err(FieldError::new(&["every"], format!("{} is less than {SHORTEST}", read.every)));
    }
    Ok(read)
}

struct Resident(Arc<Parameters>);

impl Workload for Resident {
    fn metrics(&self) -> Vec<MetricSpec> {
        let task = if self.0.command.is_empty() { "answer, due to received" } else { "task, due to ended" };
        let seconds =
            |id: &str, word: &str| MetricSpec::new(id, &format!("{task}, {word}"), Unit::Seconds, Better::Lower);
        vec![
            seconds(common::TASKS_MEAN, "mean").primary(),
            seconds(TASK_P50, "median"),
            seconds(TASK_P99, "99th percentile"),
            MetricSpec::new(
                density::metric::OPERATIONS,
                "tasks, all guests",
                Unit::OperationsPerSecond,
                Better::Higher,
            ),
        ]
    }

    fn traits(&self, guest: &GuestSize, _: u32) -> Traits {
        Traits { several_guests: true, density: true, ..Traits::of(*guest) }
    }

    fn combine(&self, guests: Vec<Driven>) -> Option<Driven> {
        let mut all = together(guests)?;
        figures(&mut all);
        Some(all)
    }

    fn prepare(&self, site: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        // What the guest has not is found before others are added to it.
        once(site, &self.0)?;
        Ok(Box::new(Standing(Arc::clone(&self.0))))
    }
}

/// One task.
fn once(site: &WorkSite<'_>, parameters: &Parameters) -> Result<(), WorkloadError> {
    if parameters.command.is_empty() {
        return match site.guest.call(Request::Clock, GRACE + site.timeout) {
            Ok(Reply::Clock { .. }) => Ok(()),
            Ok(_) => Err(WorkSite::unexpected("guest", "answer")),
            Err(source) => Err(WorkloadError::Agent { side: "guest", source }),
        };
    }
    let spec = ExecSpec::new(&parameters.command, parameters.timeout.duration(), OUTPUT_BYTES);
    command::run(site.guest, spec, GRACE).map(drop)
}

/// A guest that is there.
struct Standing(Arc<Parameters>);

/// The moments at which tasks of a guest are due, nanoseconds after the start: the first within one interval.
fn due(every_ns: u64, seed: u64) -> impl Iterator<Item = u64> {
    let first = SplitMix64(seed).draw() % every_ns.max(1);
    (0_u64..).map(move |n| first.saturating_add(n.saturating_mul(every_ns)))
}

/// Waits until a moment, unless the guest is lost or the trial is to end.
///
/// # Errors
/// Which of both it was.
fn wait_until(site: &WorkSite<'_>, at_ns: u64) -> Result<(), WorkloadError> {
    loop {
        if let Some(reason) = site.guest.ended() {
            return Err(WorkloadError::Agent { side: "guest", source: WireError::Gone { reason } });
        }
        if site.guest.is_cancelled() {
            return Err(WorkloadError::Command("the load was ended early".to_owned()));
        }
        let left = Duration::from_nanos(at_ns.saturating_sub(monotonic_ns()));
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(LOOK_EVERY));
    }
}

impl Prepared for Standing {
    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        let start_ns = if schedule.start_at_ns == 0 { monotonic_ns() } else { schedule.start_at_ns };
        let from_ns = start_ns + schedule.phases.steady_offset_ns();
        let to_ns = from_ns + schedule.phases.steady_state.ns;
        let over_ns = start_ns + schedule.phases.total().ns;
        let (mut times, mut failures) = (Vec::new(), Vec::new());
        let seed = schedule.seed.wrapping_add(site.index.into());
        for due_ns in due(self.0.every.ns, seed).map(|offset| start_ns + offset).take_while(|due| *due < over_ns) {
            wait_until(site, due_ns)?;
            let done = once(site, &self.0);
            match done {
                Err(error @ WorkloadError::Agent { .. }) => return Err(error),
                _ if !(from_ns..to_ns).contains(&due_ns) => {}
                Ok(()) => times.push(monotonic_ns().saturating_sub(due_ns)),
                Err(error) => failures.push(error.to_string()),
            }
        }
        wait_until(site, over_ns)?;
        Ok(driven(&times, &failures, (from_ns, to_ns)))
    }

    fn verify(&mut self, _: &WorkSite<'_>, driven: &mut Driven) -> Result<Option<String>, WorkloadError> {
        let counts = &driven.measurement.counts;
        let of = |name: &str| counts.get(name).copied().unwrap_or(0);
        let (ended, failed) = (of(count::OPERATIONS), of(FAILED));
        let why = driven.facts.get(FIRST_FAILED).map_or("", String::as_str);
        Ok((failed > ended).then(|| format!("{failed} of {} tasks failed, the first because {why}", failed + ended)))
    }
}

const FIRST_FAILED: &str = "first task that failed";

fn driven(times: &[u64], failures: &[String], window_ns: (u64, u64)) -> Driven {
    let ended = times.len() as u64;
    let mut driven = Driven {
        measurement: Measurement {
            histograms: [(histogram::RESPONSE.to_owned(), Histogram::of_values(times, failures.len() as u64))].into(),
            counts: [(count::OPERATIONS.to_owned(), ended), (FAILED.to_owned(), failures.len() as u64)].into(),
            ..Measurement::default()
        },
        window_ns,
        work: ended as f64,
        facts: failures.first().map(|why| (FIRST_FAILED.to_owned(), why.clone())).into_iter().collect(),
        ..Driven::default()
    };
    figures(&mut driven);
    driven.with_own_part()
}

/// The metrics, from the counts and times that are there.
fn figures(driven: &mut Driven) {
    let ended = driven.measurement.counts.get(count::OPERATIONS).map_or(0.0, |count| *count as f64);
    let mut figures = Figures::of([(density::metric::OPERATIONS, Some(ended / driven.measured_s()))]);
    if let Some(times) = driven.measurement.histograms.get(histogram::RESPONSE) {
        figures.mean(common::TASKS_MEAN, times);
        figures.percentile(TASK_P50, times, 0.5);
        figures.percentile(TASK_P99, times, 0.99);
    }
    figures.put(&mut driven.measurement);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tasks_of_guests_are_due_apart_from_one_another() {
        let firsts: Vec<u64> = (0..100).filter_map(|seed| due(1_000, seed).next()).collect();
        assert!(firsts.iter().all(|first| *first < 1_000));
        let halves = firsts.iter().filter(|first| **first < 500).count();
        assert!((30..70).contains(&halves), "spread over the interval: {firsts:?}");
        assert_eq!(
            due(1_000, 7).take(3).map(|at| at - due(1_000, 7).next().unwrap()).collect::<Vec<_>>(),
            [0, 1000, 2000]
        );
    }

    #[test]
    fn tasks_that_failed_count_as_the_longest_and_all_guests_are_added_up() {
        let one = |ms: &[u64], failures: usize| {
            let times: Vec<u64> = ms.iter().map(|ms| ms * 1_000_000).collect();
            driven(&times, &vec!["no memory".to_owned(); failures], (0, 2_000_000_000))
        };
        let resident = Resident(Arc::new(checked(&json!({})).unwrap()));
        let all = resident.combine(vec![one(&[10; 15], 0), one(&[30; 15], 0)]).unwrap();
        let metrics = &all.measurement.metrics;
        assert!(
            (metrics[common::TASKS_MEAN] - 0.020).abs() < 2e-5
                && (metrics[density::metric::OPERATIONS] - 15.0).abs() < 1e-9
        );
        assert_eq!(all.work, 30.0);
        let failed = one(&[10], 2);
        assert_eq!((failed.measurement.counts[FAILED], failed.facts[FIRST_FAILED].as_str()), (2, "no memory"));
        assert!(!failed.measurement.metrics.contains_key(TASK_P50), "it lies among those that failed");
    }

    #[test]
    fn what_it_cannot_do_is_refused_by_its_field() {
        let refused = |parameters: Value, load: LoadModel| {
            (ENTRY.make)(&parameters, &load).err().map(|error| error.path.join(".")).unwrap_or_default()
        };
        let one = LoadModel::Closed { clients: 1, think_time: Span::ZERO };
        assert_eq!(refused(json!({"command": [""]}), one), "command");
        assert_eq!(refused(json!({"every": "1ms"}), one), "every");
        assert_eq!(refused(json!({"timeout": "0s"}), one), "timeout");
        assert_eq!(refused(json!({}), LoadModel::Closed { clients: 2, think_time: Span::ZERO }), "load");
        assert_eq!(refused(json!({}), one), "");
    }
}
