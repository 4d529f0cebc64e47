//! Where the hierarchies of control groups are mounted, and which of them can set limits.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use rustix::io::Errno;

use super::{Dirs, delegated};
use crate::mounts::{self, Mount};
use crate::{feature, rootless};

/// The controllers that limits and accounts need in version 1.
const NEEDED_V1: [&str; 4] = ["cpu", "cpuacct", "cpuset", "memory"];
/// Limits processes, and is done without where it is missing; named so in both versions.
const PROCESSES: &str = "pids";
/// And in version 2, where CPU accounting is in `cpu`.
pub(super) const NEEDED_V2: [&str; 2] = ["cpu", "memory"];
/// Those of version 2 that are done without where they are missing. Without `cpuset` a guest's processes are bound to their CPUs
/// one by one, which they could undo; the row that is read back says so.
pub(super) const WANTED_V2: [&str; 2] = [CPU_SETS, PROCESSES];
const CPU_SETS: &str = "cpuset";

/// How a host's control groups are set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CgroupMode {
    /// Limits by version 2.
    V2,
    /// Limits by version 1; no version 2 hierarchy is mounted.
    V1,
    /// Limits by version 1; a version 2 hierarchy beside it accounts and kills.
    Hybrid,
    /// No limits, and why.
    None(String),
}

impl std::fmt::Display for CgroupMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::V2 => f.write_str("version 2"),
            Self::V1 => f.write_str("version 1"),
            Self::Hybrid => f.write_str("version 1, with version 2 beside it"),
            Self::None(why) => write!(f, "none: {why}"),
        }
    }
}

/// One mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hierarchy {
    /// Where it is mounted.
    mount: PathBuf,
    /// The directory below which tare makes its groups.
    base: PathBuf,
}

/// The hierarchies of a host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hierarchies {
    v1: BTreeMap<String, Hierarchy>,
    v2: Option<Hierarchy>,
}

