//! Programs of the host's that a platform runs: found in PATH, run with a time limit.

use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// PATH of everything that tare starts, on the host and in every guest alike, so that an arm never
/// differs from another by what the user's shell had set.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How a program ended and what it printed.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Whether it ended with success.
    pub success: bool,
    /// Standard output, then standard error.
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
    let streams = (child.stdout.take(), child.stderr.take());
    let reader = std::thread::Builder::new().name("program-output".into()).spawn(move || {
        let mut text = Vec::new();
        // What cannot be read is not worth failing for: the exit status decides.
        let _ = streams.0.map(|stream| stream.take(1 << 20).read_to_end(&mut text));
        let _ = streams.1.map(|stream| stream.take(1 << 20).read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    })?;
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
    let output = reader.join().unwrap_or_default();
    Ok(Ran { success: status.success(), output })
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
    }
}
