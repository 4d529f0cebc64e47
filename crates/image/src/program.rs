//! Programs of the host's that make images: found in PATH, run with a time limit.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::error::{ImageError, Result};

/// Where programs are looked for besides PATH: users without root often have no `sbin` there.
const PLACES: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How much of what a program said is told, bytes.
const TOLD: u64 = 4096;

/// The program of that name, and what to install where there is none.
pub(crate) fn find(name: &str, package: &str) -> Result<PathBuf> {
    let runs = |path: &Path| path.metadata().is_ok_and(|seen| seen.is_file() && seen.permissions().mode() & 0o111 != 0);
    let users = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&users).chain(PLACES.split(':').map(PathBuf::from));
    places.find(|place| place.is_absolute() && runs(&place.join(name))).map(|place| place.join(name)).ok_or_else(|| {
        ImageError::new(
            format!("run {name}"),
            "it is not in PATH",
            format!("install it; Debian has it in the package {package}"),
        )
    })
}

/// Runs a command to its successful end, at most for `limit`; then it is killed with its children. Gives what it
/// printed, the last of it if it was much.
pub(crate) fn run(command: &mut Command, tried: &str, limit: Duration) -> Result<String> {
    let failed = |why: String, remedy: &str| ImageError::new(tried, why, remedy);
    match attempt(command, limit) {
        Ok((true, said)) => Ok(said),
        Ok((false, said)) => {
            let name = command.get_program().to_string_lossy().into_owned();
            Err(failed(format!("{name} failed: {}", said.trim()), "what it said is above all that is known"))
        }
        Err(error) => Err(failed(
            format!("{}: {error}", command.get_program().to_string_lossy()),
            "is the host busy, or out of processes or disk?",
        )),
    }
}

fn attempt(command: &mut Command, limit: Duration) -> io::Result<(bool, String)> {
    // A file and no pipe: nobody has to read along, and nothing is lost or waited for.
    let mut said = tempfile::tempfile()?;
    command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said.try_clone()?).process_group(0);
    // Messages are told to the user as they are, and versions read.
    command.env("LC_ALL", "C.UTF-8");
    let mut child = command.spawn()?;
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
    Ok((status.success(), end_of(&mut said)?))
}

fn end_of(file: &mut File) -> io::Result<String> {
    let length = file.metadata()?.len();
    file.seek(io::SeekFrom::Start(length.saturating_sub(TOLD)))?;
    let mut text = Vec::new();
    file.take(TOLD).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn programs_are_found_run_and_ended_when_they_hang() {
        let sh = find("sh", "dash").unwrap();
        let script = |text: &str| {
            let mut command = Command::new(&sh);
            command.args(["-c", text]);
            command
        };
        assert_eq!(run(&mut script("echo out; echo err >&2"), "try", Duration::from_secs(20)).unwrap(), "out\nerr\n");
        let error = run(&mut script("echo why; exit 1"), "try", Duration::from_secs(20)).unwrap_err();
        assert!(error.why.ends_with("failed: why"), "{error}");
        let error = run(&mut script("sleep 1000 & sleep 1000"), "try", Duration::from_millis(50)).unwrap_err();
        assert!(error.why.contains("did not end within"), "{error}");
        assert!(find("no-such-program", "none").unwrap_err().to_string().contains("package none"));
    }

    #[test]
    fn of_a_flood_the_end_is_kept() {
        let mut command = Command::new("sh");
        command.args(["-c", "head -c 3000000 /dev/zero | tr '\\0' x; echo last"]);
        let said = run(&mut command, "try", Duration::from_secs(20)).unwrap();
        assert!(said.len() <= 4096 && said.ends_with("last\n"));
    }
}
