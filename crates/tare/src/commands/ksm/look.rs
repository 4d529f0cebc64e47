//! Merging at one moment, as a line.

use std::time::Instant;

use serde_json::{Value, json};
use tare_memory::host::HostNow;
use tare_memory::{Kernel, MemoryError, Settings};
use tare_model::merging::MergeCounters;

use super::mib;

/// Merging at one moment.
pub struct Look {
    at: Instant,
    clock: String,
    settings: Settings,
    /// What the kernel counts.
    pub counters: MergeCounters,
    host: HostNow,
}

/// What stands above the lines.
pub const HEAD: &str = "time (UTC)  state    pages/pause                  saved        profit     available  scanned/s  ksmd CPU  \
                        passes";

impl Look {
    /// Looks.
    pub fn take(kernel: &Kernel) -> Result<Self, MemoryError> {
        Ok(Self {
            at: Instant::now(),
            clock: jiff::Timestamp::now().strftime("%H:%M:%S").to_string(),
            settings: kernel.settings()?,
            counters: kernel.counters()?,
            host: HostNow::read()?,
        })
    }

    /// Bytes that merging saves, before bookkeeping.
    pub fn saved(&self) -> u64 {
        saved(&self.counters)
    }

    /// A line; rates are those since `before`.
    pub fn line(&self, before: Option<&Self>) -> String {
        let (scanned, cpu) = self.since(before).map_or_else(
            || ("-".to_owned(), "-".to_owned()),
            |(scanned, cpu)| (format!("{scanned:.0}"), format!("{:.1} %", cpu * 100.0)),
        );
        format!(
            "{:<11} {:<8} {:<22} {:>11}  {:>12}  {:>12}  {scanned:>9}  {cpu:>8}  {:>6}",
            self.clock,
            state(self.settings.run),
            pace(&self.settings),
            mib(self.saved().into()),
            mib(self.counters.profit_bytes.into()),
            mib(self.host.available_bytes.into()),
            self.counters.full_scans,
        )
    }

    /// The same as an object.
    pub fn json(&self, before: Option<&Self>) -> Value {
        let rates = self.since(before);
        json!({
            "time_utc": self.clock,
            "settings": self.settings,
            "counters": self.counters,
            "saved_bytes": self.saved(),
            "available_bytes": self.host.available_bytes,
            "total_bytes": self.host.total_bytes,
            "pages_scanned_per_s": rates.map(|(scanned, _)| scanned),
            "scanner_cpu_share": rates.map(|(_, cpu)| cpu),
        })
    }

    /// Pages scanned a second, and the share of a CPU that it took.
    fn since(&self, before: Option<&Self>) -> Option<(f64, f64)> {
        let before = before?;
        let seconds = self.at.duration_since(before.at).as_secs_f64();
        let scanned = self.counters.pages_scanned.saturating_sub(before.counters.pages_scanned);
        let cpu_s = self.counters.scanner_cpu_s - before.counters.scanner_cpu_s;
        (seconds > 0.0).then(|| (scanned as f64 / seconds, (cpu_s / seconds).max(0.0)))
    }
}

/// Bytes that merging saves, before bookkeeping.
pub fn saved(counters: &MergeCounters) -> u64 {
    counters.saved(rustix::param::page_size() as u64).0
}

/// What `run` means.
pub const fn state(run: u32) -> &'static str {
    match run {
        0 => "stopped",
        1 => "running",
        2 => "undone",
        _ => "unknown",
    }
}

/// Pages at a time, and the pause.
pub fn pace(settings: &Settings) -> String {
    let advised = settings.advisor.as_ref().is_some_and(|advisor| advisor.mode != "none");
    let by = if advised { " (advisor)" } else { "" };
    format!("{}/{} ms{by}", settings.pages_to_scan, settings.sleep_ms)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn look(at: Instant, pages_scanned: u64, scanner_cpu_s: f64) -> Look {
        let counters = MergeCounters { pages_scanned, scanner_cpu_s, ..MergeCounters::default() };
        Look { at, clock: "12:00:00".into(), settings: Settings::default(), counters, host: HostNow::default() }
    }

    #[test]
    fn rates_are_those_between_two_looks() {
        let start = Instant::now();
        let (first, second) = (look(start, 1000, 0.5), look(start + Duration::from_secs(2), 5000, 1.5));
        assert_eq!(second.since(Some(&first)), Some((2000.0, 0.5)));
        assert_eq!((first.since(None), first.since(Some(&first))), (None, None));
        let line = second.line(Some(&first));
        assert!(line.contains(" 2000 ") && line.contains("50.0 %") && line.contains("stopped"), "{line}");
        assert_eq!(second.json(Some(&first))["scanner_cpu_share"], 0.5);
    }
}
