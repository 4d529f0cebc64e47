//! How busy other programs keep this host, looked at while a run is prepared.

use std::time::{Duration, Instant};

/// Least time between the two looks: clocks of CPU time go by hundredths of a second.
const LEAST: Duration = Duration::from_millis(400);
/// Share of the CPUs from which on other programs matter; trials are flagged from 5 % of theirs on.
const MATTERS: f64 = 0.10;

/// A first look at the host.
pub struct Glance {
    began: Instant,
    seen: Seen,
}

/// What the kernel says of CPU time.
#[derive(Debug, Default)]
struct Seen {
    /// `/proc/stat`.
    host: String,
    /// `/proc/self/stat`: what this program and what it started use is not others'.
    own: String,
    /// `/proc/pressure/cpu`; empty of kernels without it.
    pressure: String,
}

impl Glance {
    /// Looks for the first time.
    pub fn begin() -> Self {
        Self { began: Instant::now(), seen: Seen::now() }
    }

    /// Looks once more, after 0.4 s at least, and says what matters to a run.
    pub fn note(self) -> Option<String> {
        std::thread::sleep(LEAST.saturating_sub(self.began.elapsed()));
        said(&self.seen, &Seen::now(), self.began.elapsed())
    }
}

impl Seen {
    /// A file that cannot be read is empty, and nothing follows from it.
    fn now() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Self { host: read("/proc/stat"), own: read("/proc/self/stat"), pressure: read("/proc/pressure/cpu") }
    }

    /// Busy time and all time of the host's CPUs, hundredths of a second; steal is no time of theirs.
    fn host(&self) -> Option<(f64, f64)> {
        let columns: Vec<f64> = self
            .host
            .lines()
            .next()?
            .strip_prefix("cpu ")?
            .split_whitespace()
            .filter_map(|own| own.parse().ok())
            .collect();
        // user nice system idle iowait irq softirq steal; guests' time is in user and nice.
        let [user, nice, system, idle, iowait, irq, softirq, ..] = columns[..] else { return None };
        let busy = user + nice + system + irq + softirq;
        Some((busy, busy + idle + iowait))
    }

    /// CPU time of this program and of its children that ended, hundredths of a second.
    fn own(&self) -> f64 {
        // The name may hold blanks; it ends with the last parenthesis.
        let rest = self.own.rsplit_once(')').map_or("", |(_, rest)| rest);
        rest.split_whitespace().skip(11).take(4).filter_map(|own| own.parse::<f64>().ok()).sum()
    }

    /// Microseconds in which some program waited for a CPU.
    fn waited(&self) -> Option<f64> {
        let line = self.pressure.lines().find(|line| line.starts_with("some "))?;
        line.split_whitespace().find_map(|field| field.strip_prefix("total="))?.parse().ok()
    }
}

/// What matters to a run of what happened between two looks.
fn said(before: &Seen, after: &Seen, between: Duration) -> Option<String> {
    let ((busy, all), (busy_after, all_after)) = (before.host()?, after.host()?);
    let spent = all_after - all;
    let used = ((busy_after - busy) - (after.own() - before.own())) / spent;
    if spent <= 0.0 || used < MATTERS {
        return None;
    }
    let waited =
        before.waited().zip(after.waited()).map(|(before, after)| (after - before) / 1e6 / between.as_secs_f64());
    let waited = waited.filter(|share| *share >= MATTERS).map_or_else(String::new, |share| {
        format!(", and programs wait for one {:.0} % of the time", 100.0 * share.min(1.0))
    });
    Some(format!(
        "other programs use {:.0} % of this host's CPUs now{waited}: intervals will be wider. Stop them, or give more blocks (`--blocks`)",
        100.0 * used.min(1.0)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So much busy and idle time of the host, own time, and time waited for.
    fn seen(busy: u32, idle: u32, own: u32, waited_us: u32) -> Seen {
        Seen {
            host: format!("cpu  {busy} 0 0 {idle} 0 0 0 7 0 0\ncpu0 1 0 0 1 0 0 0 0 0 0\n"),
            own: format!("42 (a name) of) S 1 42 42 0 -1 4194560 1 0 0 0 {own} 0 0 0 20 0 1 0 100 1 1\n"),
            pressure: format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={waited_us}\n"),
        }
    }

    #[test]
    fn the_use_of_others_is_noted_where_it_matters_without_that_of_this_program() {
        let said = |after: &Seen| super::said(&seen(1000, 1000, 5, 0), after, Duration::from_secs(1));
        let note = said(&seen(1053, 1047, 15, 300_000)).unwrap();
        assert!(
            note.starts_with("other programs use 43 % of this host's CPUs now, and programs wait for one 30 %"),
            "{note}"
        );
        let calm = said(&seen(1030, 1070, 10, 0)).unwrap();
        assert!(calm.starts_with("other programs use 25 % of this host's CPUs now: intervals"), "{calm}");
        assert_eq!(said(&seen(1053, 1047, 55, 300_000)), None, "it is this program's own");
        assert_eq!(said(&seen(1000, 1000, 5, 0)), None, "no time went by");
    }

    #[test]
    fn nothing_follows_from_files_that_say_nothing() {
        for host in ["", "cpu", "cpu  1 2\n", "intr 1\n"] {
            let odd = || Seen { host: host.to_owned(), ..Seen::default() };
            assert_eq!(said(&odd(), &odd(), Duration::from_secs(1)), None);
        }
        let no_pressure = Seen { pressure: String::new(), ..seen(1090, 1010, 5, 0) };
        assert!(
            said(&seen(1000, 1000, 5, 0), &no_pressure, Duration::from_secs(1))
                .unwrap()
                .contains("90 % of this host's CPUs now:")
        );
    }
}
