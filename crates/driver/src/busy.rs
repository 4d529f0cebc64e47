//! Keeps CPUs busy, and can prove that it does. Aggressors load other parts of a machine too.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tare_model::drive::{BusyCount, BusyDone, BusyStretch, BusyWork};

use crate::DriverError;
use crate::aggressor::{self, Plan};
use crate::clock::now_ns;
use crate::compute::Compute;
use crate::spin::spin;

const STACK_BYTES: usize = 64 * 1024;
/// Longest stretch of an aggressor: it harms others, and nobody may be left to stop it.
const LONGEST_ATTACK: Duration = Duration::from_secs(600);
/// What a thread waits after a refusal. The system is asked again, but being refused does not become the load.
const AFTER_REFUSAL: Duration = Duration::from_millis(1);

/// Threads that work until stopped or dropped: all the time or, once they were asked for a stretch, in stretches alone. Aggressors work in
/// stretches from the start.
#[derive(Debug, Default)]
pub struct Busy {
    shared: Arc<Shared>,
    counters: Vec<Arc<AtomicU64>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Held while a stretch is under way: there is one at a time.
    alone: Mutex<()>,
    longest: Option<Duration>,
    address: Option<SocketAddr>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// Set by a thread that got a wrong result, which then stops.
    wrong: AtomicBool,
    /// What the system refused in the present stretch.
    refused: AtomicU64,
    /// Stretches so far. Changed under the mutex.
    stretches: AtomicU64,
    present: Mutex<Present>,
    /// A stretch has begun, or all are to stop.
    begun: Condvar,
    /// All have done what they had to do in it, or one cannot.
    ended: Condvar,
}

/// The present stretch.
#[derive(Debug, Default)]
struct Present {
    measured_from_ns: u64,
    until_ns: u64,
    renew_memory: bool,
    slowed_permille: u64,
    /// Threads that are still computing.
    under_way: usize,
    done: Vec<BusyCount>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends all waiting, for one of the two reasons.
    fn end(&self, reason: &AtomicBool) {
        let present = lock(&self.present);
        reason.store(true, Ordering::Relaxed);
        drop(present);
        self.begun.notify_all();
        self.ended.notify_all();
    }

    /// Stands still until the next stretch begins; false when it shall stop.
    fn wait(&self, last: &mut u64) -> bool {
        let mut present = lock(&self.present);
        while self.stretches.load(Ordering::Relaxed) == *last && !self.stops() {
            present = self.begun.wait(present).unwrap_or_else(PoisonError::into_inner);
        }
        *last = self.stretches.load(Ordering::Relaxed);
        !self.stops()
    }

    /// Works through the present stretch. An iteration that was begun is ended, and its time counts: rates are then unbiased however
    /// long an iteration is against the stretch (Wald's equation).
    fn work_through(&self, mut piece: impl FnMut() -> Option<u64>) -> Option<BusyCount> {
        let (measured_from_ns, until_ns, slowed_permille) = {
            let present = lock(&self.present);
            (present.measured_from_ns, present.until_ns, present.slowed_permille)
        };
        let mut now = now_ns();
        while now < measured_from_ns && !self.stops() {
            piece()?;
            now = now_ns();
        }
        let mut count = BusyCount { iterations: 0, from_ns: now, to_ns: now };
        loop {
            let begun = count.to_ns;
            count.iterations += piece()?;
            count.to_ns = now_ns();
            if slowed_permille > 0 {
                let until = count.to_ns + (count.to_ns - begun) * slowed_permille / 1000;
                while count.to_ns < until {
                    std::hint::spin_loop();
                    count.to_ns = now_ns();
                }
            }
            if count.to_ns >= until_ns || self.stops() {
                return Some(count);
            }
        }
    }

    /// Tells what a thread did in the present stretch, which is over for it.
    fn report(&self, count: BusyCount) {
        let mut present = lock(&self.present);
        present.done.push(count);
        present.under_way -= 1;
        if present.under_way == 0 {
            self.ended.notify_all();
        }
    }
}

/// Starts `threads` threads on this work, each of which uses all the CPU time that it gets. Aggressors wait for their first stretch, and
/// some have one thread whatever is asked.
///
/// # Errors
/// When a thread is refused, or an aggressor cannot work where it is to; threads already started are stopped.
pub fn start(threads: u32, work: &BusyWork) -> Result<Busy, DriverError> {
    match work {
        BusyWork::Spin => start_each(threads, || {
            let mut state = 1;
            move |_| Some(spin(&mut state))
        }),
        BusyWork::Mixed => start_each(threads, || {
            let mut compute = Compute::new();
            move |renew| {
                if renew {
                    compute.renew_memory();
                }
                compute.chunk().then_some(1)
            }
        }),
        aggressor => start_attack(aggressor::plan(aggressor, threads)?),
    }
}

