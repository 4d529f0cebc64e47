//! Starts at times that are fixed in advance, whether or not earlier guests are gone.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tare_model::arrivals::ArrivalTimes;
use tare_model::load::{Arrivals, LoadModel};

use super::Parameters;
use super::burst::{Burst, side_by_side};
use crate::clock::monotonic_ns;
use crate::{Schedule, Starter, WorkloadError};

/// How long after the last phase starts that were due are still begun; those that have not been by then count as failed.
const GIVE_UP_NS: u64 = 30_000_000_000;

/// How long nobody looks whether the run is to end.
const LOOK: Duration = Duration::from_millis(100);

/// When starts are due.
#[derive(Debug, Clone, Copy)]
pub struct OpenLoad {
    /// Starts a second.
    pub rate: f64,
    /// How they are spread.
    pub arrivals: Arrivals,
    /// Guests that there are at one time, at most: a start that is due waits for one of them to be gone.
    pub most: u32,
}

impl OpenLoad {
    /// The load of a study, if it is of this kind.
    pub const fn of(load: &LoadModel) -> Option<Self> {
        match *load {
            LoadModel::Open { rate, arrivals, connections } => Some(Self { rate: rate.0, arrivals, most: connections }),
            LoadModel::Closed { .. } => None,
        }
    }

    /// Begins a start whenever one is due; those that were due in steady state, each with the time that it waited.
    ///
    /// # Errors
    /// When the run is to end, or a guest could not be taken away.
    pub fn drive(
        &self,
        starter: &dyn Starter,
        parameters: &Parameters,
        schedule: &Schedule,
    ) -> Result<Vec<Burst>, WorkloadError> {
        let start_ns = if schedule.start_at_ns == 0 { monotonic_ns() } else { schedule.start_at_ns };
        let times = ArrivalTimes::new(self.rate, self.arrivals, &schedule.phases, schedule.seed);
        let due = &Mutex::new(times.map(|offset| start_ns + offset));
        let from_ns = start_ns + schedule.phases.steady_offset_ns();
        let (to_ns, over_ns) =
            (from_ns + schedule.phases.steady_state.ns, start_ns + schedule.phases.total().ns + GIVE_UP_NS);
        let work = move || {
            let mut done = Vec::new();
            loop {
                let next = due.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(due_ns) = next else { return Ok(done) };
                let burst = begin(starter, parameters, due_ns, over_ns).map_err(|error| error.to_string())?;
                if (from_ns..to_ns).contains(&due_ns) {
                    done.push(burst);
                }
            }
        };
        let done = side_by_side((0..self.most).map(|_| work).collect());
        let mut all = done.into_iter().collect::<Result<Vec<_>, _>>().map_err(WorkloadError::Command)?.concat();
        all.sort_by_key(|burst: &Burst| burst.window_ns);
        Ok(all)
    }
}

/// Waits until a start is due, and makes the guest; does not where it is far too late.
fn begin(starter: &dyn Starter, parameters: &Parameters, due_ns: u64, over_ns: u64) -> Result<Burst, WorkloadError> {
    let from_ns = loop {
        let now = monotonic_ns();
        if due_ns <= now || starter.ended().is_some() {
            break now;
        }
        std::thread::sleep(Duration::from_nanos(due_ns - now).min(LOOK));
    };
    if from_ns > over_ns {
        let why = "it waited for a place from when it was due until long after the load: all guests that there may be at one time were there";
        return Ok(Burst { window_ns: (due_ns, from_ns), failed: vec![why.to_owned()], ..Burst::default() });
    }
    Ok(Burst::of(1, starter, parameters)?.waited(from_ns.saturating_sub(due_ns)))
}
