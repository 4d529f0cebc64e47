//! Aggressors: neighbours that load one part of a machine as much as they can, within bounds of their own.
//!
//! Each thread works in pieces of some milliseconds at most, but for devices that take longer, so that it stops at the end of its
//! stretch by itself. What it holds is one value, made at the start of the stretch and dropped at its end. How much it takes is bounded
//! here, whatever the guest's limits are, and by these ([`limits`]). A refusal of the system is what a layer that contains an aggressor
//! answers, so it is an error of a piece and of nothing else.

mod cache;
mod limits;
mod polite;
mod stream;
mod syscalls;

use std::io;
use std::net::SocketAddr;

use tare_model::drive::BusyWork;

use crate::DriverError;

/// What one thread of an aggressor holds in a stretch.
pub(crate) trait Aggressor {
    /// Does a piece of work and returns how many iterations that was. `until_ns` is the end of the stretch (CLOCK_MONOTONIC); nobody waits
    /// beyond it for time to pass.
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
    fn new<A: Aggressor + 'static>(
        threads: u32,
        begin: impl Fn() -> io::Result<A> + Send + Sync + 'static,
    ) -> Result<Self, DriverError> {
        let begin = move || -> io::Result<Box<dyn Aggressor>> { Ok(Box::new(begin()?)) };
        Ok(Self { threads, address: None, begin: Box::new(begin) })
    }
}

/// The plan for so many threads.
///
/// # Errors
/// When it can never work where it is to.
pub(crate) fn plan(work: &BusyWork, threads: u32) -> Result<Plan, DriverError> {
    match *work {
        // Those two are no aggressors; they have loops of their own.
        BusyWork::Spin | BusyWork::Mixed | BusyWork::Polite => Plan::new(threads, || Ok(polite::Polite::begin())),
        BusyWork::Cache { memory_bytes } => Plan::new(threads, move || cache::Cache::begin(memory_bytes, threads)),
        BusyWork::MemoryStream { memory_bytes } => {
            Plan::new(threads, move || stream::MemoryStream::begin(memory_bytes, threads))
        }
        BusyWork::Syscalls => Plan::new(threads, || Ok(syscalls::Syscalls::default())),
    }
}
