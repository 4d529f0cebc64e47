//! The user's wish to stop, seen by everything that waits.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A wish to stop, shared by all clones.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<(Mutex<Option<String>>, Condvar)>);

impl Cancel {
    /// Nobody wishes to stop.
    pub fn new() -> Self {
        Self::default()
    }

    /// Wishes to stop, for this reason; the first reason stays.
    pub fn cancel(&self, reason: &str) {
        let mut state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.get_or_insert_with(|| reason.to_owned());
        self.0.1.notify_all();
    }

    /// The reason, if somebody wishes to stop.
    pub fn reason(&self) -> Option<String> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until somebody wishes to stop, at most this long; the reason if so.
    pub fn wait(&self, at_most: Duration) -> Option<String> {
        let deadline = Instant::now() + at_most;
        let mut state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if state.is_some() || left.is_zero() {
                return state.clone();
            }
            state = self.0.1.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Turns SIGINT, SIGTERM and SIGHUP into the wish to stop. A second signal ends the process at
    /// once; what it leaves behind its reaper takes away.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn on_signals(&self) -> std::io::Result<()> {
        self.on_signals_with_message("stopping: everything is taken down, what was measured is kept")
    }

    /// The same, with another message for the first signal.
    ///
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn on_signals_with_message(&self, stopping: &'static str) -> std::io::Result<()> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let cancel = self.clone();
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            for (count, signal) in signals.forever().enumerate() {
                let name = match signal {
                    SIGINT => "Ctrl-C",
                    SIGTERM => "SIGTERM",
                    _ => "SIGHUP",
                };
                if count > 0 {
                    note("stopped at once; what is left on this host is taken away by the run's reaper, by `tare reap` or by the next run");
                    std::process::exit(128 + signal);
                }
                cancel.cancel(name);
                note(stopping);
            }
        })?;
        Ok(())
    }
}

/// A line on standard error, whatever becomes of it.
fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "tare: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_stays_and_wakes_those_who_wait() {
        let cancel = Cancel::new();
        assert_eq!(cancel.wait(Duration::from_millis(1)), None);
        let other = cancel.clone();
        let waiter = std::thread::spawn(move || other.wait(Duration::from_secs(60)));
        cancel.cancel("first");
        cancel.cancel("second");
        assert_eq!(waiter.join().ok().flatten().as_deref(), Some("first"));
        assert_eq!(cancel.reason().as_deref(), Some("first"));
    }
}
