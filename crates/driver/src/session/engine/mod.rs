//! One thread of a driver of sessions: its share of the users on one epoll instance.
//!
//! Who the users are and what they do is a workload's ([`Users`]); connections, requests on their way, timers and the common counts are the engine's.
//!
//! Interest in a connection is registered once, for both ways and for edges, and never changed. What is due is in a heap. A session has one thing to
//! wait for: a moment, or the answers to what it has asked. A request is on a connection of its session's that has nothing to do, and one is opened where
//! there may be more and none is idle. What has failed ends its operation: connections on which something is still under way for it are closed.
//!
//! The end of an operation's measured time is its last answer. Its response time counts from the moment at which it was due, its service time from when
//! its first request was first sent, so that it has no part of the time that connecting took. Lateness is how much later than due the timers were, and
//! how long an arrival of an open loop waited for a session; what begins at once because its user was late is not in it.
//!
//! In turns users come, think, pause and time out by the clock that runs in their driver's turns alone. What is under way when a turn ends takes
//! the time that it takes; what is then to be sent stands still until the next ([`rest`]).

mod conn;
mod crowd;
mod flow;
mod receive;
mod rest;
mod run;
mod send;
mod users;

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use rustix::event::epoll;
use tare_model::drive::DriveSpec;

use crate::DriverError;
use crate::control::{Control, Meter};
use crate::open::Shared;
use crate::session::http;
use crate::session::slab::{NONE, Slab};
use crate::session::tick::Ticks;
use crate::session::timers::{Due, Timers};
use crate::session::tls::Tls;
use crate::tally::Tally;
use crate::timeline::{Timeline, Tracker};
use crate::turn_counts::TurnCounts;

use conn::{Conn, Flight};
use crowd::Census;
pub(crate) use crowd::Crowd;
pub(crate) use users::{Ended, Target, Users, Window};

/// Bytes of the buffer that a thread reads into.
const READ_BYTES: usize = 256 << 10;
/// Requests whose memory is kept for the next.
const SPARE_MAX: usize = 1024;

/// How sessions are driven.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Threads, at least 1; sessions are dealt to them in turn.
    pub threads: u32,
    /// Instances that clients are dealt to in turn, at least 1. The threads are dealt the clients of each instance evenly.
    pub instances: u32,
    /// Most connections of a session, at least 1.
    pub connections: u8,
    /// Users of a closed loop think, so that it is not how soon they are served that decides how often they come.
    pub thinks: bool,
    /// A new user opens connections of their own.
    pub fresh_connections: bool,
    /// An operation has failed once nothing has come of an answer for this long, nanoseconds.
    pub timeout_ns: u64,
    /// What is later than due by more than this is counted as overrun, nanoseconds.
    pub overrun_ns: u64,
    /// Bytes a second that are read from a connection at most; `None`: as they come.
    pub receive_bytes_per_s: Option<u64>,
    /// The kernel's buffer of what is received where reading is slowed down, bytes.
    pub receive_buffer: Option<usize>,
}

/// What all threads share.
#[derive(Debug)]
struct Common<'a> {
    spec: &'a DriveSpec,
    settings: Settings,
    timeline: Timeline,
    control: &'a Control,
    arrivals: Option<&'a Shared>,
    census: &'a Census,
    /// Threads that have a session.
    threads: u32,
}

/// What a session is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nobody is there.
    Empty,
    /// Nobody is there until a moment in the heap of timers.
    Vacant,
    /// The user waits for their next operation, until a moment in the heap of timers.
    Waits,
    /// An operation is under way.
    Works,
}

/// A session: its user, and the operation that is under way or comes next.
#[derive(Debug)]
struct Session<U> {
    user: U,
    /// The first of its connections.
    first: u32,
    /// Requests under way.
    outstanding: u16,
    phase: Phase,
    /// Its connections speak TLS.
    secure: bool,
    /// Operations that have failed one after another.
    failures: u8,
    /// When the operation was due, and when its first request was first sent; 0: not yet.
    due: u64,
    sent: u64,
    /// From when on its response time counts: it is due, later by what it stood still for in the turns of others.
    from: u64,
    /// When something last came for it, or it was begun.
    heard: u64,
    /// Bytes that came for it.
    bytes: u64,
}

/// What a thread counted that is the same for all workloads.
#[derive(Debug)]
struct Counts {
    tally: Tally,
    sessions: SessionCounts,
}

/// Sessions and connections of a thread, or of all.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SessionCounts {
    /// Sessions that began in the measured window.
    pub began: u64,
    /// Operations that were due in it and overran.
    pub overruns: u64,
    /// Connections that were opened, all phases.
    pub connections: u64,
    /// Requests that were sent once more on a new connection, all phases.
    pub reconnected: u64,
    /// TLS handshakes in full and resumed, all phases.
    pub full: u64,
    pub resumed: u64,
}

