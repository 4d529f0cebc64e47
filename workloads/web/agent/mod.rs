//! Users of a web site: sessions, their connections, and what is right.
//!
//! `docs/reference/web.md` has the protocol. [`site`] knows what users ask for and what answers must be, [`engine`] how that goes to
//! and fro: an epoll state machine a thread. Sessions are dealt to the threads in turn, and stay there with all their connections.
//!
//! An operation is a page with all its files. It ends in the measured window or not; its response time, from the moment at
//! which it was due, is counted if it was *due* in the window, however late it ended, so that a closed loop counts those who wait behind a
//! stall no less than an open one. Its service time begins when its request is first sent, so that it has no part of the
//! time that connecting took. Lateness is how much later than due a page was begun: of the timers, and in an open loop of waiting for
//! a session. Bytes are those of HTTP, without those of TLS.
//!
//! By request type all that ended in the window is counted, and what was due in it and failed later, or had no end at all when the run
//! was over: a server that stalls at the end is not better off than one that stalls before.
//!
//! In an open loop an arrival is dealt to a thread before it is due, and waits for a session of that thread even where another thread
//! has a free one; with one thread, as studies have it unless they say otherwise, there is no such wait.

#[path = "../spec.rs"]
pub mod spec;

pub mod backend;
pub(crate) mod engine;
mod outcome;
pub mod proof;
pub(crate) mod site;

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::session::limits::{FILES_A_THREAD, OTHER_FILES, THREADS_MAX, memory_bytes, room_for_files};
use crate::session::probe;
use crate::web::spec::{TlsSpec, WebDrive};
use tare_model::drive::{DriveInterval, DriveResult, DriveSpec};
use tare_model::load::LoadModel;

use crate::backlog::Backlog;
use crate::control::{Control, Meter};
use crate::crew::{CROWD_STACK_BYTES, run_threads};
use crate::drive::{Drive, GRACE_NS, first_target};
use crate::open::Shared;
use crate::registry::{Drives, Kind};
use crate::schedule::{Dealer, Schedule};
use crate::supervise::Watch;
use crate::timeline::Timeline;
use crate::{DriverError, sockopt};

use crate::session::tls::{DIGEST_BYTES, Tls};
use engine::{Census, Common, Engine, Place, Ports};
use site::Site;

pub use site::{Simulated, simulate};

/// Bounds of the receive buffer of a connection that is read slowly, bytes.
const RECEIVE_BUFFER: (u64, u64) = (16 << 10, 256 << 10);

/// Refuses what cannot be driven.
fn check(drive: &WebDrive) -> Result<(), DriverError> {
    let invalid = |what: &str, remedy| Err(DriverError::invalid(what, remedy));
    if drive.threads == 0 || drive.threads > THREADS_MAX {
        return invalid("its sessions have no thread, or more than 1024", "give threads a number from 1 to 1024");
    }
    if drive.connections == 0 {
        return invalid("its sessions have no connection", "give connections at least 1");
    }
    if drive.timeout_ns == 0 {
        return invalid("an answer may take no time", "give timeout_ns a length");
    }
    if drive.receive_bytes_per_s == Some(0) {
        return invalid("nothing is ever read from its connections", "leave receive_bytes_per_s out, or give a rate");
    }
    if drive.host.is_empty() || !drive.host.bytes().all(|byte| byte.is_ascii_graphic()) {
        return invalid(
            "its host is no name that a request can carry",
            "give host the name or the address of the server",
        );
    }
    let pin = drive.tls.as_ref().and_then(|tls| tls.certificate_sha256.as_ref());
    if pin.is_some_and(|pin| pin.len() != DIGEST_BYTES) {
        return invalid(
            "its certificate has a SHA-256 that is not 32 bytes",
            "give the digest of the certificate in DER",
        );
    }
    Ok(())
}

/// All users, ready.
#[derive(Debug)]
struct Crowd {
    spec: DriveSpec,
    drive: WebDrive,
    site: Site,
    ports: Ports,
    /// TLS of each thread.
    tls: Vec<Option<Tls>>,
    granted: Vec<(String, String)>,
    /// What the process had in memory before, bytes.
    memory_before: Option<u64>,
}

pub(crate) const KINDS: &[Kind] = &[Kind::drives::<WebDrive>(), crate::web::backend::KIND];

