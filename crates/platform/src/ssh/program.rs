//! Runs a program of this host's, bounded in time and in what is kept of its output.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::channel::Tail;

/// How a program ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// The end of its standard output.
    pub output: String,
    /// The end of its standard error.
    pub said: String,
}

impl Ended {
    /// Both outputs, for people: the last of them, without signs that a terminal would act upon.
    pub(super) fn words(&self) -> String {
        shown(&format!("{}\n{}", self.output.trim(), self.said.trim()))
    }
}

/// What of an output is shown.
const SHOWN_CHARS: usize = 1500;

/// The end of a text of somebody else's, fit for a terminal.
pub(super) fn shown(text: &str) -> String {
    let text = text.trim();
    let from = text.char_indices().rev().nth(SHOWN_CHARS).map_or(0, |(at, _)| at);
    let clean = text[from..].chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c });
    let clean: String = clean.collect();
    if clean.is_empty() { "(nothing)".into() } else { clean }
}

/// Runs a command to its end with these bytes on its standard input, at most for `limit`; then it is killed with all
/// that it started. Output without end is read and thrown away, but for its last part.
///
/// # Errors
/// When it could not be started, or took too long: then with what it said.
pub(super) fn run(command: &mut Command, input: Vec<u8>, limit: Duration) -> Result<Ended, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("{name} could not be started: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        let feeder = std::thread::Builder::new().name("program-input".into());
        // A program that does not read to the end says by itself what is wrong.
        let fed = feeder.spawn(move || stdin.write_all(&input).is_ok());
        fed.map_err(|error| format!("a thread for {name} could not be started: {error}"))?;
    }
    let (output, out) = child.stdout.take().map(Tail::follow).unwrap_or_default();
    let (said, err) = child.stderr.take().map(Tail::follow).unwrap_or_default();
    let deadline = Instant::now() + limit;
    let mut pause = Duration::from_micros(500);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(10));
            }
            other => {
                if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                // Killed: it cannot stay.
                let _ = child.wait();
                let said = shown(&format!("{}\n{}", output.text().trim(), said.text().trim()));
                let why = match other {
                    Err(error) => format!("could not be waited for: {error}"),
                    Ok(_) => format!("did not end within {limit:?}"),
                };
                return Err(format!("{name} {why}; it said: {said}"));
            }
        }
    };
    // What it left running may hold its output open, so the end of that may never come.
    let last_words = Instant::now() + Duration::from_millis(200);
    while [&out, &err].into_iter().flatten().any(|thread| !thread.is_finished()) && Instant::now() < last_words {
        std::thread::sleep(Duration::from_micros(200));
    }
    Ok(Ended { code: status.code(), output: output.text(), said: said.text() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn input_is_fed_and_both_outputs_are_kept() {
        let ended = run(&mut sh("cat; echo err >&2; exit 3"), b"in".to_vec(), Duration::from_secs(20)).unwrap();
        assert_eq!((ended.code, ended.output.as_str(), ended.said.as_str()), (Some(3), "in", "err\n"));
        // More than a pipe takes, into a program that never reads it.
        let ended = run(&mut sh("exit 0"), vec![0; 1 << 20], Duration::from_secs(20)).unwrap();
        assert_eq!(ended.code, Some(0));
    }

    #[test]
    fn output_without_end_is_bounded_in_memory_and_in_time() {
        let error = run(&mut sh("yes 'a banner'"), Vec::new(), Duration::from_secs(2)).unwrap_err();
        assert!(error.contains("did not end within") && error.contains("a banner"), "{error}");
        assert!(error.len() < 3000, "{}", error.len());
        assert_eq!(shown("\x1b[2J"), "\u{fffd}[2J");
    }
}
