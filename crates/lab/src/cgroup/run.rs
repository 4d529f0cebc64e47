//! The group in which all guests of a run lie.

use std::path::{Path, PathBuf};

use super::{Cgroup, Hierarchies, end, limits, read, usage};
use crate::error::{LabError, Result};
use crate::name::{check_run_id, run_group};

/// Sets the most memory that all guests of a run together may take, bytes, with no swap beside it where the kernel
/// accounts for swap; `None` takes the limit away. Where the kernel's last resort strikes, it then strikes among them.
///
/// # Errors
/// When limits cannot be set on this host, or the kernel refuses: more is in use than that.
pub fn limit_run(run_id: &str, memory_bytes: Option<u64>) -> Result<()> {
    check_run_id(run_id)?;
    let hierarchies = Hierarchies::detect();
    if let Some(why) = hierarchies.unavailable() {
        return Err(LabError::Unavailable {
            tried: "limit the memory of all guests together".into(),
            why,
            remedy: "Without it, the kernel may kill any process of the host when memory runs out".into(),
        });
    }
    limit_in(&hierarchies, run_id, memory_bytes)
}

pub(super) fn limit_in(hierarchies: &Hierarchies, run_id: &str, memory_bytes: Option<u64>) -> Result<()> {
    // The run's group is above that of any guest, whatever its name.
    let dirs = hierarchies.dirs(&run_group(run_id), "guest");
    let Some(run) = dirs.of("memory").and_then(Path::parent) else { return Ok(()) };
    match memory_bytes {
        Some(bytes) => {
            limits::prepare(hierarchies, &dirs)?;
            limits::set_memory(run, dirs.v2_limits, bytes)
        }
        None if run.exists() => limits::unset_memory(run, dirs.v2_limits),
        None => Ok(()),
    }
}

/// Kills what is in the control group of a guest that may still be starting. Idempotent; nothing is removed.
///
/// # Errors
/// When a name is not fit for a directory, or a process is still there after 5 s.
pub fn kill_guest(run_id: &str, name: &str) -> Result<()> {
    let paths: Vec<PathBuf> = Cgroup::plan(run_id, name)?.paths().to_vec();
    end::kill(&paths).map(drop)
}

/// The directories of the group in which all guests of a run lie, one for each hierarchy, whether they are there or not; none
/// where limits cannot be set on this host.
///
/// # Errors
/// When the id is not fit for a directory.
pub fn run_groups(run_id: &str) -> Result<Vec<PathBuf>> {
    // The run's group is above that of any guest, whatever its name.
    let plan = Cgroup::plan(run_id, "guest")?;
    Ok(plan.paths().iter().filter_map(|path| path.parent()).map(Path::to_owned).collect())
}

/// Processes that the kernel killed for memory in the groups that have these directories and in any group below them, since
/// each was made; `None` where none of them tells. Of a version 1 group that is gone by now nothing is counted any more.
pub fn oom_kills_in(directories: &[PathBuf]) -> Option<u64> {
    directories.iter().filter_map(|directory| oom_kills(directory)).reduce(|all, one| all + one)
}

fn oom_kills(directory: &Path) -> Option<u64> {
    let kills = |file: &Path| usage::number(&read(file).ok()?, "oom_kill");
    // Version 2 counts what happened below, too; version 1 counts for the group alone in which the process was.
    kills(&directory.join("memory.events")).or_else(|| {
        let account = |group: &Path| group.join("memory.oom_control");
        // A directory of another hierarchy need not be gone through.
        let groups = account(directory).exists().then(|| end::with_below(directory))?;
        groups.iter().filter_map(|group| kills(&account(group))).reduce(|all, one| all + one)
    })
}

/// The processes in the groups that have these directories, and in any group below them.
pub fn processes_in(directories: &[PathBuf]) -> Vec<u32> {
    end::processes_below(directories)
}
