//! One thread of the driver: its share of the users on one epoll instance.
//!
//! Interest in a connection is registered once, for both ways and for edges, and never changed. What is due is in a heap. A user has
//! one connection and one thing to wait for: the moment of their next operation, or the answer to what they have asked.
//!
//! An operation under way is a [`Trip`]: it is made when the operation begins and given back when it ends, so that a user who waits costs no more than
//! who they are. An upload is made while it is sent, from one template a thread.
//!
//! What is wrong with an answer does not end its connection: it is read to its end, the operation has failed, and the user goes on. What has no end, or leaves
//! open where the next answer begins (a connection that broke, silence, bytes that are no HTTP) closes it.

mod flow;
mod io;
mod turn;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::social::spec::SocialDrive;
use rustix::event::epoll;
use tare_model::drive::DriveSpec;

use super::user::{Member, Outgoing, Tally as Operations, Template, Visit, World};
use crate::DriverError;
use crate::control::{Control, Meter};
use crate::record::Recorder;
use crate::session::fault::Fault;
use crate::session::http;
use crate::session::joins_at;
use crate::session::slab::{NONE, Slab};
use crate::session::tick::Ticks;
use crate::session::timers::Timers;
use crate::tally::Tally;
use crate::timeline::{Timeline, Tracker};

/// Bytes of the buffer that a thread reads into.
const READ_BYTES: usize = 256 << 10;
/// Trips whose memory is kept for the next.
const SPARE_MAX: usize = 256;
/// Parts of an operation that are timed: see [`Visit::part`].
pub(super) const PARTS: [&str; 4] = ["page", "static files", "pictures", "uploads"];

/// What all threads share.
#[derive(Debug)]
pub(super) struct Common<'a> {
    pub spec: &'a DriveSpec,
    pub drive: &'a SocialDrive,
    pub world: &'a World,
    pub targets: &'a [SocketAddr],
    pub timeline: Timeline,
    pub control: &'a Control,
    /// Most that the process had in memory when a thread had come to its end, bytes.
    pub memory: &'a AtomicU64,
}

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Closed,
    Connecting,
    Open,
}

/// A user, and their connection.
#[derive(Debug)]
struct Session {
    member: Member,
    cookie: Option<Box<[u8]>>,
    fd: Option<OwnedFd>,
    /// Tells the connection from those that the user had before.
    age: u32,
    /// The operation under way.
    trip: u32,
    stage: Stage,
    /// The connection has answered a request before, so that its end between two may be the server's right.
    served: bool,
    /// The other end sends no more: it is read to its end.
    hangs_up: bool,
    /// Connections that have failed one after another.
    failures: u8,
    /// When the operation under way was due.
    due: u64,
    /// When the last operation began (0: none has), and the cycle that was drawn then.
    started: u64,
    drawn: u64,
}

/// An operation under way, and its request.
#[derive(Debug, Default)]
struct Trip {
    visit: Visit,
    out: Outgoing,
    /// How much of the request the kernel has taken, and how long it is.
    sent: u64,
    length: u64,
    answer: http::Answer,
    /// When it was asked, or the last byte of the answer came.
    heard_at: u64,
    /// Whose it is.
    slot: u32,
    resent: bool,
    /// The head said that the connection stays.
    keeps: bool,
    /// The first thing that was wrong.
    fault: Option<Fault>,
    bytes: u64,
    /// Of which came of the answer to what was asked for last.
    came: u64,
    /// When the operation began; how long each part has taken so far, and when what was asked for last was.
    began: u64,
    parts: [u64; PARTS.len()],
    asked_at: u64,
}

/// What one thread counted.
#[derive(Debug)]
pub(super) struct Counts {
    pub tally: Tally,
    pub operations: Operations,
    pub parts: [Recorder; PARTS.len()],
    pub connections: u64,
}

/// Which thread of how many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub thread: u32,
    pub of: u32,
}

