//! How the supervisor and the threads of a run speak to each other: flags, counters, and the breaker
//! that gets a thread out of a system call.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use tare_model::drive::DriveInterval;

use crate::clock::now_ns;
use crate::sys;

/// Flags of one run.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// Every thread ends as soon as it sees this. Set by [`halt`](Self::halt), which wakes those that rest.
    pub stop: AtomicBool,
    /// The supervisor has cut connections because time was up; failures after this are not the server's word.
    pub cut: AtomicBool,
    /// Threads still at work.
    pub alive: AtomicUsize,
    resting: Mutex<()>,
    bell: Condvar,
}

impl Control {
    /// Has every thread end.
    pub fn halt(&self) {
        // Whoever has looked at the flag holds this until it rests, so that nobody misses the bell.
        let looking = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        self.stop.store(true, Ordering::Relaxed);
        drop(looking);
        self.bell.notify_all();
    }

    /// Sleeps until `at_ns` of CLOCK_MONOTONIC; returns false, early, once all are to end. Nobody looks up meanwhile as
    /// [`sleep_until`](crate::clock::sleep_until) does: hundreds of clients that think would spend more on that than on what they do.
    pub fn rest_until(&self, at_ns: u64) -> bool {
        let mut looking = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return false;
            }
            let left = at_ns.saturating_sub(now_ns());
            if left == 0 {
                return true;
            }
            let rested = self.bell.wait_timeout(looking, Duration::from_nanos(left));
            looking = rested.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Counts of one thread, written by it alone and read by the supervisor. On cache lines of its own, so
/// that counting never makes two threads wait for each other.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Meter {
    operations: AtomicU64,
    response_ns: AtomicU64,
    bytes: AtomicU64,
}

impl Meter {
    /// One more operation was answered, which took so many nanoseconds.
    #[inline]
    pub fn answered(&self, took: u64) {
        // The thread is the only one that writes, so that a plain addition is enough.
        let add =
            |count: &AtomicU64, n: u64| count.store(count.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        add(&self.operations, 1);
        add(&self.response_ns, took);
    }

    #[inline]
    pub fn set_bytes(&self, n: u64) {
        self.bytes.store(n, Ordering::Relaxed);
    }

    /// What was counted so far, as an interval that ends at a moment.
    pub fn read(&self, end_ns: u64) -> DriveInterval {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        DriveInterval {
            end_ns,
            operations: of(&self.operations),
            bytes: of(&self.bytes),
            response_ns: of(&self.response_ns),
        }
    }
}

const IDLE: i32 = -1;
const CUTTING: i32 = -2;
const CUT: i32 = -3;

/// Gets a thread out of a blocking call on a socket by shutting the socket down.
///
/// The thread says which socket it may block on; the supervisor may cut at any time. The descriptor is
/// never closed while the supervisor uses it, so a number that was given to a new file is never cut.
#[derive(Debug)]
pub(crate) struct Breaker {
    slot: AtomicI32,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { slot: AtomicI32::new(IDLE) }
    }
}

impl Breaker {
    /// Lets the supervisor cut `fd` until the guard is dropped, which must be before the socket closes:
    /// the guard borrows it. `None` when the breaker has been cut already.
    #[inline]
    pub fn guard<'a>(&'a self, fd: BorrowedFd<'a>) -> Option<Armed<'a>> {
        self.slot
            .compare_exchange(IDLE, fd.as_raw_fd(), Ordering::AcqRel, Ordering::Acquire)
            .ok()
            .map(|_| Armed { breaker: self, _fd: fd })
    }

    /// Shuts the armed socket down, if any, and every guard asked for later is refused.
    pub fn cut(&self) {
        loop {
            let seen = self.slot.load(Ordering::Acquire);
            match seen {
                CUT | CUTTING => return,
                IDLE => {
                    if self.slot.compare_exchange(IDLE, CUT, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                        return;
                    }
                }
                fd => {
                    if self.slot.compare_exchange(fd, CUTTING, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                        // SAFETY: while the slot says CUTTING the guard's drop waits, and the guard
                        // borrows the socket, so it cannot be closed.
                        unsafe { sys::shutdown_raw(fd) };
                        self.slot.store(CUT, Ordering::Release);
                        return;
                    }
                }
            }
        }
    }
}

/// A socket that the supervisor may cut.
#[derive(Debug)]
pub(crate) struct Armed<'a> {
    breaker: &'a Breaker,
    _fd: BorrowedFd<'a>,
}

impl Drop for Armed<'_> {
    #[inline]
    fn drop(&mut self) {
        loop {
            match self.breaker.slot.load(Ordering::Acquire) {
                CUT | IDLE => return,
                CUTTING => std::thread::yield_now(),
                fd => {
                    if self.breaker.slot.compare_exchange(fd, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                        return;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_rest_lasts_as_long_as_it_is_to_unless_all_are_to_end() {
        let control = Control::default();
        let at = now_ns() + 2_000_000;
        assert!(control.rest_until(at));
        assert!(now_ns() >= at);
        let far = now_ns() + 3_600_000_000_000;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| control.rest_until(far))).collect();
            control.halt();
            assert!(threads.into_iter().all(|thread| !thread.join().unwrap()));
        });
        assert!(!control.rest_until(u64::MAX) && now_ns() < far);
    }

    #[test]
    fn cutting_wakes_a_blocked_reader_and_refuses_the_next() {
        let (mut ours, _theirs) = UnixStream::pair().unwrap();
        let breaker = Breaker::default();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let fd = ours.try_clone().unwrap();
                let _armed = breaker.guard(fd.as_fd()).unwrap();
                ours.read(&mut [0; 1]).unwrap()
            });
            while breaker.slot.load(Ordering::Acquire) < 0 {
                std::thread::yield_now();
            }
            breaker.cut();
            assert_eq!(reader.join().unwrap(), 0, "a cut socket reads as ended");
        });
        let (other, _peer) = UnixStream::pair().unwrap();
        assert!(breaker.guard(other.as_fd()).is_none());
    }
}
