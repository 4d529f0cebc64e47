//! One thread of the driver: its share of the sessions on one epoll instance.
//!
//! Interest in a connection is registered once, for both ways and for edges, and never changed. What is due is in a heap. A
//! session has one thing to wait for: a moment, or the answers to what it has asked.
//!
//! A page is asked for on a connection of the session's that has nothing to do, the first before others are opened. When it has come in
//! full, and was right, its files are asked for on all of the session's connections, the next as soon as one has answered; a connection is
//! opened when there is something to ask on it. So a page comes no later than one whose files are asked for while it is read, but for
//! the time its own body takes. What has failed ends its page: connections on which something is still under way are closed.

mod conn;
mod io;
mod page;
mod turn;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::session::joins_at;
use crate::session::limits::memory_bytes;
use crate::web::spec::WebDrive;
use rustix::event::epoll;
use tare_model::drive::DriveSpec;

use super::site::{Site, Tally as Types, Tokens, User};
use crate::DriverError;
use crate::control::{Control, Meter};
use crate::open::Shared;
use crate::session::http;
use crate::session::slab::{NONE, Slab};
use crate::session::timers::{Due, Timers};
use crate::session::tls::Tls;
use crate::tally::Tally;
use crate::timeline::{Timeline, Tracker};

use crate::session::tick::Ticks;
use conn::{Conn, Flight};

/// Bytes of the buffer that a thread reads into.
const READ_BYTES: usize = 256 << 10;
/// Flights whose memory is kept for the next.
const SPARE_MAX: usize = 1024;

/// Where requests go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ports {
    pub plain: SocketAddr,
    pub secure: SocketAddr,
    /// Everything is asked for over TLS.
    pub all_secure: bool,
}

/// What all threads share.
#[derive(Debug)]
pub(super) struct Common<'a> {
    pub spec: &'a DriveSpec,
    pub drive: &'a WebDrive,
    pub site: &'a Site,
    pub timeline: Timeline,
    pub control: &'a Control,
    pub arrivals: Option<&'a Shared>,
    pub ports: Ports,
    /// Connections a session.
    pub connections: u8,
    /// Think time where the site has none, nanoseconds.
    pub think_ns: u64,
    /// SO_RCVBUF where reading is slowed down.
    pub receive_buffer: Option<usize>,
    pub crowd: &'a Census,
}

/// How many sessions there are.
#[derive(Debug, Default)]
pub(super) struct Census {
    live: AtomicU64,
    most: AtomicU64,
    memory: AtomicU64,
}

impl Census {
    fn enter(&self) {
        let live = self.live.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(live, Ordering::Relaxed);
    }

    fn leave(&self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }

    /// Notes what the process has in memory.
    fn weigh(&self) {
        self.memory.fetch_max(memory_bytes().unwrap_or(0), Ordering::Relaxed);
    }

    /// What the process had in memory when the load ended, bytes; 0 where the kernel does not tell.
    pub fn memory(&self) -> u64 {
        self.memory.load(Ordering::Relaxed)
    }

    /// Most at one moment.
    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }
}

/// What a session is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nobody is there.
    Empty,
    /// Nobody is there until a moment in the heap of timers.
    Vacant,
    /// The user thinks until a moment in the heap of timers.
    Thinks,
    /// The page has been asked for.
    Page,
    /// Its files are asked for.
    Files,
}

/// A session: its user, and the page that is under way.
#[derive(Debug)]
struct Session {
    user: User,
    cookie: Option<Box<[u8]>>,
    /// The first of its connections.
    first: u32,
    phase: Phase,
    /// Whether its connections speak TLS.
    secure: bool,
    /// The next file of the page to ask for, and how many answers are to come.
    file: u16,
    outstanding: u16,
    state: u16,
    /// When the page was due, and when its request was first sent; 0: not yet.
    due: u64,
    sent: u64,
    bytes: u64,
    /// Pages that have failed one after another.
    failures: u8,
}

