//! Setting limits: the files of version 1 and version 2 (Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst).

use std::collections::BTreeSet;
use std::path::Path;

use rustix::fs::XattrFlags;

use super::hierarchy::NEEDED_V2;
use super::{Dirs, Hierarchies, Limits, make_dir, read, write};
use crate::cpu::format_cpu_list;
use crate::error::{LabError, Result};

/// Length of a quota's period, microseconds: the kernel's own default, in both versions.
pub(super) const PERIOD_US: u64 = 100_000;

/// On the run's group: the controllers that tare enabled at the root for it, to be put back. `user.` needs
/// Linux 5.7 on cgroup2, `trusted.` needs root.
const ENABLED_ATTRIBUTES: [&str; 2] = ["user.tare.enabled", "trusted.tare.enabled"];

/// Makes the run's group in every hierarchy and readies it to have guests' groups below it.
pub(super) fn prepare(hierarchies: &Hierarchies, dirs: &Dirs) -> Result<()> {
    for path in dirs.each() {
        let Some(run) = path.parent() else { continue };
        make_dir(run)?;
    }
    if hierarchies.v2_limits() {
        let run = dirs.v2.as_deref().and_then(Path::parent);
        return run.map_or(Ok(()), |run| enable_controllers(run, &hierarchies.v2_controllers()));
    }
    let run = dirs.v1.get("cpuset").and_then(|guest| guest.parent());
    run.map_or(Ok(()), inherit_cpuset)
}

/// Version 2: a controller must be enabled in every group above the one that it limits.
fn enable_controllers(run: &Path, wanted: &[&'static str]) -> Result<()> {
    let Some(root) = run.parent() else { return Ok(()) };
    let missing = not_enabled(root, wanted)?;
    if !missing.is_empty() {
        // Written down before it is done, and with the group that it is done for.
        note_enabled(run, &missing.join(" "))?;
    }
    for dir in [root, run] {
        for controller in not_enabled(dir, wanted)? {
            let file = dir.join("cgroup.subtree_control");
            let given = write(&file, &format!("+{controller}"));
            if !NEEDED_V2.contains(&controller) {
                // Without it groups do the rest of their work, and what is read back says that it is missing.
                continue;
            }
            given.map_err(|e| LabError::Unavailable {
                tried: format!("give the controller {controller} to the groups below {}", dir.display()),
                why: e.to_string(),
                remedy: "Run on the host itself, where the root group may have processes of its own; in a container \
                         move its processes into a group of their own"
                    .into(),
            })?;
        }
    }
    Ok(())
}

fn not_enabled(dir: &Path, wanted: &[&'static str]) -> Result<Vec<&'static str>> {
    let enabled = read(&dir.join("cgroup.subtree_control"))?;
    Ok(wanted.iter().copied().filter(|c| !enabled.split_whitespace().any(|e| e == *c)).collect())
}

/// Adds to what is noted on a run's group.
pub(super) fn note_enabled(run: &Path, controllers: &str) -> Result<()> {
    let before = enabled_note(run);
    let all: BTreeSet<&str> = before.split_whitespace().chain(controllers.split_whitespace()).collect();
    let text = all.into_iter().collect::<Vec<_>>().join(" ");
    let mut answer = Ok(());
    for attribute in ENABLED_ATTRIBUTES {
        answer = rustix::fs::setxattr(run, attribute, text.as_bytes(), XattrFlags::empty());
        if answer.is_ok() {
            break;
        }
    }
    answer.map_err(|e| LabError::system(format!("note on {} what was enabled for it", run.display()), e))
}

/// What is noted on a run's group; empty when nothing is.
pub(super) fn enabled_note(run: &Path) -> String {
    let mut buffer = [0; 256];
    let read = |attribute| rustix::fs::getxattr(run, attribute, &mut buffer[..]).ok();
    let length = ENABLED_ATTRIBUTES.into_iter().find_map(read).unwrap_or(0);
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}

/// Version 1: a new cpuset has no CPUs and no memory nodes, and takes no process until it has both.
fn inherit_cpuset(dir: &Path) -> Result<()> {
    let Some(parent) = dir.parent() else { return Ok(()) };
    for file in ["cpuset.cpus", "cpuset.mems"] {
        if read(&dir.join(file))?.is_empty() {
            write(&dir.join(file), &read(&parent.join(file))?)?;
        }
    }
    Ok(())
}

/// Sets the limits of a group that has been made.
pub(super) fn apply(dirs: &Dirs, limits: &Limits) -> Result<()> {
    if let (false, Some(dir)) = (dirs.v2_limits, dirs.of("cpuset")) {
        inherit_cpuset(dir)?;
    }
    if let (false, Some(dir)) = (limits.cpu_set.is_empty(), dirs.of("cpuset")) {
        let (file, list) = (dir.join("cpuset.cpus"), format_cpu_list(&limits.cpu_set));
        // The controller may be missing in version 2; what is read back says how its processes are bound.
        if dirs.v2_limits { write_if_there(&file, &list) } else { write(&file, &list) }?;
    }
    if let (Some(cpus), Some(dir)) = (limits.cpu_quota_cpus, dirs.of("cpu")) {
        set_quota(dir, dirs.v2_limits, u64::from(cpus) * PERIOD_US)?;
    }
    if let (Some(bytes), Some(dir)) = (limits.memory_bytes, dirs.of("memory")) {
        set_memory(dir, dirs.v2_limits, bytes)?;
    }
    if let (Some(processes), Some(dir)) = (limits.processes, dirs.of("pids")) {
        write_if_there(&dir.join("pids.max"), &processes.to_string())?;
    }
    Ok(())
}

pub(super) fn set_quota(dir: &Path, v2: bool, quota_us: u64) -> Result<()> {
    if v2 {
        return write(&dir.join("cpu.max"), &format!("{quota_us} {PERIOD_US}"));
    }
    write(&dir.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
    write(&dir.join("cpu.cfs_quota_us"), &quota_us.to_string())
}

pub(super) fn set_memory(dir: &Path, v2: bool, bytes: u64) -> Result<()> {
    if v2 {
        write(&dir.join("memory.max"), &bytes.to_string())?;
        return write_if_there(&dir.join("memory.swap.max"), "0");
    }
    write(&dir.join("memory.limit_in_bytes"), &bytes.to_string())?;
    write_if_there(&dir.join("memory.memsw.limit_in_bytes"), &bytes.to_string())
}

/// Takes away what [`set_memory`] has set.
pub(super) fn unset_memory(dir: &Path, v2: bool) -> Result<()> {
    if v2 {
        write_if_there(&dir.join("memory.swap.max"), "max")?;
        return write(&dir.join("memory.max"), "max");
    }
    // The limit with swap may never be below the one without.
    write_if_there(&dir.join("memory.memsw.limit_in_bytes"), "-1")?;
    write(&dir.join("memory.limit_in_bytes"), "-1")
}

/// The files about swap are there only on a kernel that accounts for swap, those about processes and CPU sets where the group was
/// given the controller.
fn write_if_there(file: &Path, text: &str) -> Result<()> {
    if file.exists() { write(file, text) } else { Ok(()) }
}