impl Hierarchies {
    /// Those of this host, as this process sees them.
    pub fn detect() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self::parse(&text("/proc/self/mountinfo"), &text("/proc/self/cgroup"), rootless::is_rootless())
    }

    /// A version 2 hierarchy at `root`: any directory that has a cgroup2 file system's files in it.
    pub fn version_2_at(root: &Path) -> Self {
        let hierarchy = Hierarchy { mount: root.to_owned(), base: root.to_owned() };
        Self { v1: BTreeMap::new(), v2: Some(hierarchy) }
    }

    /// From the texts of `/proc/self/mountinfo` and `/proc/self/cgroup`.
    pub(super) fn parse(mountinfo: &str, own: &str, rootless: bool) -> Self {
        let mut found = Self::default();
        for mount in mounts::parse(mountinfo) {
            if mount.kind == "cgroup2" && found.v2.is_none() {
                let base = base_v2(&mount, own, rootless);
                found.v2 = Some(Hierarchy { mount: mount.point, base });
            } else if mount.kind == "cgroup" {
                let used = NEEDED_V1.iter().chain([&PROCESSES]);
                for controller in used.filter(|c| mount.options.split(',').any(|o| o == **c)) {
                    let hierarchy = Hierarchy {
                        mount: mount.point.clone(),
                        base: below(&mount, own_group(own, controller).unwrap_or("/")),
                    };
                    found.v1.entry((*controller).to_owned()).or_insert(hierarchy);
                }
            }
        }
        found
    }

    /// Whether the version 2 hierarchy has the controllers that limits need.
    pub(super) fn v2_limits(&self) -> bool {
        self.v2.as_ref().is_some_and(|v2| missing(&v2.base, &NEEDED_V2).is_empty())
    }

    /// The controllers of version 2 that groups are given: those that limits need, and the others that are there.
    pub(super) fn v2_controllers(&self) -> Vec<&'static str> {
        let absent = self.v2.as_ref().map(|v2| missing(&v2.base, &WANTED_V2)).unwrap_or_default();
        NEEDED_V2.into_iter().chain(WANTED_V2.into_iter().filter(|c| !absent.contains(c))).collect()
    }

    /// The directory below which groups are made, where limits can only be those of version 2.
    pub(super) fn v2_base(&self) -> Option<&Path> {
        self.v2.as_ref().filter(|_| self.v1.is_empty()).map(|v2| v2.base.as_path())
    }

    /// Of groups that limits can be set in: where they are made, and what a user should know of them, with the remedy. Empty
    /// elsewhere, and for version 1.
    pub fn particulars(&self) -> Vec<String> {
        let Some(base) = self.v2_base().filter(|_| self.unavailable().is_none()) else { return Vec::new() };
        let place = format!("guests' groups are made in {}", base.display());
        [Some(place), missing_in_words(base), delegated::ends_with_session()].into_iter().flatten().collect()
    }

    /// How limits are set here.
    pub fn mode(&self) -> CgroupMode {
        match self.unavailable() {
            Some(why) => CgroupMode::None(why),
            None if self.v2_limits() => CgroupMode::V2,
            None if self.v2.is_some() => CgroupMode::Hybrid,
            None => CgroupMode::V1,
        }
    }

    /// Why limits cannot be set; `None` when they can.
    pub fn unavailable(&self) -> Option<String> {
        if let Some(v2) = self.v2.as_ref().filter(|_| self.v2_limits()) {
            return closed(&v2.base).or_else(|| crowded(&v2.base));
        }
        if let Some(base) = self.v2_base().filter(|_| rootless::is_rootless()) {
            return Some(closed(base).unwrap_or_else(|| delegated::refused(base, &missing(base, &NEEDED_V2))));
        }
        let missing: Vec<&str> = NEEDED_V1.into_iter().filter(|c| !self.v1.contains_key(*c)).collect();
        if missing.len() == NEEDED_V1.len() {
            let why = if self.v2.is_some() {
                "a controller is missing from the version 2 control groups (cpu and memory are needed)"
            } else {
                "no control groups are mounted"
            };
            return Some(format!("{why}. Mount cgroup2 on /sys/fs/cgroup with these controllers, or run on the host"));
        }
        if !missing.is_empty() {
            return Some(format!(
                "the version 1 control groups do not have {}. Mount them, or use version 2",
                missing.join(", ")
            ));
        }
        NEEDED_V1.iter().filter_map(|c| self.v1.get(*c)).find_map(|hierarchy| closed(&hierarchy.base))
    }

    /// The directories of group `run`/`guest`.
    pub(super) fn dirs(&self, run: &str, guest: &str) -> Dirs {
        let v2_limits = self.v2_limits();
        let below = |hierarchy: &Hierarchy| hierarchy.base.join(run).join(guest);
        let v1 = if v2_limits {
            BTreeMap::new()
        } else {
            let open = |(controller, h): &(&String, &Hierarchy)| *controller != PROCESSES || closed(&h.base).is_none();
            self.v1.iter().filter(open).map(|(controller, h)| (controller.clone(), below(h))).collect()
        };
        // On a hybrid host the version 2 group is a help that may be missing.
        let v2 = self.v2.as_ref().filter(|h| v2_limits || closed(&h.base).is_none()).map(below);
        Dirs { v1, v2, v2_limits }
    }

    /// Where hierarchies are mounted.
    pub(super) fn mounts(&self) -> Vec<PathBuf> {
        let mut mounts: Vec<PathBuf> = self.v1.values().chain(&self.v2).map(|h| h.mount.clone()).collect();
        mounts.sort();
        mounts.dedup();
        mounts
    }
}

/// Where any hierarchy is mounted, also those whose controllers tare does not use: programs that a platform
/// runs may make groups of the run's name in each.
pub(super) fn every_mount() -> Vec<PathBuf> {
    let all = mounts::all().unwrap_or_default();
    let mut points: Vec<PathBuf> =
        all.into_iter().filter(|m| m.kind == "cgroup" || m.kind == "cgroup2").map(|m| m.point).collect();
    points.sort();
    points.dedup();
    points
}

/// The directory below which version 2 groups are made. A group that has processes, such as our own, cannot give controllers to
/// groups below it (cgroups(7), "no internal processes"). So it is the group above where we have moved into one of tare's own,
/// and else the root of the mount. Without root that is never ours: only our own group may be.
fn base_v2(mount: &Mount, own: &str, rootless: bool) -> PathBuf {
    let own = below(mount, own_group(own, "").unwrap_or("/"));
    match own.parent() {
        Some(above) if own.ends_with(delegated::LEAF) => above.to_owned(),
        _ if rootless => own,
        _ => mount.point.clone(),
    }
}

/// Which controllers are missing below `base`, what is done instead, and how to get them.
fn missing_in_words(base: &Path) -> Option<String> {
    let instead = |controller: &&str| match *controller {
        CPU_SETS => "`cpuset`: a guest's processes are bound to their CPUs one by one, and could undo it",
        _ => "`pids`: a guest may have any number of processes",
    };
    let absent = missing(base, &WANTED_V2);
    let notes: Vec<&str> = absent.iter().map(instead).collect();
    (!absent.is_empty()).then(|| format!("they have no {}. {}", notes.join("; "), delegated::remedy_for_missing()))
}

