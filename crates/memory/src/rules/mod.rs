//! Rules that set how fast the kernel scans for equal pages. Each is a pure function of what is seen and what it saw before.

mod advisor;
mod fixed;
mod scripts;
#[cfg(test)]
mod simulator;
mod tare;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::Serialize;
use tare_model::merging::{MergeCounters, MergeRule, Merging};

use crate::Guests;
use crate::host::HostNow;

pub use advisor::Advisor;
pub use fixed::Fixed;
pub use scripts::Script;
pub use tare::Tare;

/// Memory of the host, bytes, as `/proc/meminfo` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// `MemTotal`.
    pub total_bytes: u64,
    /// `MemAvailable`.
    pub available_bytes: u64,
    /// `MemFree`, `Buffers` and `Cached` together: what the scripts call free.
    pub free_bytes: u64,
}

impl From<HostNow> for Memory {
    fn from(now: HostNow) -> Self {
        let HostNow { total_bytes, available_bytes, .. } = now;
        Self { total_bytes, available_bytes, free_bytes: now.free_bytes + now.buffers_bytes + now.cached_bytes }
    }
}

/// What a rule may go by.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Seen {
    /// Seconds since the governor's start.
    pub at_s: f64,
    /// The host's memory.
    pub memory: Memory,
    /// The guests.
    pub guests: Guests,
    /// What the kernel counts.
    pub counters: MergeCounters,
}

/// What a rule wants set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Set {
    /// Nothing is scanned; what is merged stays so.
    Stop,
    /// So many pages at a time, then a pause.
    Scan {
        /// Pages at a time.
        pages: u32,
        /// Pause, milliseconds.
        sleep_ms: u32,
    },
    /// The kernel's advisor sets the pages.
    Advise {
        /// How long one pass is to take, seconds.
        target_scan_time_s: u32,
        /// Most CPU of the kernel's thread, percent of one CPU.
        max_cpu: u32,
        /// Pause, milliseconds.
        sleep_ms: u32,
    },
}

/// Sets how fast the kernel scans.
pub trait Rule: Send {
    /// How long after a decision it wants to decide again. Zero: never.
    fn every(&self) -> Duration;

    /// What is set at the start, before the first [`every`](Rule::every) has passed.
    fn begin(&mut self, seen: &Seen) -> Set {
        self.decide(seen)
    }

    /// What is set from now on.
    fn decide(&mut self, seen: &Seen) -> Set;

    /// Whether, by its last decision, nothing more is to come unless something new appears.
    fn is_at_rest(&self) -> bool {
        false
    }
}

/// The rule of an arm. `page`: bytes of a page.
pub fn of(merging: &Merging, page: u64) -> Box<dyn Rule> {
    match merging.rule {
        MergeRule::Fixed { pages_to_scan, sleep } => Box::new(Fixed::new(pages_to_scan, sleep)),
        MergeRule::PublishedScript => Box::new(Script::published()),
        MergeRule::Ksmtuned => Box::new(Script::ksmtuned()),
        MergeRule::Advisor { target_scan_time, max_cpu } => Box::new(Advisor::new(target_scan_time, max_cpu)),
        MergeRule::Tare { free_goal, max_cpu } => Box::new(Tare::new(free_goal, max_cpu, page)),
    }
}
