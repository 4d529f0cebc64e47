//! Sessions and their pages: who comes when, what is asked for next, and how a page ended.

use tare_model::drive::CUT_OFF;

use super::super::site::{Done, Next, User};
use super::conn::{Conn, Flight};
use super::{Engine, Phase, Session};
use crate::clock::now_ns;
use crate::drive::GRACE_NS;
use crate::session::fault::{CLOSED, Fault, TIMEOUT, UNFINISHED};
use crate::session::slab::NONE;
use crate::session::timers::Due;

/// How long a user waits after a page that has failed, unless they think for longer: doubled with each that fails after it, up to the most.
/// Thousands of users at a server that refuses them must not become a storm of connections.
const PAUSE_NS: (u64, u64) = (1_000_000, 1_000_000_000);

/// What is asked for.
#[derive(Debug, Clone, Copy)]
enum What {
    Page,
    File(u16),
}

impl Engine<'_> {
    /// What a timer of a session was set for.
    pub(super) fn page_due(&mut self, slot: u32, at: u64) {
        match self.sessions[slot as usize].phase {
            Phase::Thinks => self.begin_page(slot, at, now_ns()),
            Phase::Vacant if self.common.arrivals.is_some() => self.vacate(slot),
            Phase::Vacant => {
                let now = now_ns();
                if self.may_begin(at, now) {
                    self.common.crowd.enter();
                    self.begin_session(slot, at, now);
                }
            }
            Phase::Empty | Phase::Page | Phase::Files => {}
        }
    }

    /// Whether what was due at a moment is still begun: after the end of the load only what was due in the measured window.
    pub(super) const fn may_begin(&self, due: u64, now: u64) -> bool {
        now < self.common.timeline.load_end || self.common.timeline.measures(due)
    }

    /// A new user comes, and asks for the first page at once.
    pub(super) fn begin_session(&mut self, slot: u32, due: u64, now: u64) {
        let number = self.users * u64::from(self.place.of) + u64::from(self.place.thread);
        self.users += 1;
        if let Some(tls) = self.tls.as_ref().filter(|_| self.common.drive.fresh_connections) {
            tls.tickets.forget(slot);
        }
        self.counts.began += u64::from(self.common.timeline.measures(due));
        let session = &mut self.sessions[slot as usize];
        session.user = User::fresh(self.common.site, self.common.spec.seed, number);
        session.cookie = None;
        self.next_page(slot, due, due, now);
    }

    /// The user goes on: `from` is the end of the page before, `at` the earliest moment for the next.
    fn next_page(&mut self, slot: u32, from: u64, at: u64, now: u64) {
        let site = self.common.site;
        let session = &mut self.sessions[slot as usize];
        let first = matches!(session.phase, Phase::Vacant | Phase::Empty);
        if session.user.next(site) == Next::End {
            return self.end_session(slot, at, now);
        }
        let mut think = if session.user.thinks(site) { session.user.think_ns(site) } else { 0 };
        if !first && self.common.think_ns > 0 {
            think = self.common.think_ns;
        }
        let due = from.saturating_add(think).max(at);
        if first || due <= from {
            return self.begin_page(slot, due, now);
        }
        self.sessions[slot as usize].phase = Phase::Thinks;
        self.timers.at(due, Due::Page(slot));
    }

    /// The user leaves; in a closed loop the next one comes at once, or at `at` where something failed.
    fn end_session(&mut self, slot: u32, at: u64, now: u64) {
        if self.common.drive.fresh_connections {
            self.close_all(slot, |_| true);
        }
        let failed = at > now;
        let session = &mut self.sessions[slot as usize];
        session.phase = Phase::Vacant;
        session.cookie = None;
        let open = self.common.arrivals.is_some();
        if open {
            self.common.crowd.leave();
        }
        if failed {
            // A server that refuses is not asked in a circle.
            self.leave_vacant(slot, at, open);
        } else if open {
            self.vacate(slot);
        } else if self.may_begin(at, now) {
            self.begin_session(slot, at, now);
        } else {
            self.common.crowd.leave();
            self.sessions[slot as usize].phase = Phase::Empty;
        }
    }

    fn leave_vacant(&mut self, slot: u32, at: u64, open: bool) {
        if !open {
            // Counted in again when the next user comes.
            self.common.crowd.leave();
        }
        self.timers.at(at, Due::Page(slot));
    }

    /// Open loop: whoever has waited longest comes; otherwise the session is nobody's.
    fn vacate(&mut self, slot: u32) {
        let now = now_ns();
        while let Some(due) = self.waiting.pop_front() {
            if self.may_begin(due, now) {
                if let Some(shared) = self.common.arrivals {
                    shared.backlog.waited(due, now);
                }
                self.common.crowd.enter();
                self.sessions[slot as usize].phase = Phase::Vacant;
                return self.begin_session(slot, due, now);
            }
            if let Some(shared) = self.common.arrivals {
                shared.backlog.given_up(due);
            }
        }
        self.sessions[slot as usize].phase = Phase::Empty;
        self.vacant.push(slot);
    }

    /// Asks for a page that was due at a moment.
    fn begin_page(&mut self, slot: u32, due: u64, now: u64) {
        if !self.may_begin(due, now) {
            self.close_all(slot, |_| true);
            self.sessions[slot as usize].phase = Phase::Empty;
            self.common.crowd.leave();
            return if self.common.arrivals.is_some() {
                self.vacate(slot)
            };
        }
        let late = now.saturating_sub(due);
        if self.common.timeline.measures(due) {
            self.counts.tally.lateness.record(late);
            self.counts.overruns += u64::from(late > self.common.drive.overrun_ns);
            self.due_active += 1;
        }
        self.active += 1;
        let session = &mut self.sessions[slot as usize];
        let state = session.user.state();
        let secure = self.common.ports.all_secure || self.common.site.secure(state);
        let changes = session.secure != secure;
        session.phase = Phase::Page;
        session.secure = secure;
        (session.state, session.file, session.outstanding) = (state, 0, 0);
        (session.due, session.sent, session.bytes) = (due, 0, 0);
        if changes {
            self.close_all(slot, |_| true);
        }
        match self.idle(slot) {
            Ok(Some(number)) => self.ask(number, slot, What::Page, now),
            // All of them are idle between two pages.
            Ok(None) => self.fail(slot, Fault::Kind("network")),
            Err(fault) => self.fail(slot, fault),
        }
    }

    /// Asks for the files of a page on all connections that are idle or may be opened; a page without any left is complete.
    pub(super) fn go_on(&mut self, slot: u32, now: u64) {
        let files = self.common.site.embedded(self.sessions[slot as usize].state);
        while self.sessions[slot as usize].phase == Phase::Files && self.sessions[slot as usize].file < files {
            match self.idle(slot) {
                Ok(Some(number)) => {
                    let file = self.sessions[slot as usize].file;
                    self.sessions[slot as usize].file += 1;
                    self.ask(number, slot, What::File(file), now);
                }
                Ok(None) => return,
                Err(fault) => return self.fail(slot, fault),
            }
        }
        let session = &self.sessions[slot as usize];
        if session.phase == Phase::Files && session.outstanding == 0 {
            self.complete(slot, now);
        }
    }

    /// Makes a request and sends it as soon as its connection is open.
    fn ask(&mut self, number: u32, slot: u32, what: What, now: u64) {
        let site = self.common.site;
        let (mut request, answer) = self.spare.pop().unwrap_or_default();
        let session = &mut self.sessions[slot as usize];
        let asked = match what {
            What::Page => {
                let cookie = session.cookie.as_deref().unwrap_or_default();
                session.user.ask(site, cookie, &mut self.tokens, &mut request)
            }
            What::File(file) => session.user.ask_embedded(site, file, &mut request),
        };
        session.outstanding += 1;
        let flight =
            Flight { asked, request, sent: 0, answer, heard_at: now, resent: false, keeps: true, bodiless: false };
        let flight = self.flights.insert(flight);
        self.attach(number, flight, now);
    }

    /// Puts a request on a connection.
    pub(super) fn attach(&mut self, number: u32, flight: u32, now: u64) {
        if let Some(conn) = self.conns.get(number) {
            conn.flight = flight;
            self.send(number, now);
        }
    }

    /// An answer has come in full, and was right.
    pub(super) fn answered(&mut self, number: u32, now: u64) {
        let Some(conn) = self.conns.get(number) else { return };
        let (slot, flight) = (conn.session, std::mem::replace(&mut conn.flight, NONE));
        conn.served = true;
        // Of an end that was seen before all had been read, the kernel does not tell again.
        let hangs_up = conn.hangs_up;
        let keeps = self.flights.get(flight).is_some_and(|flight| flight.keeps);
        self.land(flight);
        if !keeps || hangs_up {
            self.close(number);
        }
        let session = &mut self.sessions[slot as usize];
        session.outstanding -= 1;
        session.phase = Phase::Files;
        self.go_on(slot, now);
    }

    /// A page has come with all its files.
    fn complete(&mut self, slot: u32, now: u64) {
        let session = &mut self.sessions[slot as usize];
        session.failures = 0;
        let (due, sent, state) = (session.due, session.sent, session.state);
        let done = Done { response_ns: now.saturating_sub(due), bytes: session.bytes, fault: None };
        let timeline = &self.common.timeline;
        let in_window = timeline.measures(now);
        if timeline.measures(due) && !in_window {
            self.counts.types.record_late(self.common.site, state, &done, true);
        } else {
            self.counts.types.record(self.common.site, state, &done, in_window);
        }
        let tally = &mut self.counts.tally;
        tally.answered += 1;
        tally.operations += u64::from(in_window);
        self.meter.set_operations(tally.answered);
        if timeline.measures(due) {
            tally.response.record(done.response_ns);
            tally.service.record(now.saturating_sub(sent));
        }
        self.leave_page(due);
        self.next_page(slot, now, now, now);
    }

    fn leave_page(&mut self, due: u64) {
        self.active -= 1;
        self.due_active -= u64::from(self.common.timeline.measures(due));
    }

    /// A page has failed: what is under way for it is dropped, and the user goes on, after a pause.
    pub(super) fn fail(&mut self, slot: u32, fault: Fault) {
        let now = now_ns();
        self.close_all(slot, |conn: &Conn| conn.flight != NONE);
        let session = &mut self.sessions[slot as usize];
        let pause = (PAUSE_NS.0 << session.failures.min(10)).min(PAUSE_NS.1);
        session.failures = session.failures.saturating_add(1);
        let (due, state) = (session.due, session.state);
        let done = Done { response_ns: now.saturating_sub(due), bytes: session.bytes, fault: Some(fault) };
        let timeline = &self.common.timeline;
        let counts = timeline.measures(now) || timeline.measures(due);
        self.counts.types.record(self.common.site, state, &done, counts);
        self.counts.tally.error(fault.to_string());
        if fault == TIMEOUT && timeline.measures(due) {
            // Censored: it would have taken longer than was waited for.
            self.counts.tally.response.record(done.response_ns);
        }
        self.leave_page(due);
        // Not the phase of one who has just come, for the timer to be right.
        self.sessions[slot as usize].phase = Phase::Files;
        self.next_page(slot, now, now + pause, now);
    }

    /// The end of a connection, or of what can be done with it. A kept one that ends before the first byte of an answer was closed
    /// by the server between two requests, as it may: its request is sent once more.
    pub(super) fn lost(&mut self, number: u32, fault: Fault, now: u64) {
        let Some(conn) = self.conns.get(number) else { return };
        let (slot, flight, served) = (conn.session, conn.flight, conn.served);
        if flight == NONE {
            return self.close(number);
        }
        let again =
            served && fault == CLOSED && self.flights.get(flight).is_some_and(|f| !f.resent && f.answer.untouched());
        if !again {
            return self.fail(slot, fault);
        }
        if let Some(conn) = self.conns.get(number) {
            conn.flight = NONE;
        }
        self.close(number);
        self.counts.reconnected += 1;
        if let Some(flight) = self.flights.get(flight) {
            (flight.sent, flight.resent) = (0, true);
        }
        match self.open(slot) {
            Ok(number) => self.attach(number, flight, now),
            Err(fault) => {
                self.land(flight);
                self.fail(slot, fault);
            }
        }
    }

    /// Counts what is under way or waits when the run is cut off.
    pub(super) fn cut(&mut self) {
        let now = now_ns();
        let timeline = self.common.timeline;
        let censored = timeline.load_end.saturating_add(GRACE_NS);
        for session in self.sessions.iter().filter(|s| matches!(s.phase, Phase::Page | Phase::Files)) {
            let due = timeline.measures(session.due);
            if due {
                let hangs = self.common.site.is_download(session.state) && self.silent(session, now);
                let fault = hangs.then_some(UNFINISHED);
                let done = Done { response_ns: now.saturating_sub(session.due), bytes: session.bytes, fault };
                self.counts.types.record_late(self.common.site, session.state, &done, false);
            }
            let tally = &mut self.counts.tally;
            if self.common.arrivals.is_none() {
                tally.error(CUT_OFF.to_owned());
                if due {
                    tally.response.record(now.saturating_sub(session.due));
                }
            } else if due {
                tally.unfinished += 1;
                tally.response.record(censored.saturating_sub(session.due));
            }
        }
        let Some(shared) = self.common.arrivals else { return };
        let late = std::mem::take(&mut self.waiting);
        for due in late.into_iter().chain(self.arrivals_left()) {
            shared.backlog.given_up(due);
            if timeline.measures(due) {
                self.counts.tally.unfinished += 1;
                self.counts.tally.response.record(censored.saturating_sub(due));
                let done = Done { response_ns: now.saturating_sub(due), bytes: 0, fault: None };
                self.counts.types.record_late(self.common.site, self.common.site.first(), &done, false);
            }
        }
    }

    /// Whether nothing has come for a session for as long as a run waits for its end.
    fn silent(&self, session: &Session, now: u64) -> bool {
        let (mut at, mut heard_at) = (session.first, 0);
        while let Some(conn) = self.conns.peek(at) {
            heard_at = self.flights.peek(conn.flight).map_or(0, |flight| flight.heard_at).max(heard_at);
            at = conn.next;
        }
        now.saturating_sub(heard_at) >= GRACE_NS
    }

    /// Open loop: arrivals to come, all of them.
    fn arrivals_left(&mut self) -> Vec<u64> {
        let mut left = Vec::new();
        while let Some(due) = self.next_arrival() {
            left.push(due);
            self.hand.pop_front();
        }
        left
    }

    /// Open loop: the next arrival.
    pub(super) fn next_arrival(&mut self) -> Option<u64> {
        let shared = self.common.arrivals?;
        if self.hand.is_empty() {
            shared.dealer.take(self.place.thread as usize, &mut self.hand);
        }
        self.hand.front().copied()
    }

    /// Open loop: a session arrives that was due at a moment.
    pub(super) fn arrive(&mut self, due: u64) {
        self.hand.pop_front();
        match self.vacant.pop() {
            Some(slot) => {
                self.common.crowd.enter();
                self.sessions[slot as usize].phase = Phase::Vacant;
                self.begin_session(slot, due, now_ns());
            }
            None => self.waiting.push_back(due),
        }
    }
}
