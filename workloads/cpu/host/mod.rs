//! `cpu`: how fast a guest computes, counted from outside.
//!
//! Threads in the guest compute the same chunk over and over, and check each result. The controller asks how far they
//! have come at the start of steady state, at every interval and at the end, and takes the time of each answer
//! from its own clock: a guest whose clock runs slow looks no faster. An answer is from some moment between the
//! question and its arrival; the middle is taken, and half of the round trip is the most by which that can be wrong.
//!
//! In turns the threads stand still in those of others. They are asked at both ends of the measured part of each turn; what they had
//! begun at its end they go on with in the next.

mod polls;

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::Span;
use tare_model::drive::BusyWork;
use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::load::LoadModel;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::traits::TurnTraits;
use tare_model::turns::Turns;
use tare_wire::{Reply, Request, WireError};

use crate::clock::monotonic_ns;
use crate::entry::{Entry, filled, read, schema};
use crate::{Driven, Prepared, Schedule, Traits, UnitOfWork, WorkSite, Workload, WorkloadError};
use polls::{Poll, Polls};

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "cpu",
    summary: "a fixed piece of mixed computing over and over: how fast a guest computes, by a clock outside it",
    schema: schema::<Parameters>,
    make: |parameters, load| {
        let parameters = checked(parameters)?;
        if !matches!(load, LoadModel::Closed { clients: 1, .. }) {
            return Err(FieldError::new(&["load"], "the guest computes as fast as it can, whatever the load")
                .help("leave `load` out; `threads` in `parameters` says how many threads compute"));
        }
        Ok(Box::new(parameters))
    },
    normalise: |parameters| filled(checked(parameters)?),
    view: None,
};

/// Parameters of `cpu`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Parameters {
    /// Threads that compute at the same time, each on data of its own (5 MiB).
    pub threads: u32,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { threads: 1 }
    }
}

/// More threads than any host has CPUs are a slip.
const MOST_THREADS: u32 = 4096;
/// Between two polls at least so long, whatever the interval of the samples: a poll wakes the guest.
const POLL_EVERY_MIN: Duration = Duration::from_millis(50);
/// A turn holds some hundred chunks. In its first part virtual CPUs wake, the data moves into other memory, and caches are cold.
const TURNS: TurnTraits = TurnTraits {
    turn: Span::from_millis(100),
    warm_up: Span::from_millis(5),
    gap: Span::from_millis(5),
    renewed: Some("memory"),
    freezes: true,
    commands: None,
};
/// How often a guest is asked whether it has computed its first chunk.
const FIRST_CHUNK_EVERY: Duration = Duration::from_millis(10);

fn checked(parameters: &Value) -> Result<Parameters, FieldError> {
    let read: Parameters = read(parameters)?;
    if read.threads == 0 || read.threads > MOST_THREADS {
        let message = format!("{} threads cannot compute", read.threads);
        return Err(FieldError::new(&["threads"], message).help(format!("write a number from 1 to {MOST_THREADS}")));
    }
    Ok(read)
}

impl Workload for Parameters {
    fn metrics(&self) -> Vec<MetricSpec> {
        let unit = Unit::Other("chunks/s".to_owned());
        vec![MetricSpec::new("chunks_per_s", "CPU speed", unit, Better::Higher).primary()]
    }

    fn unit_of_work(&self) -> UnitOfWork {
        UnitOfWork::Operation
    }

    fn traits(&self, guest: &GuestSize, _: u32) -> Traits {
        Traits { turns: Some(TURNS), ..Traits::of(*guest) }
    }

    fn prepare(&self, _: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        Ok(Box::new(Computing { threads: self.threads, busy: None, refused: None }))
    }
}

/// Threads that compute in the guest, by their number once they are started.
struct Computing {
    threads: u32,
    busy: Option<u64>,
    /// Why it must not go on, where that was seen before the load.
    refused: Option<String>,
}

/// An answer, or the guest's own word that its computing is not to be trusted.
enum Asked {
    Iterations(u64),
    Refused(String),
}

fn ask(site: &WorkSite<'_>, request: Request) -> Result<Asked, WorkloadError> {
    match site.guest.call(request, site.timeout) {
        Ok(Reply::BusyIterations { iterations }) => Ok(Asked::Iterations(iterations)),
        Ok(_) => Err(WorkSite::unexpected("guest", "count busy iterations")),
        Err(WireError::Refused { reason, .. }) => Ok(Asked::Refused(reason)),
        Err(source) => Err(WorkloadError::Agent { side: "guest", source }),
    }
}

