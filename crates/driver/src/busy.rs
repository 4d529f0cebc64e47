//! Keeps CPUs busy, and can prove that it does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use crate::DriverError;

/// Steps between two looks at the flag; some tens of microseconds.
const STEPS: u64 = 50_000;
const STACK_BYTES: usize = 64 * 1024;

/// Threads that spin until stopped or dropped.
#[derive(Debug)]
pub struct Busy {
    stop: Arc<AtomicBool>,
    counters: Vec<Arc<AtomicU64>>,
    threads: Vec<JoinHandle<()>>,
}

/// Starts `threads` threads that each use all the CPU time they get, in user mode and without touching memory.
///
/// # Errors
/// When a thread is refused; those already started are stopped.
pub fn start(threads: u32) -> Result<Busy, DriverError> {
    let mut busy = Busy { stop: Arc::default(), counters: Vec::new(), threads: Vec::new() };
    for index in 0..threads {
        let (stop, counter) = (Arc::clone(&busy.stop), Arc::<AtomicU64>::default());
        busy.counters.push(Arc::clone(&counter));
        let thread = thread::Builder::new()
            .name(format!("busy-{index}"))
            .stack_size(STACK_BYTES)
            .spawn(move || spin(&stop, &counter))
            .map_err(|source| DriverError::Resource { what: "start a busy thread", source })?;
        busy.threads.push(thread);
    }
    Ok(busy)
}

fn spin(stop: &AtomicBool, counter: &AtomicU64) {
    let mut state = 1u64;
    let mut iterations = 0;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..STEPS {
            // A chain of multiplications: each needs the last one's result.
            state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
        iterations += STEPS;
        counter.store(iterations, Ordering::Relaxed);
    }
}

impl Busy {
    /// Steps taken so far by all threads. That it grows shows that they run; how fast, how much CPU they get.
    pub fn iterations(&self) -> u64 {
        self.counters.iter().map(|counter| counter.load(Ordering::Relaxed)).sum()
    }

    /// Steps taken so far by each thread.
    pub fn iterations_by_thread(&self) -> Vec<u64> {
        self.counters.iter().map(|counter| counter.load(Ordering::Relaxed)).collect()
    }

    /// Stops all threads and returns the steps taken.
    pub fn stop(mut self) -> u64 {
        self.end();
        self.iterations()
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It holds nothing that a panic could have broken.
            let _ = thread.join();
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::clock::now_ns;

    #[test]
    fn every_thread_runs_until_it_is_stopped() {
        let busy = start(3).unwrap();
        let patience = now_ns() + 10_000_000_000;
        while busy.iterations_by_thread().contains(&0) && now_ns() < patience {
            thread::yield_now();
        }
        assert!(busy.iterations_by_thread().iter().all(|&n| n > 0));
        let counters: Vec<_> = busy.counters.to_vec();
        let total = busy.stop();
        let after: u64 = counters.iter().map(|c| c.load(Ordering::Relaxed)).sum();
        assert_eq!(total, after, "nothing counts on after stop");
        assert!(counters.iter().all(|c| Arc::strong_count(c) == 1), "no thread is left");
    }
}
