//! Users of a web site: sessions, their connections, and what is right.
//!
//! `docs/reference/web.md` has the protocol. [`site`] knows what users ask for and what answers must be, [`users`] how they go from page to page, and
//! the session engine how that goes to and fro. Sessions are dealt to the threads in turn, and stay there with all their connections.
//!
//! An operation is a page with all its files. It ends in the measured window or not; its response time, from the moment at
//! which it was due, is counted if it was *due* in the window, however late it ended, so that a closed loop counts those who wait behind a
//! stall no less than an open one. Bytes are those of HTTP, without those of TLS.
//!
//! By request type all that ended in the window is counted, and what was due in it and failed later, or had no end at all when the run
//! was over: a server that stalls at the end is not better off than one that stalls before.
//!
//! In an open loop an arrival is dealt to a thread before it is due, and waits for a session of that thread even where another thread
//! has a free one; with one thread, as studies have it unless they say otherwise, there is no such wait.

#[path = "../spec.rs"]
pub mod spec;

pub mod backend;
pub mod proof;
pub(crate) mod site;
mod users;

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use crate::web::spec::{TlsSpec, WebDone, WebDrive};
use tare_model::drive::{DriveResult, DriveSpec};
use tare_model::load::LoadModel;

use crate::DriverError;
use crate::course::{Course, Drive, first_target};
use crate::session::engine::{Crowd, Settings};
use crate::session::limits::memory_bytes;
use crate::session::probe;
use crate::session::tls::{DIGEST_BYTES, Tls};
use crate::task::{Drives, Kind};

use site::{Site, Tally};
use users::{Ports, Visitors, Way};

pub use site::{Simulated, simulate};

/// Bounds of the receive buffer of a connection that is read slowly, bytes.
const RECEIVE_BUFFER: (u64, u64) = (16 << 10, 256 << 10);

/// Refuses what cannot be driven.
fn check(drive: &WebDrive) -> Result<(), DriverError> {
    let invalid = |what: &str, remedy| Err(DriverError::invalid(what, remedy));
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
struct Ready {
    crowd: Crowd,
    site: Site,
    ports: Ports,
    /// TLS of each thread, if any is spoken.
    tls: Vec<Tls>,
    think_ns: u64,
}

pub(crate) const KINDS: &[Kind] = &[Kind::drives::<WebDrive>(), crate::web::backend::KIND];

impl Drives for WebDrive {
    /// Sees the server answer on each of its ports, and that there may be as many connections as are needed.
    ///
    /// With one target all goes there: over TLS where TLS is spoken of, else plain.
    fn prepare(self, spec: &DriveSpec, cancel: &AtomicBool) -> Result<Box<dyn Drive>, DriverError> {
        let settings = settings(spec, &self);
        settings.check()?;
        check(&self)?;
        let memory_before = memory_bytes();
        let site = Site::compile(&self)?;
        let ports = ports(spec, &self)?;
        let resumes = self.connections > 1;
        let new = |spec: &TlsSpec| Tls::new(spec.certificate_sha256.clone(), &self.host, ports.secure.ip(), resumes);
        let tls: Result<Vec<Tls>, _> = (0..self.threads).filter_map(|_| self.tls.as_ref().map(new)).collect();
        let tls = tls.map_err(|error| {
            DriverError::invalid(format!("TLS cannot be set up: {error}"), "this is a defect of tare: please report it")
        })?;
        let mut granted = vec![("body_checks".to_owned(), self.check.to_string())];
        if let Some(tls) = &self.tls {
            let pinned = if tls.certificate_sha256.is_some() { "pinned" } else { "any" };
            granted.push(("certificate".to_owned(), pinned.to_owned()));
        }
        let host = self.host.as_str();
        let plain = (!ports.all_secure).then_some((ports.plain, host, None));
        let secure = tls.first().map(|tls| (ports.secure, host, Some(tls)));
        granted.extend(probe::ask_each(plain.into_iter().chain(secure), &spec.socket, cancel)?);
        let crowd = Crowd::new(spec, settings, granted, memory_before)?;
        Ok(Box::new(Ready { crowd, site, ports, tls, think_ns: think_ns(spec, &self) }))
    }
}

impl Drive for Ready {
    fn run(self: Box<Self>, course: Course<'_>) -> Result<DriveResult, DriverError> {
        let Self { crowd, site, ports, tls, think_ns } = *self;
        let timeline = course.timeline.clone();
        let users = |spec: &DriveSpec, thread| {
            Visitors::new(Way { site: &site, ports, seed: spec.seed, think_ns, timeline: &timeline }, thread)
        };
        let driven = crowd.run(course, tls, users)?;
        let counts = driven.counts;
        let mut done = WebDone {
            sessions_began: counts.began,
            sessions_most: driven.sessions_most,
            connections: counts.connections,
            reconnected: counts.reconnected,
            handshakes_full: counts.full,
            handshakes_resumed: counts.resumed,
            overruns: counts.overruns,
            memory_per_session_bytes: driven.memory_bytes / driven.sessions_most.max(1),
            ..WebDone::default()
        };
        for users in &driven.users {
            done.exchanges += users.exchanges;
            done.not_modified += users.not_modified;
        }
        (done.types, done.faults) = Tally::merge(&site, driven.users.into_iter().map(|users| users.types));
        Ok(driven.result.with_outcome::<WebDrive>(&done)?)
    }
}

/// Where requests go.
fn ports(spec: &DriveSpec, drive: &WebDrive) -> Result<Ports, DriverError> {
    let plain = first_target(spec)?;
    let second: Option<SocketAddr> = spec.targets.get(1).copied();
    let all_secure = drive.tls.is_some() && second.is_none();
    Ok(Ports { plain, secure: second.unwrap_or(plain), all_secure })
}

fn settings(spec: &DriveSpec, drive: &WebDrive) -> Settings {
    Settings {
        threads: drive.threads,
        instances: 1,
        connections: drive.connections,
        thinks: drive.site.think.mean_ns > 0 || think_ns(spec, drive) > 0,
        fresh_connections: drive.fresh_connections,
        timeout_ns: drive.timeout_ns,
        overrun_ns: drive.overrun_ns,
        receive_bytes_per_s: drive.receive_bytes_per_s,
        receive_buffer: receive_buffer(spec, drive),
    }
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

/// Appends a number with at least so many digits, at most 20.
fn digits(out: &mut Vec<u8>, mut number: u64, width: usize) {
    let mut text = [b'0'; 20];
    let mut at = text.len();
    while number > 0 {
        at -= 1;
        text[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.extend_from_slice(&text[at.min(text.len() - width)..]);
}