impl Computing {
    /// Starts the threads, and waits until one has computed a chunk; their number, or why they cannot.
    fn start(&mut self, site: &WorkSite<'_>) -> Result<Result<u64, String>, WorkloadError> {
        let work = BusyWork::Mixed;
        let busy = match site.ask_guest(Request::Busy { threads: self.threads, work })? {
            Reply::BusyStarted { busy } => *self.busy.insert(busy),
            _ => return Err(WorkSite::unexpected("guest", "start busy loops")),
        };
        // Threads first make their data, which takes an emulated guest seconds.
        Ok(first_chunk(site, busy)?.map_or(Ok(busy), Err))
    }

    /// Computes through all phases.
    fn throughout(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        sleep_until(schedule.start_at_ns);
        let began_ns = monotonic_ns();
        let busy = match self.start(site)? {
            Ok(busy) => busy,
            Err(refused) => return Ok(Polls::default().invalid(refused)),
        };
        let phases = schedule.phases;
        // What that took is a part of the warm-up, if there is one.
        let start_ns = (began_ns + phases.steady_offset_ns()).max(monotonic_ns());
        let end_ns = start_ns + phases.steady_state.ns;
        let mut polls = Polls::default();
        polls.begin();
        for due_ns in moments(start_ns, end_ns, schedule.interval_ns) {
            sleep_until(due_ns);
            match poll(site, Request::BusyIterations { busy })? {
                Ok(poll) => polls.push(poll),
                Err(reason) => return Ok(polls.invalid(reason)),
            }
        }
        sleep_until(end_ns + phases.ramp_down.ns);
        Ok(polls.driven(self.threads))
    }

    /// Computes in turns alone; the threads stand still when they begin.
    fn in_turns(&self, site: &WorkSite<'_>, schedule: &Schedule, turns: &Turns) -> Result<Driven, WorkloadError> {
        let busy = match (self.busy, &self.refused) {
            (_, Some(refused)) => return Ok(Polls::default().invalid(refused.clone())),
            (Some(busy), None) => busy,
            (None, None) => return Err(WorkloadError::NotConnected),
        };
        let start_ns = if schedule.start_at_ns == 0 { monotonic_ns() } else { schedule.start_at_ns };
        let stretches = schedule.stretches(start_ns);
        let mut polls = Polls::in_turns();
        for (from, to) in turns.windows(start_ns) {
            let steady = stretches.iter().find(|(begins, _)| (from..to).contains(begins));
            let measured = steady.map(|(begins, ends)| ((from + turns.spec.warm_up.ns).max(*begins), *ends));
            let asked = turn(site, busy, (from, to), measured, &mut polls)?;
            if let Err(reason) = asked {
                return Ok(polls.invalid(reason));
            }
            polls.ended(monotonic_ns() > to + turns.spec.gap.ns);
        }
        Ok(polls.driven(self.threads))
    }
}

/// Has the threads compute in one turn, and asks them at both ends of its measured part, if it has one.
fn turn(
    site: &WorkSite<'_>,
    busy: u64,
    (from, to): (u64, u64),
    measured: Option<(u64, u64)>,
    polls: &mut Polls,
) -> Result<Result<(), String>, WorkloadError> {
    polls.begin();
    let ends = measured.map_or(to, |(_, ends)| ends);
    sleep_until(from);
    // Who comes too late for one waits for the next.
    if monotonic_ns() >= ends {
        return Ok(Ok(()));
    }
    let mut due =
        vec![(from, Request::HoldBusy { busy, hold: false }, measured.is_some_and(|(begins, _)| begins <= from))];
    due.extend(
        measured
            .filter(|(begins, _)| *begins > from)
            .map(|(begins, _)| (begins, Request::BusyIterations { busy }, true)),
    );
    due.push((ends, Request::HoldBusy { busy, hold: true }, measured.is_some()));
    for (moment, request, counts) in due {
        sleep_until(moment);
        match poll(site, request)? {
            Ok(poll) if counts => polls.push(poll),
            Ok(_) => {}
            Err(reason) => return Ok(Err(reason)),
        }
    }
    Ok(Ok(()))
}

