//! The one clock: CLOCK_MONOTONIC in nanoseconds, and sleeping until a moment on it.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{Timespec, clock_gettime};

/// Longest time that a sleeping thread takes to notice that it shall stop.
const SLICE_NS: u64 = 50_000_000;

/// Nanoseconds of CLOCK_MONOTONIC.
#[inline]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // CLOCK_MONOTONIC is never negative.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Sleeps until `at_ns` of CLOCK_MONOTONIC; returns false, early, once `stop` is set.
pub fn sleep_until(at_ns: u64, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        let now = now_ns();
        if now >= at_ns {
            return true;
        }
        let wake = at_ns.min(now + SLICE_NS);
        let at = Timespec { tv_sec: (wake / 1_000_000_000) as i64, tv_nsec: (wake % 1_000_000_000) as i64 };
        // Woken early by a signal, the loop sleeps again.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &at);
    }
}

/// Lets the kernel wake this thread when asked rather than up to 50 us later, its default slack.
pub(crate) fn tighten_timers() {
    // Without it timers are late, which the lateness histogram shows; so a refusal is no error.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_never_ends_early_unless_stopped() {
        let stop = AtomicBool::new(false);
        let at = now_ns() + 2_000_000;
        assert!(sleep_until(at, &stop));
        assert!(now_ns() >= at);
        stop.store(true, Ordering::Relaxed);
        let far = now_ns() + 3_600_000_000_000;
        assert!(!sleep_until(far, &stop));
        assert!(now_ns() < far);
    }
}
