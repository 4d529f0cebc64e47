//! Finding the processes of a run and ending them, never ourselves nor those that started us.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::RUN_VARIABLE;

/// What `/proc/PID/stat` says of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) name: String,
    pub(crate) state: char,
    pub(crate) parent: u32,
    /// Clock ticks after boot.
    pub(crate) started: u64,
}

/// Reads a process's stat line; `None` when there is no such process.
pub(crate) fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name stands in parentheses and may itself hold any character, so the last one ends it (proc(5)).
fn parse_stat(text: &str) -> Option<Stat> {
    let (head, tail) = text.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = tail.split_whitespace().collect();
    Some(Stat {
        name,
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

/// Every process, by number.
pub(crate) fn all() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// This process and those it descends from.
pub(crate) fn ourselves() -> BTreeSet<u32> {
    let mut line = BTreeSet::new();
    let mut pid = std::process::id();
    while pid != 0 && line.insert(pid) {
        pid = stat(pid).map_or(0, |stat| stat.parent);
    }
    line
}

/// Whether the process carries the run's id in its environment.
#[must_use]
pub fn is_of_run(pid: u32, run_id: &str) -> bool {
    let wanted = format!("{RUN_VARIABLE}={run_id}");
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environ| environ.split(|b| *b == 0).any(|entry| entry == wanted.as_bytes()))
}

/// The processes that carry the run's id, and what descends from them (a program may overwrite its
/// environment to show a title, as PostgreSQL does), each as it was seen before its environment was read. Never this
/// process nor one that it descends from.
pub(crate) fn of_run(run_id: &str) -> BTreeMap<u32, Stat> {
    let spared = ourselves();
    let everyone: BTreeMap<u32, Stat> = all().into_iter().filter_map(|pid| Some((pid, stat(pid)?))).collect();
    let alive = |pid: &u32, seen: &Stat| seen.state != 'Z' && !spared.contains(pid);
    let marked = everyone.iter().filter(|(pid, seen)| alive(pid, seen) && is_of_run(**pid, run_id));
    let mut found: BTreeMap<u32, Stat> = marked.map(|(pid, seen)| (*pid, seen.clone())).collect();
    loop {
        let before = found.len();
        for (pid, seen) in &everyone {
            if found.contains_key(&seen.parent) && alive(pid, seen) {
                found.insert(*pid, seen.clone());
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// Holds on to the process that has this number now, so that the number cannot come to mean another between a look and a
/// signal. `None` when there is none.
pub(crate) fn hold(pid: u32) -> Option<OwnedFd> {
    pidfd_open(i32::try_from(pid).ok().and_then(Pid::from_raw)?, PidfdFlags::empty()).ok()
}

/// Sends SIGKILL to a process that is held on to. Whether it was sent.
pub(crate) fn kill_held(held: &OwnedFd) -> bool {
    pidfd_send_signal(held, Signal::KILL).is_ok()
}

/// Sends SIGKILL to a process if it is still the one that was seen. Whether it was sent.
pub(crate) fn kill(pid: u32, seen: &Stat) -> bool {
    let Some(held) = hold(pid) else { return false };
    stat(pid).is_some_and(|now| now.started == seen.started) && kill_held(&held)
}

/// Asks again and again until `done`, with pauses from 0.5 ms growing to 20 ms. Whether it came true in time.
pub(crate) fn wait_until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    let mut pause = Duration::from_micros(500);
    loop {
        if done() {
            return true;
        }
        if start.elapsed() > limit {
            return false;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_name_with_parentheses_is_no_trap() {
        let text = "7 (a) R 1) S 42 7 7 0 -1 4 1 1 0 0 1 1 0 0 20 0 1 0 123456 9 9";
        let stat = parse_stat(text).unwrap();
        assert_eq!(stat, Stat { name: "a) R 1".into(), state: 'S', parent: 42, started: 123_456 });
        assert_eq!(parse_stat("7 (a"), None);
    }

    #[test]
    fn marked_processes_and_their_children_are_found_and_we_are_not() {
        let run = format!("process-{}", std::process::id());
        // The child wipes its environment; only its parent tells whose it is.
        let script = "env -u TARE_RUN sleep 30 & wait";
        let mut shell =
            Command::new("sh").args(["-c", script]).env(RUN_VARIABLE, &run).process_group(0).spawn().unwrap();
        let both = wait_until(Duration::from_secs(10), || {
            let found = of_run(&run);
            found.contains_key(&shell.id()) && found.values().any(|seen| seen.name == "sleep")
        });
        let found = of_run(&run);
        for (pid, seen) in &found {
            kill(*pid, seen);
        }
        shell.wait().unwrap();
        assert!(both, "{found:?}");
        assert!(!found.contains_key(&std::process::id()));
        assert!(of_run(&format!("{run}-other")).is_empty());
    }

    #[test]
    fn a_number_that_was_given_to_another_process_is_not_killed() {
        let mut child = Command::new("sleep").arg("30").spawn().unwrap();
        let mut seen = stat(child.id()).unwrap();
        seen.started += 1;
        assert!(!kill(child.id(), &seen));
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
