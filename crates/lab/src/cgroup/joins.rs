//! Joins of control groups that do not wait.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::hierarchy::{below, own_group_of};
use crate::mounts;

/// Well below an RCU grace period, which takes 8 to 20 ms on a small host.
const PAUSE: Duration = Duration::from_millis(3);
/// Slower starts are those of machines, in which the wait is lost.
const AT_MOST: Duration = Duration::from_millis(300);

/// While this is held, a process that joins a control group does not wait for the kernel's readers.
///
/// The first join after a quiet time waits for an RCU grace period; one that follows within a grace period does not (`rcu_sync` in
/// `cgroup_threadgroup_rwsem`, kernel/cgroup/cgroup.c). Of guests that start one after another, some would pay that wait and others not, as their
/// order and their pace have it, and it is longer than a container's whole start. So this process joins the group that it is in, which
/// changes nothing, again and again: no guest waits, whatever its platform.
#[derive(Debug)]
pub struct PromptJoins {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PromptJoins {
    /// Begins; returns once a join would not wait. Where this process may not write to its own group, nothing is done.
    pub fn begin() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let Some(file) = own_file().filter(|file| join(file)) else { return Self { over, thread: None } };
        let (ends, began) = (Arc::clone(&over), Instant::now());
        let again = move || {
            while !ends.load(Ordering::Relaxed) && began.elapsed() < AT_MOST && join(&file) {
                std::thread::park_timeout(PAUSE);
            }
        };
        Self { over, thread: std::thread::Builder::new().name("prompt-joins".into()).spawn(again).ok() }
    }
}

impl Drop for PromptJoins {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// What was found for the group that this process was in at that time.
static FOUND: Mutex<Option<(String, Option<PathBuf>)>> = Mutex::new(None);

/// The file through which a process joins the group that this one is in. It is looked for once in each group: to see this process in it, the
/// numbers of all that are in it are read, and a thousand agents may be.
fn own_file() -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    match &*found {
        Some((known, file)) if *known == own => file.clone(),
        _ => {
            let file = file_of(&own);
            *found = Some((own, file.clone()));
            file
        }
    }
}

/// The file of the group that `own` says this process is in (`/proc/self/cgroup`); only where this one is seen in it, so that nothing moves.
fn file_of(own: &str) -> Option<PathBuf> {
    let read = |path: &Path| fs::read_to_string(path).ok();
    let mounts = read(Path::new("/proc/self/mountinfo"))?;
    let pid = std::process::id().to_string();
    let files = mounts::parse(&mounts).into_iter().filter_map(|mount| {
        let group = own_group_of(&mount, own)?;
        Some(below(&mount, group).join("cgroup.procs"))
    });
    let mut files = files.filter(|file| read(file).is_some_and(|procs| procs.lines().any(|line| line == pid)));
    files.next()
}

/// Joins the group of that file with all threads. Whether that was possible.
fn join(file: &Path) -> bool {
    fs::write(file, "0").is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_what_is_found_again() {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap();
        assert_eq!((own_file(), own_file()), (file_of(&own), file_of(&own)));
        assert_eq!(file_of("0::/no/such/group\n").filter(|file| file.exists()), None, "of another group");
    }

    #[test]
    fn joins_do_not_wait_while_it_is_held_and_this_process_stays_where_it_is() {
        let groups = || fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let (before, Some(file)) = (groups(), own_file().filter(|file| join(file))) else {
            println!("SKIPPED: this process may not write to its own control group");
            return;
        };
        let timed = |times: u32| {
            let mut took: Vec<Duration> = Vec::new();
            for _ in 0..times {
                std::thread::sleep(Duration::from_millis(60));
                let began = Instant::now();
                assert!(join(&file));
                took.push(began.elapsed());
            }
            took.sort();
            took[took.len() / 2]
        };
        let alone = timed(5);
        let held = PromptJoins::begin();
        let beside = timed(3);
        drop(held);
        assert!(beside <= alone, "a join took {beside:?} beside the others, and {alone:?} alone");
        assert_eq!(groups(), before);
    }
}
