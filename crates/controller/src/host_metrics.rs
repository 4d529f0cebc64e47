//! Figures about the host under the guests, as a command of the user's prints them while a trial lasts: lines `NAME VALUE`.
//!
//! The command runs on this host with the user's environment. Where it ends by itself it is run again, once an interval. It ends with the trial, and
//! its process group with it; what left the group carries the run's id and is found by that when the run is reaped. Its first wrong line,
//! or its failure, is the last that is heard of it: the figures up to there are kept.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tare_lab::RUN_VARIABLE;
use tare_model::redact::{REDACTED, masked};
use tare_model::sample::{Sample, Source};
use tare_platform::{HostMetrics, Tail};

use crate::cancel::Cancel;
use crate::text::last;

/// Most bytes of a line.
const LINE_BYTES: usize = 512;
/// Most characters of a name.
const NAME_CHARS: usize = 64;
/// Most names of a trial.
const NAMES: usize = 64;
/// Most figures of a trial: 64 names, once a second, for close to an hour.
const FIGURES: usize = 200_000;
/// Most bytes of a trial.
const OUTPUT_BYTES: usize = 16 << 20;
/// Characters of a wrong line that are shown.
const SHOWN_CHARS: usize = 80;
/// How soon the end of the trial is seen.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// How long its last words may take after its end.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// How long the command has to end after SIGTERM.
const GOODBYE: Duration = Duration::from_secs(1);

/// Why nothing more is heard of the host.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostMetricsError {
    /// There is no such program, or no room for a process.
    #[error("it could not be started: {0}. Try it by hand")]
    NotStarted(String),
    /// A line is something else.
    #[error(
        "line {line} of what it printed is no figure: {text:?}. Have it print `NAME VALUE` and nothing else: a name of at most {most} letters, \
         digits and `_-.:/%`, and a finite number",
        most = NAME_CHARS
    )]
    NoFigure {
        /// Which, from 1, of this run of the command.
        line: u64,
        /// Its beginning.
        text: String,
    },
    /// A line does not end.
    #[error(
        "line {line} of what it printed has more than {most} bytes. Have it print `NAME VALUE` and nothing else",
        most = LINE_BYTES
    )]
    LongLine {
        /// Which, from 1, of this run of the command.
        line: u64,
    },
    /// There are more names than are kept.
    #[error("line {line} of what it printed has a name beyond the first {most}: `{name}`. Have it print fewer", most = NAMES)]
    ManyNames {
        /// Which, from 1, of this run of the command.
        line: u64,
        /// The name.
        name: String,
    },
    /// There are more figures than are kept.
    #[error(
        "it printed more than {figures} figures or {bytes} bytes in the trial. Have it print less often",
        figures = FIGURES,
        bytes = OUTPUT_BYTES
    )]
    TooMuch,
    /// It ended otherwise than with code 0.
    #[error("it {how}; it said: {said}. Try it by hand")]
    Failed {
        /// With which code or signal.
        how: String,
        /// The end of its standard error.
        said: String,
    },
    /// What it prints cannot be read.
    #[error("what it printed could not be read: {0}. Run the study again")]
    Unreadable(String),
}

/// What was heard of the host under the guests.
#[derive(Debug)]
pub struct Reported {
    /// Figures of [`Source::UserCommand`], stamped when they came.
    pub samples: Vec<Sample>,
    /// How many, of how many names, for people.
    pub words: String,
    /// Why nothing more was heard, with the command.
    pub wrong: Option<String>,
}

/// The command at work. It ends with this value.
pub struct Reporting {
    stop: Cancel,
    command: String,
    thread: Result<Option<JoinHandle<Heard>>, HostMetricsError>,
}

/// What the thread heard.
struct Heard {
    reading: Reading,
    runs: u64,
    error: Option<HostMetricsError>,
}

impl Reporting {
    /// Starts the command for a run.
    pub fn start(asked: HostMetrics, run_id: &str) -> Self {
        let (stop, command) = (Cancel::new(), masked(&asked.command.join(" "), REDACTED));
        let (own, run_id) = (stop.clone(), run_id.to_owned());
        let thread = std::thread::Builder::new().name("host-metrics".into());
        let thread = thread.spawn(move || listen(&asked, &run_id, &own));
        let thread = thread.map(Some).map_err(|error| HostMetricsError::NotStarted(error.to_string()));
        Self { stop, command, thread }
    }

