//! The scripts that adjust the number of pages once a minute: that of the published study (2009), and ksmtuned, its successor of
//! today. Each adds 300 pages while free memory is below a share of all, else it takes 50 away; it stops while the guests fit.

use std::time::Duration;

use super::{Memory, Rule, Seen, Set};

const EVERY: Duration = Duration::from_secs(60);
const BOOST: i64 = 300;
const DECAY: i64 = -50;
const FEWEST: i64 = 64;
const MOST: i64 = 1250;
const SIXTEEN_GIB: u64 = 16 << 30;
const SLEEP_US: u64 = 10_000;

#[derive(Debug, Clone, Copy)]
enum Which {
    /// Free memory below 30 % is short. It stops while what the guests were promised would fit.
    Published,
    /// Free memory below 20 % is short. It stops while what of the guests is resident would fit and memory is free as well.
    Ksmtuned,
}

/// One of the two.
#[derive(Debug, Clone, Copy)]
pub struct Script {
    which: Which,
    /// Pages at a time. 0 until the first adjustment, which sets the fewest at least. Kept while merging is stopped.
    pages: i64,
    stopped: bool,
}

impl Script {
    /// The script of the published study.
    pub const fn published() -> Self {
        Self { which: Which::Published, pages: 0, stopped: false }
    }

    /// Today's ksmtuned with its defaults.
    pub const fn ksmtuned() -> Self {
        Self { which: Which::Ksmtuned, pages: 0, stopped: false }
    }
}

impl Rule for Script {
    fn every(&self) -> Duration {
        EVERY
    }

    /// Both sleep before they look; nobody merges until then.
    fn begin(&mut self, _: &Seen) -> Set {
        Set::Stop
    }

    fn decide(&mut self, seen: &Seen) -> Set {
        let (memory, sleep_us) = (&seen.memory, sleep_us(&seen.memory));
        let (threshold, fits, sleep_ms) = match self.which {
            Which::Published => {
                let threshold = threshold(memory, 30);
                // What `ps -o vsz` adds up: virtual sizes.
                let fits = seen.guests.virtual_bytes + threshold < memory.total_bytes;
                // Its kernel took microseconds, ours takes whole milliseconds: the nearest, 1 at least, so as not to spin on hosts of
                // 320 GiB.
                (threshold, fits, ((sleep_us + 500) / 1000).max(1))
            }
            Which::Ksmtuned => {
                let threshold = threshold(memory, 20);
                let fits = seen.guests.resident_bytes + threshold < memory.total_bytes;
                // It reckons in whole milliseconds, which the shell rounds down, and takes 10 at least.
                (threshold, fits && memory.free_bytes > threshold, (sleep_us / 1000).max(10))
            }
        };
        self.stopped = fits;
        if self.stopped {
            return Set::Stop;
        }
        self.pages = (self.pages + if memory.free_bytes < threshold { BOOST } else { DECAY }).clamp(FEWEST, MOST);
        Set::Scan { pages: self.pages as u32, sleep_ms: sleep_ms as u32 }
    }

    fn is_at_rest(&self) -> bool {
        self.stopped
    }
}

/// Below this, memory is short: a share of all in percent, 2,048 kB at least.
fn threshold(memory: &Memory, percent: u64) -> u64 {
    // In kB, rounded down, as the shell does.
    (((memory.total_bytes >> 10) * percent / 100) << 10).max(2048 << 10)
}

/// The pause: 10 ms on a host of 16 GiB, less on larger ones; microseconds.
const fn sleep_us(memory: &Memory) -> u64 {
    if memory.total_bytes == 0 { SLEEP_US } else { SLEEP_US * (SIXTEEN_GIB >> 10) / (memory.total_bytes >> 10) }
}
