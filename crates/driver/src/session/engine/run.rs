//! The loop of a thread: it sees what is due and what has come, and waits for the next.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use super::conn::Flight;
use super::{Counts, Engine, Users};
use crate::clock::now_ns;
use crate::course::{GRACE_CLOSED_NS, GRACE_NS};
use crate::session::fault::TIMEOUT;
use crate::session::sys::{self, BATCH, Event};
use crate::session::tick;
use crate::session::timers::Due;

/// Answers that are waited for too long are looked for this often in that time, and within these bounds.
const LOOKS: u64 = 16;
const LOOK_BOUNDS_NS: (u64, u64) = (1_000_000, 250_000_000);

impl<U: Users> Engine<'_, U> {
    /// Drives the sessions through all phases.
    pub(super) fn run(mut self) -> (Counts, U) {
        let mut events = [Event { data: 0, flags: 0 }; BATCH];
        let timeout = self.common.settings.timeout_ns;
        let look_ns = (timeout / LOOKS).clamp(LOOK_BOUNDS_NS.0, LOOK_BOUNDS_NS.1);
        let mut look_at = 0;
        loop {
            let now = now_ns();
            self.tracker.at(now);
            if self.common.control.stop.load(Ordering::Relaxed) {
                break;
            }
            self.send_held();
            self.timers_due(now);
            self.arrivals_due(now);
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
            self.gathers = U::GATHERS;
            for event in &events[..count] {
                self.happened(*event);
            }
            self.gathers = false;
            self.send_gathered();
            self.meter.set_bytes(self.carried);
        }
        self.cut();
        self.weigh();
        self.finish()
    }

    /// When something is due.
    fn rests_until(&mut self, now: u64) -> u64 {
        let timeline = &self.common.timeline;
        if timeline.rests(now) {
            return timeline.after(now, 0);
        }
        let arrival = if now < timeline.load_end { self.next_arrival() } else { None };
        arrival.into_iter().fold(self.timers.next_at().min(self.tracker.until()), u64::min)
    }

    fn timers_due(&mut self, now: u64) {
        if self.common.timeline.rests(now) {
            return;
        }
        while let Some((at, due)) = self.timers.pop(now) {
            match due {
                Due::User(slot) => self.user_due(slot, at),
                Due::Read(number, age) => self.allowed(number, age, now_ns()),
            }
        }
    }

    fn arrivals_due(&mut self, now: u64) {
        if self.common.timeline.rests(now) {
            return;
        }
        while let Some(due) = self.next_arrival().filter(|&due| due <= now) {
            self.arrive(due);
        }
    }

    /// Operations whose connections have been silent for too long have failed.
    fn time_out(&mut self, now: u64, timeout: u64) {
        let silent = |flight: &&Flight<_>| self.common.timeline.waited(flight.heard_at, now) > timeout;
        let mut late: Vec<u32> =
            self.flights.iter().map(|(_, flight)| flight).filter(silent).map(|flight| flight.session).collect();
        late.sort_unstable();
        late.dedup();
        for slot in late {
            self.fail(slot, TIMEOUT, now, true);
        }
    }

    /// Whether there is nothing left to wait for: after the load, what was due in the window is waited for longer than what was not.
    fn over(&mut self, now: u64) -> bool {
        let timeline = &self.common.timeline;
        if now < timeline.load_end {
            return false;
        }
        let measured = self.due_active + self.pausing > 0
            || self.waiting.iter().any(|&due| timeline.measures(due))
            || self.is_behind(now);
        let grace = if measured { GRACE_NS } else { GRACE_CLOSED_NS };
        self.active == 0 && !measured || now >= timeline.all_over().saturating_add(grace)
    }

    /// Something is up with a connection.
    fn happened(&mut self, event: Event) {
        if event.data == tick::DATA {
            return self.ticks.ticked();
        }
        let (number, age) = (event.data as u32, (event.data >> 32) as u32);
        let now = now_ns();
        if !U::GATHERS {
            // It is not kept waiting by the rest of what has come.
            self.timers_due(now);
        }
        if self.conns.get(number).is_some_and(|conn| conn.age == age) {
            self.ready(number, event.flags, now);
        }
    }
}
