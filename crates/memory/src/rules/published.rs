//! The script of the published study (2009): every 60 s, 300 pages more while free memory is below 30 % of all, else 50 less;
//! stopped while what guests were promised would fit.

use std::time::Duration;

use super::steps::{EVERY, Steps, sleep_us, threshold};
use super::{Rule, Seen, Set};

/// Free memory below this share of all, percent, is short.
const THRESHOLD: u64 = 30;

/// The script of the published study.
#[derive(Debug, Clone, Copy, Default)]
pub struct PublishedScript {
    steps: Steps,
    stopped: bool,
}

impl Rule for PublishedScript {
    fn every(&self) -> Duration {
        EVERY
    }

    /// The script sleeps before it looks; nobody merges until then.
    fn begin(&mut self, _: &Seen) -> Set {
        Set::Stop
    }

    fn decide(&mut self, seen: &Seen) -> Set {
        let threshold = threshold(&seen.memory, THRESHOLD);
        // What `ps -o vsz` adds up: virtual sizes.
        if seen.guests.virtual_bytes + threshold < seen.memory.total_bytes {
            self.stopped = true;
            return Set::Stop;
        }
        self.stopped = false;
        // Its kernel took microseconds, ours takes whole milliseconds: the nearest, 1 at least, so as not to spin on hosts of 320 GiB.
        let sleep_ms = ((sleep_us(&seen.memory) + 500) / 1000).max(1) as u32;
        self.steps.adjust(seen.memory.free_bytes < threshold, sleep_ms)
    }

    fn is_at_rest(&self) -> bool {
        self.stopped
    }
}
