//! Users and their operations: who begins when, what is asked for next, and how an operation ended.

use tare_model::drive::CUT_OFF;

use super::super::user::{Ended, Looks};
use super::{Engine, Stage, Trip};
use crate::clock::now_ns;
use crate::drive::GRACE_NS;
use crate::session::fault::CLOSED;
use crate::session::fault::{Fault, TIMEOUT, UNFINISHED};
use crate::session::slab::NONE;

/// How long a user waits at least after a connection that has failed: doubled with each that fails after it, up to the most. Thousands of users at
/// a server that refuses them must not become a storm of connections.
const PAUSE_NS: (u64, u64) = (1_000_000, 1_000_000_000);

impl Engine<'_> {
    /// A user was to begin an operation at this moment.
    pub(super) fn timer_due(&mut self, slot: u32, at: u64) {
        let now = now_ns();
        if self.common.timeline.measures(at) {
            self.counts.tally.lateness.record(now.saturating_sub(at));
        }
        // After a pause the cycle has been over for some time.
        let due = self.sessions[slot as usize].next_due().unwrap_or(at).min(at);
        self.pausing -= u64::from(due < at && self.common.timeline.measures(due));
        self.begin(slot, due, now);
    }

    /// Begins an operation that was due at a moment, unless the load has ended: after that only what was due in the measured window is begun.
    fn begin(&mut self, slot: u32, due: u64, now: u64) {
        let timeline = &self.common.timeline;
        let session = &mut self.sessions[slot as usize];
        if now >= timeline.load_end && !timeline.measures(due) {
            // Whoever has left keeps their connection until all have.
            return;
        }
        if session.started > 0 && timeline.measures(now) {
            self.counts.operations.cycle(session.member.instance(), session.drawn, now - session.started);
        }
        self.active += 1;
        self.due_active += u64::from(timeline.measures(due));
        let world = self.common.world;
        let operation = session.member.next(world);
        (session.due, session.started) = (due, now);
        session.drawn = session.member.cycle_ns(world, operation);
        let mut trip = self.spare.pop().unwrap_or_default();
        trip.begin(slot, now);
        trip.visit.begin(world, &mut session.member, operation);
        session.trip = self.trips.insert(trip);
        self.go_on(slot, now);
    }

    /// Asks for the next thing; an operation that has nothing left to ask for is complete.
    pub(super) fn go_on(&mut self, slot: u32, now: u64) {
        let session = &mut self.sessions[slot as usize];
        let Some(trip) = self.trips.get(session.trip) else { return };
        let cookie = session.cookie.as_deref().unwrap_or_default();
        let Trip { visit, out, .. } = trip.as_mut();
        if !visit.ask(self.common.world, &mut session.member, cookie, out) {
            return self.complete(slot, now);
        }
        trip.ready();
        trip.length = trip.out.bytes();
        (trip.asked_at, trip.heard_at) = (now, now);
        self.dispatch(slot, now);
    }

    /// Sends the request of an operation, on a connection that is opened where there is none.
    pub(super) fn dispatch(&mut self, slot: u32, now: u64) {
        match self.sessions[slot as usize].stage {
            Stage::Open => self.send(slot, now),
            Stage::Connecting => {}
            Stage::Closed => {
                if let Err(fault) = self.open(slot) {
                    self.lost(slot, fault, now);
                }
            }
        }
    }

    /// An answer has come in full.
    pub(super) fn answered(&mut self, slot: u32, now: u64) {
        let session = &mut self.sessions[slot as usize];
        let Some(trip) = self.trips.get(session.trip) else { return };
        session.served = true;
        session.failures = 0;
        trip.parts[trip.visit.part()] += now.saturating_sub(trip.asked_at);
        if trip.visit.leaves() {
            session.cookie = None;
        }
        let fault = trip.fault;
        // Of an end that was seen before all had been read, the kernel does not tell again. What was answered before it was sent in full is
        // not sent to its end.
        if !trip.keeps || session.hangs_up || trip.sent < trip.length {
            self.close(slot);
        }
        match fault {
            Some(fault) => self.fail(slot, fault, now),
            None => self.go_on(slot, now),
        }
    }

    /// An operation has come to its end and was right.
    fn complete(&mut self, slot: u32, now: u64) {
        let session = &self.sessions[slot as usize];
        let (due, instance) = (session.due, session.member.instance());
        let Some(trip) = self.trips.get(session.trip) else { return };
        let ended = Ended { response_ns: now.saturating_sub(due), bytes: trip.bytes, fault: None };
        let operation = trip.visit.operation;
        let timeline = &self.common.timeline;
        let in_window = timeline.measures(now);
        let counts = &mut self.counts;
        if timeline.measures(due) && !in_window {
            counts.operations.ended_late(instance, operation, &ended);
        } else {
            counts.operations.ended(instance, operation, &ended, in_window);
        }
        counts.operations.posted(instance, operation, trip.visit.posted, true);
        if in_window {
            counts.operations.looked(instance, operation, &Looks::of(&trip.visit));
            for (recorder, took) in counts.parts.iter_mut().zip(trip.parts).filter(|(_, took)| *took > 0) {
                recorder.record(took);
            }
        }
        let tally = &mut counts.tally;
        tally.answered += 1;
        tally.operations += u64::from(in_window);
        if timeline.measures(due) {
            tally.response.record(ended.response_ns);
            tally.service.record(now.saturating_sub(trip.began));
        }
        self.meter.set_operations(self.counts.tally.answered);
        self.leave(slot, now, now);
    }

    /// What is under way on a connection has broken off, with it. A kept one that ends before the first byte of an answer was closed by the
    /// server between two requests, as it may: what may be asked for twice is asked for once more, and everything else if nothing of it was sent.
    pub(super) fn lost(&mut self, slot: u32, fault: Fault, now: u64) {
        let session = &self.sessions[slot as usize];
        let served = session.served;
        self.close(slot);
        let Some(trip) = self.trips.get(self.sessions[slot as usize].trip) else { return };
        let may = trip.visit.is_idempotent() || trip.sent == 0;
        if served && may && fault == CLOSED && !trip.resent && trip.answer.untouched() && trip.fault.is_none() {
            (trip.sent, trip.resent) = (0, true);
            return self.dispatch(slot, now);
        }
        let session = &mut self.sessions[slot as usize];
        session.failures = session.failures.saturating_add(1);
        self.fail(slot, fault, now);
    }

    /// An operation has failed, and the user goes on: as one who has just come, where it is open whether they are logged in.
    fn fail(&mut self, slot: u32, fault: Fault, now: u64) {
        let session = &mut self.sessions[slot as usize];
        let (due, instance) = (session.due, session.member.instance());
        let Some(trip) = self.trips.get(session.trip) else { return };
        let timeline = &self.common.timeline;
        // What was wrong first is why it has failed.
        let fault = trip.fault.unwrap_or(fault);
        let ended = Ended { response_ns: now.saturating_sub(due), bytes: trip.bytes, fault: Some(fault) };
        let counted = timeline.measures(now) || timeline.measures(due);
        let (operation, posted, sent) = (trip.visit.operation, trip.visit.posted, trip.sent == trip.length);
        self.counts.operations.ended(instance, operation, &ended, counted);
        self.counts.operations.posted(instance, operation, posted, sent);
        self.counts.tally.error(fault.to_string());
        if fault == TIMEOUT && timeline.measures(due) {
            // Censored: it would have taken longer than was waited for.
            self.counts.tally.response.record(ended.response_ns);
        }
        let broken = session.failures > 0;
        if broken || trip.visit.changes_user() || fault == Fault::Kind("user") {
            session.member.begin_anew(self.common.world);
            session.cookie = None;
        }
        let pause = if broken { (PAUSE_NS.0 << session.failures.min(10)).min(PAUSE_NS.1) } else { 0 };
        self.leave(slot, now, now + pause);
    }

    /// The operation is over, and the next one is due when its cycle is: at once where that is past, but not before `earliest`.
    fn leave(&mut self, slot: u32, now: u64, earliest: u64) {
        let session = &mut self.sessions[slot as usize];
        let trip = self.trips.remove(std::mem::replace(&mut session.trip, NONE));
        let (was_due, due) = (session.due, session.next_due().unwrap_or(now));
        self.active -= 1;
        self.due_active -= u64::from(self.common.timeline.measures(was_due));
        self.spare.extend(trip.filter(|_| self.spare.len() < super::SPARE_MAX));
        let at = due.max(earliest);
        if at > now {
            self.pausing += u64::from(due < at && self.common.timeline.measures(due));
            self.timers.at(at, slot);
        } else {
            self.begin(slot, due, now);
        }
    }

    /// Counts what is under way when the run is cut off: also what was due before the window and has taken all of it, and what became due in the
    /// window behind what has not ended, which nobody has begun. Of an instance that has said nothing to anybody for as long they had no answer;
    /// that of one which is only slow was on its way.
    pub(super) fn cut(&mut self) {
        let now = now_ns();
        let heard = &self.heard;
        let fault = |instance: u16| {
            let silent = now.saturating_sub(heard[usize::from(instance)]) >= GRACE_NS;
            silent.then_some(UNFINISHED)
        };
        let timeline = &self.common.timeline;
        for (_, trip) in self.trips.iter() {
            let session = &self.sessions[trip.slot as usize];
            let (instance, operation) = (session.member.instance(), trip.visit.operation);
            self.counts.operations.posted(instance, operation, trip.visit.posted, trip.sent == trip.length);
            self.counts.tally.error(CUT_OFF.to_owned());
            if session.due < timeline.steady_end {
                let response_ns = now.saturating_sub(session.due);
                let ended = Ended { response_ns, bytes: trip.bytes, fault: fault(instance) };
                self.counts.operations.ended_late(instance, operation, &ended);
            }
            if timeline.measures(session.due) {
                self.counts.tally.response.record(now.saturating_sub(session.due));
            }
        }
        for session in &mut self.sessions {
            let Some(due) = session.next_due().filter(|&due| timeline.measures(due)) else { continue };
            let (instance, operation) = (session.member.instance(), session.member.next(self.common.world));
            let ended = Ended { response_ns: now.saturating_sub(due), bytes: 0, fault: fault(instance) };
            self.counts.operations.ended_late(instance, operation, &ended);
            self.counts.tally.response.record(ended.response_ns);
        }
    }
}
