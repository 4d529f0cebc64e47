//! Running a command of the user's in the guest.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid};
use tare_wire::{ExecResult, ExecSpec};

use crate::{children, sys};

/// How often the child is looked at where the kernel has no pidfd.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The process groups of the commands that run, so that all can be ended at once.
#[derive(Debug, Default)]
pub struct Commands(Mutex<Groups>);

#[derive(Debug, Default)]
struct Groups {
    running: HashSet<Pid>,
    /// Those of which nobody is to be left once their leader has ended.
    ending: HashSet<Pid>,
    cancelled: bool,
}

impl Commands {
    fn lock(&self) -> MutexGuard<'_, Groups> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills every command, and every one that is started later.
    pub fn cancel(&self) {
        let mut groups = self.lock();
        groups.cancelled = true;
        groups.running.iter().copied().for_each(kill_group);
    }

    /// Whether all are to end.
    pub fn is_cancelled(&self) -> bool {
        self.lock().cancelled
    }

    /// Sends a signal to a group, if its leader still runs; what is left of the group when the leader has ended is killed.
    pub fn end(&self, group: Pid, signal: Signal) {
        let mut groups = self.lock();
        if groups.running.contains(&group) {
            groups.ending.insert(group);
            // An error means that nobody is left in the group.
            let _ = kill_process_group(group, signal);
        }
    }

    /// From now on the group is killed when all are; at once, if they have been.
    pub fn add(&self, group: Pid) {
        let mut groups = self.lock();
        groups.running.insert(group);
        if groups.cancelled {
            kill_group(group);
        }
    }

    /// How the leader of a group ended, if it has. Its number is given back under the same lock that
    /// [`Self::cancel`] kills under, so that nobody else's group of that number is ever killed.
    fn collect(&self, group: Pid, leader: &mut Child) -> io::Result<Option<ExitStatus>> {
        let mut groups = self.lock();
        if groups.ending.contains(&group) && has_ended(group) {
            // The number is still the group's own: its leader has not been collected.
            kill_group(group);
        }
        let status = leader.try_wait()?;
        if status.is_some() {
            groups.running.remove(&group);
            groups.ending.remove(&group);
        }
        Ok(status)
    }
}

fn has_ended(leader: Pid) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    matches!(waitid(WaitId::Pid(leader), look), Ok(Some(_)))
}

/// Runs a command to its end or its timeout, in a process group of its own, and keeps the end of
/// what it prints. What it left in the background (a server that it started) lives on until the
/// agent ends; what that prints later is not kept.
///
/// # Errors
/// Why it could not be started, for people: not found, not permitted, no such directory; or that it was
/// cancelled.
pub fn run(spec: &ExecSpec, commands: &Commands) -> Result<ExecResult, String> {
    let cancelled = || format!("`{}` was cancelled", spec.argv.join(" "));
    if commands.is_cancelled() {
        return Err(cancelled());
    }
    let began = Instant::now();
    let mut child = start(spec)?;
    let ended = watch(&mut child, spec, began, commands, &Said::default());
    children::forget(&child);
    if commands.is_cancelled() {
        return Err(cancelled());
    }
    ended.map_err(|error| format!("lost sight of `{}`: {error}", spec.argv.join(" ")))
}

