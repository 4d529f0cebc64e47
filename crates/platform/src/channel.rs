//! The processes of a guest: one whose standard input and output are the channel to its agent, others beside it.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use tare_wire::{Link, WireError};

use crate::sys;

/// So much of the end of standard error is kept.
const TAIL_BYTES: usize = 64 << 10;

/// The end of a stream, taken in by a thread of its own so that the writer never waits.
#[derive(Debug, Default, Clone)]
pub struct Tail(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    end: VecDeque<u8>,
    /// Bytes that came so far, also those that are not kept.
    taken: u64,
}

impl Tail {
    /// Follows the stream to its end.
    pub fn follow(mut stream: impl Read + Send + 'static) -> (Self, Option<std::thread::JoinHandle<()>>) {
        let tail = Self::default();
        let kept = Arc::clone(&tail.0);
        let thread = std::thread::Builder::new().name("guest-stderr".into()).spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = stream.read(&mut buffer) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.taken += read as u64;
                kept.end.extend(&buffer[..read]);
                let surplus = kept.end.len().saturating_sub(TAIL_BYTES);
                kept.end.drain(..surplus);
            }
        });
        (tail, thread.ok())
    }

    /// What is kept, as text that is fit for a terminal.
    pub fn text(&self) -> String {
        let kept: Vec<u8> = self.0.lock().unwrap_or_else(PoisonError::into_inner).end.iter().copied().collect();
        tare_model::text::readable(&String::from_utf8_lossy(&kept))
    }

    /// How many bytes came so far.
    pub(crate) fn taken(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).taken
    }

    /// The last line that says something.
    pub(crate) fn last_line(&self) -> String {
        let text = self.text();
        text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("nothing").to_owned()
    }
}

/// How one begins to speak with an agent: [`Link::open`], or [`Link::take_up`] with one that was restored.
pub(crate) type Opening =
    fn(Box<dyn Read + Send>, Box<dyn Write + Send>, Duration, Duration) -> Result<Link, WireError>;

/// A process and the channel to the agent that it is, or that it started.
#[derive(Debug)]
pub(crate) struct Channel {
    child: Child,
    tail: Tail,
    follower: Option<std::thread::JoinHandle<()>>,
    status: Option<ExitStatus>,
}

impl Channel {
    /// Starts the command with pipes on its three streams, in a session of its own: a Ctrl-C on the terminal is the
    /// controller's to handle, and the terminal is out of a guest's reach.
    ///
    /// # Errors
    /// Why it could not be started.
    pub(crate) fn spawn(command: &mut Command) -> std::io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Self::start(sys::in_own_session(command))
    }

    /// The same for `tare-agent enter`, which makes itself a session of its own before anything else. With nothing to be done between fork and
    /// exec, no copy of this process is made for it: among a thousand agents with their threads that took most of the time of a start.
    ///
    /// # Errors
    /// Why it could not be started.
    pub(crate) fn spawn_entering(command: &mut Command) -> std::io::Result<Self> {
        Self::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))
    }

    /// Starts a command that is no channel, only something that a guest needs beside it.
    ///
    /// # Errors
    /// Why it could not be started.
    pub(crate) fn beside(command: &mut Command) -> std::io::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Self::start(sys::in_own_session(command))
    }

    fn start(command: &mut Command) -> std::io::Result<Self> {
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let (tail, follower) = child.stderr.take().map_or_else(|| (Tail::default(), None), Tail::follow);
        Ok(Self { child, tail, follower, status: None })
    }

    /// Waits until the process prints this, before it is greeted. Nothing after that is taken.
    ///
    /// # Errors
    /// When it prints nothing in time, or something else.
    pub(crate) fn hear(&mut self, expected: &[u8], timeout: Duration) -> Result<(), WireError> {
        let failed = |source: std::io::Error| WireError::Io { doing: "waiting for the agent's program", source };
        let gone = |reason: &str| WireError::Gone { reason: reason.to_owned() };
        let stream = self.child.stdout.as_mut().ok_or_else(|| gone("its channel was already taken"))?;
        let (began, mut heard) = (Instant::now(), Vec::new());
        while heard.len() < expected.len() {
            let left = timeout.saturating_sub(began.elapsed());
            let limit = Timespec::try_from(left).map_err(|error| failed(std::io::Error::other(error)))?;
            let ready = poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&limit));
            match ready {
                Err(Errno::INTR) => continue,
                Err(error) => return Err(failed(error.into())),
                Ok(0) => return Err(WireError::Timeout { request: "begin", waited: timeout }),
                Ok(_) => {}
            }
            let mut part = vec![0; expected.len() - heard.len()];
            let length = stream.read(&mut part).map_err(failed)?;
            heard.extend_from_slice(&part[..length]);
            if length == 0 || !expected.starts_with(&heard) {
                return Err(gone("the container ended, or something else than the agent's program runs in it"));
            }
        }
        Ok(())
    }

    /// Writes to the process, before it is greeted.
    ///
    /// # Errors
    /// When it does not listen.
    pub(crate) fn say(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let failed = |source: std::io::Error| WireError::Io { doing: "letting the agent begin", source };
        let stream = self.child.stdin.as_mut().ok_or_else(|| failed(std::io::ErrorKind::BrokenPipe.into()))?;
        stream.write_all(bytes).and_then(|()| stream.flush()).map_err(failed)
    }

    /// Begins to speak with the agent in one of two ways. To be called once.
    ///
    /// # Errors
    /// When nobody answers in time, or somebody else does.
    pub(crate) fn open(&mut self, opening: Opening, timeout: Duration, lifetime: Duration) -> Result<Link, WireError> {
        match (self.child.stdout.take(), self.child.stdin.take()) {
            (Some(reader), Some(writer)) => opening(Box::new(reader), Box::new(writer), timeout, lifetime),
            _ => Err(WireError::Gone { reason: "its channel was already taken".into() }),
        }
    }

    /// Its process number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The end of what it printed on standard error.
    pub(crate) fn diagnostics(&self) -> String {
        self.tail.text()
    }

    /// What it prints on standard error.
    pub(crate) fn tail(&self) -> Tail {
        self.tail.clone()
    }

    /// Kills the process, not its children.
    pub(crate) fn kill(&mut self) -> std::io::Result<()> {
        if self.status.is_some() { Ok(()) } else { self.child.kill() }
    }

    /// Kills the process with its children that are in its process group, unless it was waited for: its number may then be
    /// another's.
    pub(crate) fn kill_group(&self) {
        if self.status.is_none() {
            kill_group(self.pid());
        }
    }

    /// Waits at most `timeout` for the process to end, and a moment for its last words.
    pub(crate) fn wait(&mut self, timeout: Duration) -> std::io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + timeout;
        let mut pause = Duration::from_micros(100);
        while self.status.is_none() {
            self.status = self.child.try_wait()?;
            if self.status.is_none() {
                if Instant::now() >= deadline {
                    return Ok(None);
                }
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(5));
            }
        }
        // Others may hold its standard error open, so the end of the stream may never come.
        let last_words = Instant::now() + Duration::from_millis(300);
        while self.follower.as_ref().is_some_and(|thread| !thread.is_finished()) && Instant::now() < last_words {
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(self.status)
    }
}

