//! Waiting for a guest while what it needs beside it is there.
//!
//! A virtual machine whose file server is gone never comes up, and nothing in it says so: it would be waited for until
//! its time is over.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use tare_wire::{Link, WireError};

use crate::channel::Channel;

/// How often the processes are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Opens a channel. When a process beside it ends in the meantime, `end` ends the guest, and the error reports how that
/// process ended.
///
/// # Errors
/// Why the channel could not be opened.
pub(crate) fn open(
    beside: &mut [Channel],
    end: impl FnMut() + Send,
    open: impl FnOnce() -> Result<Link, WireError>,
) -> Result<Link, WireError> {
    if beside.is_empty() {
        return open();
    }
    let (done, over) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let watching = std::thread::Builder::new()
            .name("guest-watch".into())
            .spawn_scoped(scope, move || first_to_end(beside, end, &over))
            .map_err(|source| WireError::Io { doing: "starting a thread", source })?;
        let opened = open();
        drop(done);
        match watching.join() {
            Ok(Some(how)) => Err(WireError::Gone { reason: format!("a process that it needs beside it ended: {how}") }),
            _ => opened,
        }
    })
}

/// Looks until a process has ended, then ends the guest and tells how; `None` when it is over before that.
fn first_to_end(beside: &mut [Channel], mut end: impl FnMut(), over: &Receiver<()>) -> Option<String> {
    loop {
        for process in beside.iter_mut() {
            let status = process.wait(Duration::ZERO).unwrap_or(None);
            if let Some(status) = status {
                end();
                return Some(status.to_string());
            }
        }
        if over.recv_timeout(LOOK_EVERY) != Err(RecvTimeoutError::Timeout) {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use super::*;

    fn silent() -> Result<Link, WireError> {
        Err(WireError::Timeout { request: "greet", waited: Duration::ZERO })
    }

    #[test]
    fn a_guest_without_what_it_needs_is_ended_and_not_waited_for() {
        let mut beside = [Channel::beside(Command::new("sh").args(["-c", "exit 7"])).unwrap()];
        let ended = AtomicBool::new(false);
        let began = Instant::now();
        let waiting = || {
            while !ended.load(Ordering::Relaxed) && began.elapsed() < Duration::from_secs(30) {
                std::thread::sleep(Duration::from_millis(1));
            }
            silent()
        };
        let error = open(&mut beside, || ended.store(true, Ordering::Relaxed), waiting).unwrap_err().to_string();
        assert!(ended.load(Ordering::Relaxed));
        assert!(error.contains("beside it ended") && error.contains('7'), "{error}");
    }

    #[test]
    fn while_all_stand_the_answer_is_the_channels() {
        let mut beside = [Channel::beside(Command::new("sleep").arg("60")).unwrap()];
        let error = open(&mut beside, || panic!("nothing has ended"), silent).unwrap_err();
        assert!(matches!(error, WireError::Timeout { .. }), "{error}");
        beside[0].kill().unwrap();
        assert!(beside[0].wait(Duration::from_secs(20)).unwrap().is_some());
        assert!(matches!(open(&mut [], || (), silent), Err(WireError::Timeout { .. })));
    }
}