/// Threads that each do their piece again and again. `piece` is made inside its thread; it is passed whether to go on in other memory, and
/// returns how many iterations it was, or nothing when it computed wrong.
fn start_each<P: FnMut(bool) -> Option<u64>>(
    threads: u32,
    piece: impl Fn() -> P + Send + Copy + 'static,
) -> Result<Busy, DriverError> {
    start_threads(threads, move |shared, counter| repeat(shared, counter, piece()))
}

fn start_attack(plan: Plan) -> Result<Busy, DriverError> {
    let Plan { threads, address, begin } = plan;
    let begin = Arc::new(begin);
    let mut busy = start_threads(threads, move |shared, counter| attack(shared, counter, &*begin))?;
    (busy.address, busy.longest) = (address, Some(LONGEST_ATTACK));
    Ok(busy)
}

fn start_threads(
    threads: u32,
    body: impl Fn(&Shared, &AtomicU64) + Send + Clone + 'static,
) -> Result<Busy, DriverError> {
    let mut busy = Busy::default();
    busy.counters.extend((0..threads).map(|_| Arc::default()));
    for (index, counter) in busy.counters.iter().enumerate() {
        let (shared, counter, body) = (Arc::clone(&busy.shared), Arc::clone(counter), body.clone());
        let thread = thread::Builder::new()
            .name(format!("busy-{index}"))
            .stack_size(STACK_BYTES)
            .spawn(move || body(&shared, &counter))
            .map_err(|source| DriverError::Resource { what: "start a busy thread", source })?;
        lock(&busy.threads).push(thread);
    }
    Ok(busy)
}

fn repeat(shared: &Shared, counter: &AtomicU64, mut piece: impl FnMut(bool) -> Option<u64>) {
    let mut once = |renew: bool| {
        let done = piece(renew);
        match done {
            Some(iterations) => {
                counter.fetch_add(iterations, Ordering::Relaxed);
            }
            None => shared.end(&shared.wrong),
        }
        done
    };
    while !shared.stops() && shared.stretches.load(Ordering::Relaxed) == 0 {
        if once(false).is_none() {
            return;
        }
    }
    let mut stretch = 0;
    while shared.wait(&mut stretch) {
        let renew = lock(&shared.present).renew_memory;
        if renew && once(true).is_none() {
            return;
        }
        let Some(count) = shared.work_through(|| once(false)) else { return };
        shared.report(count);
    }
}

