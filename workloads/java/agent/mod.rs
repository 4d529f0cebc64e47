//! Driving the Java application in a guest, which offers the load to itself.
//!
//! `docs/reference/java.md` has the protocol: lines of text on one connection, of which the driver asks each and the application
//! answers each. The driver says when load begins and ends and takes the number of operations at both edges of the measured
//! window by its own clock. The threads of the application measure how long each operation takes, and the application reports it.
//!
//! A connection is good for one run. When it ends, however it does, the application stops its threads and takes the next one.

#[path = "../spec.rs"]
pub mod spec;

mod answer;
mod client;
mod fault;
mod run;

use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::java::spec::JavaDrive;
use tare_model::drive::DriveSpec;
use tare_model::load::{Arrivals, LoadModel};

use crate::course::{Drive, first_target};
use crate::task::{Drives, Kind};
use crate::{DriverError, sockopt};

use answer::{Ready, number};
use client::Client;
pub use fault::{JavaError, JavaFault};

/// An application that has taken its load and waits for the start.
#[derive(Debug)]
struct Application {
    client: Client,
    ready: Ready,
    ask_every_ns: u64,
    /// Operations that it had completed before.
    before: u64,
    granted: Vec<(String, String)>,
}

/// Refuses what the application cannot do.
fn check(drive: &JavaDrive, load: &LoadModel) -> Result<(), DriverError> {
    if drive.timeout_ns == 0 || drive.ask_every_ns == 0 {
        let what = "the application may take no time to answer, or is asked without a pause";
        return Err(DriverError::invalid(what, "give timeout_ns and ask_every_ns a length"));
    }
    match load {
        LoadModel::Closed { think_time, .. } if think_time.ns > 0 => {
            let what = "the threads of the application do not think";
            Err(DriverError::invalid(what, "leave think_time out, or give an open load with the rate"))
        }
        LoadModel::Open { arrivals: Arrivals::Uniform, .. } => {
            let what = "the application starts its operations after exponential gaps";
            Err(DriverError::invalid(what, "ask for arrivals = \"poisson\""))
        }
        LoadModel::Closed { .. } | LoadModel::Open { .. } => Ok(()),
    }
}

/// Operations a second over all data groups that the application is to offer itself; 0 is as fast as it goes.
const fn rate_per_s(load: &LoadModel) -> f64 {
    match load {
        LoadModel::Closed { .. } => 0.0,
        LoadModel::Open { rate, .. } => rate.0,
    }
}

pub(crate) const KINDS: &[Kind] = &[Kind::drives::<JavaDrive>()];

impl Drives for JavaDrive {
    /// Connects, and has the application take the load.
    fn prepare(self, spec: &DriveSpec, cancel: &AtomicBool) -> Result<Box<dyn Drive>, DriverError> {
        check(&self, &spec.load)?;
        let target = first_target(spec)?;
        let timeout = Duration::from_nanos(self.timeout_ns);
        let mut client = Client::connect(target, &spec.socket, timeout, cancel)?;
        let mut granted = sockopt::granted(client.stream().as_fd(), true);
        let hello = client.ask("hello 1", cancel)?;
        let Some(ready) = Ready::parse(&hello.line) else {
            return Err(client.unfit(&hello.line, "`ready 1` with the number of its groups"));
        };
        let connections = spec.load.connections();
        if ready.groups != connections {
            return Err(client.fault(JavaFault::Groups { groups: ready.groups, connections }));
        }
        granted.extend(ready.facts.iter().cloned());
        let load = format!("load rate={} seed={}", rate_per_s(&spec.load), spec.seed);
        client.order(&load, "`ok`", cancel)?;
        let count = client.ask("count", cancel)?;
        let Some(before) = number(&count.line, "count") else {
            return Err(client.unfit(&count.line, "`count` and a number"));
        };
        Ok(Box::new(Application { client, ready, ask_every_ns: self.ask_every_ns, before, granted }))
    }
}
