//! A neighbour that does no harm: what an aggressor is compared with.

use std::io;
use std::thread;
use std::time::Duration;

use super::Aggressor;
use crate::clock::now_ns;
use crate::spin::spin;

/// It computes for so long of each period: a tenth of each CPU, in pieces as long as a scheduler's slice is.
const WORKS_NS: u64 = 10_000_000;
const PERIOD_NS: u64 = 100_000_000;

/// Computes in registers, and rests.
pub(super) struct Polite {
    state: u64,
    period_from_ns: u64,
}

impl Polite {
    pub fn begin() -> Self {
        Self { state: 1, period_from_ns: now_ns() }
    }
}

impl Aggressor for Polite {
    fn piece(&mut self, until_ns: u64) -> io::Result<u64> {
        let now = now_ns();
        if now.saturating_sub(self.period_from_ns) >= WORKS_NS {
            let next_ns = self.period_from_ns + PERIOD_NS;
            thread::sleep(Duration::from_nanos(next_ns.min(until_ns).saturating_sub(now)));
            self.period_from_ns = next_ns.max(now);
            return Ok(0);
        }
        Ok(spin(&mut self.state))
    }
}
