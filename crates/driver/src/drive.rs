//! A run of a driver: prepares it, goes through the phases, returns what was measured.

use std::sync::atomic::AtomicBool;

use tare_model::drive::{DriveInterval, DriveResult, DriveSpec};
use tare_model::load::{LoadModel, Phases};
use tare_model::turns::{TurnSpec, Turns};

use crate::clock::{now_ns, tighten_timers};
use crate::course::{Course, Drive};
use crate::timeline::Timeline;
use crate::{DriverError, registry};

pub use crate::course::{GRACE_CLOSED_NS, GRACE_NS};

/// Connects, runs at `spec.start_at_ns` and returns what was measured; see [`Prepared::run`].
///
/// # Errors
/// Those of [`prepare`] and of [`Prepared::run`].
pub fn run(
    spec: &DriveSpec,
    progress: &dyn Fn(DriveInterval),
    cancel: &AtomicBool,
) -> Result<DriveResult, DriverError> {
    prepare(spec, cancel)?.run(spec.start_at_ns, progress, cancel)
}

/// A driver whose connections are open and whose servers have answered.
#[derive(Debug)]
pub struct Prepared {
    phases: Phases,
    turns: Option<Turns>,
    drive: Box<dyn Drive>,
}

/// Opens every connection and sees each server answer that it serves this load.
///
/// # Errors
/// When the specification is impossible, a server cannot be reached within 5 s, is not ours or serves
/// something else, the kernel refuses a socket setting, or `cancel` is set meanwhile.
pub fn prepare(spec: &DriveSpec, cancel: &AtomicBool) -> Result<Prepared, DriverError> {
    check(spec)?;
    let drive = registry::prepare(spec, cancel)?;
    Ok(Prepared { phases: spec.phases, turns: spec.turns.clone(), drive })
}

/// Refuses what no driver can do, before anything is opened.
fn check(spec: &DriveSpec) -> Result<(), DriverError> {
    let invalid = |what: &str, remedy| DriverError::invalid(what, remedy);
    if spec.load.connections() == 0 {
        return Err(invalid("it has no clients", "ask for at least one"));
    }
    if spec.phases.steady_state.ns == 0 {
        return Err(invalid("its steady state is empty", "give steady_state a length"));
    }
    if spec.interval_ns == 0 {
        return Err(invalid("its series has intervals of no length", "give interval_ns a length"));
    }
    if let Some(turns) = &spec.turns {
        let TurnSpec { turn, warm_up, .. } = turns.spec;
        if turn.ns == 0 || warm_up.ns >= turn.ns {
            return Err(invalid("nothing of its turns is measured", "make turns longer than their warm-up"));
        }
        if (turns.places.len() as u32) < turns.spec.rounds(&spec.phases) {
            return Err(invalid("its turns are too few for its phases", "give it a turn in every round"));
        }
    }
    if let LoadModel::Open { rate, .. } = spec.load
        && !(rate.0.is_finite() && rate.0 > 0.0)
    {
        return Err(DriverError::invalid(format!("its arrival rate is {rate}"), "give a rate above zero"));
    }
    Ok(())
}

impl Prepared {
    /// Runs all phases from `start_at_ns` of CLOCK_MONOTONIC and returns what was measured; 0 means at once. The
    /// measured window is never shifted, because others know it in advance: a driver that starts
    /// too late offers less load before it. `progress` is called on this thread at the end of every interval. Setting `cancel`
    /// ends the run within 0.1 s.
    ///
    /// Errors of operations do not end the run: they are counted by reason over all phases, and a client
    /// whose connection broke stops. The run ends when its last client has, at the latest [`GRACE_CLOSED_NS`]
    /// (closed loop) or [`GRACE_NS`] (open loop, bulk, store) after its last phase, in turns after the last turn of all drivers.
    ///
    /// # Errors
    /// When threads are refused, the measured window has begun already, or the run was cancelled.
    pub fn run(
        self,
        start_at_ns: u64,
        progress: &dyn Fn(DriveInterval),
        cancel: &AtomicBool,
    ) -> Result<DriveResult, DriverError> {
        tighten_timers();
        let now = now_ns();
        let start = if start_at_ns == 0 { now } else { start_at_ns };
        let timeline = match &self.turns {
            None => Timeline::new(start, &self.phases),
            Some(turns) => Timeline::in_turns(start, &self.phases, turns),
        };
        match now.saturating_sub(timeline.steady_start) {
            0 => self.drive.run(Course { timeline, progress, cancel }),
            late_ns => Err(DriverError::Late { late_ns }),
        }
    }
}
