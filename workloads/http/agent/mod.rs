//! Load on a service of the user's own: requests over HTTP/1.1, plain or with TLS, each answer verified while it comes.
//!
//! The session engine has connections, timers and phases. A client is a session with one connection; an operation is one request.

#[path = "../spec.rs"]
pub mod spec;

mod judge;
mod users;

use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tare_model::drive::{DriveResult, DriveSpec, SocketOptions};
use tare_model::load::LoadModel;

use crate::course::{Course, Drive, first_target};
use crate::session::draw::Aliases;
use crate::session::engine::{Crowd, Settings, Target};
use crate::session::http::Step;
use crate::session::limits::memory_bytes;
use crate::session::probe::Server;
use crate::session::tls::Tls;
use crate::task::{Calls, Drives, Kind};
use crate::{DriverError, sockopt};

use judge::Judge;
use spec::{Asked, HttpAsk, HttpDone, HttpDrive, Reached};
use users::{Clients, Way};

pub(crate) const KINDS: &[Kind] = &[Kind::drives::<HttpDrive>(), Kind::calls::<HttpAsk>()];

/// Longest answer that is read to its end before the load, bytes.
const ANSWER_MAX: usize = 1 << 30;

/// An answer that is not what it must be.
#[derive(Debug, thiserror::Error)]
#[error(
    "{name} is not answered as the study says: {words}; correct the request or its `expect`, or see what the service says"
)]
struct WrongAnswer {
    name: String,
    words: String,
}

impl Reached {
    /// TLS, where it is spoken.
    fn tls(&self, server: SocketAddr) -> Result<Option<Tls>, DriverError> {
        let new = |name: &String| Tls::new(None, name, server.ip(), false);
        self.tls.as_ref().map(new).transpose().map_err(|error| {
            DriverError::invalid(format!("TLS cannot be set up: {error}"), "this is a defect of tare: please report it")
        })
    }

    /// Asks once and verifies the answer; the connection.
    fn ask(
        &self,
        target: SocketAddr,
        options: &SocketOptions,
        tls: Option<&Tls>,
        request: &Asked,
    ) -> Result<TcpStream, DriverError> {
        let server = Server { target, options, tls, timeout: Duration::from_nanos(self.timeout_ns) };
        let (must, mut judge) = (&request.expect, Judge::default());
        let (right, stream) = server.ask(&request.text, ANSWER_MAX, |step| {
            match step {
                Step::Head(head) => judge.head(must, head.status),
                Step::Body(piece) => judge.body(must, piece),
                Step::Done => return Some(judge.end(must)),
                Step::More => {}
            }
            None
        })?;
        let wrong = |_| WrongAnswer { name: request.name.clone(), words: judge.words(must) };
        right.map_err(wrong).map_err(DriverError::application)?;
        Ok(stream)
    }
}

impl Calls for HttpAsk {
    fn call(self, _cancel: &AtomicBool) -> Result<(), String> {
        let Self { server, reached, request } = self;
        let tls = reached.tls(server).map_err(|error| error.to_string())?;
        let asked = reached.ask(server, &SocketOptions::default(), tls.as_ref(), &request);
        asked.map(drop).map_err(|error| error.to_string())
    }
}

/// All clients, ready.
#[derive(Debug)]
struct Ready {
    crowd: Crowd,
    drive: HttpDrive,
    choice: Aliases,
    target: Target,
    tls: Option<Tls>,
}

impl Drives for HttpDrive {
    /// Has each request answered once, and verifies that.
    fn prepare(self, spec: &DriveSpec, cancel: &AtomicBool) -> Result<Box<dyn Drive>, DriverError> {
        let weights: Vec<f64> = self.requests.iter().map(|request| request.weight).collect();
        let none =
            !weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0) || weights.iter().sum::<f64>() <= 0.0;
        if none || self.requests.iter().any(|request| request.text.is_empty()) {
            return Err(DriverError::invalid("it has no requests", "use the agent that came with this tare"));
        }
        let settings = settings(spec, &self);
        settings.check()?;
        let memory_before = memory_bytes();
        let address = first_target(spec)?;
        let tls = self.reached.tls(address)?;
        let mut granted = Vec::new();
        for request in &self.requests {
            if cancel.load(std::sync::atomic::Ordering::Relaxed) {
                return Err(DriverError::Cancelled);
            }
            let stream = self.reached.ask(address, &spec.socket, tls.as_ref(), request)?;
            granted = sockopt::granted(stream.as_fd(), true);
        }
        let crowd = Crowd::new(spec, settings, granted, memory_before)?;
        let target = Target { address, secure: tls.is_some() };
        Ok(Box::new(Ready { crowd, choice: Aliases::new(&weights), drive: self, target, tls }))
    }
}

impl Drive for Ready {
    fn run(self: Box<Self>, course: Course<'_>) -> Result<DriveResult, DriverError> {
        let Self { crowd, drive, choice, target, tls } = *self;
        let timeline = course.timeline.clone();
        let clients = |spec: &DriveSpec, _| {
            Clients::new(Way {
                requests: &drive.requests,
                choice: &choice,
                target,
                seed: spec.seed,
                single: drive.fresh || matches!(spec.load, LoadModel::Open { .. }),
                think_ns: think_ns(spec),
                timeline: &timeline,
            })
        };
        let driven = crowd.run(course, tls.into_iter().collect(), clients)?;
        let mut done = HttpDone::default();
        driven.users.iter().for_each(|clients| done.add(&clients.done));
        (done.connections, done.reconnected) = (driven.counts.connections, driven.counts.reconnected);
        Ok(driven.result.with_outcome::<HttpDrive>(&done)?)
    }
}

fn settings(spec: &DriveSpec, drive: &HttpDrive) -> Settings {
    Settings {
        threads: 1,
        instances: 1,
        connections: 1,
        thinks: think_ns(spec) > 0,
        fresh_connections: drive.fresh,
        timeout_ns: drive.reached.timeout_ns,
        overrun_ns: u64::MAX,
        receive_bytes_per_s: None,
        receive_buffer: None,
    }
}

const fn think_ns(spec: &DriveSpec) -> u64 {
    match spec.load {
        LoadModel::Closed { think_time, .. } => think_time.ns,
        LoadModel::Open { .. } => 0,
    }
}

#[cfg(test)]
#[path = "../tests/driver.rs"]
mod tests;
