//! The end of groups: killing what is inside, and removing the directories.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::hierarchy::every_mount;
use super::{limits, make_dir, read, write};
use crate::error::{LabError, Result};
use crate::name::{check_run_id, run_group};
use crate::process;

/// How long a killed process may take to go, and a directory to let itself be removed.
const LIMIT: Duration = Duration::from_secs(5);
/// Groups of tare's are looked for no deeper than this below a mount.
const SEARCH_DEPTH: u32 = 8;

/// File systems of control groups (`linux/magic.h`).
const CGROUP_MAGIC: u64 = 0x0027_e0eb;
const CGROUP2_MAGIC: u64 = 0x6367_7270;
/// A group that is made to see how one is that nobody has changed.
const FRESH: &str = "fresh";
/// So many processes are held on to at a time: each takes a descriptor.
const HELD_AT_ONCE: usize = 128;

/// Whether a directory is a control group: on a file system of such, and not merely called so. What a plain file named
/// `cgroup.procs` says is never acted on.
pub fn is_control_group(directory: &Path) -> bool {
    rustix::fs::statfs(directory)
        .is_ok_and(|found| matches!(found.f_type as u64 & 0xffff_ffff, CGROUP_MAGIC | CGROUP2_MAGIC))
}

/// The processes in the groups at `paths` and in any group below them.
pub(crate) fn processes_below(paths: &[PathBuf]) -> Vec<u32> {
    let mut found = BTreeSet::new();
    for path in paths {
        for dir in with_below(path) {
            let text = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
            // 0 is a process of a pid namespace that we do not see into: it cannot be ours to end.
            found.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()).filter(|pid| *pid != 0));
        }
    }
    found.into_iter().collect()
}

/// The directory and all below it, deepest first.
pub(super) fn with_below(path: &Path) -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    if let Ok(entries) = fs::read_dir(path) {
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                dirs.extend(with_below(&entry.path()));
            }
        }
        dirs.push(path.to_owned());
    }
    dirs
}

/// Kills all in the groups and waits until none is left. Returns those that were there.
pub(crate) fn kill(paths: &[PathBuf]) -> Result<Vec<u32>> {
    if let Some(plain) = paths.iter().find(|path| path.exists() && !is_control_group(path)) {
        return Err(LabError::Refused {
            tried: format!("kill the processes of the control group {}", plain.display()),
            why: "it is not in a file system of control groups".into(),
            remedy: "Look who made it; nothing in it was killed".into(),
        });
    }
    kill_members(paths)
}

/// The same, whatever file system they are in.
pub(super) fn kill_members(paths: &[PathBuf]) -> Result<Vec<u32>> {
    let spared = process::ourselves();
    let tried = || format!("kill the processes of the control group {}", shown(paths));
    let mut killed = BTreeSet::new();
    let mut left = Vec::new();
    let mut ours = None;
    let empty = process::wait_until(LIMIT, || {
        left = processes_below(paths);
        ours = left.iter().find(|pid| spared.contains(pid)).copied();
        if left.is_empty() || ours.is_some() {
            return true;
        }
        killed.extend(&left);
        for path in paths {
            let file = path.join("cgroup.kill");
            if file.exists() {
                // One stroke, which a process cannot outrun by forking. What it does not reach the loop does.
                let _ = write(&file, "1");
            }
        }
        for pids in left.chunks(HELD_AT_ONCE) {
            let held: Vec<_> = pids.iter().filter_map(|pid| Some((*pid, process::hold(*pid)?))).collect();
            // Looked for again: since the first look a number may have come to mean a process of somebody else's.
            let now = processes_below(paths);
            held.iter().filter(|(pid, _)| now.contains(pid)).for_each(|(_, held)| {
                process::kill_held(held);
            });
        }
        false
    });
    if let Some(pid) = ours {
        return Err(LabError::Refused {
            tried: tried(),
            why: format!("process {pid} in it is this process or one that started it"),
            remedy: "Move this shell out of the group, then try again".into(),
        });
    }
    if !empty {
        return Err(LabError::Timeout {
            tried: tried(),
            waited_ms: LIMIT.as_millis() as u64,
            seen: format!("still there: {left:?}"),
            remedy: "A process that waits for a device (state D) goes when the device answers; then `tare reap`".into(),
        });
    }
    Ok(killed.into_iter().collect())
}

/// Removes groups that have no process, with the groups below them. No error when they are gone already.
pub(crate) fn remove(paths: &[PathBuf]) -> Result<()> {
    for path in paths {
        let mut last = None;
        let gone = process::wait_until(LIMIT, || {
            for dir in with_below(path) {
                match fs::remove_dir(&dir) {
                    Ok(()) => {}
                    Err(e) if e.kind() == ErrorKind::NotFound => {}
                    Err(e) => {
                        let again = e.kind() == ErrorKind::ResourceBusy;
                        last = Some(e);
                        // The kernel lets go of the last process a moment after it is gone.
                        return !again;
                    }
                }
            }
            last = None;
            true
        });
        match last {
            None => {}
            Some(e) if gone => return Err(LabError::system(format!("remove the control group {}", path.display()), e)),
            Some(e) => {
                return Err(LabError::Timeout {
                    tried: format!("remove the control group {}", path.display()),
                    waited_ms: LIMIT.as_millis() as u64,
                    seen: format!("{e}; processes in it: {:?}", processes_below(std::slice::from_ref(path))),
                    remedy: "`tare reap` ends them".into(),
                });
            }
        }
    }
    Ok(())
}

