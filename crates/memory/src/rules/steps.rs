//! What the script of 2009 and its successor have in common: a number of pages that goes up while memory is short.

use std::time::Duration;

use super::{Memory, Set};

/// Both sleep first, and adjust then.
pub(super) const EVERY: Duration = Duration::from_secs(60);
const BOOST: i64 = 300;
const DECAY: i64 = -50;
const FEWEST: i64 = 64;
const MOST: i64 = 1250;
const SIXTEEN_GIB: u64 = 16 << 30;
const SLEEP_US: u64 = 10_000;

/// Pages at a time. 0 until the first adjustment, which brings it to the fewest at least.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Steps {
    pages: i64,
}

impl Steps {
    /// More where memory is short, else less; kept where merging was stopped meanwhile, as the scripts do.
    pub(super) fn adjust(&mut self, short: bool, sleep_ms: u32) -> Set {
        self.pages = (self.pages + if short { BOOST } else { DECAY }).clamp(FEWEST, MOST);
        Set::Scan { pages: self.pages as u32, sleep_ms }
    }
}

/// Below this, memory is short: a share of all in percent, 2,048 kB at least.
pub(super) fn threshold(memory: &Memory, percent: u64) -> u64 {
    // In kB, rounded down, as the shell does.
    (((memory.total_bytes >> 10) * percent / 100) << 10).max(2048 << 10)
}

/// The pause: 10 ms on a host of 16 GiB, less on larger ones; microseconds.
pub(super) const fn sleep_us(memory: &Memory) -> u64 {
    if memory.total_bytes == 0 { SLEEP_US } else { SLEEP_US * (SIXTEEN_GIB >> 10) / (memory.total_bytes >> 10) }
}
