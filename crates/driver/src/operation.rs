//! What an operation is to the loops that start it.

use crate::control::{Control, Meter};
use crate::error::Failure;
use crate::timeline::Timeline;

/// How an operation ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// The right answer came.
    Answered,
    /// No answer came in time (UDP).
    Lost,
}

/// One connection's way to perform one operation, start to end, blocking.
pub(crate) trait Operation {
    /// Performs it.
    fn perform(&mut self) -> Result<Done, Failure>;
}

/// What every thread of a run is given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Worker<'a> {
    /// Which connection, from 0.
    pub index: u32,
    /// Of how many.
    pub of: u32,
    pub timeline: Timeline,
    pub control: &'a Control,
    pub meter: &'a Meter,
    pub record: bool,
}

/// The word for an operation that was under way when time was up.
pub(crate) const CUT_OFF: &str = "no answer by the end of the run";

/// Pause after a failed operation, so that a dead server costs no whole CPU.
pub(crate) const PAUSE_NS: u64 = 1_000_000;
