//! Programs of the host's that a platform runs: found in PATH, run with a time limit.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::channel::Tail;

/// PATH of everything that tare starts, on the host and in every guest alike, so that an arm never
/// differs from another by what the user's shell had set.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How a program ended and what it printed.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Whether it ended with success.
    pub success: bool,
    /// The end of standard output, then that of standard error.
    pub output: String,
}

/// The program by its path, or found in the user's PATH or [`PATH`].
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let runs = |path: &Path| path.metadata().is_ok_and(|seen| seen.is_file() && seen.permissions().mode() & 0o111 != 0);
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| runs(path));
    }
    let users = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&users).chain(PATH.split(':').map(PathBuf::from));
    places.filter(|place| place.is_absolute()).map(|place| place.join(name)).find(|path| runs(path))
}

/// Runs a command to its end, at most for `limit`; then it is killed with its children.
///
/// # Errors
/// When it could not be started or took too long.
pub(crate) fn run(command: &mut Command, limit: Duration) -> io::Result<Ran> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    // Both at once: a program that is kept from saying the one would never end the other.
    let (output, out) = child.stdout.take().map(Tail::follow).unwrap_or_default();
    let (said, err) = child.stderr.take().map(Tail::follow).unwrap_or_default();
    let deadline = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= deadline {
            if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            child.wait()?;
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("it did not end within {limit:?}")));
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    // What it left running may hold its output open, so the end of that may never come.
    let last_words = Instant::now() + Duration::from_millis(200);
    while [&out, &err].into_iter().flatten().any(|thread| !thread.is_finished()) && Instant::now() < last_words {
        std::thread::sleep(Duration::from_micros(200));
    }
    Ok(Ran { success: status.success(), output: output.text() + &said.text() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn programs_are_found_run_and_ended_when_they_hang() {
        let sh = find("sh").unwrap();
        assert!(find("/etc/passwd").is_none(), "not executable");
        let ran =
            run(Command::new(&sh).args(["-c", "echo out; echo err >&2; exit 1"]), Duration::from_secs(20)).unwrap();
        assert_eq!((ran.success, ran.output.as_str()), (false, "out\nerr\n"));
        let error =
            run(Command::new(&sh).args(["-c", "sleep 1000 & sleep 1000"]), Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        // More on standard error than a pipe takes, and somebody who holds the output open.
        let loud = "sleep 5 & head -c 200000 /dev/zero | tr '\\0' x >&2; echo end >&2";
        let ran = run(Command::new(&sh).args(["-c", loud]), Duration::from_secs(20)).unwrap();
        assert!(ran.success && ran.output.ends_with("xend\n"), "{}", ran.output.len());
    }
}
