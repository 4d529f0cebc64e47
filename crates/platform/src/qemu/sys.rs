//! The processor's own clock.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long the clock is watched. Its rate is then known to about one in ten thousand.
const WATCHED: Duration = Duration::from_millis(20);

/// Ticks of the host's time stamp counter in a millisecond, measured once in this process. An emulated guest reads the
/// same counter. `None` where there is none.
pub(super) fn tsc_khz() -> Option<u64> {
    static RATE: OnceLock<Option<u64>> = OnceLock::new();
    *RATE.get_or_init(|| {
        let (from, began) = (ticks()?, Instant::now());
        std::thread::sleep(WATCHED);
        let (to, micros) = (ticks()?, began.elapsed().as_micros());
        let khz = u128::from(to.checked_sub(from)?) * 1000 / micros.max(1);
        u64::try_from(khz).ok().filter(|&khz| khz > 0)
    })
}

#[cfg(target_arch = "x86_64")]
fn ticks() -> Option<u64> {
    // SAFETY: every processor of this architecture has the instruction; it reads a counter and touches no memory.
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_has_a_rate_and_keeps_it() {
        assert_eq!(tsc_khz().is_some(), cfg!(target_arch = "x86_64"));
        assert_eq!(tsc_khz(), tsc_khz());
        // From 100 MHz to 100 GHz: anything else is no clock of a processor.
        assert!(tsc_khz().is_none_or(|khz| (100_000..100_000_000).contains(&khz)), "{:?}", tsc_khz());
    }
}
