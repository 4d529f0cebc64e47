//! What an operation is to the loops that start it.

use crate::control::{Control, Meter};
use crate::error::Failure;
use crate::tally::{Shared, Tally};
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

    /// Part of the last one's time that does not belong to it, nanoseconds.
    #[inline]
    fn untimed_ns(&self) -> u64 {
        0
    }

    /// Part of the last one's time in which it paused because it was the turn of others, nanoseconds.
    #[inline]
    fn rested_ns(&self) -> u64 {
        0
    }

    /// How long the client thinks now if it thinks for `mean_ns` on average.
    #[inline]
    fn think_ns(&mut self, mean_ns: u64) -> u64 {
        mean_ns
    }

    /// The last one was answered in the measured window.
    #[inline]
    fn counts(&mut self) {}
}

/// What every thread of a run is given.
#[derive(Debug, Clone)]
pub(crate) struct Worker<'a> {
    /// Which connection, from 0.
    pub index: u32,
    /// Of how many.
    pub of: u32,
    pub timeline: Timeline,
    pub control: &'a Control,
    pub meter: &'a Meter,
    pub record: bool,
    /// Where durations go instead of into histograms of the thread's own.
    pub shared: Option<&'a Shared>,
    /// How long after the start of a warm-up this one begins, nanoseconds (closed loop).
    pub delay_ns: u64,
}

impl Worker<'_> {
    /// When a client of a closed loop begins: in the warm-up, or else when it joins in the ramp-up.
    pub fn begins_at(&self) -> u64 {
        let timeline = &self.timeline;
        if timeline.warm_end > timeline.start {
            timeline.after(timeline.start, self.delay_ns)
        } else {
            timeline.joins_at(self.index, self.of)
        }
    }

    /// An empty tally of a closed loop, or of an open one.
    pub fn tally(&self, open: bool) -> Tally {
        match (self.shared.filter(|_| self.record), open) {
            (Some(shared), _) => Tally::sharing(shared, open),
            (None, true) => Tally::open(self.record),
            (None, false) => Tally::new(self.record),
        }
    }
}

pub(crate) use tare_model::drive::CUT_OFF;

/// Pause after a failed operation, so that a dead server costs no whole CPU.
pub(crate) const PAUSE_NS: u64 = 1_000_000;
