//! `cpu`: how fast a guest computes, by a clock outside it.
//!
//! Threads in the guest compute the same chunk over and over, and check each result. They do so through a *stretch*: all of steady state
//! or, in turns, one turn. While they compute, the guest is asked nothing, because it would answer late. Once they stand still it
//! says how many whole chunks each of them has computed, and from when to when by its own clock. That clock is compared with the
//! controller's before and after the load and its moments are translated: a guest whose clock runs slow looks no faster.

mod speed;
mod stretches;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::Span;
use tare_model::drive::{BusyDone, BusyStretch, BusyWork};
use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::load::LoadModel;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::traits::{Renewed, TurnTraits};
use tare_wire::{Reply, Request, WireError};

use crate::clock::monotonic_ns;
use crate::entry::{Entry, filled, read, schema};
use crate::{Driven, Offset, Prepared, Relation, Schedule, Traits, UnitOfWork, WorkSite, Workload, WorkloadError};
use speed::{Ran, Speed, invalid};

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
/// In the first part of a turn virtual CPUs wake, the data moves into other memory, and caches are cold. Chunks that were begun are ended
/// in the gap.
const TURNS: TurnTraits = TurnTraits {
    turn: Span::from_millis(20),
    warm_up: Span::from_millis(5),
    gap: Span::from_millis(5),
    renewed: Some(Renewed::Memory),
    freezes: true,
    commands: None,
};
/// Why more threads than the guest has CPUs are not driven in turns.
const OVER_QUOTA: &str =
    "more threads compute than the guest has CPUs: its CPU quota is counted over longer times than a turn";

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
        if self.threads > guest.cpus {
            return Traits { no_turns: Some(OVER_QUOTA), ..Traits::of(*guest) };
        }
        Traits { turns: Some(TURNS), several_set_ups: true, slowable: true, ..Traits::of(*guest) }
    }

    fn prepare(&self, _: &WorkSite<'_>) -> Result<Box<dyn Prepared>, WorkloadError> {
        Ok(Box::new(Computing { threads: self.threads, busy: None, clock: Err("nothing was computed".to_owned()) }))
    }
}

/// Threads that compute in the guest, by their number once they are started.
struct Computing {
    threads: u32,
    busy: Option<u64>,
    /// The guest's clock before the load, or why it must not go on.
    clock: Result<Offset, String>,
}

/// What busy loops answer, or the guest's own word that its computing is not to be trusted. The answer may take this much longer than others.
fn ask(site: &WorkSite<'_>, request: Request, longer: Duration) -> Result<Result<Reply, String>, WorkloadError> {
    match site.guest.call(request, site.timeout + longer) {
        Ok(reply) => Ok(Ok(reply)),
        Err(WireError::Refused { reason, .. }) => Ok(Err(reason)),
        Err(source) => Err(WorkloadError::Agent { side: "guest", source }),
    }
}

/// Has the threads compute through a stretch.
fn run(site: &WorkSite<'_>, busy: u64, stretch: BusyStretch) -> Result<Result<BusyDone, String>, WorkloadError> {
    let longer = Duration::from_nanos(stretch.for_ns.max(stretch.warm_up_ns));
    match ask(site, Request::RunBusy { busy, stretch }, longer)? {
        Ok(Reply::BusyRan(done)) => Ok(Ok(done)),
        Ok(_) => Err(WorkSite::unexpected("guest", "compute for a while")),
        Err(reason) => Ok(Err(reason)),
    }
}

impl Prepared for Computing {
    fn connect(&mut self, site: &WorkSite<'_>, _: &Schedule) -> Result<(), WorkloadError> {
        let work = BusyWork::Mixed;
        let busy = match site.ask_guest(Request::Busy { threads: self.threads, work })? {
            Reply::BusyStarted { busy, .. } => *self.busy.insert(busy),
            _ => return Err(WorkSite::unexpected("guest", "start busy loops")),
        };
        // Threads first make their data, which takes an emulated guest seconds. This is over when each has computed a chunk.
        let first = run(site, busy, BusyStretch::default())?;
        self.clock = first.and_then(|_| Offset::ask(site.guest, site.timeout));
        Ok(())
    }

    fn drive(&mut self, site: &WorkSite<'_>, schedule: &Schedule) -> Result<Driven, WorkloadError> {
        let busy = self.busy.ok_or(WorkloadError::NotConnected)?;
        let before = match &self.clock {
            Ok(before) => *before,
            Err(reason) => return Ok(invalid(reason)),
        };
        let start_ns = if schedule.start_at_ns == 0 { monotonic_ns() } else { schedule.start_at_ns };
        let mut all = Vec::new();
        for stretch in stretches::of(schedule, start_ns) {
            sleep_until(stretch.from_ns);
            let before_ns = monotonic_ns();
            let mut done = None;
            // Who comes too late for one waits for the next.
            if let Some(request) = stretch.request(before_ns) {
                let slowed_permille = site.slowed_permille.unwrap_or(0);
                match run(site, busy, BusyStretch { slowed_permille, ..request })? {
                    Ok(ran) => done = Some(ran),
                    Err(reason) => return Ok(invalid(&reason)),
                }
            }
            all.push(Ran { stretch, before_ns, after_ns: monotonic_ns(), done });
        }
        // Where guests are stopped between turns, all go on now.
        sleep_until(start_ns + schedule.total().as_nanos() as u64);
        let after = match Offset::ask(site.guest, site.timeout) {
            Ok(after) => after,
            Err(reason) => return Ok(invalid(&reason)),
        };
        let speed = Speed::of(&all, Relation::new(before, Some(after)));
        Ok(speed.map_or_else(|reason| invalid(&reason), |speed| speed.driven(schedule.turns.is_some())))
    }

    fn verify(&mut self, site: &WorkSite<'_>, driven: &mut Driven) -> Result<Option<String>, WorkloadError> {
        let Some(busy) = self.busy.take() else { return Ok(Some("nothing was computed".to_owned())) };
        match ask(site, Request::StopBusy { busy }, Duration::ZERO)? {
            Err(reason) => Ok(Some(format!("the guest's agent could not vouch for the results: {reason}"))),
            Ok(_) if driven.work == 0.0 => Ok(Some("not one chunk was computed in steady state".to_owned())),
            Ok(_) => Ok(None),
        }
    }
}

fn sleep_until(at_ns: u64) {
    std::thread::sleep(Duration::from_nanos(at_ns.saturating_sub(monotonic_ns())));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_takes_no_load_and_no_thread_is_refused() {
        let one = LoadModel::Closed { clients: 1, think_time: Span::ZERO };
        let two = LoadModel::Closed { clients: 2, think_time: Span::ZERO };
        assert!((ENTRY.make)(&json!({"threads": 4}), &one).is_ok());
        assert_eq!((ENTRY.make)(&json!({}), &two).err().unwrap().path, ["load"]);
        assert_eq!((ENTRY.normalise)(&json!({"threads": 0})).unwrap_err().path, ["threads"]);
    }

    #[test]
    fn more_threads_than_cpus_are_not_driven_in_turns_and_the_reason_is_the_quota() {
        let of = |threads| Parameters { threads }.traits(&GuestSize { cpus: 2, ..tare_model::traits::ANY_SIZE }, 1);
        assert!(of(2).turns.is_some() && of(2).no_turns.is_none());
        assert!(of(3).turns.is_none() && of(3).no_turns.is_some_and(|why| why.contains("quota")));
    }
}
