//! The key-value load: clients that keep a pipeline of GETs and SETs under way, over RESP or memcached's text protocol.
//!
//! An operation is a request. The requests of a pipeline are sent together, are due together in an open loop, and are timed together, until the
//! last answer: histograms have an entry a pipeline, counts and rates are of requests. A client is a thread with a blocking connection.

#[path = "../spec.rs"]
pub mod spec;

mod ask;
mod choice;
mod client;
mod data;
mod pipe;
mod protocol;
mod sweep;

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tare_model::drive::{DriveInterval, DriveResult, DriveSpec};
use tare_model::load::LoadModel;
use tare_model::units::Rate;

use crate::clock::now_ns;
use crate::connections::{self, Common, DriverThread};
use crate::course::{Course, Drive, first_target};
use crate::operation::CUT_OFF;
use crate::tally::Tally;
use crate::task::{Drives, Kind};
use crate::{DriverError, sockopt};
use choice::Mix;
use client::{Client, Shared};
use data::{Book, WRITERS};
use pipe::{Limit, Pipe};
use spec::{KvAsk, KvDone, KvDrive, KvSweep};

pub(crate) const KINDS: &[Kind] = &[Kind::drives::<KvDrive>(), Kind::calls::<KvSweep>(), Kind::calls::<KvAsk>()];

/// Longest wait for all connections to open and to be greeted.
const CONNECTING_NS: u64 = 30_000_000_000;
/// Longest pipeline, requests and bytes of their values.
const DEPTH: u32 = 4096;
const PIPELINE_BYTES: u64 = 8 << 20;
/// Bytes of an answer beside its value, at most: the key, numbers, ends.
const ANSWER_BYTES: usize = 512;

/// Clients that are connected, a thread each.
#[derive(Debug)]
struct Clients {
    spec: DriveSpec,
    shared: Shared,
    pipes: Vec<Pipe>,
    granted: Vec<(String, String)>,
}

impl Drives for KvDrive {
    fn prepare(self, spec: &DriveSpec, cancel: &AtomicBool) -> Result<Box<dyn Drive>, DriverError> {
        first_target(spec)?;
        let depth = self.depth;
        if !(1..=DEPTH).contains(&depth) || u64::from(depth) * u64::from(self.keys.value_bytes.1) > PIPELINE_BYTES {
            let what = format!("a pipeline has {depth} requests of values of {} bytes", self.keys.value_bytes.1);
            return Err(DriverError::invalid(what, "send fewer requests together"));
        }
        if self.first_writer == 0 || self.first_writer.saturating_add(spec.load.connections()) > WRITERS {
            let what = format!("its connections are numbered from {}, and numbers end at {WRITERS}", self.first_writer);
            return Err(DriverError::invalid(what, "drive another guest"));
        }
        let book = Book::new(self.keys)?;
        let mix = Mix::new(self.keys.count, self.get_share, self.popularity)?;
        let most = depth as usize * (book.longest() + ANSWER_BYTES);
        let limit = Limit { until_ns: now_ns() + CONNECTING_NS, cancel };
        let targets = spec.targets.iter().cycle().take(spec.load.connections() as usize);
        let pipes: Vec<Pipe> = targets
            .map(|target| Pipe::open(*target, self.protocol, &spec.socket, most, limit))
            .collect::<Result<_, _>>()?;
        let granted = pipes.first().map_or_else(Vec::new, |pipe| sockopt::granted(pipe.socket.as_fd(), true));
        let mut spec = spec.clone();
        if let LoadModel::Open { rate, .. } = &mut spec.load {
            *rate = Rate(rate.0 / f64::from(depth));
        }
        let shared = Shared { seed: spec.seed, drive: self, book, mix };
        Ok(Box::new(Clients { spec, shared, pipes, granted }))
    }
}

impl Drive for Clients {
    fn run(self: Box<Self>, course: Course<'_>) -> Result<DriveResult, DriverError> {
        let Self { spec, shared, pipes, granted } = *self;
        let depth = u64::from(shared.drive.depth);
        let progress = |interval| (course.progress)(of_requests(interval, depth));
        let course = Course { progress: &progress, ..course };
        let common = Common { spec: &spec, course, operation_bytes: (0, 0), long: false, granted };
        let work = |pipe: Pipe, thread: &DriverThread<'_>| work(&shared, pipe, thread);
        let (mut result, each) = connections::run(common, pipes, work)?;
        let mut done = KvDone::default();
        each.iter().for_each(|(own, _)| done.add(own));
        for count in
            [&mut result.operations, &mut result.answered_total, &mut result.unfinished, &mut result.backlog_max]
        {
            *count *= depth;
        }
        for (_, count) in result.errors.iter_mut().filter(|(reason, _)| reason == CUT_OFF) {
            *count *= depth;
        }
        for count in result.turns.iter_mut().flat_map(|turns| &mut turns.counts) {
            // Every request of a pipeline takes as long as all of it.
            count.operations *= depth;
            count.response_ns *= depth;
        }
        result.intervals.iter_mut().for_each(|interval| *interval = of_requests(*interval, depth));
        Ok(result.with_outcome::<KvDrive>(&done)?)
    }
}

/// An interval's pipelines as requests.
const fn of_requests(interval: DriveInterval, depth: u64) -> DriveInterval {
    DriveInterval {
        operations: interval.operations * depth,
        response_ns: interval.response_ns.wrapping_mul(depth),
        ..interval
    }
}

/// The whole life of one driver thread. Its connection stays open until the last one has ended.
fn work(shared: &Shared, pipe: Pipe, thread: &DriverThread<'_>) -> (Tally, (KvDone, Pipe)) {
    let worker = &thread.worker;
    let socket = Arc::clone(&pipe.socket);
    let guarded = thread.breaker.guard(socket.as_fd());
    let mut client = Client::new(shared, worker.control, worker.index, pipe);
    let mut tally = thread.offer(&mut client);
    drop(guarded);
    let (done, pipe) = client.settle();
    tally.to_guest += done.steady.bytes_out;
    tally.from_guest += done.steady.bytes_in;
    (tally, (done, pipe))
}

#[cfg(test)]
#[path = "../tests/driver.rs"]
mod tests;