/// Those of these controllers that a group does not have.
pub(super) fn missing(group: &Path, controllers: &[&'static str]) -> Vec<&'static str> {
    let there = fs::read_to_string(group.join("cgroup.controllers")).unwrap_or_default();
    controllers.iter().copied().filter(|c| !there.split_whitespace().any(|t| t == *c)).collect()
}

/// Why groups cannot be made in a directory.
pub(super) fn closed(base: &Path) -> Option<String> {
    let errno = rustix::fs::access(base, Access::WRITE_OK | Access::EXEC_OK).err()?;
    let remedy = if rootless::is_rootless() {
        delegated::remedy()
    } else if errno == Errno::ACCESS {
        feature::remedy(&errno.into(), "")
    } else {
        "Mount it writable, or run on the host instead of in a container".to_owned()
    };
    Some(format!("control groups cannot be made in {}: {}. {remedy}", base.display(), std::io::Error::from(errno)))
}

/// A version 2 group other than the real root cannot have processes of its own and give controllers to
/// groups below it (cgroups(7), "no internal processes"). In a container the root that is seen is such a group.
pub(super) fn crowded(base: &Path) -> Option<String> {
    // Only the real root has no `cgroup.type`.
    if !base.join("cgroup.type").exists() {
        return None;
    }
    let enabled = fs::read_to_string(base.join("cgroup.subtree_control")).unwrap_or_default();
    let all = NEEDED_V2.iter().all(|needed| enabled.split_whitespace().any(|c| c == *needed));
    let processes = fs::read_to_string(base.join("cgroup.procs")).unwrap_or_default();
    let remedy = || match rootless::is_rootless() {
        true => delegated::remedy(),
        false => {
            "Run on the host instead of in a container, or move the container's processes into a group of their own"
                .to_owned()
        }
    };
    (!all && !processes.trim().is_empty()).then(|| {
        format!(
            "the control group {} has processes in it, so its controllers cannot be given to groups below it. {}",
            base.display(),
            remedy()
        )
    })
}

/// The path of our own group for a version 1 controller, from `/proc/self/cgroup`.
fn own_group<'a>(text: &'a str, controller: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        fields.next()?.split(',').any(|c| c == controller).then_some(())?;
        fields.next()
    })
}

/// The path of our own group in the hierarchy of a mount.
pub(super) fn own_group_of<'a>(mount: &Mount, text: &'a str) -> Option<&'a str> {
    match mount.kind.as_str() {
        "cgroup2" => text.lines().find_map(|line| line.strip_prefix("0::")),
        "cgroup" => mount.options.split(',').find_map(|controller| own_group(text, controller)),
        _ => None,
    }
}

/// The directory of `group` in a mount that may show only a part of the hierarchy.
pub(super) fn below(mount: &Mount, group: &str) -> PathBuf {
    match Path::new(group).strip_prefix(&mount.root) {
        Ok(rest) if !rest.components().any(|c| c == std::path::Component::ParentDir) => mount.point.join(rest),
        _ => mount.point.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn groups_are_made_below_our_own_in_version_1_and_at_the_root_in_version_2() {
        let own = "4:memory:/agent/1\n3:cpuset:/\n2:cpu,cpuacct:/\n0::/\n";
        let found = Hierarchies::parse(HYBRID, own, false);
        assert_eq!(found.v1["memory"].base, Path::new("/sys/fs/cgroup/memory/agent/1"));
        assert_eq!(found.v1["cpu"].base, Path::new("/sys/fs/cgroup/cpu,cpuacct"));
        assert_eq!(found.v1["cpuacct"], found.v1["cpu"]);
        assert_eq!(found.v2.map(|h| h.base), Some("/sys/fs/cgroup/unified".into()));
    }

    #[test]
    fn a_mount_that_shows_a_part_of_the_hierarchy_is_followed() {
        let mountinfo = "35 31 0:32 /box/7 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let found = Hierarchies::parse(mountinfo, "4:memory:/box/7/inner\n", false);
        assert_eq!(found.v1["memory"].base, Path::new("/sys/fs/cgroup/memory/inner"));
        let found = Hierarchies::parse(mountinfo, "4:memory:/elsewhere\n", false);
        assert_eq!(found.v1["memory"].base, Path::new("/sys/fs/cgroup/memory"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let none = Hierarchies::parse("", "", false).unavailable().unwrap_or_default();
        assert!(none.contains("no control groups are mounted"), "{none}");
        let only_memory = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let some = Hierarchies::parse(only_memory, "", false).unavailable().unwrap_or_default();
        assert!(some.contains("do not have cpu, cpuacct, cpuset"), "{some}");
    }
}
