//! The kernel's own advisor (from 6.8): after each pass it sets how many pages are scanned at a time, so that a pass takes as
//! long as wanted.

use std::time::Duration;

use tare_model::units::Span;

use super::{Rule, Seen, Set};

/// The kernel's pause, which the advisor reckons with and leaves alone. Set, so that it does not hang on what was found.
const SLEEP_MS: u32 = 20;

/// Leaves it to the kernel's advisor.
#[derive(Debug, Clone, Copy)]
pub struct Advisor {
    set: Set,
}

impl Advisor {
    /// `target_scan_time` in whole seconds, 1 at least; `max_cpu` in percent of one CPU.
    pub fn new(target_scan_time: Span, max_cpu: u32) -> Self {
        let target_scan_time_s = u32::try_from(target_scan_time.duration().as_secs()).unwrap_or(u32::MAX).max(1);
        Self { set: Set::Advise { target_scan_time_s, max_cpu, sleep_ms: SLEEP_MS } }
    }
}

impl Rule for Advisor {
    fn every(&self) -> Duration {
        Duration::ZERO
    }

    fn decide(&mut self, _: &Seen) -> Set {
        self.set
    }
}
