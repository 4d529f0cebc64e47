//! Keeps CPUs busy, and can prove that it does.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use tare_model::drive::BusyWork;

use crate::DriverError;
use crate::compute::Compute;

/// Steps between two looks at the flag; some tens of microseconds.
const STEPS: u64 = 50_000;
const STACK_BYTES: usize = 64 * 1024;

/// Threads that compute until stopped or dropped.
#[derive(Debug)]
pub struct Busy {
    shared: Arc<Shared>,
    counters: Vec<Arc<AtomicU64>>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// Set by a thread that got a wrong result, which then stops.
    wrong: AtomicBool,
    /// Whether all are to stand still. Also in the mutex, for those that do.
    held: AtomicBool,
    standing: Mutex<()>,
    go_on: Condvar,
    /// How often all went on.
    went_on: AtomicU64,
}

impl Shared {
    fn set(&self, flag: &AtomicBool, on: bool) {
        // Whoever has looked at the flags holds this until it stands still, so that nobody misses the call.
        let looking = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        flag.store(on, Ordering::Relaxed);
        drop(looking);
        self.go_on.notify_all();
    }

    /// Stands still while all are to.
    #[inline]
    fn stand(&self) {
        if self.held.load(Ordering::Relaxed) {
            self.stand_still();
        }
    }

    #[cold]
    fn stand_still(&self) {
        let mut looking = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        while self.held.load(Ordering::Relaxed) && !self.stop.load(Ordering::Relaxed) {
            looking = self.go_on.wait(looking).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Starts `threads` threads that each use all the CPU time they get, in user mode, on this work.
///
/// # Errors
/// When a thread is refused; those already started are stopped.
pub fn start(threads: u32, work: BusyWork) -> Result<Busy, DriverError> {
    match work {
        BusyWork::Spin => start_each(threads, || {
            let mut state = 1;
            move |_: &Shared| spin(&mut state)
        }),
        BusyWork::Mixed => start_each(threads, || {
            let (mut compute, mut went_on) = (Compute::new(), 0);
            move |shared: &Shared| {
                let now = shared.went_on.load(Ordering::Relaxed);
                if std::mem::replace(&mut went_on, now) != now {
                    compute.renew_memory();
                }
                compute.chunk(|| shared.stand()).then_some(1)
            }
        }),
    }
}

/// Threads that each do their piece again and again. `piece` is made inside its thread; it returns how many
/// iterations it was, or nothing when it computed wrong.
fn start_each<P: FnMut(&Shared) -> Option<u64>>(
    threads: u32,
    piece: impl Fn() -> P + Send + Copy + 'static,
) -> Result<Busy, DriverError> {
    let mut busy = Busy { shared: Arc::default(), counters: Vec::new(), threads: Vec::new() };
    for index in 0..threads {
        let (shared, counter) = (Arc::clone(&busy.shared), Arc::<AtomicU64>::default());
        busy.counters.push(Arc::clone(&counter));
        let thread = thread::Builder::new()
            .name(format!("busy-{index}"))
            .stack_size(STACK_BYTES)
            .spawn(move || repeat(&shared, &counter, piece()))
            .map_err(|source| DriverError::Resource { what: "start a busy thread", source })?;
        busy.threads.push(thread);
    }
    Ok(busy)
}

fn repeat(shared: &Shared, counter: &AtomicU64, mut piece: impl FnMut(&Shared) -> Option<u64>) {
    let mut iterations = 0;
    while !shared.stop.load(Ordering::Relaxed) {
        shared.stand();
        let Some(done) = piece(shared) else {
            shared.wrong.store(true, Ordering::Relaxed);
            return;
        };
        iterations += done;
        counter.store(iterations, Ordering::Relaxed);
    }
}

fn spin(state: &mut u64) -> Option<u64> {
    for _ in 0..STEPS {
        // A chain of multiplications: each needs the last one's result.
        *state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    Some(STEPS)
}

impl Busy {
    /// Iterations so far of all threads. That it grows shows that they run; how fast, how much CPU they get.
    ///
    /// # Errors
    /// When one of them computed wrong.
    pub fn iterations(&self) -> Result<u64, DriverError> {
        if self.shared.wrong.load(Ordering::Relaxed) {
            return Err(DriverError::Wrong);
        }
        Ok(self.iterations_by_thread().iter().sum())
    }

    /// Iterations so far of each thread.
    pub fn iterations_by_thread(&self) -> Vec<u64> {
        self.counters.iter().map(|counter| counter.load(Ordering::Relaxed)).collect()
    }

    /// Has all threads stand still, within some hundreds of microseconds of computing, or go on where they stood. Those of mixed work go
    /// on in other memory, from the next chunk on: how its pages lie makes a computation faster or slower for as long as it has them.
    pub fn hold(&self, on: bool) {
        if !on {
            self.shared.went_on.fetch_add(1, Ordering::Relaxed);
        }
        self.shared.set(&self.shared.held, on);
    }

    /// Stops all threads and returns the iterations.
    ///
    /// # Errors
    /// When one of them computed wrong; all are stopped all the same.
    pub fn stop(mut self) -> Result<u64, DriverError> {
        self.end();
        self.iterations()
    }

    fn end(&mut self) {
        self.shared.set(&self.shared.stop, true);
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
    use super::*;
    use crate::clock::now_ns;

    fn wait_for(what: impl Fn() -> bool) {
        let timeout = now_ns() + 20_000_000_000;
        while !what() && now_ns() < timeout {
            thread::yield_now();
        }
        assert!(what());
    }

    #[test]
    fn every_thread_runs_until_it_is_stopped() {
        for work in [BusyWork::Spin, BusyWork::Mixed] {
            let busy = start(3, work).unwrap();
            wait_for(|| !busy.iterations_by_thread().contains(&0));
            let counters: Vec<_> = busy.counters.to_vec();
            let total = busy.stop().unwrap();
            let after: u64 = counters.iter().map(|c| c.load(Ordering::Relaxed)).sum();
            assert_eq!(total, after, "nothing counts on after stop");
            assert!(counters.iter().all(|c| Arc::strong_count(c) == 1), "no thread is left");
        }
    }

    #[test]
    fn threads_that_are_held_stand_still_until_they_go_on_or_are_stopped() {
        for work in [BusyWork::Spin, BusyWork::Mixed] {
            let busy = start(2, work).unwrap();
            wait_for(|| !busy.iterations_by_thread().contains(&0));
            busy.hold(true);
            // Each takes a lock once before it stands still.
            wait_for(|| {
                let before = busy.iterations().unwrap();
                thread::sleep(std::time::Duration::from_millis(50));
                busy.iterations().unwrap() == before
            });
            let stood = busy.iterations_by_thread();
            busy.hold(false);
            wait_for(|| busy.iterations_by_thread().iter().zip(&stood).all(|(now, then)| now > then));
            busy.hold(true);
            busy.stop().unwrap();
        }
    }

    #[test]
    fn one_thread_that_computes_wrong_makes_all_of_it_wrong() {
        let busy = start_each(2, || {
            let mut pieces = 0;
            move |_: &Shared| {
                pieces += 1;
                (pieces < 100).then_some(1)
            }
        });
        let busy = busy.unwrap();
        wait_for(|| busy.iterations().is_err());
        let error = busy.stop().unwrap_err().to_string();
        assert!(error.contains("computed wrong"), "{error}");
    }
}
