//! Today's ksmtuned with its defaults: the published script with a threshold of 20 %, resident sizes, a pause of 10 ms at least,
//! and a stop only when memory is free as well.

use std::time::Duration;

use super::steps::{EVERY, Steps, sleep_us, threshold};
use super::{Rule, Seen, Set};

/// Free memory below this share of all, percent, is short.
const THRESHOLD: u64 = 20;
const SHORTEST_SLEEP_MS: u32 = 10;

/// Today's ksmtuned.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ksmtuned {
    steps: Steps,
    stopped: bool,
}

impl Rule for Ksmtuned {
    fn every(&self) -> Duration {
        EVERY
    }

    /// It sleeps before it looks; nobody merges until then.
    fn begin(&mut self, _: &Seen) -> Set {
        Set::Stop
    }

    fn decide(&mut self, seen: &Seen) -> Set {
        let threshold = threshold(&seen.memory, THRESHOLD);
        let free = seen.memory.free_bytes;
        if seen.guests.resident_bytes + threshold < seen.memory.total_bytes && free > threshold {
            self.stopped = true;
            return Set::Stop;
        }
        self.stopped = false;
        // It reckons in whole milliseconds, which the shell rounds down.
        let sleep_ms = ((sleep_us(&seen.memory) / 1000) as u32).max(SHORTEST_SLEEP_MS);
        self.steps.adjust(free < threshold, sleep_ms)
    }

    fn is_at_rest(&self) -> bool {
        self.stopped
    }
}
