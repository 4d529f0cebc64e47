//! Control groups: what a guest may use, what it was granted, and what it has used.
//!
//! Directories are named `tare-RUN/GUEST` in every hierarchy. On a version 2 host one directory does all;
//! on a version 1 host there is one for each controller, and beside them, on hybrid hosts, one in the
//! version 2 hierarchy, which has no controllers there but still `cpu.stat` and `cgroup.kill`.

mod delegated;
mod end;
mod faults;
mod freeze;
mod hierarchy;
mod joins;
mod limits;
mod parity;
mod run;
mod usage;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

pub use delegated::{ends_with_session, settle_in_own_group};
pub(crate) use end::{find_run_groups, is_tare_group, kill, kill_and_remove, processes_below};
pub use end::{is_control_group, remove_run_groups};
pub use faults::{PageFaults, page_faults_in};
pub use freeze::{freeze, freezing_refusal};
pub use hierarchy::{CgroupMode, Hierarchies};
pub use joins::PromptJoins;
pub use run::{kill_guest, limit_run, oom_kills_in, processes_in, run_groups};
pub use usage::{GroupCpu, GroupMemory, number};

use crate::error::{LabError, Result};
use crate::name::{check_guest, check_run_id, run_group};
use crate::resource::Resource;

/// Most processes and threads of a guest: enough for ten Java applications with a thousand threads each, and for a machine's own,
/// and few enough that a guest which forks without end stops before the host's numbers are used up.
pub const PROCESSES: u64 = 16_384;

/// What a group may use. `None` and an empty set leave the host's own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limits {
    /// CPU time in whole CPUs: so many times 100 ms in every period of 100 ms.
    pub cpu_quota_cpus: Option<u32>,
    /// The CPUs that may be used.
    pub cpu_set: Vec<u32>,
    /// Most memory, bytes. No swap beside it where the kernel accounts for swap.
    pub memory_bytes: Option<u64>,
    /// Most processes and threads. Not limited on a host without the controller for it.
    pub processes: Option<u64>,
}

/// The directories of a group in the hierarchies of this host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Dirs {
    /// By version 1 controller. Several controllers may share one.
    pub(crate) v1: BTreeMap<String, PathBuf>,
    pub(crate) v2: Option<PathBuf>,
    /// Whether limits are those of version 2.
    pub(crate) v2_limits: bool,
}

impl Dirs {
    fn each(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = self.v1.values().chain(&self.v2).cloned().collect();
        paths.sort();
        paths.dedup();
        paths
    }

    fn of(&self, controller: &str) -> Option<&Path> {
        let dir = if self.v2_limits { self.v2.as_ref() } else { self.v1.get(controller) };
        dir.map(PathBuf::as_path)
    }
}

/// A group that is named but not made: what must be written down first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupPlan {
    dirs: Dirs,
    paths: Vec<PathBuf>,
    hierarchies: Hierarchies,
    unavailable: Option<String>,
}

impl CgroupPlan {
    /// The directories that will be made; none where limits are not available.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The group as it is written down.
    pub fn resource(&self) -> Resource {
        Resource::Cgroup { paths: self.paths.clone() }
    }
}

/// A group of one guest. Not removed when dropped: that is [`Cgroup::remove`], or reaping.
#[derive(Debug)]
pub struct Cgroup {
    dirs: Dirs,
    paths: Vec<PathBuf>,
    mounts: Vec<PathBuf>,
    unavailable: Option<String>,
}

/// How control groups are set up on this host, and whether limits can be set.
pub fn detect() -> CgroupMode {
    Hierarchies::detect().mode()
}

impl Cgroup {
    /// Names the group of guest `name` in the hierarchies of this host.
    ///
    /// # Errors
    /// When a name is not fit for a directory.
    pub fn plan(run_id: &str, name: &str) -> Result<CgroupPlan> {
        Hierarchies::detect().plan(run_id, name)
    }