/// Asks the guest how far it has come, with the time of its answer; or why that is not to be trusted.
fn poll(site: &WorkSite<'_>, request: Request) -> Result<Result<Poll, String>, WorkloadError> {
    let before_ns = monotonic_ns();
    Ok(match ask(site, request)? {
        Asked::Iterations(chunks) => Ok(Poll { before_ns, after_ns: monotonic_ns(), chunks }),
        Asked::Refused(reason) => Err(reason),
    })
}

impl Prepared for Computing {
    fn connect(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<(), WorkloadError> {
        if schedule.turns.is_none() {
            return Ok(());
        }
        // The first turn begins with threads that have their data.
        let held = match self.start(site)? {
            Ok(busy) => poll(site, Request::HoldBusy { busy, hold: true })?.map(|_| ()),
            Err(refused) => Err(refused),
        };
        self.refused = held.err();
        Ok(())
    }

    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        match &schedule.turns {
            None => self.throughout(site, schedule),
            Some(turns) => self.in_turns(site, schedule, turns),
        }
    }

    fn verify(&mut self, site: &WorkSite<'_>, driven: &mut Driven) -> Result<Option<String>, WorkloadError> {
        let Some(busy) = self.busy.take() else { return Ok(Some("nothing was computed".to_owned())) };
        match ask(site, Request::StopBusy { busy })? {
            Asked::Refused(reason) => Ok(Some(format!("the guest's agent could not vouch for the results: {reason}"))),
            Asked::Iterations(_) if driven.work == 0.0 => {
                Ok(Some("not one chunk was computed in steady state".to_owned()))
            }
            Asked::Iterations(_) => Ok(None),
        }
    }
}

/// Waits until the guest has computed its first chunk; `Some(reason)` when it cannot, or not in time.
fn first_chunk(site: &WorkSite<'_>, busy: u64) -> Result<Option<String>, WorkloadError> {
    let deadline = Instant::now() + site.timeout;
    loop {
        match ask(site, Request::BusyIterations { busy })? {
            Asked::Iterations(0) if Instant::now() > deadline => {
                return Ok(Some(format!("not one chunk was computed in {:?}", site.timeout)));
            }
            Asked::Iterations(0) => std::thread::sleep(FIRST_CHUNK_EVERY),
            Asked::Iterations(_) => return Ok(None),
            Asked::Refused(reason) => return Ok(Some(reason)),
        }
    }
}

/// The moments at which the guest is asked: start and end of steady state, and between them at every interval.
fn moments(start_ns: u64, end_ns: u64, interval_ns: u64) -> Vec<u64> {
    let step = interval_ns.max(POLL_EVERY_MIN.as_nanos() as u64);
    let mut moments: Vec<u64> = (0..).map(|n| start_ns + n * step).take_while(|at| at + step / 2 < end_ns).collect();
    if moments.is_empty() {
        moments.push(start_ns);
    }
    moments.push(end_ns);
    moments
}

fn sleep_until(at_ns: u64) {
    std::thread::sleep(Duration::from_nanos(at_ns.saturating_sub(monotonic_ns())));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_guest_is_asked_at_both_ends_and_at_every_whole_interval_between() {
        let ms = |ms: &[u64]| ms.iter().map(|ms| ms * 1_000_000).collect::<Vec<u64>>();
        assert_eq!(moments(0, 1_000_000_000, 400_000_000), ms(&[0, 400, 1000]), "no scrap of an interval at the end");
        assert_eq!(moments(0, 1_000_000_000, 200_000_000), ms(&[0, 200, 400, 600, 800, 1000]));
        assert_eq!(moments(0, 20_000_000, 200_000_000), ms(&[0, 20]));
        assert_eq!(moments(0, 200_000_000, 1), ms(&[0, 50, 100, 150, 200]), "never more often than that");
    }

    #[test]
    fn it_takes_no_load_and_no_thread_is_refused() {
        let one = LoadModel::Closed { clients: 1, think_time: Span::ZERO };
        let two = LoadModel::Closed { clients: 2, think_time: Span::ZERO };
        assert!((ENTRY.make)(&json!({"threads": 4}), &one).is_ok());
        assert_eq!((ENTRY.make)(&json!({}), &two).err().unwrap().path, ["load"]);
        assert_eq!((ENTRY.normalise)(&json!({"threads": 0})).unwrap_err().path, ["threads"]);
    }
}