    /// Ends the command: what was heard.
    pub fn end(mut self) -> Reported {
        self.stop.cancel("the trial is over");
        let joined = match std::mem::replace(&mut self.thread, Ok(None)) {
            Ok(thread) => Ok(thread.and_then(|thread| thread.join().ok())),
            Err(error) => Err(error),
        };
        let (reading, runs, error) = match joined {
            Ok(Some(Heard { reading, runs, error })) => (reading, runs, error),
            Ok(None) => (Reading::default(), 0, Some(HostMetricsError::Unreadable("a defect of tare".into()))),
            Err(error) => (Reading::default(), 0, Some(error)),
        };
        let times = if runs == 1 { "once".to_owned() } else { format!("{runs} times") };
        let words = format!(
            "{} figures of {} names by a command of the user's, which ran {times}; nothing was judged by them",
            reading.samples.len(),
            reading.names.len()
        );
        let wrong = error.map(|error| format!("the `host-metrics` command `{}`: {error}", self.command));
        Reported { samples: reading.samples, words, wrong }
    }
}

impl Drop for Reporting {
    fn drop(&mut self) {
        self.stop.cancel("nobody listens");
        if let Ok(Some(thread)) = std::mem::replace(&mut self.thread, Ok(None)) {
            // What it heard is nobody's.
            drop(thread.join());
        }
    }
}

/// Runs the command again and again, until it is to stop or something is wrong.
fn listen(asked: &HostMetrics, run_id: &str, stop: &Cancel) -> Heard {
    let (mut reading, mut runs) = (Reading::default(), 0);
    loop {
        let began = Instant::now();
        runs += 1;
        reading.begin();
        let error = once(asked, run_id, stop, &mut reading).err();
        let left = asked.interval.duration().saturating_sub(began.elapsed());
        if error.is_some() || stop.wait(left).is_some() {
            return Heard { reading, runs, error };
        }
    }
}

/// Runs it to its end, or until it is to stop.
fn once(asked: &HostMetrics, run_id: &str, stop: &Cancel, reading: &mut Reading) -> Result<(), HostMetricsError> {
    let mut process = Process::start(&asked.command, run_id)?;
    while process.look(reading)? {
        if stop.reason().is_some() {
            return Ok(());
        }
    }
    // It may have closed its output and go on.
    while !process.has_ended() {
        if stop.wait(Duration::from_millis(20)).is_some() {
            return Ok(());
        }
    }
    process.outcome()?;
    reading.end(tare_probe::now_ns())
}

/// One run of the command, in a process group of its own. The group is killed with this value, unless it has ended.
struct Process {
    child: Child,
    output: ChildStdout,
    said: Tail,
    /// Who takes in what it says.
    listener: Option<JoinHandle<()>>,
    waited: bool,
}

impl Process {
    fn start(argv: &[String], run_id: &str) -> Result<Self, HostMetricsError> {
        let failed = |why: String| HostMetricsError::NotStarted(why);
        let (program, arguments) = argv.split_first().ok_or_else(|| failed("it names no program".into()))?;
        let mut command = Command::new(program);
        command.args(arguments).env(RUN_VARIABLE, run_id).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let (said, listener) = child.stderr.take().map(Tail::follow).unwrap_or_default();
        match child.stdout.take() {
            Some(output) => Ok(Self { child, output, said, listener, waited: false }),
            None => Err(failed("its output is not there".into())),
        }
    }

    /// Takes in what it prints within a moment. Whether more may come.
    fn look(&mut self, reading: &mut Reading) -> Result<bool, HostMetricsError> {
        let unreadable = |why: String| HostMetricsError::Unreadable(why);
        match poll(&mut [PollFd::new(&self.output, PollFlags::IN)], Some(&LOOK)) {
            Ok(0) | Err(Errno::INTR) => return Ok(true),
            Err(error) => return Err(unreadable(error.to_string())),
            Ok(_) => {}
        }
        let mut printed = [0; 8192];
        match self.output.read(&mut printed) {
            Ok(0) => Ok(false),
            Ok(length) => reading.take(printed.get(..length).unwrap_or_default(), tare_probe::now_ns()).map(|()| true),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(unreadable(error.to_string())),
        }
    }