/// Works in stretches alone. All that an aggressor holds is made within the stretch, and gone before its end is reported.
fn attack(shared: &Shared, counter: &AtomicU64, begin: &aggressor::Begin) {
    let mut stretch = 0;
    while shared.wait(&mut stretch) {
        let until_ns = lock(&shared.present).until_ns;
        let mut held = None;
        let mut piece = || -> io::Result<u64> {
            let work = match &mut held {
                Some(work) => work,
                none => none.insert(begin()?),
            };
            work.piece(until_ns)
        };
        let count = shared.work_through(|| {
            let iterations = piece().unwrap_or_else(|_| {
                shared.refused.fetch_add(1, Ordering::Relaxed);
                thread::sleep(AFTER_REFUSAL);
                0
            });
            counter.fetch_add(iterations, Ordering::Relaxed);
            Some(iterations)
        });
        drop(held);
        count.into_iter().for_each(|count| shared.report(count));
    }
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

    /// Where a receiver will listen, while it is in a stretch.
    pub const fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Iterations so far of each thread.
    pub fn iterations_by_thread(&self) -> Vec<u64> {
        self.counters.iter().map(|counter| counter.load(Ordering::Relaxed)).collect()
    }

    /// Has all threads compute through a stretch, which was asked for at a moment of CLOCK_MONOTONIC, and then stand still; waits until they
    /// do. Those of mixed work can first move into other memory: how its pages lie makes a computation faster or slower for as long as it
    /// has them.
    ///
    /// # Errors
    /// When one of them computed wrong, all were stopped meanwhile, or a stretch of an aggressor is to last more than 10 minutes.
    pub fn run(&self, asked_ns: u64, stretch: &BusyStretch) -> Result<BusyDone, DriverError> {
        if self.longest.is_some_and(|longest| Duration::from_nanos(stretch.for_ns) > longest) {
            let what = format!("an aggressor is asked for a stretch of {} s", stretch.for_ns / 1_000_000_000);
            return Err(DriverError::invalid(what, "ask for at most 600 s at once"));
        }
        let _alone = lock(&self.alone);
        let shared = &*self.shared;
        let (measured_from_ns, until_ns) =
            (asked_ns.saturating_add(stretch.warm_up_ns), asked_ns.saturating_add(stretch.for_ns));
        let mut present = lock(&shared.present);
        *present = Present {
            measured_from_ns,
            until_ns,
            renew_memory: stretch.renew_memory,
            slowed_permille: stretch.slowed_permille.into(),
            under_way: self.counters.len(),
            done: Vec::new(),
        };
        shared.refused.store(0, Ordering::Relaxed);
        shared.stretches.fetch_add(1, Ordering::Relaxed);
        shared.begun.notify_all();
        let (mut notes, every_ns) = (Vec::new(), stretch.note_every_ns);
        let mut due_ns = if every_ns == 0 { u64::MAX } else { measured_from_ns };
        while present.under_way > 0 && !shared.stops() {
            let iterations = self.iterations()?;
            let now = now_ns();
            if now >= due_ns {
                notes.push((now, iterations));
                // No scrap of an interval at the end.
                due_ns = due_ns.saturating_add(every_ns);
                due_ns = if due_ns.saturating_add(every_ns / 2) < until_ns { due_ns } else { u64::MAX };
            }
            let wait = Duration::from_nanos(due_ns.saturating_sub(now));
            present =
                shared.ended.wait_timeout(present, wait).map_or_else(|error| error.into_inner().0, |woken| woken.0);
        }
        let loops = std::mem::take(&mut present.done);
        drop(present);
        let ended_ns = now_ns();
        let iterations = self.iterations()?;
        if shared.stops() {
            return Err(DriverError::Cancelled);
        }
        if every_ns > 0 {
            notes.push((ended_ns, iterations));
        }
        let refused = shared.refused.load(Ordering::Relaxed);
        Ok(BusyDone { asked_ns, ended_ns, loops, notes, refused })
    }

    /// Stops all threads and returns the iterations.
    ///
    /// # Errors
    /// When one of them computed wrong; all are stopped all the same.
    pub fn stop(&self) -> Result<u64, DriverError> {
        self.end();
        self.iterations()
    }

    fn end(&self) {
        self.shared.end(&self.shared.stop);
        for thread in lock(&self.threads).drain(..) {
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
            let busy = start(3, &work).unwrap();
            wait_for(|| !busy.iterations_by_thread().contains(&0));
            let counters: Vec<_> = busy.counters.to_vec();
            let total = busy.stop().unwrap();
            drop(busy);
            let after: u64 = counters.iter().map(|c| c.load(Ordering::Relaxed)).sum();
            assert_eq!(total, after, "nothing counts on after stop");
            assert!(counters.iter().all(|c| Arc::strong_count(c) == 1), "no thread is left");
        }
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn threads_compute_through_a_stretch_and_then_stand_still() {
        for work in [BusyWork::Spin, BusyWork::Mixed] {
            let busy = start(2, &work).unwrap();
            // The first stretch is over once each has its data and has done one piece.
            let first = busy.run(now_ns(), &BusyStretch::default()).unwrap();
            assert!(first.loops.len() == 2 && first.loops.iter().all(|one| one.iterations > 0), "{first:?}");
            let stood = busy.iterations_by_thread();
            thread::sleep(Duration::from_millis(20));
            assert_eq!(busy.iterations_by_thread(), stood, "they stand still");
            let stretch = BusyStretch {
                warm_up_ns: 10 * MS,
                for_ns: 50 * MS,
                renew_memory: true,
                note_every_ns: 10 * MS,
                slowed_permille: 0,
            };
            let done = busy.run(now_ns(), &stretch).unwrap();
            for one in &done.loops {
                assert!(one.from_ns >= done.asked_ns + stretch.warm_up_ns && one.to_ns <= done.ended_ns, "{done:?}");
                assert!(one.to_ns >= done.asked_ns + stretch.for_ns, "the last was ended: {done:?}");
            }
            let counted: u64 = done.loops.iter().map(|one| one.iterations).sum();
            let gained = busy.iterations().unwrap() - stood.iter().sum::<u64>();
            assert!(0 < counted && counted < gained, "{counted} of {gained}: those of the warm-up do not count");
            assert!(done.notes.len() >= 2 && done.notes.windows(2).all(|two| two[0] < two[1]), "{:?}", done.notes);
        }
    }

    #[test]
    fn a_stretch_ends_when_the_threads_are_stopped() {
        let busy = Arc::new(start(2, &BusyWork::Spin).unwrap());
        let runner = Arc::clone(&busy);
        let long = BusyStretch { for_ns: 3_600_000 * MS, ..BusyStretch::default() };
        let running = thread::spawn(move || runner.run(now_ns(), &long));
        wait_for(|| busy.shared.stretches.load(Ordering::Relaxed) == 1);
        busy.stop().unwrap();
        assert!(matches!(running.join().unwrap(), Err(DriverError::Cancelled)));
    }

    #[test]
    fn one_thread_that_computes_wrong_makes_all_of_it_wrong() {
        let busy = start_each(2, || {
            let mut pieces = 0;
            move |_| {
                pieces += 1;
                (pieces < 100).then_some(1)
            }
        });
        let busy = busy.unwrap();
        wait_for(|| busy.iterations().is_err());
        assert!(matches!(busy.run(now_ns(), &BusyStretch::default()), Err(DriverError::Wrong)));
        let error = busy.stop().unwrap_err().to_string();
        assert!(error.contains("computed wrong"), "{error}");
    }
}
