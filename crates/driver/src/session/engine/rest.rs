//! The turns of others: nothing is sent in them, and what an operation stands still for is no part of its time.
//!
//! What comes then is read, judged and counted. A request that would go out waits for the driver's next turn: in `held` until it is given a connection,
//! in the outbox where its connection is there, or is there and has yet to begin TLS. An operation that waits for nothing but that stands still; one
//! that waits for an answer takes the time that the answer takes.

use super::{Ended, Engine, Users};
use crate::clock::now_ns;
use crate::session::fault::Fault;

impl<U: Users> Engine<'_, U> {
    /// A request is on its way: on a connection of its session's that has nothing to do, or on a new one. One that is sent once more has a new one, for
    /// all that are idle may have ended. Where there is none to be had it is dropped.
    pub(super) fn depart(&mut self, slot: u32, flight: u32, now: u64) -> Result<(), Fault> {
        if self.common.timeline.rests(now) {
            self.held.push_back(flight);
            return Ok(());
        }
        let again = self.flights.peek(flight).is_some_and(|flight| flight.resent);
        let number = if again { self.open(slot) } else { self.idle(slot) };
        let number = number.inspect_err(|_| self.land(flight))?;
        self.attach(number, flight, now);
        Ok(())
    }

    /// Sends what waited without a connection for the driver's turn.
    pub(super) fn send_held(&mut self) {
        while let Some(&flight) = self.held.front() {
            let now = now_ns();
            if self.common.timeline.rests(now) {
                return;
            }
            self.held.pop_front();
            let Some(slot) = self.flights.peek(flight).map(|flight| flight.session) else { continue };
            self.stood(slot, now);
            if let Err(fault) = self.depart(slot, flight, now) {
                self.fail(slot, fault, now, true);
            }
        }
    }

    /// Drops what a session was to send: its operation has failed.
    pub(super) fn drop_held(&mut self, slot: u32) {
        let held = std::mem::take(&mut self.held);
        for flight in held {
            if self.flights.peek(flight).is_some_and(|flight| flight.session == slot) {
                self.land(flight);
            } else {
                self.held.push_back(flight);
            }
        }
    }

    /// Takes out of an operation's time what it has stood still for since something last came for it. It goes on now.
    pub(super) fn stood(&mut self, slot: u32, now: u64) {
        if self.turns.is_none() || self.awaits(slot) {
            return;
        }
        let session = &mut self.sessions[slot as usize];
        let still = now.saturating_sub(session.heard).saturating_sub(self.common.timeline.waited(session.heard, now));
        session.from += still;
        session.sent += if session.sent > 0 { still } else { 0 };
        session.heard = now;
    }

    /// Whether a session waits for an answer, and not for its own reading of one.
    fn awaits(&self, slot: u32) -> bool {
        let mut at = self.sessions[slot as usize].first;
        while let Some(conn) = self.conns.peek(at) {
            if !conn.timed && self.flights.peek(conn.flight).is_some_and(|flight| flight.sent > 0) {
                return true;
            }
            at = conn.next;
        }
        false
    }

    /// Whether something was due in the driver's turn and could not begin before its end.
    pub(super) fn is_behind(&mut self, now: u64) -> bool {
        self.common.timeline.rests(now)
            && (self.timers.next_at() <= now || self.next_arrival().is_some_and(|due| due <= now))
    }

    /// Counts an operation that is over in the turn in which it was due. Users who do nothing but ask one thing after another are busy with it
    /// until it ends, and so the time of their turns is that of their operations; the others' is that of the clock.
    pub(super) fn count_in_turn(&mut self, slot: u32, ended: &Ended, now: u64) {
        let Some(turns) = &mut self.turns else { return };
        let (timeline, due) = (&self.common.timeline, self.sessions[slot as usize].due);
        let (began, until) = timeline.stage_at(due);
        if ended.fault.is_none() && timeline.measures(due) {
            turns.begins(due);
            turns.add(ended.response_ns);
        }
        if now >= until && !self.common.settings.thinks && self.common.arrivals.is_none() {
            turns.crossed((due, began), (now - due).saturating_sub(ended.response_ns), now);
        }
    }
}
