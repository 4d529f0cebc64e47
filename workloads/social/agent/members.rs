//! Users of the social application as the engine drives them: one connection a user, one request at a time.
//!
//! An operation under way is a [`Trip`]: it is made when the operation begins and given back when it ends, so that a user who waits costs no more than
//! who they are. An upload is made while it is sent, from one template a thread.
//!
//! What is wrong with an answer does not end its connection: it is read to its end, the operation has failed, and the user goes on. What has no end, or leaves
//! open where the next answer begins (a connection that broke, silence, bytes that are no HTTP) closes it.

use std::net::SocketAddr;

use super::user::{Looks, Member, Outgoing, Tally, Template, Visit, World};
use crate::clock::now_ns;
use crate::course::GRACE_NS;
use crate::record::Recorder;
use crate::session::engine::{Ended, Target, Users, Window};
use crate::session::fault::{Fault, UNFINISHED};
use crate::session::http::Head;
use crate::timeline::{Stage, Timeline};

/// Trips whose memory is kept for the next.
const SPARE_MAX: usize = 256;
/// Parts of an operation that are timed: see [`Visit::part`].
pub(super) const PARTS: [&str; 4] = ["page", "static files", "pictures", "uploads"];

/// A user.
#[derive(Debug)]
pub(super) struct Person {
    member: Member,
    cookie: Option<Box<[u8]>>,
    /// The operation under way.
    trip: Option<Box<Trip>>,
    /// When the last operation began (0: none has), and the cycle that was drawn then.
    started: u64,
    drawn: u64,
}

/// An operation under way.
#[derive(Debug, Default)]
struct Trip {
    visit: Visit,
    /// What was asked for last was sent in full.
    sent: bool,
    /// The first thing that was wrong.
    fault: Option<Fault>,
    /// How long each part has taken so far, and how long all had when what was asked for last was.
    parts: [u64; PARTS.len()],
    asked_at: u64,
}

/// Users of one thread, and what it counts.
#[derive(Debug)]
pub(super) struct Members<'a> {
    world: &'a World,
    targets: &'a [SocketAddr],
    /// Whose clock cycles are by.
    timeline: &'a Timeline,
    template: Template,
    #[expect(clippy::vec_box, reason = "they move between here and users, who are small as long as they wait")]
    spare: Vec<Box<Trip>>,
    /// When something last came from each instance.
    heard: Vec<u64>,
    pub operations: Tally,
    pub parts: [Recorder; PARTS.len()],
}

impl<'a> Members<'a> {
    pub fn new(world: &'a World, targets: &'a [SocketAddr], timeline: &'a Timeline, record: bool) -> Self {
        Self {
            world,
            targets,
            timeline,
            template: Template::default(),
            spare: Vec::new(),
            heard: vec![0; targets.len()],
            operations: Tally::new(world),
            parts: std::array::from_fn(|_| Recorder::new(record)),
        }
    }

    /// The operation is over.
    fn leave(&mut self, person: &mut Person) {
        self.spare.extend(person.trip.take().filter(|_| self.spare.len() < SPARE_MAX));
    }

    /// What an operation without an end has failed for: an instance that has said nothing to anybody for as long as a run waits gave no answer; that
    /// of one which is only slow was on its way.
    fn silence(&self, instance: u16) -> Option<Fault> {
        let silent = now_ns().saturating_sub(self.heard[usize::from(instance)]) >= GRACE_NS;
        silent.then_some(UNFINISHED)
    }
}

