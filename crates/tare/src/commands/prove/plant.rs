//! What is done to a run from outside, as a user's host does it by accident.

use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::ground::signal;

/// A busy program's longest burst and rest, milliseconds.
const BURST_MS: u64 = 100;
const REST_MS: u64 = 200;

/// A program beside the run, for as long as this is held: threads of this process, one for each CPU.
pub struct Plant {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Plant {
    /// Computes all the time.
    pub fn load() -> Self {
        Self::on_each_cpu(|stop| {
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        })
    }

    /// Computes in bursts of random length, as a co-tenant does.
    pub fn company() -> Self {
        Self::on_each_cpu(|stop| {
            while !stop.load(Ordering::Relaxed) {
                let until = Instant::now() + Duration::from_millis(rand::random_range(1..BURST_MS));
                while Instant::now() < until {
                    std::hint::spin_loop();
                }
                thread::sleep(Duration::from_millis(rand::random_range(1..REST_MS)));
            }
        })
    }

    fn on_each_cpu(work: impl Fn(&AtomicBool) + Send + Copy + 'static) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let begin = |_| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || work(&stop))
        };
        Self { threads: (0..cpus).map(begin).collect(), stop }
    }
}

impl Drop for Plant {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It holds nothing that a panic could have broken.
            let _ = thread.join();
        }
    }
}

/// Waits until a run offers load, at most this long; whether it does. Not if it has ended, or if `gives_up` says so.
pub fn wait_for_load(folder: &Path, child: &mut Child, at_most: Duration, gives_up: impl Fn() -> bool) -> bool {
    let until = Instant::now() + at_most;
    loop {
        // The journal's line of the phase in which load is offered.
        if std::fs::read_to_string(folder.join("journal.jsonl")).is_ok_and(|journal| journal.contains("\"drive\"")) {
            return true;
        }
        if Instant::now() > until || gives_up() || !matches!(child.try_wait(), Ok(None)) {
            return false;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// A run that is there for another one's sake: it is stopped when this is dropped.
pub struct Companion(pub Child);

impl Drop for Companion {
    fn drop(&mut self) {
        signal(&self.0, Signal::TERM);
        // What it leaves, its reaper takes away.
        let _ = self.0.wait();
    }
}
