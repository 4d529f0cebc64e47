//! Programs of the host's: found in PATH, run with a time limit and a bounded memory of what they say.

use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::error::{ImageError, Result};

/// PATH of everything that tare starts, on the host and in every guest alike; programs are looked for there besides in the
/// user's own, since users without root often have no `sbin` in it.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How much of the end of each of its two streams is kept, bytes.
const KEPT: usize = 64 << 10;

/// How much of what a program printed is shown in an error, bytes.
const SHOWN_BYTES: usize = 4096;

/// How long the end of what a program said is waited for after its own: what it left running may hold its streams open.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How a program ended and what it printed.
#[derive(Debug)]
pub struct Ran {
    /// Whether it ended with success.
    pub success: bool,
    /// The end of standard output, then that of standard error.
    pub output: String,
}

/// The program by its path, or found in the user's PATH or [`PATH`].
pub fn find_program(name: &str) -> Option<PathBuf> {
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
pub fn run_program(command: &mut Command, limit: Duration) -> io::Result<Ran> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    // Both at once: a program that is kept from saying the one would never end the other.
    let streams = [child.stdout.take().map(End::follow), child.stderr.take().map(End::follow)];
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
    let last_words = Instant::now() + LAST_WORDS;
    while streams.iter().flatten().any(|end| !end.is_whole()) && Instant::now() < last_words {
        std::thread::sleep(Duration::from_micros(200));
    }
    let output = streams.iter().flatten().map(End::text).collect();
    Ok(Ran { success: status.success(), output })
}

/// The end of a stream, read by a thread of its own so that the writer never waits.
struct End {
    kept: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl End {
    fn follow(mut stream: impl Read + Send + 'static) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&kept);
        let read = move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = stream.read(&mut buffer) {
                let mut kept = into.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&buffer[..read]);
                // Not at each turn: what is dropped is moved over.
                if kept.len() > 2 * KEPT {
                    let surplus = kept.len() - KEPT;
                    kept.drain(..surplus);
                }
            }
        };
        let reader = std::thread::Builder::new().name("program-output".into()).spawn(read).ok();
        Self { kept, reader }
    }

    /// Whether nothing more comes.
    fn is_whole(&self) -> bool {
        self.reader.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept[kept.len().saturating_sub(KEPT)..]).into_owned()
    }
}

/// The program of that name, and what to install where there is none.
pub(crate) fn find(name: &str, package: &str) -> Result<PathBuf> {
    find_program(name).ok_or_else(|| {
        let remedy = format!("install it; Debian has it in the package {package}");
        ImageError::new(format!("run {name}"), "it is not in PATH", remedy)
    })
}

/// Runs a command to its successful end, at most for `limit`; then it is killed with its children. Gives what it
/// printed, the last of it if it was much.
pub(crate) fn run(command: &mut Command, tried: &str, limit: Duration) -> Result<String> {
    // Messages are shown to the user as they are, and versions are parsed.
    let ran = run_program(command.env("LC_ALL", "C.UTF-8"), limit);
    let name = command.get_program().to_string_lossy();
    match ran {
        Ok(Ran { success: true, output }) => Ok(end_of(&output).to_owned()),
        Ok(Ran { success: false, output }) => {
            let why = format!("{name} failed: {}", end_of(&output).trim());
            Err(ImageError::new(tried, why, "what it said is above all that is known"))
        }
        Err(error) => {
            Err(ImageError::new(tried, format!("{name}: {error}"), "is the host busy, or out of processes or disk?"))
        }
    }
}

/// The last of a text.
fn end_of(text: &str) -> &str {
    let mut from = text.len().saturating_sub(SHOWN_BYTES);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

#[cfg(test)]
mod tests {
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
        assert!(find_program("/etc/passwd").is_none(), "not executable");
    }

    #[test]
    fn what_a_program_left_running_is_not_waited_for() {
        // More on standard error than a pipe takes, and somebody who holds the output open.
        let loud = "sleep 5 & head -c 200000 /dev/zero | tr '\\0' x >&2; echo end >&2";
        let ran = run_program(Command::new("sh").args(["-c", loud]), Duration::from_secs(20)).unwrap();
        assert!(ran.success && ran.output.ends_with("xend\n"), "{}", ran.output.len());
        assert!(ran.output.len() <= KEPT, "{}", ran.output.len());
    }

    #[test]
    fn of_a_flood_the_end_is_kept() {
        let mut command = Command::new("sh");
        command.args(["-c", "head -c 3000000 /dev/zero | tr '\\0' x; echo last"]);
        let said = run(&mut command, "try", Duration::from_secs(20)).unwrap();
        assert!(said.len() <= 4096 && said.ends_with("last\n"));
    }
}