impl Users for Members<'_> {
    type User = Person;
    type Request = Outgoing;

    const GATHERS: bool = false;
    /// The longest that is right is a picture of 0.7 MB.
    const ANSWER_MAX: u64 = 16 << 20;

    fn user(&self, client: u32) -> Person {
        let instances = self.targets.len() as u32;
        let member = Member::new(self.world, (client % instances) as u16, client / instances);
        Person { member, cookie: None, trip: None, started: 0, drawn: 0 }
    }

    fn target(&self, person: &Person) -> Target {
        Target { address: self.targets[usize::from(person.member.instance())], secure: false }
    }

    fn next(&mut self, person: &mut Person, from: u64, _earliest: u64) -> Option<u64> {
        Some(self.next_due(person).unwrap_or(from))
    }

    fn next_due(&self, person: &Person) -> Option<u64> {
        (person.started > 0).then(|| self.timeline.after(person.started, person.drawn))
    }

    fn begin(&mut self, person: &mut Person, now: u64, in_window: bool) {
        let member = &mut person.member;
        if person.started > 0 && in_window {
            self.operations.cycle(member.instance(), person.drawn, self.timeline.waited(person.started, now));
        }
        let operation = member.next(self.world);
        (person.started, person.drawn) = (now, member.cycle_ns(self.world, operation));
        let mut trip = self.spare.pop().unwrap_or_default();
        (trip.fault, trip.parts) = (None, [0; PARTS.len()]);
        trip.visit.begin(self.world, member, operation);
        person.trip = Some(trip);
    }

    fn ask(&mut self, person: &mut Person, _outstanding: u16, request: &mut Outgoing, so_far: u64) -> Option<u64> {
        let trip = person.trip.as_mut()?;
        let cookie = person.cookie.as_deref().unwrap_or_default();
        if !trip.visit.ask(self.world, &mut person.member, cookie, request) {
            return None;
        }
        (trip.sent, trip.asked_at) = (false, so_far);
        Some(request.bytes())
    }

    fn piece<'r>(&'r mut self, request: &'r Outgoing, at: u64) -> &'r [u8] {
        request.piece(at, &mut self.template)
    }

    fn clear(request: &mut Outgoing) {
        request.clear();
    }

    fn may_repeat(&self, person: &Person) -> bool {
        person.trip.as_ref().is_some_and(|trip| trip.visit.is_idempotent())
    }

    fn sent(&mut self, person: &mut Person, again: bool, in_window: bool) {
        if let Some(trip) = &mut person.trip {
            trip.sent = true;
        }
        if in_window && !again {
            self.operations.request(person.member.instance());
        }
    }

    fn heard(&mut self, person: &Person, now: u64) {
        self.heard[usize::from(person.member.instance())] = now;
    }

    fn head(&mut self, person: &mut Person, _request: &mut Outgoing, head: Head, in_window: bool) -> Result<(), Fault> {
        let Some(trip) = &mut person.trip else { return Ok(()) };
        if trip.fault.is_none() {
            trip.fault = trip.visit.head(&head).err();
        }
        if in_window && trip.visit.is_not_modified() {
            self.operations.not_modified(person.member.instance());
        }
        if let Some(cookie) = head.cookie.filter(|cookie| !cookie.is_empty()) {
            person.cookie = Some(cookie);
        }
        Ok(())
    }

    fn body(&mut self, person: &mut Person, _request: &mut Outgoing, piece: &[u8]) -> Result<(), Fault> {
        if let Some(trip) = person.trip.as_mut().filter(|trip| trip.fault.is_none()) {
            trip.fault = trip.visit.feed(self.world, &mut person.member, piece).err();
        }
        Ok(())
    }

    fn answered(&mut self, person: &mut Person, _request: &mut Outgoing, so_far: u64) -> Result<(), Fault> {
        let Some(trip) = &mut person.trip else { return Ok(()) };
        if trip.fault.is_none() {
            trip.fault = trip.visit.finish(self.world, &mut person.member).err();
        }
        trip.parts[trip.visit.part()] += so_far.saturating_sub(trip.asked_at);
        if trip.visit.leaves() {
            person.cookie = None;
        }
        trip.fault.map_or(Ok(()), Err)
    }

    fn completed(&mut self, person: &mut Person, ended: &Ended, window: Window) {
        let Some(trip) = &person.trip else { return };
        let (instance, operation) = (person.member.instance(), trip.visit.operation);
        if window.due && !window.ended {
            self.operations.ended_late(instance, operation, ended);
        } else {
            self.operations.ended(instance, operation, ended, window.ended);
        }
        self.operations.posted(instance, operation, trip.visit.posted, true);
        if window.ended {
            self.operations.looked(instance, operation, &Looks::of(&trip.visit));
            for (recorder, took) in self.parts.iter_mut().zip(trip.parts).filter(|(_, took)| *took > 0) {
                recorder.record(took);
            }
        }
        self.leave(person);
    }

    /// What was wrong first is why it has failed.
    fn cause(&self, person: &Person, fault: Fault) -> Fault {
        person.trip.as_ref().and_then(|trip| trip.fault).unwrap_or(fault)
    }

    /// The user goes on: as one who has just come, where it is open whether they are logged in.
    fn failed(&mut self, person: &mut Person, ended: &Ended, window: Window, broken: bool) {
        let Some(trip) = &person.trip else { return };
        let (instance, operation) = (person.member.instance(), trip.visit.operation);
        self.operations.ended(instance, operation, ended, window.due || window.ended);
        self.operations.posted(instance, operation, trip.visit.posted, trip.sent);
        if broken || trip.visit.changes_user() || ended.fault == Some(Fault::Kind("user")) {
            person.member.begin_anew(self.world);
            person.cookie = None;
        }
        self.leave(person);
    }

    /// What was due before the window and has taken all of it counts too.
    fn unfinished(&mut self, person: &mut Person, cut: &Ended, due: Stage, _silent: bool) {
        let Some(trip) = &person.trip else { return };
        let (instance, operation) = (person.member.instance(), trip.visit.operation);
        self.operations.posted(instance, operation, trip.visit.posted, trip.sent);
        if matches!(due, Stage::WarmUp | Stage::RampUp | Stage::Steady) {
            let fault = self.silence(instance);
            self.operations.ended_late(instance, operation, &Ended { fault, ..*cut });
        }
    }

    /// What became due in the window behind what has not ended counts by what its user would have done.
    fn never_begun(&mut self, person: Option<&mut Person>, cut: &Ended) {
        let Some(person) = person else { return };
        let (instance, operation) = (person.member.instance(), person.member.next(self.world));
        let fault = self.silence(instance);
        self.operations.ended_late(instance, operation, &Ended { fault, ..*cut });
    }

    fn release(&mut self) {
        self.spare = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_who_waits_is_small() {
        // With a session and a connection, the pictures they have seen (300 bytes in the mean), a cookie and a place in the heap of timers: 0.6 kB.
        assert!(size_of::<Person>() <= 192, "{}", size_of::<Person>());
    }
}