    fn group(&self) -> Option<Pid> {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// Whether it has ended, without waiting for it: until that is done, its number means its group and no other.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.group().is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), options), Ok(None)))
    }

    /// How it ended, once it has.
    fn outcome(&mut self) -> Result<(), HostMetricsError> {
        let status = self.child.wait();
        self.waited = true;
        let how = match status {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => status
                .code()
                .map_or_else(|| "was killed by a signal".to_owned(), |code| format!("ended with code {code}")),
            Err(error) => format!("could not be waited for: {error}"),
        };
        // What it left running may hold its standard error open, so the end of that may never come.
        let deadline = Instant::now() + LAST_WORDS;
        while self.listener.as_ref().is_some_and(|thread| !thread.is_finished()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        let said = last(self.said.text().trim());
        Err(HostMetricsError::Failed { how, said: if said.is_empty() { "nothing".into() } else { said } })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.waited {
            return;
        }
        // What is gone needs no signal.
        if let Some(group) = self.group() {
            let _ = kill_process_group(group, Signal::TERM);
            let deadline = Instant::now() + GOODBYE;
            while !self.has_ended() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = kill_process_group(group, Signal::KILL);
        }
        // Killed: it cannot stay.
        let _ = self.child.wait();
    }
}

/// What was printed so far, line by line.
#[derive(Debug, Default)]
struct Reading {
    samples: Vec<Sample>,
    names: BTreeSet<String>,
    bytes: usize,
    /// Lines of this run of the command.
    lines: u64,
    /// The line that is being printed.
    begun: Vec<u8>,
}

impl Reading {
    /// The command begins anew.
    fn begin(&mut self) {
        self.lines = 0;
        self.begun.clear();
    }

    /// Takes in what was printed, and came at this moment (CLOCK_MONOTONIC, nanoseconds).
    fn take(&mut self, printed: &[u8], at_ns: u64) -> Result<(), HostMetricsError> {
        self.bytes = self.bytes.saturating_add(printed.len());
        if self.bytes > OUTPUT_BYTES {
            return Err(HostMetricsError::TooMuch);
        }
        for &byte in printed {
            match byte {
                b'\n' => self.end(at_ns)?,
                _ if self.begun.len() >= LINE_BYTES => {
                    return Err(HostMetricsError::LongLine { line: self.lines + 1 });
                }
                _ => self.begun.push(byte),
            }
        }
        Ok(())
    }

    /// Takes in the line that was being printed.
    fn end(&mut self, at_ns: u64) -> Result<(), HostMetricsError> {
        let line = std::mem::take(&mut self.begun);
        let text = String::from_utf8_lossy(&line);
        self.lines += 1;
        if text.trim().is_empty() {
            return Ok(());
        }
        let Some((name, value)) = figure(&text) else {
            let text = tare_model::text::readable(text.trim()).chars().take(SHOWN_CHARS).collect();
            return Err(HostMetricsError::NoFigure { line: self.lines, text });
        };
        if !self.names.contains(name) {
            if self.names.len() >= NAMES {
                return Err(HostMetricsError::ManyNames { line: self.lines, name: name.to_owned() });
            }
            self.names.insert(name.to_owned());
        }
        if self.samples.len() >= FIGURES {
            return Err(HostMetricsError::TooMuch);
        }
        self.samples.push(Sample { at_ns, source: Source::UserCommand, series: name.to_owned(), value });
        Ok(())
    }
}

/// Name and value of a line.
fn figure(line: &str) -> Option<(&str, f64)> {
    let mut words = line.split_whitespace();
    let (name, value) = (words.next()?, words.next()?);
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/%".contains(c);
    let is_name = name.len() <= NAME_CHARS && name.chars().all(plain);
    let value: f64 = value.parse().ok()?;
    (is_name && value.is_finite() && words.next().is_none()).then_some((name, value))
}

#[cfg(test)]
#[path = "host_metrics/tests.rs"]
mod tests;