/// One thread's share.
#[derive(Debug)]
pub(super) struct Engine<'a> {
    common: &'a Common<'a>,
    meter: &'a Meter,
    epoll: OwnedFd,
    ticks: Ticks,
    sessions: Vec<Session>,
    trips: Slab<Box<Trip>>,
    #[expect(
        clippy::vec_box,
        reason = "they move between here and the slab, whose places are small as long as they are empty"
    )]
    spare: Vec<Box<Trip>>,
    timers: Timers<u32>,
    template: Template,
    read: Vec<u8>,
    /// Of which were due in the measured window.
    due_active: u64,
    active: u64,
    /// Users who pause after a failure although an operation of theirs is due that the measured window has.
    pausing: u64,
    /// When something last came from each instance.
    heard: Vec<u64>,
    /// Bytes both ways.
    carried: u64,
    tracker: Tracker,
    counts: Counts,
}

impl<'a> Engine<'a> {
    /// Ready to begin.
    ///
    /// # Errors
    /// When the kernel refuses an epoll instance or a timer.
    pub fn new(common: &'a Common<'a>, place: Place, meter: &'a Meter) -> Result<Self, DriverError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(DriverError::resource("watch connections"))?;
        let ticks = Ticks::on(&epoll).map_err(DriverError::resource("set a timer"))?;
        let mut engine = Self {
            common,
            meter,
            epoll,
            ticks,
            sessions: Vec::new(),
            trips: Slab::with_capacity(0),
            spare: Vec::new(),
            timers: Timers::with_capacity(0),
            template: Template::default(),
            read: vec![0; READ_BYTES],
            due_active: 0,
            active: 0,
            pausing: 0,
            heard: vec![0; common.targets.len()],
            carried: 0,
            tracker: Tracker::new(common.timeline),
            counts: Counts {
                tally: Tally::open(common.spec.record),
                operations: Operations::new(common.world),
                parts: std::array::from_fn(|_| Recorder::new(common.spec.record)),
                connections: 0,
            },
        };
        engine.settle(place);
        Ok(engine)
    }

    /// Makes this thread's users, each with the moment at which they join. Clients are dealt to the instances in turn, and the users of each
    /// instance to the threads in turn.
    fn settle(&mut self, place: Place) {
        let all = self.common.spec.load.connections();
        let instances = self.common.targets.len() as u32;
        let mine = |client: &u32| (client / instances + client % instances) % place.of == place.thread;
        let count = (0..all).filter(mine).count();
        self.sessions.reserve_exact(count);
        self.timers = Timers::with_capacity(count + 1);
        for (slot, client) in (0..).zip((0..all).filter(mine)) {
            let member = Member::new(self.common.world, (client % instances) as u16, client / instances);
            self.sessions.push(Session::new(member));
            self.timers.at(joins_at(&self.common.timeline, client, all), slot);
        }
    }

    /// Notes what the process has in memory that is not for pages under way, when all is over: what they need has been given back.
    fn weigh(&mut self) {
        self.trips = Slab::with_capacity(0);
        self.spare = Vec::new();
        self.read = Vec::new();
        self.common.memory.fetch_max(crate::session::limits::memory_bytes().unwrap_or(0), Ordering::Relaxed);
    }

    /// What was counted, when all is over.
    fn finish(self) -> Counts {
        let Self { mut counts, tracker, .. } = self;
        counts.tally.cpu = tracker.finish();
        counts
    }
}

impl Session {
    const fn new(member: Member) -> Self {
        Self {
            member,
            cookie: None,
            fd: None,
            age: 0,
            trip: NONE,
            stage: Stage::Closed,
            served: false,
            hangs_up: false,
            failures: 0,
            due: 0,
            started: 0,
            drawn: 0,
        }
    }

    /// When the operation after the last that was begun is due; `None` before the first.
    fn next_due(&self) -> Option<u64> {
        (self.started > 0).then(|| self.started.saturating_add(self.drawn))
    }
}

impl Trip {
    /// Ready for the next operation; memory is kept.
    fn begin(&mut self, slot: u32, now: u64) {
        (self.slot, self.began, self.asked_at, self.heard_at) = (slot, now, now, now);
        (self.fault, self.bytes, self.parts) = (None, 0, [0; PARTS.len()]);
        self.ready();
    }

    /// Ready for the next request.
    fn ready(&mut self) {
        (self.sent, self.came, self.resent, self.keeps) = (0, 0, false, true);
        self.answer.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_who_waits_is_small() {
        // With the pictures they have seen (300 bytes in the mean), a cookie and a place in the heap of timers: half a kilobyte.
        assert!(size_of::<Session>() <= 224, "{}", size_of::<Session>());
    }
}
