//! The process that takes a run down when its controller cannot: a child in a session of its own, which waits for the end of the
//! controller at a pipe.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tare_lab::{FoundRun, LabError, RUN_VARIABLE, StateDir};

use crate::error::ControllerError;
use crate::reap::{left_in_words, reap_found};

/// What the controller writes when it has taken everything down by itself. A pipe that closes without it is a controller that died.
const DONE: u8 = b'd';
/// How long a reaper may take to end after it was dismissed.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// How long a reaper tries to take a run down.
const TRIES_FOR: Duration = Duration::from_secs(60);
/// Longest pause between two attempts.
const PAUSE: Duration = Duration::from_secs(2);

/// The reaper of a run, as its controller holds it. Where this is dropped and not dismissed, the reaper takes the run down.
#[derive(Debug)]
pub struct Reaper {
    child: Child,
    pipe: ChildStdin,
}

impl Reaper {
    /// Starts it. It is no process of the run: whatever ends these spares it.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(mut command: Command) -> Result<Self, ControllerError> {
        command.env_remove(RUN_VARIABLE).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let failed = |source| ControllerError::Reaper { source };
        let mut child = command.spawn().map_err(failed)?;
        let pipe = child.stdin.take().ok_or_else(|| failed(std::io::ErrorKind::BrokenPipe.into()))?;
        Ok(Self { child, pipe })
    }

    /// Ends it, as there is nothing left for it to do.
    pub fn dismiss(mut self) {
        // It may have been killed, and is then gone already.
        let _ = self.pipe.write_all(&[DONE]);
        drop(self.pipe);
        let deadline = Instant::now() + ENDS_WITHIN;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() >= deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// What the reaper's process does: waits at standard input until the controller of the run says that all is done, or is gone. Then
/// it takes down what is left, as reaping by hand does, and tries again for a minute.
///
/// # Errors
/// What could not be taken away.
pub fn attend(run_id: &str, agent: &Path) -> Result<(), ControllerError> {
    // Ctrl-C is for the controller, which then takes everything down by itself. This fails for the leader of a group of
    // processes, which was started by hand.
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(c"tare-reaper");
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        // A handler that notes it and does no more.
        signal_hook::flag::register(signal, Arc::clone(&asked)).map_err(|source| ControllerError::Reaper { source })?;
    }
    if is_dismissed() { Ok(()) } else { take_down(run_id, agent) }
}

/// Waits for the controller; whether it is done.
fn is_dismissed() -> bool {
    let mut byte = [0];
    loop {
        match std::io::stdin().read(&mut byte) {
            Ok(0) => return false,
            Ok(_) => return byte == [DONE],
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
}

/// What is there of the run.
fn found(run_id: &str) -> Result<Option<FoundRun>, LabError> {
    Ok(StateDir::list()?.into_iter().find(|run| run.run_id == run_id))
}

fn take_down(run_id: &str, agent: &Path) -> Result<(), ControllerError> {
    let deadline = Instant::now() + TRIES_FOR;
    let mut pause = Duration::from_millis(5);
    loop {
        let left = match found(run_id) {
            Ok(None) => return Ok(()),
            // What cannot be read now may be about to go, with a run of another's.
            Err(error) => error.to_string(),
            Ok(Some(run)) => match reap_found(run, agent) {
                // Its controller is about to end, or another process is at it.
                None => "its controller is alive".to_owned(),
                Some(reaped) if reaped.report.is_clean() => return Ok(()),
                Some(reaped) => left_in_words(&reaped.report),
            },
        };
        if Instant::now() >= deadline {
            return Err(ControllerError::DeadRun { run: run_id.to_owned(), left });
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes what it reads to a file, then ends.
    fn noted(file: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "cat > \"$0.new\"; env >> \"$0.new\"; pwd >> \"$0.new\"; mv \"$0.new\" \"$0\""]).arg(file);
        command.env(RUN_VARIABLE, "some-run");
        command
    }

    #[test]
    fn a_dismissed_reaper_reads_the_word_and_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("said");
        let reaper = Reaper::start(noted(&file)).unwrap();
        let pid = reaper.child.id();
        reaper.dismiss();
        assert!(!Path::new("/proc").join(pid.to_string()).exists());
        let said = std::fs::read_to_string(&file).unwrap();
        assert!(said.starts_with(char::from(DONE)) && said.ends_with("\n/\n"), "{said}");
        assert!(!said.contains("some-run"), "it would be killed with the run: {said}");
    }

    #[test]
    fn a_reaper_that_is_dropped_sees_the_pipe_close_and_is_not_dismissed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("said");
        let reaper = Reaper::start(noted(&file)).unwrap();
        let Reaper { mut child, pipe } = reaper;
        drop(pipe);
        assert!(child.wait().unwrap().success());
        assert!(!std::fs::read_to_string(&file).unwrap().starts_with(char::from(DONE)));
        assert!(Reaper::start(Command::new("/nonexistent/program")).unwrap_err().to_string().contains("reaper"));
    }
}