/// One thread's share.
#[derive(Debug)]
struct Engine<'a, U: Users> {
    common: &'a Common<'a>,
    meter: &'a Meter,
    thread: u32,
    users: U,
    epoll: OwnedFd,
    ticks: Ticks,
    tls: Option<Tls>,
    sessions: Vec<Session<U::User>>,
    /// Open loop: sessions that nobody has, the one used last on top.
    vacant: Vec<u32>,
    /// Open loop: arrivals that are known, and those that are due and wait for a session.
    hand: VecDeque<u64>,
    waiting: VecDeque<u64>,
    conns: Slab<Conn>,
    flights: Slab<Flight<U::Request>>,
    spare: Vec<(U::Request, http::Answer)>,
    timers: Timers,
    /// Read into, and what TLS has sealed to be sent.
    read: Vec<u8>,
    sealed: Vec<u8>,
    /// Requests are gathered, and those that were: connections by number and age.
    gathers: bool,
    outbox: Vec<(u32, u32)>,
    /// Requests without a connection that wait for the driver's turn.
    held: VecDeque<u32>,
    age: u32,
    /// Sessions so far.
    begun: u64,
    /// Operations under way, and of which were due in the measured window.
    active: u64,
    due_active: u64,
    /// Users who pause after a failure although an operation of theirs is due that the measured window has.
    pausing: u64,
    /// Bytes both ways.
    carried: u64,
    tracker: Tracker,
    counts: Counts,
    /// What was done in turns.
    turns: Option<TurnCounts<'a>>,
}

impl<'a, U: Users> Engine<'a, U> {
    /// Ready to begin.
    ///
    /// # Errors
    /// When the kernel refuses an epoll instance or a timer.
    fn new(
        common: &'a Common<'a>,
        thread: u32,
        meter: &'a Meter,
        tls: Option<Tls>,
        users: U,
    ) -> Result<Self, DriverError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(DriverError::resource("watch connections"))?;
        let ticks = Ticks::on(&epoll).map_err(DriverError::resource("set a timer"))?;
        let mut engine = Self {
            common,
            meter,
            thread,
            users,
            epoll,
            ticks,
            tls,
            sessions: Vec::new(),
            vacant: Vec::new(),
            hand: VecDeque::new(),
            waiting: VecDeque::new(),
            conns: Slab::with_capacity(0),
            flights: Slab::with_capacity(0),
            spare: Vec::new(),
            timers: Timers::with_capacity(0),
            read: vec![0; READ_BYTES],
            sealed: Vec::new(),
            gathers: false,
            outbox: Vec::new(),
            held: VecDeque::new(),
            age: 0,
            begun: 0,
            active: 0,
            due_active: 0,
            pausing: 0,
            carried: 0,
            tracker: Tracker::new(common.timeline.clone()),
            counts: Counts { tally: Tally::open(common.spec.record), sessions: SessionCounts::default() },
            turns: None,
        };
        engine.settle();
        engine.turns = TurnCounts::of_clients(&common.timeline, engine.sessions.len() as u32);
        Ok(engine)
    }

    /// Makes the sessions: in a closed loop each with the moment at which it joins, in an open loop without a user.
    fn settle(&mut self) {
        let Common { spec, settings, timeline, threads, .. } = self.common;
        let (all, instances) = (spec.load.connections(), settings.instances);
        let mine = |client: &u32| (client / instances + client % instances) % threads == self.thread;
        let count = (0..all).filter(mine).count();
        self.sessions.reserve_exact(count);
        self.conns = Slab::with_capacity(count * usize::from(settings.connections).min(2));
        self.timers = Timers::with_capacity(count + 64);
        let open = self.common.arrivals.is_some();
        for (slot, client) in (0..).zip((0..all).filter(mine)) {
            let user = self.users.user(client);
            self.sessions.push(Session::new(user, if open { Phase::Empty } else { Phase::Vacant }));
            if open {
                self.vacant.push(slot);
            } else {
                self.timers.at(crate::session::joins_at(timeline, client, all), Due::User(slot));
            }
        }
        self.vacant.reverse();
    }

    /// Gives back the memory that only operations under way need, and notes what the process has: all is over.
    fn weigh(&mut self) {
        self.flights = Slab::with_capacity(0);
        self.spare = Vec::new();
        self.read = Vec::new();
        self.users.release();
        self.common.census.weigh();
    }

    /// What was counted, when all is over.
    fn finish(self) -> (Counts, U) {
        let Self { mut counts, tracker, users, turns, .. } = self;
        counts.tally.cpu = tracker.finish();
        counts.tally.turns = turns.map(TurnCounts::finish);
        (counts, users)
    }
}

impl<U> Session<U> {
    const fn new(user: U, phase: Phase) -> Self {
        Self {
            user,
            first: NONE,
            outstanding: 0,
            phase,
            secure: false,
            failures: 0,
            due: 0,
            sent: 0,
            from: 0,
            heard: 0,
            bytes: 0,
        }
    }
}

impl SessionCounts {
    /// Adds those of another thread.
    pub const fn add(&mut self, other: Self) {
        self.began += other.began;
        self.overruns += other.overruns;
        self.connections += other.connections;
        self.reconnected += other.reconnected;
        self.full += other.full;
        self.resumed += other.resumed;
    }
}
