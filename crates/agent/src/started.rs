//! Commands that are started and left running.
//!
//! Each has a thread of its own that starts it and follows it to its end: a command is killed when the thread that
//! started it ends, so that nothing is left of it when the agent is.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use tare_wire::{ExecResult, ExecSpec, Reply};

use crate::children;
use crate::exec::{self, Commands, Said};
use crate::resident::Family;

/// How long a command may take to end after it was asked to, and then after it was killed.
const TIMEOUT: Duration = Duration::from_secs(5);

/// All commands of an agent that were started and not yet ended by request.
#[derive(Debug, Default)]
pub struct Started(Mutex<HashMap<u64, Arc<Command>>>);

#[derive(Debug)]
struct Command {
    name: String,
    group: Pid,
    said: Said,
    family: Mutex<Family>,
    ended: Mutex<Option<Result<ExecResult, String>>>,
    over: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Started {
    /// Starts a command, which will be known by this number; returns its process id.
    ///
    /// # Errors
    /// Why it could not be started, for people.
    pub fn start(&self, number: u64, spec: ExecSpec, commands: &Arc<Commands>) -> Result<u32, String> {
        if commands.is_cancelled() {
            return Err(format!("`{}` was cancelled", spec.argv.join(" ")));
        }
        let (sender, hear) = mpsc::channel();
        let commands = Arc::clone(commands);
        let follow = move || follow(&spec, &commands, &sender);
        let thread = std::thread::Builder::new().name("command".into()).spawn(follow);
        thread.map_err(|error| format!("cannot start the thread of a command: {error}"))?;
        let command = hear.recv().unwrap_or_else(|_| Err("the thread of a command ended".into()))?;
        let pid = command.group.as_raw_pid().cast_unsigned();
        lock(&self.0).insert(number, command);
        Ok(pid)
    }

    fn get(&self, number: u64) -> Option<Arc<Command>> {
        lock(&self.0).get(&number).cloned()
    }

    /// What a command has said and done so far; `None` if there is none of this number.
    pub fn look(&self, number: u64) -> Option<Result<Reply, String>> {
        self.get(number).map(|command| command.look())
    }

    /// Ends a command, unless it has ended, and forgets it. `None` if there is none of this number.
    pub fn end(&self, number: u64, commands: &Commands) -> Option<Result<Reply, String>> {
        let command = self.get(number)?;
        let ended = command.end(commands);
        if ended.is_ok() {
            lock(&self.0).remove(&number);
        }
        Some(ended)
    }

    /// Largest resident sizes of all that run, added up, bytes.
    pub fn peak_bytes(&self) -> u64 {
        let all: Vec<_> = lock(&self.0).values().cloned().collect();
        all.iter().filter_map(|command| command.peak_bytes()).sum()
    }
}

/// The whole life of a command, and of its thread.
fn follow(spec: &ExecSpec, commands: &Commands, sender: &mpsc::Sender<Result<Arc<Command>, String>>) {
    let began = Instant::now();
    // The receiver is gone only when the agent is about to end.
    let mut child = match exec::start(spec) {
        Ok(child) => child,
        Err(error) => return drop(sender.send(Err(error))),
    };
    let name = spec.argv.join(" ");
    let Some(group) = Pid::from_raw(child.id().cast_signed()) else {
        return drop(sender.send(Err(format!("`{name}` has no process id"))));
    };
    // Before anybody knows of it, so that it is ended by whoever asks for that first.
    commands.add(group);
    let (said, family) = (Said::default(), Mutex::new(Family::of(child.id())));
    let command = Arc::new(Command { name, group, said, family, ended: Mutex::new(None), over: Condvar::new() });
    let _ = sender.send(Ok(Arc::clone(&command)));
    let ended = exec::watch(&mut child, spec, began, commands, &command.said);
    children::forget(&child);
    let ended = ended.map_err(|error| format!("lost sight of `{}`: {error}", command.name));
    *lock(&command.ended) = Some(ended);
    command.over.notify_all();
}

impl Command {
    fn peak_bytes(&self) -> Option<u64> {
        let runs = lock(&self.ended).is_none();
        runs.then(|| lock(&self.family).peak_bytes()).flatten()
    }

    fn look(&self) -> Result<Reply, String> {
        // First: the output of a command that has ended is all there.
        let ended = lock(&self.ended).clone().transpose()?;
        let resident_peak_bytes = self.peak_bytes();
        let (stdout, stderr) = (self.said.stdout.bytes(), self.said.stderr.bytes());
        Ok(Reply::Looked { stdout, stderr, ended, resident_peak_bytes })
    }

    fn end(&self, commands: &Commands) -> Result<Reply, String> {
        for signal in [Signal::TERM, Signal::KILL] {
            if lock(&self.ended).is_none() {
                commands.end(self.group, signal);
            }
            let (ended, _) = self
                .over
                .wait_timeout_while(lock(&self.ended), TIMEOUT, |ended| ended.is_none())
                .unwrap_or_else(PoisonError::into_inner);
            if ended.is_some() {
                drop(ended);
                return self.look();
            }
        }
        Err(format!("`{}` is still there {TIMEOUT:?} after it was killed: it waits in the kernel", self.name))
    }
}