    /// Makes the group and sets its limits. Where limits are not available the group is an empty one that
    /// grants nothing, and [`Cgroup::parity`] says so.
    ///
    /// # Errors
    /// When the kernel refuses a directory or a limit, or a group of this name has processes in it. What had
    /// been made is removed again.
    pub fn create(plan: CgroupPlan, limits: &Limits) -> Result<Self> {
        let mounts = plan.hierarchies.mounts();
        let group = Self { dirs: plan.dirs, paths: plan.paths, mounts, unavailable: plan.unavailable };
        if group.unavailable.is_some() {
            return Ok(group);
        }
        let made = limits::prepare(&plan.hierarchies, &group.dirs)
            .and_then(|()| group.make())
            .and_then(|()| limits::apply(&group.dirs, limits));
        // A refusal is about a group that is somebody else's.
        if let Err(error @ LabError::Refused { .. }) = made {
            return Err(error);
        }
        if let Err(error) = made {
            // The first error is the one to tell; a directory that stays is found by its name when the run is reaped.
            let _ = end::remove(&group.paths);
            return Err(error);
        }
        Ok(group)
    }

    fn make(&self) -> Result<()> {
        for path in &self.paths {
            make_dir(path)?;
        }
        match processes_below(&self.paths).first() {
            None => Ok(()),
            Some(pid) => Err(LabError::Refused {
                tried: format!("use the control group {}", self.paths[0].display()),
                why: format!("process {pid} is in it already"),
                remedy: "Choose another name for the guest, or reap the run that it is from".into(),
            }),
        }
    }

    /// Its directories.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The group as it was written down.
    pub fn resource(&self) -> Resource {
        Resource::Cgroup { paths: self.paths.clone() }
    }

    /// The files to which a process writes `0` to move itself into the group, one for each hierarchy.
    pub fn procs_files(&self) -> Vec<PathBuf> {
        self.paths.iter().map(|path| path.join("cgroup.procs")).collect()
    }

    /// Moves a process into the group, in every hierarchy. Where limits are not available this does nothing.
    ///
    /// # Errors
    /// When the kernel refuses, or there is no such process.
    pub fn add(&self, pid: u32) -> Result<()> {
        self.procs_files().iter().try_for_each(|file| write(file, &pid.to_string()))
    }

    /// Kills what is in the group and waits until nothing is. Idempotent.
    ///
    /// # Errors
    /// When a process is still there after 5 s (one that waits for a device cannot be killed), or this
    /// process or one that it descends from is in the group.
    pub fn kill(&self) -> Result<()> {
        end::kill(&self.paths).map(drop)
    }

    /// Removes the group once its last process is gone, with any groups that its guest made inside. Idempotent.
    ///
    /// # Errors
    /// When processes are in it for more than 5 s.
    pub fn remove(&mut self) -> Result<()> {
        end::remove(&self.paths)
    }

    /// Why limits cannot be set on this host; `None` when they can.
    pub fn unavailable() -> Option<String> {
        Hierarchies::detect().unavailable()
    }
}

impl Hierarchies {
    /// Names the group of guest `name` in these hierarchies.
    ///
    /// # Errors
    /// When a name is not fit for a directory.
    pub fn plan(self, run_id: &str, name: &str) -> Result<CgroupPlan> {
        check_run_id(run_id)?;
        check_guest(name)?;
        let unavailable = self.unavailable();
        let dirs = if unavailable.is_some() { Dirs::default() } else { self.dirs(&run_group(run_id), name) };
        Ok(CgroupPlan { paths: dirs.each(), dirs, hierarchies: self, unavailable })
    }
}

fn make_dir(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(LabError::system(format!("make the control group {}", path.display()), e))
        }
        _ => Ok(()),
    }
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file)
        .map(|text| text.trim().to_owned())
        .map_err(|e| LabError::system(format!("read {}", file.display()), e))
}

fn write(file: &Path, text: &str) -> Result<()> {
    // Not fs::write, which would make a file where the kernel has none.
    fs::OpenOptions::new()
        .write(true)
        .open(file)
        .and_then(|mut open| open.write_all(text.as_bytes()))
        .map_err(|e| LabError::system(format!("write `{text}` to {}", file.display()), e))
}

#[cfg(test)]
mod tests;