/// What one thread counted.
#[derive(Debug)]
pub(super) struct Counts {
    pub tally: Tally,
    pub types: Types,
    pub began: u64,
    pub exchanges: u64,
    pub not_modified: u64,
    pub connections: u64,
    pub reconnected: u64,
    pub full: u64,
    pub resumed: u64,
    pub overruns: u64,
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
    place: Place,
    epoll: OwnedFd,
    ticks: Ticks,
    tls: Option<Tls>,
    sessions: Vec<Session>,
    /// Open loop: sessions that nobody has, the one used last on top.
    vacant: Vec<u32>,
    /// Open loop: arrivals that are known, and those that are due and wait for a session.
    hand: VecDeque<u64>,
    waiting: VecDeque<u64>,
    conns: Slab<Conn>,
    flights: Slab<Flight>,
    spare: Vec<(Vec<u8>, http::Answer)>,
    timers: Timers,
    tokens: Tokens,
    /// Read into, and what TLS has sealed to be sent.
    read: Vec<u8>,
    sealed: Vec<u8>,
    /// Requests are gathered, and those that were: connections by number and age.
    gathers: bool,
    outbox: Vec<(u32, u32)>,
    age: u32,
    /// Users so far.
    users: u64,
    /// Pages under way.
    active: u64,
    /// Of which were due in the measured window.
    due_active: u64,
    /// Bytes both ways.
    carried: u64,
    tracker: Tracker,
    counts: Counts,
}

impl<'a> Engine<'a> {
    /// Ready to begin.
    ///
    /// # Errors
    /// When the kernel refuses an epoll instance, or TLS cannot be set up.
    pub fn new(common: &'a Common<'a>, place: Place, meter: &'a Meter, tls: Option<Tls>) -> Result<Self, DriverError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(DriverError::resource("watch connections"))?;
        let ticks = Ticks::on(&epoll).map_err(DriverError::resource("set a timer"))?;
        let mut engine = Self {
            common,
            meter,
            place,
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
            tokens: Tokens::new(common.spec.seed, place.thread as u16),
            read: vec![0; READ_BYTES],
            sealed: Vec::new(),
            gathers: false,
            outbox: Vec::new(),
            age: 0,
            users: 0,
            active: 0,
            due_active: 0,
            carried: 0,
            tracker: Tracker::new(common.timeline),
            counts: Counts::new(common),
        };
        engine.settle();
        Ok(engine)
    }

    /// Makes the sessions: in a closed loop each with the moment at which it joins, in an open loop without a user.
    fn settle(&mut self) {
        let all = self.common.spec.load.connections();
        let mine = (self.place.thread..all).step_by(self.place.of as usize);
        let count = mine.len();
        self.sessions.reserve_exact(count);
        self.conns = Slab::with_capacity(count * usize::from(self.common.connections).min(2));
        self.timers = Timers::with_capacity(count + 64);
        let open = self.common.arrivals.is_some();
        for (slot, index) in mine.enumerate() {
            let user = User::fresh(self.common.site, 0, 0);
            let phase = if open { Phase::Empty } else { Phase::Vacant };
            self.sessions.push(Session::empty(user, phase));
            if open {
                self.vacant.push(slot as u32);
            } else {
                self.timers.at(joins_at(&self.common.timeline, index, all), Due::Page(slot as u32));
            }
        }
        self.vacant.reverse();
    }

    /// What was counted, when all is over.
    fn finish(self) -> Counts {
        let Self { mut counts, tracker, .. } = self;
        counts.tally.cpu = tracker.finish();
        counts
    }
}

impl Session {
    const fn empty(user: User, phase: Phase) -> Self {
        Self {
            user,
            cookie: None,
            first: NONE,
            phase,
            secure: false,
            file: 0,
            outstanding: 0,
            state: 0,
            due: 0,
            sent: 0,
            bytes: 0,
            failures: 0,
        }
    }
}

impl Counts {
    fn new(common: &Common<'_>) -> Self {
        Self {
            tally: Tally::open(common.spec.record),
            types: Types::new(common.site),
            began: 0,
            exchanges: 0,
            not_modified: 0,
            connections: 0,
            reconnected: 0,
            full: 0,
            resumed: 0,
            overruns: 0,
        }
    }
}