/// Kills the process group of a child that was not waited for.
pub(crate) fn kill_group(child: u32) {
    if let Some(group) = i32::try_from(child).ok().and_then(Pid::from_raw) {
        // One that is gone already needs no killing.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_what_was_said_is_kept_and_no_more() {
        let mut command = Command::new("sh");
        command.args(["-c", "head -c 200000 /dev/zero | tr '\\0' x >&2; echo last words >&2; exit 3"]);
        let mut channel = Channel::spawn(&mut command).unwrap();
        let status = channel.wait(Duration::from_secs(20)).unwrap().unwrap();
        assert_eq!(status.code(), Some(3));
        let said = channel.diagnostics();
        assert_eq!(said.len(), TAIL_BYTES);
        assert!(said.ends_with("last words\n"), "{}", &said[said.len() - 20..]);
    }

    #[test]
    fn a_guest_has_a_session_of_its_own_and_no_terminal() {
        let mut channel = Channel::beside(Command::new("sleep").arg("1000")).unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", channel.pid())).unwrap();
        channel.kill().unwrap();
        channel.wait(Duration::from_secs(20)).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let pid = channel.pid().to_string();
        // Its process group, its session and its controlling terminal.
        assert_eq!(fields[2..5], [pid.as_str(), &pid, "0"], "{stat}");
    }

    #[test]
    fn what_waits_is_heard_and_nothing_behind_it_is_taken() {
        let script = "printf 'here'; sleep 0.1; printf ' I am\\nrest'; read go; echo \"went $go\" >&2";
        let mut channel = Channel::spawn(Command::new("sh").args(["-c", script])).unwrap();
        channel.hear(b"here I am\n", Duration::from_secs(20)).unwrap();
        let mut rest = [0; 4];
        channel.child.stdout.as_mut().unwrap().read_exact(&mut rest).unwrap();
        assert_eq!(&rest, b"rest");
        channel.say(b"now\n").unwrap();
        assert!(channel.wait(Duration::from_secs(20)).unwrap().unwrap().success());
        assert!(channel.diagnostics().contains("went now"), "{}", channel.diagnostics());
        for (script, timeout) in [("exit 0", false), ("echo Welcome", false), ("sleep 60", true)] {
            let mut channel = Channel::spawn(Command::new("sh").args(["-c", script])).unwrap();
            let error = channel.hear(b"here", Duration::from_millis(if timeout { 50 } else { 20_000 })).unwrap_err();
            channel.kill().unwrap();
            assert_eq!(matches!(error, WireError::Timeout { .. }), timeout, "{script}: {error}");
        }
    }

    #[test]
    fn something_else_than_an_agent_is_reported() {
        let mut channel = Channel::spawn(Command::new("echo").arg("Welcome!")).unwrap();
        let error = channel.open(Link::open, Duration::from_secs(10), Duration::from_secs(10)).unwrap_err();
        assert!(matches!(error, WireError::NotTare { .. } | WireError::Io { .. }), "{error}");
    }
}