impl Drives for WebDrive {
    /// Sees the server answer on each of its ports, and that there may be as many connections as are needed.
    ///
    /// With one target all goes there: over TLS where TLS is spoken of, else plain.
    fn prepare(self, spec: &DriveSpec, cancel: &AtomicBool) -> Result<Box<dyn Drive>, DriverError> {
        let drive = &self;
        check(drive)?;
        let memory_before = memory_bytes();
        let site = Site::compile(drive)?;
        let ports = ports(spec, drive)?;
        let resumes = drive.connections > 1;
        let new = |spec: &TlsSpec| Tls::new(spec.certificate_sha256.clone(), &drive.host, ports.secure.ip(), resumes);
        let tls = (0..drive.threads).map(|_| drive.tls.as_ref().map(new).transpose());
        let tls: Vec<Option<Tls>> = tls.collect::<Result<_, _>>().map_err(|error| {
            DriverError::invalid(format!("TLS cannot be set up: {error}"), "this is a defect of tare: please report it")
        })?;
        let mut granted = vec![("body_checks".to_owned(), drive.check.to_string())];
        if let Some(tls) = &drive.tls {
            let pinned = if tls.certificate_sha256.is_some() { "pinned" } else { "any" };
            granted.push(("certificate".to_owned(), pinned.to_owned()));
        }
        let first = tls.first().and_then(Option::as_ref);
        let plain = (!ports.all_secure).then_some((ports.plain, None));
        for (target, tls) in plain.into_iter().chain(first.map(|tls| (ports.secure, Some(tls)))) {
            if cancel.load(Ordering::Relaxed) {
                return Err(DriverError::Cancelled);
            }
            let stream = probe::ask(target, &spec.socket, &drive.host, tls)?;
            if granted.len() < 3 {
                granted.extend(sockopt::granted(stream.as_fd(), true));
            }
        }
        let connections = u64::from(spec.load.connections()) * u64::from(drive.connections);
        room_for_files(connections + FILES_A_THREAD * u64::from(drive.threads) + OTHER_FILES)?;
        let spec = spec.clone();
        Ok(Box::new(Crowd { spec, drive: self, site, ports, tls, granted, memory_before }))
    }
}

impl Drive for Crowd {
    fn run(
        self: Box<Self>,
        timeline: Timeline,
        progress: &dyn Fn(DriveInterval),
        cancel: &AtomicBool,
    ) -> Result<DriveResult, DriverError> {
        let Self { spec, drive, site, ports, tls, granted, memory_before } = *self;
        let shared = arrivals(&spec, &drive, &timeline);
        let (control, census) = (Control::default(), Census::default());
        let meters: Vec<Meter> = (0..drive.threads).map(|_| Meter::default()).collect();
        let common = Common {
            spec: &spec,
            drive: &drive,
            site: &site,
            timeline,
            control: &control,
            arrivals: shared.as_ref(),
            ports,
            connections: drive.connections,
            think_ns: think_ns(&spec, &drive),
            receive_buffer: receive_buffer(&spec, &drive),
            crowd: &census,
        };
        let watch = Watch {
            timeline,
            cut_at: timeline.load_end.saturating_add(2 * GRACE_NS),
            interval_ns: spec.interval_ns,
            operation_bytes: 0,
            control: &control,
            meters: &meters,
            breakers: &[],
            arrivals: shared.as_ref(),
            progress,
            cancel,
        };
        let of = threads(&spec, &drive);
        let one = |((thread, tls), meter)| {
            let common = &common;
            move || Engine::new(common, Place { thread, of }, meter, tls).map(Engine::run)
        };
        let (counts, watched) =
            run_threads(("web", CROWD_STACK_BYTES), &control, (0..of).zip(tls).zip(&meters).map(one), &watch)?;
        if watched.cancelled {
            return Err(DriverError::Cancelled);
        }
        let memory = memory_before.map_or(0, |before| census.memory().saturating_sub(before));
        outcome::result(&common, counts, watched, memory, granted)
    }
}

/// Where requests go.
fn ports(spec: &DriveSpec, drive: &WebDrive) -> Result<Ports, DriverError> {
    let plain = first_target(spec)?;
    let second: Option<SocketAddr> = spec.targets.get(1).copied();
    let all_secure = drive.tls.is_some() && second.is_none();
    Ok(Ports { plain, secure: second.unwrap_or(plain), all_secure })
}

/// Arrivals of an open loop, dealt to the threads.
fn arrivals(spec: &DriveSpec, drive: &WebDrive, timeline: &Timeline) -> Option<Shared> {
    let LoadModel::Open { rate, arrivals, .. } = spec.load else { return None };
    let schedule = Schedule::new(rate.0, arrivals, &spec.phases, timeline.start, spec.seed);
    let backlog = Backlog::new(timeline, timeline.load_end.saturating_add(GRACE_NS));
    Some(Shared { dealer: Dealer::new(schedule, threads(spec, drive)), backlog })
}

/// Threads that have a session.
fn threads(spec: &DriveSpec, drive: &WebDrive) -> u32 {
    drive.threads.min(spec.load.connections()).max(1)
}

/// The think time of the load, where the site has none.
fn think_ns(spec: &DriveSpec, drive: &WebDrive) -> u64 {
    match spec.load {
        LoadModel::Closed { think_time, .. } if drive.site.think.mean_ns == 0 => think_time.ns,
        _ => 0,
    }
}

/// The kernel's buffer of a connection that is read slowly holds about half a second, so that the server feels how slow it is.
fn receive_buffer(spec: &DriveSpec, drive: &WebDrive) -> Option<usize> {
    let rate = drive.receive_bytes_per_s.filter(|_| spec.socket.buffer_bytes.is_none())?;
    // The kernel doubles it, for its own bookkeeping (socket(7)).
    Some((rate / 2).clamp(RECEIVE_BUFFER.0, RECEIVE_BUFFER.1) as usize)
}
