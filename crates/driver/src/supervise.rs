//! The thread that watches a run: interval series, cancellation, and the end that nothing delays.

use std::sync::atomic::{AtomicBool, Ordering};

use tare_model::drive::DriveInterval;

use crate::clock::{now_ns, sleep_until};
use crate::control::{Breaker, Control, Meter};
use crate::course::Course;
use crate::open;
use crate::timeline::Tracker;
use crate::usage::Usage;

/// How often the supervisor looks up when nothing else is due.
const LOOK_NS: u64 = 50_000_000;
/// The same once the load is over and threads end one by one.
const LOOK_AT_END_NS: u64 = 1_000_000;
/// How far ahead arrivals are generated.
const AHEAD_NS: u64 = 2_000_000_000;

/// What the supervisor watches.
pub(crate) struct Watch<'a> {
    pub course: Course<'a>,
    /// When connections are cut.
    pub cut_at: u64,
    pub interval_ns: u64,
    /// Payload bytes of one operation, both ways.
    pub operation_bytes: u64,
    pub control: &'a Control,
    pub meters: &'a [Meter],
    pub breakers: &'a [Breaker],
    pub arrivals: Option<&'a open::Shared>,
}

/// What the supervisor brings back.
pub(crate) struct Watched {
    pub intervals: Vec<DriveInterval>,
    pub cpu: Usage,
    pub cancelled: bool,
    /// When load began as this process saw it: the start of the phases, or later where it did not get a CPU; 0: it never came to that.
    pub began_ns: u64,
}

impl Watch<'_> {
    /// Watches until every thread has ended, which it brings about when they do not by themselves.
    pub fn run(&self) -> Watched {
        let never = AtomicBool::new(false);
        let mut intervals = Vec::new();
        let mut tracker = Tracker::new(self.course.timeline.clone());
        let mut seen = DriveInterval::default();
        let mut interval_end = self.course.timeline.start.saturating_add(self.interval_ns);
        let (mut cancelled, mut began_ns) = (false, 0);
        loop {
            let now = now_ns();
            if began_ns == 0 && now >= self.course.timeline.start {
                began_ns = now;
            }
            tracker.at(now);
            if let Some(shared) = self.arrivals {
                shared.dealer.ahead(now + AHEAD_NS);
            }
            let over = self.control.alive.load(Ordering::Acquire) == 0;
            if now >= interval_end || over {
                let sum = self.sum(now);
                let interval = sum.since(seen);
                // What ends with the last thread may be shorter than an interval, but is never left out.
                if now >= interval_end || (interval.operations, interval.bytes) != (0, 0) {
                    (self.course.progress)(interval);
                    intervals.push(interval);
                }
                seen = sum;
                let passed = now.saturating_sub(self.course.timeline.start) / self.interval_ns;
                interval_end = self.course.timeline.start.saturating_add((passed + 1).saturating_mul(self.interval_ns));
            }
            if over {
                return Watched { intervals, cpu: tracker.finish(), cancelled, began_ns };
            }
            if !cancelled && self.course.cancel.load(Ordering::Relaxed) {
                cancelled = true;
                self.cut();
            }
            if now >= self.cut_at {
                self.cut();
            }
            sleep_until(self.next_look(now, interval_end), &never);
        }
    }

    fn next_look(&self, now: u64, interval_end: u64) -> u64 {
        if now >= self.course.timeline.all_over() {
            return now + LOOK_AT_END_NS;
        }
        let timeline = &self.course.timeline;
        [timeline.start, interval_end, timeline.steady_start, timeline.steady_end, timeline.load_end]
            .into_iter()
            .filter(|&at| at > now)
            .fold(now + LOOK_NS, u64::min)
    }

    /// Ends the run: every thread leaves its system call with an error and stops.
    fn cut(&self) {
        self.control.cut.store(true, Ordering::Relaxed);
        self.control.halt();
        self.breakers.iter().for_each(Breaker::cut);
    }

    fn sum(&self, now: u64) -> DriveInterval {
        let mut sum = DriveInterval { end_ns: now, ..DriveInterval::default() };
        self.meters.iter().for_each(|meter| sum.add(meter.read(now)));
        sum.bytes += sum.operations * self.operation_bytes;
        sum
    }
}
