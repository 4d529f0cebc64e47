//! Aggressors: neighbours that load one part of a machine as much as they can, within bounds of their own.
//!
//! Each thread works in pieces of some milliseconds at most, but for devices that take longer, so that it stops at the end of its
//! stretch by itself. What it holds is one value, made at the start of the stretch and dropped at its end. How much it takes is bounded
//! here, whatever the guest's limits are, and by these ([`limits`]). A refusal of the system is what a layer that contains an aggressor
//! answers, so it is an error of a piece and of nothing else.

mod cache;
mod disk;
mod file;
mod fork;
mod growth;
mod limits;
mod net;
mod page_cache;
mod polite;
mod stream;
mod sys;
mod syscalls;

use std::io;
use std::net::SocketAddr;

use tare_model::drive::BusyWork;

use crate::DriverError;

/// What one thread of an aggressor holds in a stretch.
pub(crate) trait Aggressor {
    /// Does a piece of work and returns how many iterations that was. Whoever rests does so at most until the end of the stretch, `until_ns`
    /// (CLOCK_MONOTONIC).
    ///
    /// # Errors
    /// What the system refused. The next piece may be granted.
    fn piece(&mut self, until_ns: u64) -> io::Result<u64>;
}

/// Makes what one thread holds in a stretch.
pub(crate) type Begin = dyn Fn() -> io::Result<Box<dyn Aggressor>> + Send + Sync;

/// How an aggressor is to be run.
pub(crate) struct Plan {
    /// Its threads.
    pub threads: u32,
    /// Where it listens in its stretches.
    pub address: Option<SocketAddr>,
    /// Called by each thread at the start of each stretch.
    pub begin: Box<Begin>,
}

impl Plan {
    fn new<A: Aggressor + 'static>(threads: u32, begin: impl Fn() -> io::Result<A> + Send + Sync + 'static) -> Self {
        let begin = move || -> io::Result<Box<dyn Aggressor>> { Ok(Box::new(begin()?)) };
        Self { threads, address: None, begin: Box::new(begin) }
    }
}

/// The plan for so many threads.
///
/// # Errors
/// When it can never work where it is to.
pub(crate) fn plan(work: &BusyWork, threads: u32) -> Result<Plan, DriverError> {
    match work.clone() {
        // The first two are no aggressors; they have loops of their own.
        BusyWork::Spin | BusyWork::Mixed | BusyWork::Polite => Ok(Plan::new(threads, || Ok(polite::Polite::begin()))),
        BusyWork::Cache { memory_bytes } => Ok(Plan::new(threads, move || cache::Cache::begin(memory_bytes, threads))),
        BusyWork::MemoryStream { memory_bytes } => {
            Ok(Plan::new(threads, move || stream::MemoryStream::begin(memory_bytes, threads)))
        }
        BusyWork::Syscalls => Ok(Plan::new(threads, || Ok(syscalls::Syscalls::default()))),
        BusyWork::Fork => Ok(Plan::new(threads, move || Ok(fork::Fork::begin(threads)))),
        // Two that grow at once could not both stay below the limit.
        BusyWork::MemoryGrowth { memory_bytes } => {
            Ok(Plan::new(1, move || Ok(growth::MemoryGrowth::new(memory_bytes))))
        }
        // A second thread would wait for the same disk, or take turns at the same file.
        BusyWork::DiskWrite { directory } => {
            let directory = file::directory(directory)?;
            Ok(Plan::new(1, move || disk::DiskWrite::begin(&directory)))
        }
        BusyWork::PageCache { directory, memory_bytes } => {
            let directory = file::directory(directory)?;
            Ok(Plan::new(1, move || page_cache::PageCache::begin(&directory, memory_bytes)))
        }
        BusyWork::NetSend { to } => {
            net::check(to)?;
            Ok(Plan::new(threads, move || net::NetSend::begin(to)))
        }
        // A port has one queue.
        BusyWork::NetReceive { listen } => {
            let address = net::free_port(listen)?;
            Ok(Plan { address: Some(address), ..Plan::new(1, move || net::NetReceive::begin(address)) })
        }
    }
}
