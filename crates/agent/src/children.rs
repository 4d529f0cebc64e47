//! The processes that the agent started, and those that these left behind.
//!
//! The agent is the parent of every orphan among its descendants: as process 1 of a guest by nature,
//! elsewhere because it asked to be (PR_SET_CHILD_SUBREAPER). So it can collect them while it lives
//! and kill all of them when it ends.

use std::collections::HashSet;
use std::io;
use std::process::{Child, Command};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};

/// Those of our children whose end somebody waits for.
static OWNED: Mutex<Owned> = Mutex::new(Owned { pids: None, started: false });
static BORN: Condvar = Condvar::new();

struct Owned {
    pids: Option<HashSet<i32>>,
    started: bool,
}

fn owned() -> MutexGuard<'static, Owned> {
    OWNED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Becomes the parent of orphans. Where the kernel has no such thing, orphans go to its process 1.
pub fn adopt_orphans() {
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Starts a command whose end the caller will wait for and then tell by [`forget`].
///
/// # Errors
/// The system's, such as a program that is not there.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    // Held over the spawn: the reaper must not see the child before it is known to be owned.
    let mut state = owned();
    let child = command.spawn()?;
    state.pids.get_or_insert_default().insert(child.id().cast_signed());
    if !state.started {
        // Without the thread orphans stay zombies until the agent ends: a blemish, no failure.
        state.started = std::thread::Builder::new().name("reaper".into()).spawn(reap_orphans).is_ok();
    }
    BORN.notify_all();
    Ok(child)
}

/// Tells that the child's end has been seen.
pub fn forget(child: &Child) {
    if let Some(pids) = &mut owned().pids {
        pids.remove(&child.id().cast_signed());
    }
}

/// Collects orphans as they end, and never a child that somebody else waits for.
fn reap_orphans() {
    loop {
        match rustix::process::waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(_) => {
                if !reap_strangers() {
                    // The one that ended is owned; its owner is about to collect it.
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            Err(rustix::io::Errno::CHILD) => {
                // Nobody to wait for until the next command is started.
                let state = owned();
                if state.pids.as_ref().is_none_or(HashSet::is_empty) {
                    drop(BORN.wait_timeout(state, Duration::from_secs(3600)));
                }
            }
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Collects every ended child that is not owned; tells whether there was one.
fn reap_strangers() -> bool {
    let mut found = false;
    for process in processes().into_iter().filter(|p| p.ended && p.parent == rustix::process::getpid().as_raw_pid()) {
        let state = owned();
        if state.pids.as_ref().is_some_and(|pids| pids.contains(&process.pid)) {
            continue;
        }
        if let Some(pid) = Pid::from_raw(process.pid) {
            found |= matches!(rustix::process::waitpid(Some(pid), WaitOptions::NOHANG), Ok(Some(_)));
        }
    }
    found
}

/// Kills every descendant of this process and waits a moment for the last to be gone.
pub fn kill_all() {
    if owned().pids.is_none() {
        return; // Nothing was ever started.
    }
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        let family = descendants();
        if family.is_empty() || Instant::now() > deadline {
            return;
        }
        for pid in family.into_iter().filter_map(Pid::from_raw) {
            // It may be gone already, which is what is wanted.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Every living process below this one.
fn descendants() -> HashSet<i32> {
    let us = rustix::process::getpid().as_raw_pid();
    let mut family = family(us);
    family.remove(&us);
    family
}

/// A process and every living one below it. It looks at every process there is: some milliseconds where there are hundreds.
pub fn family(head: i32) -> HashSet<i32> {
    let all = processes();
    let mut family = HashSet::from([head]);
    // A process may be listed before its parent: repeat until nobody joins.
    loop {
        let before = family.len();
        for process in all.iter().filter(|p| !p.ended) {
            if family.contains(&process.parent) {
                family.insert(process.pid);
            }
        }
        if family.len() == before {
            return family;
        }
    }
}

struct Process {
    pid: i32,
    parent: i32,
    ended: bool,
}

/// Every process of this process namespace; none where `/proc` is not mounted.
fn processes() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| parse_stat(pid, &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)).collect()
}

/// `/proc/PID/stat`: the command is in parentheses and may hold anything, also parentheses; after
/// the last one come the state and the parent (proc(5)).
fn parse_stat(pid: i32, stat: &str) -> Option<Process> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    Some(Process { pid, parent, ended: matches!(state, "Z" | "X") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_named_to_confuse_is_read_right() {
        let process = parse_stat(7, "7 (a) Z 1 (b)) S 42 7 7 0 -1").unwrap();
        assert_eq!((process.parent, process.ended), (42, false));
        assert!(parse_stat(7, "7 (sh) Z 1 7").unwrap().ended);
        assert!(parse_stat(7, "nonsense").is_none());
    }
}
