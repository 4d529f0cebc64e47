//! What tells of the host under the guests while they are measured.

use std::time::{Duration, Instant};

use tare_model::Span;

/// A command of the user's that tells of the host under the guests: it prints lines `NAME VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostMetrics {
    /// Program and arguments, run on this host.
    pub command: Vec<String>,
    /// From the start of one run to that of the next, where it ends by itself.
    pub interval: Span,
}

/// Counters of the host under the guests.
pub struct HostCounters {
    /// What they are, for people.
    pub what: String,
    /// From one reading to the next.
    pub interval: Duration,
    /// Reads what is new. Takes a bounded time.
    pub read: Box<dyn FnMut() -> HostReading + Send>,
}

/// What was read of the host under the guests since it was read last.
#[derive(Debug, Default)]
pub struct HostReading {
    /// The figures.
    pub figures: Vec<HostFigure>,
    /// Why there are not more, or what is to be known of them, with the remedy.
    pub wrong: Option<String>,
}

/// One figure of the host under the guests.
#[derive(Debug, Clone, PartialEq)]
pub struct HostFigure {
    /// When it was so.
    pub at: Instant,
    /// Its name, with its unit last.
    pub series: String,
    /// Its value.
    pub value: f64,
}
