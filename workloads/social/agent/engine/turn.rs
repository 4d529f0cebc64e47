//! The turns of a thread: it sees what is due and what has come, and waits for the next.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use super::{Counts, Engine};
use crate::clock::now_ns;
use crate::drive::{GRACE_CLOSED_NS, GRACE_NS};
use crate::session::fault::TIMEOUT;
use crate::session::sys::{self, BATCH, Event};
use crate::session::tick;

/// Answers that are waited for too long are looked for this often in that time, and within these bounds.
const LOOKS: u64 = 16;
const LOOK_BOUNDS_NS: (u64, u64) = (1_000_000, 250_000_000);

impl Engine<'_> {
    /// Drives the users through all phases.
    pub fn run(mut self) -> Counts {
        let mut events = [Event { data: 0, flags: 0 }; BATCH];
        let timeout = self.common.drive.timeout_ns;
        let look_ns = (timeout / LOOKS).clamp(LOOK_BOUNDS_NS.0, LOOK_BOUNDS_NS.1);
        let mut look_at = 0;
        loop {
            let now = now_ns();
            self.tracker.at(now);
            if self.common.control.stop.load(Ordering::Relaxed) {
                break;
            }
            self.timers_due(now);
            if now >= look_at {
                look_at = now + look_ns;
                self.time_out(now, timeout);
            }
            if self.over(now) {
                break;
            }
            // Looks that may be as seldom as ticks come with these.
            let until = self.rests_until(now).min(if look_ns < tick::EVERY_NS { look_at } else { u64::MAX });
            let Ok(count) = sys::wait(self.epoll.as_fd(), self.ticks.rest(until), &mut events) else {
                // It waits for nothing but its own instance with a timeout, which cannot fail but by a signal.
                break;
            };
            for event in &events[..count] {
                self.happened(*event);
            }
            self.meter.set_bytes(self.carried);
        }
        self.cut();
        self.weigh();
        self.finish()
    }

    /// When something is due.
    fn rests_until(&self, now: u64) -> u64 {
        let timeline = self.common.timeline;
        [timeline.steady_start, timeline.steady_end, timeline.load_end]
            .into_iter()
            .filter(|&at| at > now)
            .fold(self.timers.next_at(), u64::min)
    }

    fn timers_due(&mut self, now: u64) {
        while let Some((at, slot)) = self.timers.pop(now) {
            self.timer_due(slot, at);
        }
    }

    /// Operations whose connections have been silent for too long have failed.
    fn time_out(&mut self, now: u64, timeout: u64) {
        let late: Vec<u32> = self
            .trips
            .iter()
            .filter(|(_, trip)| now.saturating_sub(trip.heard_at) > timeout)
            .map(|(_, trip)| trip.slot)
            .collect();
        for slot in late {
            self.lost(slot, TIMEOUT, now);
        }
    }

    /// Whether there is nothing left to wait for: after the load, what was due in the window is waited for longer than what was not.
    const fn over(&self, now: u64) -> bool {
        let end = self.common.timeline.load_end;
        if now < end {
            return false;
        }
        let due = self.due_active + self.pausing;
        let grace = if due > 0 { GRACE_NS } else { GRACE_CLOSED_NS };
        self.active + self.pausing == 0 || now >= end.saturating_add(grace)
    }

    /// Something is up with a connection. What has become due meanwhile is not kept waiting by the rest of what has come.
    fn happened(&mut self, event: Event) {
        if event.data == tick::DATA {
            return self.ticks.ticked();
        }
        let (slot, age) = (event.data as u32, (event.data >> 32) as u32);
        let now = now_ns();
        self.timers_due(now);
        if self.sessions.get(slot as usize).is_some_and(|session| session.age == age && session.fd.is_some()) {
            self.ready(slot, event.flags, now);
        }
    }
}