/// Starts a command, which dies with the thread that calls this. The caller reports its end to [`children::forget`].
///
/// # Errors
/// Why it could not be started, for people.
pub(crate) fn start(spec: &ExecSpec) -> Result<Child, String> {
    let (program, arguments) = spec.argv.split_first().ok_or("no program was named")?;
    if let Some(directory) = &spec.directory {
        // Checked apart: the error of a spawn does not tell a missing directory from a missing program.
        let seen = std::fs::metadata(directory).map_err(|e| format!("cannot use the directory {directory}: {e}"))?;
        if !seen.is_dir() {
            return Err(format!("cannot use {directory} as the working directory: it is no directory"));
        }
    }
    let mut command = Command::new(program);
    command.args(arguments).envs(spec.env.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(directory) = &spec.directory {
        command.current_dir(directory);
    }
    if let Some((user, group)) = spec.user {
        // With a user set the standard library gives up the further groups as well, where it may.
        command.uid(user).gid(group);
        if spec.directory.is_none() {
            // That user may not be allowed where this agent is.
            command.current_dir("/");
        }
    }
    sys::bind_to_this_thread(&mut command);
    children::spawn(&mut command).map_err(|error| refusal(program, spec, &error))
}

/// Why a program could not be started, for people.
fn refusal(program: &str, spec: &ExecSpec, error: &io::Error) -> String {
    let number = error.raw_os_error();
    match (error.kind(), spec.user) {
        (_, Some((user, group))) if matches!(number, Some(libc::EPERM | libc::EINVAL)) => {
            format!(
                "cannot start `{program}` as user {user}, group {group}: {error}; this agent is not root, or its guest knows no such user"
            )
        }
        (io::ErrorKind::PermissionDenied, Some((user, group))) => {
            let at = spec.directory.as_deref().map_or_else(String::new, |at| format!(" in {at}"));
            format!(
                "cannot start `{program}`{at} as user {user}, group {group}: not permitted; is it executable, and may that user pass through all directories on the way?"
            )
        }
        (io::ErrorKind::NotFound, _) if program.contains('/') => {
            format!(
                "cannot start `{program}`: there is no such program in this guest (or what it needs to run, such as its interpreter)"
            )
        }
        (io::ErrorKind::NotFound, _) => {
            let path = std::env::var("PATH").unwrap_or_else(|_| "not set".into());
            format!("cannot start `{program}`: there is no such program in this guest (PATH is {path})")
        }
        (io::ErrorKind::PermissionDenied, None) => {
            format!("cannot start `{program}`: not permitted; is it executable?")
        }
        _ => format!("cannot start `{program}`: {error}"),
    }
}

/// Follows the child until it ends, and kills it with its group when its time is over. What it prints can be looked at
/// meanwhile.
///
/// # Errors
/// The system's, which leave the child as it is.
pub(crate) fn watch(
    child: &mut Child,
    spec: &ExecSpec,
    began: Instant,
    commands: &Commands,
    said: &Said,
) -> io::Result<ExecResult> {
    let limit = usize::try_from(spec.output_limit_bytes).unwrap_or(usize::MAX);
    let group = Pid::from_raw(child.id().cast_signed()).ok_or(io::ErrorKind::InvalidData)?;
    commands.add(group);
    let mut stdout = Tail::new(child.stdout.take().map(|s: ChildStdout| s.into()), &said.stdout, limit)?;
    let mut stderr = Tail::new(child.stderr.take().map(|s: ChildStderr| s.into()), &said.stderr, limit)?;
    let deadline = began.checked_add(Duration::from_nanos(spec.timeout_ns));
    let pidfd = pidfd_open(group, PidfdFlags::empty()).ok();
    let mut timed_out = false;
    let status: ExitStatus = loop {
        if let Some(status) = commands.collect(group, child)? {
            break status;
        }
        if !timed_out && deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            timed_out = true;
            commands.end(group, Signal::KILL);
        }
        wait_for_news(&stdout, &stderr, pidfd.as_ref(), deadline.filter(|_| !timed_out))?;
        stdout.take_in()?;
        stderr.take_in()?;
    };
    let wall_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    // What it printed last is in the pipes by now.
    stdout.take_in()?;
    stderr.take_in()?;
    let dropped_bytes = said.stdout.lock().dropped + said.stderr.lock().dropped;
    Ok(ExecResult {
        code: status.code(),
        signal: status.signal(),
        timed_out,
        wall_ns,
        stdout: said.stdout.bytes(),
        stderr: said.stderr.bytes(),
        dropped_bytes,
    })
}

fn kill_group(group: Pid) {
    // An error means that nobody is left in the group.
    let _ = kill_process_group(group, Signal::KILL);
}

/// Sleeps until there is output, the child ended or the deadline came.
fn wait_for_news(out: &Tail, err: &Tail, pidfd: Option<&OwnedFd>, deadline: Option<Instant>) -> io::Result<()> {
    let streams = [out, err].into_iter().filter_map(|tail| tail.stream.as_ref());
    let mut fds: Vec<PollFd<'_>> =
        streams.chain(pidfd).map(|fd| PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)).collect();
    let longest = if pidfd.is_some() { Duration::from_secs(3600) } else { LOOK_EVERY };
    let timeout = deadline.map_or(longest, |d| d.saturating_duration_since(Instant::now()).min(longest));
    let timeout = Timespec { tv_sec: timeout.as_secs().cast_signed(), tv_nsec: timeout.subsec_nanos().into() };
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What a command has printed so far.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub stdout: Output,
    pub stderr: Output,
}

/// The end of what was printed into a stream.
#[derive(Debug, Default, Clone)]
pub(crate) struct Output(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    bytes: VecDeque<u8>,
    dropped: u64,
}

impl Output {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its last bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.lock().bytes.iter().copied().collect()
    }
}

/// A stream of which the last bytes are kept, up to a limit.
struct Tail {
    stream: Option<OwnedFd>,
    kept: Output,
    limit: usize,
}

impl Tail {
    fn new(stream: Option<OwnedFd>, kept: &Output, limit: usize) -> io::Result<Self> {
        if let Some(fd) = &stream {
            fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK)?;
        }
        Ok(Self { stream, kept: kept.clone(), limit })
    }

    /// Takes in what is there without waiting; at most a MiB, so that a command that prints without
    /// end still meets its timeout.
    fn take_in(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 << 10];
        for _ in 0..64 {
            let Some(fd) = &self.stream else { break };
            match rustix::io::read(fd, &mut buffer) {
                Ok(0) => self.stream = None,
                Ok(read) => self.push(&buffer[..read]),
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.kept.lock();
        kept.bytes.extend(bytes);
        let surplus = kept.bytes.len().saturating_sub(self.limit);
        kept.bytes.drain(..surplus);
        kept.dropped += surplus as u64;
    }
}
