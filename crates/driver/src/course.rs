//! The course of a run, and what follows it: a driver of one kind of load.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use tare_model::drive::{DriveInterval, DriveResult, DriveSpec};

use crate::DriverError;
use crate::timeline::Timeline;

/// How long after the end of the load a closed loop waits for answers still due.
pub const GRACE_CLOSED_NS: u64 = 1_000_000_000;
/// How long after the end of the load an open loop drains what was due in the measured window, a bulk
/// stream flushes and settles its count, and an order in a store, which may have to be tried again, comes to its end.
pub const GRACE_NS: u64 = 5_000_000_000;

/// What drives one kind of load. It is made connected: its servers have answered.
pub(crate) trait Drive: Debug + Send {
    /// Goes through the phases.
    fn run(self: Box<Self>, course: Course<'_>) -> Result<DriveResult, DriverError>;
}

/// What a run goes by; [`Prepared::run`](crate::drive::Prepared::run) has the rest.
#[derive(Clone)]
pub(crate) struct Course<'a> {
    /// The phases.
    pub timeline: Timeline,
    /// Is called at the end of every interval.
    pub progress: &'a dyn Fn(DriveInterval),
    /// Ends the run when it is set.
    pub cancel: &'a AtomicBool,
}

/// The first server, which all kinds of load but one need.
pub(crate) fn first_target(spec: &DriveSpec) -> Result<SocketAddr, DriverError> {
    let first = spec.targets.first().copied();
    first.ok_or_else(|| DriverError::invalid("it has no server to drive", "name at least one target"))
}
