//! The controller's own clock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often somebody who waits for a moment looks whether it will still come.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// CLOCK_MONOTONIC of this host, the probes' clock, nanoseconds.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Waits until a moment is reached or `stop` is set.
pub fn wait_until(moment_ns: u64, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let left = Duration::from_nanos(moment_ns.saturating_sub(monotonic_ns()));
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(LOOK_EVERY));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_woken_by_the_end() {
        let stop = AtomicBool::new(true);
        wait_until(u64::MAX, &stop);
        let began = monotonic_ns();
        wait_until(began + 3_000_000, &AtomicBool::new(false));
        assert!(monotonic_ns() >= began + 3_000_000);
    }
}