/// Kills what is in the groups, then removes them. Returns what was killed.
pub(crate) fn kill_and_remove(paths: &[PathBuf]) -> Result<Vec<u32>> {
    let killed = kill(paths)?;
    remove(paths)?;
    Ok(killed)
}

/// The run's own directories, `tare-RUN`, in every hierarchy that is mounted, wherever they are in it.
pub(crate) fn find_run_groups(run_id: &str) -> Vec<PathBuf> {
    let name = run_group(run_id);
    let mut found = Vec::new();
    for mount in every_mount() {
        search(&mount, &name, SEARCH_DEPTH, &mut found);
    }
    found
}

fn search(dir: &Path, name: &str, depth: u32, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        if entry.file_name() == name {
            found.push(entry.path());
        } else if depth > 0 {
            search(&entry.path(), name, depth - 1, found);
        }
    }
}

/// Whether a path is that of a group of this run: inside a mounted hierarchy of control groups, with `tare-RUN` in it.
pub(crate) fn is_tare_group(path: &Path, run_id: &str) -> bool {
    let name = run_group(run_id);
    let plain = path.components().all(|c| !matches!(c, std::path::Component::ParentDir));
    plain
        && path.components().any(|c| c.as_os_str() == name.as_str())
        && every_mount().iter().any(|mount| path.starts_with(mount))
        && is_control_group(path)
}

/// Removes the run's own directories, `tare-RUN`, with what is left in them, and puts back the version 2
/// controllers that were enabled for it. To be called when the run ends. Idempotent.
///
/// # Errors
/// When processes are in them that do not go within 5 s.
pub fn remove_run_groups(run_id: &str) -> Result<()> {
    check_run_id(run_id)?;
    find_run_groups(run_id).iter().try_for_each(|dir| remove_run_group(dir))
}

/// Removes one directory `tare-RUN`.
fn remove_run_group(dir: &Path) -> Result<()> {
    let enabled = enabled_for(dir);
    kill(&[dir.to_owned()])?;
    let unused = unused(dir, &enabled);
    remove(&[dir.to_owned()])?;
    dir.parent().map_or(Ok(()), |root| put_back(root, &unused))
}

/// Takes controllers away again from the groups below `root`: those that were not there before tare gave them, and that nobody
/// has come to use since. Of several runs at a time the last does it.
pub(super) fn put_back(root: &Path, controllers: &str) -> Result<()> {
    for controller in controllers.split_whitespace() {
        match write(&root.join("cgroup.subtree_control"), &format!("-{controller}")) {
            // A group of somebody else's hands it on by now: then it is theirs to keep.
            Err(e) if e.errno() == Some(libc::EBUSY) => {}
            other => other?,
        }
    }
    Ok(())
}

/// Those of these controllers in which no group beside the run's `dir` has a setting that is not as in a group that was just
/// made. The kernel would take such a controller away, as long as nothing below that group has it, and the setting would be gone.
pub(super) fn unused(dir: &Path, controllers: &str) -> String {
    // In the run's group, where reaping finds it.
    let fresh = dir.join(FRESH);
    if controllers.is_empty() || make_dir(&fresh).is_err() {
        // With nothing to compare with they stay.
        return String::new();
    }
    let beside = dir.parent().and_then(|root| fs::read_dir(root).ok()).into_iter().flatten().flatten();
    let beside: Vec<PathBuf> = beside.map(|entry| entry.path()).filter(|path| path.is_dir() && path != dir).collect();
    let names =
        fs::read_dir(&fresh).into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    // What cannot be read is there to be written only.
    let usual: Vec<(String, String)> = names
        .filter(|name| !is_account(name))
        .filter_map(|name| Some((read(&fresh.join(&name)).ok()?, name)))
        .collect();
    let is_used = |controller: &&str| {
        let of_it = |name: &str| name.strip_prefix(*controller).is_some_and(|rest| rest.starts_with('.'));
        let mut settings = usual.iter().filter(|(_, name)| of_it(name));
        settings.any(|(text, name)| beside.iter().any(|group| read(&group.join(name)).is_ok_and(|now| now != *text)))
    };
    controllers.split_whitespace().filter(|controller| !is_used(controller)).collect::<Vec<_>>().join(" ")
}

/// Whether a file of a group shows what was used, and sets nothing. All settings of the kernel's are written to, and so are some
/// of these, for a notice or a new count.
fn is_account(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    let accounts = ["stat", "local", "current", "peak", "events", "pressure", "effective", "numa_stat"];
    accounts.contains(&last)
}

/// The controllers that were enabled at the root for this run, unless another run of tare's needs them too:
/// then the note goes over to that one.
pub(super) fn enabled_for(dir: &Path) -> String {
    let controllers = limits::enabled_note(dir);
    let others = dir.parent().and_then(|root| fs::read_dir(root).ok()).into_iter().flatten().flatten();
    let other = others
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.path() != dir)
        .find(|entry| entry.file_name().to_string_lossy().starts_with("tare-"));
    match other {
        Some(other) if !controllers.is_empty() => match limits::note_enabled(&other.path(), &controllers) {
            Ok(()) => String::new(),
            // It ended at this moment.
            Err(_) => controllers,
        },
        _ => controllers,
    }
}

fn shown(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
