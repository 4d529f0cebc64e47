//! Sessions and their operations: who comes when, what is asked for next, and how an operation ended.

use tare_model::drive::CUT_OFF;

use super::conn::{Conn, Flight};
use super::{Ended, Engine, Phase, Session, Users, Window};
use crate::clock::now_ns;
use crate::course::GRACE_NS;
use crate::session::fault::{CLOSED, Fault, TIMEOUT};
use crate::session::slab::NONE;
use crate::session::timers::Due;

/// How long a user waits at least after an operation that has failed: doubled with each that fails after it, up to the most. Thousands of users at a
/// server that refuses them must not become a storm of connections.
const PAUSE_NS: (u64, u64) = (1_000_000, 1_000_000_000);

impl<U: Users> Engine<'_, U> {
    /// What a timer of a session was set for.
    pub(super) fn user_due(&mut self, slot: u32, at: u64) {
        let session = &self.sessions[slot as usize];
        match session.phase {
            Phase::Waits => {
                let (due, now) = (session.due, now_ns());
                self.pausing -= self.pauses(due, at);
                self.late(at, now);
                self.begin(slot, due, now);
            }
            Phase::Vacant if self.common.arrivals.is_some() => self.vacate(slot),
            Phase::Vacant => {
                let now = now_ns();
                if self.may_begin(at, now) {
                    self.begin_session(slot, at, now);
                }
            }
            Phase::Empty | Phase::Works => {}
        }
    }

    /// Records how late something is that was to begin at a moment.
    fn late(&mut self, at: u64, now: u64) {
        if self.common.timeline.measures(at) {
            let late = self.common.timeline.waited(at, now);
            self.counts.tally.lateness.record(late);
            self.counts.sessions.overruns += u64::from(late > self.common.settings.overrun_ns);
        }
    }

    /// 1 where an operation that is due in the measured window waits for the end of a pause.
    fn pauses(&self, due: u64, at: u64) -> u64 {
        u64::from(due < at && self.common.timeline.measures(due))
    }

    /// Whether what was due at a moment is still begun: after the end of the load only what was due in the measured window.
    fn may_begin(&self, due: u64, now: u64) -> bool {
        now < self.common.timeline.load_end || self.common.timeline.measures(due)
    }

    /// A new user comes, and begins at once.
    fn begin_session(&mut self, slot: u32, due: u64, now: u64) {
        let number = self.begun * u64::from(self.common.threads) + u64::from(self.thread);
        self.begun += 1;
        self.common.census.enter();
        if let Some(tls) = self.tls.as_ref().filter(|_| self.common.settings.fresh_connections) {
            tls.tickets.forget(slot);
        }
        self.counts.sessions.began += u64::from(self.common.timeline.measures(due));
        self.users.arrive(&mut self.sessions[slot as usize].user, number);
        if due < now {
            self.late(due, now);
        }
        self.next(slot, due, due, now);
    }

    /// The user goes on: `from` is the end of the operation before, `earliest` the first moment for the next.
    fn next(&mut self, slot: u32, from: u64, earliest: u64, now: u64) {
        let session = &mut self.sessions[slot as usize];
        let Some(due) = self.users.next(&mut session.user, from, earliest) else {
            return self.end_session(slot, earliest, now);
        };
        // In the turn of others nothing begins.
        let at = due.max(earliest).max(self.common.timeline.after(now, 0));
        if at <= now {
            // What is overdue is so because of the operation before it, and not late by its timer.
            if due == now {
                self.late(due, now);
            }
            return self.begin(slot, due, now);
        }
        (session.phase, session.due) = (Phase::Waits, due);
        self.pausing += self.pauses(due, at);
        self.timers.at(at, Due::User(slot));
    }

    /// The user leaves; in a closed loop the next one comes at once, or at `at` where something failed.
    fn end_session(&mut self, slot: u32, at: u64, now: u64) {
        if self.common.settings.fresh_connections {
            self.close_all(slot, |_| true);
        }
        let at = self.common.timeline.after(at, 0);
        self.common.census.leave();
        self.sessions[slot as usize].phase = Phase::Vacant;
        if at > now {
            // A server that refuses is not asked in a circle.
            self.timers.at(at, Due::User(slot));
        } else if self.common.arrivals.is_some() {
            self.vacate(slot);
        } else if self.may_begin(at, now) {
            self.begin_session(slot, at, now);
        } else {
            self.sessions[slot as usize].phase = Phase::Empty;
        }
    }

    /// Open loop: whoever has waited longest comes; otherwise the session is nobody's.
    fn vacate(&mut self, slot: u32) {
        let Some(shared) = self.common.arrivals else { return };
        let now = now_ns();
        while let Some(due) = self.waiting.pop_front() {
            if self.may_begin(due, now) {
                shared.backlog.waited(due, now);
                return self.begin_session(slot, due, now);
            }
            shared.backlog.given_up(due);
        }
        self.sessions[slot as usize].phase = Phase::Empty;
        self.vacant.push(slot);
    }

    /// Begins an operation that was due at a moment, unless it is too late for that.
    fn begin(&mut self, slot: u32, due: u64, now: u64) {
        if !self.may_begin(due, now) {
            return self.end_session(slot, now, now);
        }
        let timeline = &self.common.timeline;
        self.active += 1;
        self.due_active += u64::from(timeline.measures(due));
        let session = &mut self.sessions[slot as usize];
        self.users.begin(&mut session.user, now, timeline.measures(now));
        let secure = self.users.target(&session.user).secure;
        let changes = std::mem::replace(&mut session.secure, secure) != secure;
        session.phase = Phase::Works;
        (session.due, session.sent, session.bytes, session.outstanding) = (due, 0, 0, 0);
        (session.from, session.heard) = (now - timeline.waited(due, now), now);
        if changes {
            self.close_all(slot, |_| true);
        }
        self.go_on(slot, now);
    }

    /// Asks for all that may be asked for now; an operation that has nothing left to ask for is complete.
    fn go_on(&mut self, slot: u32, now: u64) {
        let connections = u16::from(self.common.settings.connections);
        loop {
            let session = &mut self.sessions[slot as usize];
            if session.phase != Phase::Works || session.outstanding >= connections {
                return;
            }
            let (mut request, answer) = self.spare.pop().unwrap_or_default();
            let so_far = now.saturating_sub(session.from);
            let Some(length) = self.users.ask(&mut session.user, session.outstanding, &mut request, so_far) else {
                self.spare.push((request, answer));
                break;
            };
            session.outstanding += 1;
            let flight = self.flights.insert(Flight {
                session: slot,
                resent: false,
                keeps: true,
                request,
                length,
                sent: 0,
                answer,
                came: 0,
                heard_at: now,
            });
            if let Err(fault) = self.depart(slot, flight, now) {
                return self.fail(slot, fault, now, true);
            }
        }
        if self.sessions[slot as usize].outstanding == 0 {
            self.complete(slot, now);
        }
    }

    /// An answer has come in full.
    pub(super) fn answered(&mut self, number: u32, now: u64) {
        let Some(conn) = self.conns.get(number) else { return };
        let (slot, flight) = (conn.session, std::mem::replace(&mut conn.flight, NONE));
        conn.served = true;
        // Of an end that was seen before all had been read, the kernel does not tell again.
        let hangs_up = conn.hangs_up;
        let Some(mut flight) = self.flights.remove(flight) else { return };
        let session = &mut self.sessions[slot as usize];
        session.outstanding -= 1;
        let so_far = now.saturating_sub(session.from);
        let right = self.users.answered(&mut session.user, &mut flight.request, so_far);
        // What was answered before it was sent in full is not sent to its end.
        if !flight.keeps || hangs_up || flight.sent < flight.length {
            self.close(number);
        }
        self.keep(flight.request, flight.answer);
        match right {
            Ok(()) => self.go_on(slot, now),
            Err(fault) => self.fail(slot, fault, now, false),
        }
    }

    /// How an operation ends now, and which of its moments are measured.
    fn end_of(&self, session: &Session<U::User>, now: u64, fault: Option<Fault>) -> (Ended, Window) {
        let ended = Ended { response_ns: now.saturating_sub(session.from), bytes: session.bytes, fault, cut: false };
        let timeline = &self.common.timeline;
        (ended, Window { due: timeline.measures(session.due), ended: timeline.counts_at(session.due, now) })
    }

    /// An operation has come to its end and was right.
    fn complete(&mut self, slot: u32, now: u64) {
        let (ended, window) = self.end_of(&self.sessions[slot as usize], now, None);
        let session = &mut self.sessions[slot as usize];
        session.failures = 0;
        self.users.completed(&mut session.user, &ended, window);
        let tally = &mut self.counts.tally;
        tally.answered += 1;
        tally.operations += u64::from(window.ended);
        self.meter.answered(ended.response_ns);
        if window.due {
            tally.response.record(ended.response_ns);
            tally.service.record(now.saturating_sub(session.sent));
        }
        self.leave(slot, &ended, window, now);
        self.next(slot, now, now, now);
    }

    fn leave(&mut self, slot: u32, ended: &Ended, window: Window, now: u64) {
        self.active -= 1;
        self.due_active -= u64::from(window.due);
        self.count_in_turn(slot, ended, now);
    }

    /// An operation has failed: what is under way for it is dropped, and the user goes on, after a pause. `broken`: a connection of it has.
    pub(super) fn fail(&mut self, slot: u32, fault: Fault, now: u64, broken: bool) {
        self.close_all(slot, |conn: &Conn| conn.flight != NONE);
        self.drop_held(slot);
        let fault = self.users.cause(&self.sessions[slot as usize].user, fault);
        let (ended, window) = self.end_of(&self.sessions[slot as usize], now, Some(fault));
        let session = &mut self.sessions[slot as usize];
        let pause = (PAUSE_NS.0 << session.failures.min(10)).min(PAUSE_NS.1);
        session.failures = session.failures.saturating_add(1);
        self.users.failed(&mut session.user, &ended, window, broken);
        self.counts.tally.error(fault.to_string());
        match (window.due, fault == TIMEOUT) {
            // It would have taken longer than was waited for.
            (true, true) => self.counts.tally.given_up(ended.response_ns),
            (true, false) => self.counts.tally.failed(),
            (false, _) => {}
        }
        self.leave(slot, &ended, window, now);
        self.next(slot, now, self.common.timeline.after(now, pause), now);
    }

    /// The end of a connection, or of what can be done with it. A kept one that ends before the first byte of an answer was closed by the server between
    /// two requests, as it may: what may be asked for twice is sent once more, and everything else if nothing of it was sent.
    pub(super) fn lost(&mut self, number: u32, fault: Fault, now: u64) {
        let Some(conn) = self.conns.get(number) else { return };
        let (slot, number_of_flight, served) = (conn.session, conn.flight, conn.served);
        let user = &self.sessions[slot as usize].user;
        let Some(flight) = self.flights.get(number_of_flight) else { return self.close(number) };
        let may = served && !flight.resent && (flight.sent == 0 || self.users.may_repeat(user));
        if fault != CLOSED || !may || !flight.answer.untouched() {
            return self.fail(slot, fault, now, true);
        }
        (flight.sent, flight.resent) = (0, true);
        conn.flight = NONE;
        self.close(number);
        self.counts.sessions.reconnected += 1;
        if let Err(fault) = self.depart(slot, number_of_flight, now) {
            self.fail(slot, fault, now, true);
        }
    }

    /// Counts what is under way, waits or has not begun when the run is cut off.
    pub(super) fn cut(&mut self) {
        let now = now_ns();
        let timeline = &self.common.timeline;
        let censored = |due| timeline.waited(due, timeline.load_end).saturating_add(GRACE_NS);
        for slot in 0..self.sessions.len() {
            if self.sessions[slot].phase == Phase::Works {
                self.cut_off(slot, now, censored(self.sessions[slot].due));
            }
            let user = &mut self.sessions[slot].user;
            if let Some(due) = self.users.next_due(user).filter(|&due| timeline.measures(due)) {
                let cut = Ended { response_ns: timeline.waited(due, now), bytes: 0, fault: None, cut: true };
                self.users.never_begun(Some(user), &cut);
                self.counts.tally.given_up(cut.response_ns);
            }
        }
        let Some(shared) = self.common.arrivals else { return };
        let mut left = std::mem::take(&mut self.waiting);
        while let Some(due) = self.next_arrival() {
            left.push_back(due);
            self.hand.pop_front();
        }
        for due in left {
            shared.backlog.given_up(due);
            if timeline.measures(due) {
                self.counts.tally.unfinished += 1;
                self.counts.tally.given_up(censored(due));
                let cut = Ended { response_ns: timeline.waited(due, now), bytes: 0, fault: None, cut: true };
                self.users.never_begun(None, &cut);
            }
        }
    }

    /// Counts what a session has under way: an open loop will have had it answered when its drain ends, at the earliest, which is `censored` after
    /// it was due.
    fn cut_off(&mut self, slot: usize, now: u64, censored: u64) {
        let silent = self.silent(&self.sessions[slot], now);
        let (ended, window) = self.end_of(&self.sessions[slot], now, None);
        let cut = Ended { cut: true, ..ended };
        let session = &mut self.sessions[slot];
        let (stage, _) = self.common.timeline.stage_at(session.due);
        self.users.unfinished(&mut session.user, &cut, stage, silent);
        let tally = &mut self.counts.tally;
        if self.common.arrivals.is_none() {
            tally.error(CUT_OFF.to_owned());
            if window.due {
                tally.given_up(cut.response_ns);
            }
        } else if window.due {
            tally.unfinished += 1;
            tally.given_up(censored);
        }
    }

    /// Whether nothing has come for a session for as long as a run waits for its end.
    fn silent(&self, session: &Session<U::User>, now: u64) -> bool {
        let (mut at, mut heard_at) = (session.first, 0);
        while let Some(conn) = self.conns.peek(at) {
            heard_at = self.flights.peek(conn.flight).map_or(0, |flight| flight.heard_at).max(heard_at);
            at = conn.next;
        }
        now.saturating_sub(heard_at) >= GRACE_NS
    }

    /// Open loop: the next arrival.
    pub(super) fn next_arrival(&mut self) -> Option<u64> {
        let shared = self.common.arrivals?;
        if self.hand.is_empty() {
            shared.dealer.take(self.thread as usize, &mut self.hand);
        }
        self.hand.front().copied()
    }

    /// Open loop: a session arrives that was due at a moment.
    pub(super) fn arrive(&mut self, due: u64) {
        self.hand.pop_front();
        match self.vacant.pop() {
            Some(slot) => self.begin_session(slot, due, now_ns()),
            None => self.waiting.push_back(due),
        }
    }
}
