//! Nobody governs: the same values from the start to the end.

use std::time::Duration;

use tare_model::units::Span;

use super::{Rule, Seen, Set};

/// The same values from the start to the end.
#[derive(Debug, Clone, Copy)]
pub struct Fixed {
    set: Set,
}

impl Fixed {
    /// `sleep` is rounded to whole milliseconds, which is what the kernel takes.
    pub fn new(pages: u32, sleep: Span) -> Self {
        let sleep_ms = u32::try_from(sleep.duration().as_millis()).unwrap_or(u32::MAX);
        Self { set: Set::Scan { pages, sleep_ms } }
    }
}

impl Rule for Fixed {
    fn every(&self) -> Duration {
        Duration::ZERO
    }

    fn decide(&mut self, _: &Seen) -> Set {
        self.set
    }
}
