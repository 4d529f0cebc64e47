//! What tells of the host under the guests while a trial lasts: a command of the user's, or counters that the platform reads.

use std::collections::BTreeSet;
use std::thread::JoinHandle;
use std::time::Instant;

use tare_model::sample::{Sample, Source};
use tare_platform::{HostCounters, HostFigure, Platform};

use crate::cancel::Cancel;
use crate::host_metrics::{Reported, Reporting};

/// Most figures of a trial.
const FIGURES: usize = 200_000;

/// What tells of the host under the guests.
pub enum Telling {
    /// Nothing does.
    Nothing,
    /// A command of the user's.
    Command(Reporting),
    /// Counters.
    Counters(Counting),
}

impl Telling {
    /// Begins, where the platform has one of them.
    pub fn start(platform: &dyn Platform, run_id: &str) -> Self {
        if let Some(asked) = platform.host_metrics() {
            return Self::Command(Reporting::start(asked, run_id));
        }
        platform.host_counters().map_or(Self::Nothing, |counters| Self::Counters(Counting::start(counters)))
    }

    /// Ends it: what was heard.
    pub fn end(self) -> Option<Reported> {
        match self {
            Self::Nothing => None,
            Self::Command(reporting) => Some(reporting.end()),
            Self::Counters(counting) => Some(counting.end()),
        }
    }
}

/// Counters that are read again and again. That ends with this value.
pub struct Counting {
    stop: Cancel,
    what: String,
    thread: Result<Option<JoinHandle<Heard>>, String>,
}

/// What the thread heard.
#[derive(Debug, Default)]
struct Heard {
    samples: Vec<Sample>,
    names: BTreeSet<String>,
    /// How often it was asked, and how often something was wrong.
    asked: u64,
    failed: u64,
    wrong: Option<String>,
}

impl Counting {
    fn start(counters: HostCounters) -> Self {
        let (stop, what) = (Cancel::new(), counters.what.clone());
        let own = stop.clone();
        let thread = std::thread::Builder::new().name("host-counters".into()).spawn(move || listen(counters, &own));
        let thread = thread
            .map(Some)
            .map_err(|error| format!("a thread for them could not be started: {error}. Are there too many?"));
        Self { stop, what, thread }
    }

    fn join(&mut self) -> Result<Heard, String> {
        self.stop.cancel("the trial is over");
        let thread = std::mem::replace(&mut self.thread, Ok(None))?;
        thread
            .and_then(|thread| thread.join().ok())
            .ok_or_else(|| "they could not be read: a defect of tare. Run the study again".to_owned())
    }

    fn end(mut self) -> Reported {
        let heard = self.join().unwrap_or_else(|why| Heard { failed: 1, wrong: Some(why), ..Heard::default() });
        let Heard { samples, names, asked, failed, wrong } = heard;
        let words = format!(
            "{} figures of {} names by {}, which were read {asked} times; nothing was judged by them",
            samples.len(),
            names.len(),
            self.what
        );
        let wrong =
            wrong.map(|why| format!("{}: {failed} of {asked} readings had a fault, the last: {why}", self.what));
        Reported { samples, words, wrong }
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        // What it heard is nobody's.
        drop(self.join());
    }
}

/// Reads until it is to stop, and then once more: what was read as a guest was taken away is handed over by that.
fn listen(mut counters: HostCounters, stop: &Cancel) -> Heard {
    let mut heard = Heard::default();
    loop {
        let over = stop.reason().is_some();
        let reading = (counters.read)();
        let read_at = (Instant::now(), tare_probe::now_ns());
        heard.asked += 1;
        heard.take(reading.figures, read_at);
        if let Some(wrong) = reading.wrong {
            heard.failed += 1;
            heard.wrong = Some(wrong);
        }
        if over {
            return heard;
        }
        // The reason to stop is looked at above, so that it is followed by one more reading.
        let _ = stop.wait(counters.interval);
    }
}

impl Heard {
    /// Takes in figures that were handed over at this moment, by both ways of telling it.
    fn take(&mut self, figures: Vec<HostFigure>, (instant, now_ns): (Instant, u64)) {
        for HostFigure { at, series, value } in figures {
            if self.samples.len() >= FIGURES {
                self.wrong = Some(format!(
                    "there were more than {FIGURES} figures in the trial. Measure fewer guests, or for a shorter time"
                ));
                return;
            }
            let ago = u64::try_from(instant.saturating_duration_since(at).as_nanos()).unwrap_or(u64::MAX);
            if !self.names.contains(&series) {
                self.names.insert(series.clone());
            }
            self.samples.push(Sample { at_ns: now_ns.saturating_sub(ago), source: Source::Hypervisor, series, value });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;
    use tare_platform::HostReading;

    /// Counters that are read so often, each time with what `read` makes of the number of the reading.
    fn counted(interval: Duration, read: impl Fn(u64) -> HostReading + Send + 'static) -> (Counting, Arc<AtomicU64>) {
        let times = Arc::new(AtomicU64::new(0));
        let own = Arc::clone(&times);
        let read = Box::new(move || read(own.fetch_add(1, Ordering::Relaxed)));
        (Counting::start(HostCounters { what: "the counters".into(), interval, read }), times)
    }

    fn figure(ago: Duration) -> HostFigure {
        HostFigure { at: Instant::now().checked_sub(ago).unwrap(), series: "vm1_cpu_ready_percent".into(), value: 2.0 }
    }

    #[test]
    fn figures_are_laid_on_the_hosts_timeline_and_read_once_more_at_the_end() {
        let (counting, times) = counted(Duration::from_secs(600), |_| HostReading {
            figures: vec![figure(Duration::from_secs(3))],
            wrong: None,
        });
        while times.load(Ordering::Relaxed) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let Reported { samples, words, wrong } = counting.end();
        assert_eq!((samples.len(), wrong), (2, None), "{words}");
        assert!(words.starts_with("2 figures of 1 names by the counters, which were read 2 times"), "{words}");
        let now = tare_probe::now_ns();
        for sample in samples {
            let ago_ms = (now - sample.at_ns) / 1_000_000;
            assert!((3000..6000).contains(&ago_ms) && sample.source == Source::Hypervisor, "{ago_ms}");
        }
    }

    #[test]
    fn what_failed_is_reported_and_the_rest_is_kept() {
        let (counting, times) = counted(Duration::from_millis(1), |n| HostReading {
            figures: vec![figure(Duration::ZERO)],
            wrong: (n == 1).then(|| "nobody answers".to_owned()),
        });
        while times.load(Ordering::Relaxed) < 4 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let Reported { samples, wrong, .. } = counting.end();
        let wrong = wrong.unwrap();
        assert!(
            samples.len() >= 4 && wrong.starts_with("the counters: 1 of ") && wrong.ends_with("nobody answers"),
            "{wrong}"
        );
    }
}
