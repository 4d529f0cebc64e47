//! The control groups as runtimes understand them.
//!
//! A runtime looks for a group by a path from the root of each hierarchy, and expects either version 2
//! or version 1. tare's groups may lie deeper (below the group that tare itself is in), and beside
//! version 1 there may be a version 2 hierarchy without controllers, which confuses some runtimes. In
//! the runtime's own mount namespace both are set right: each hierarchy is shown from where tare's groups
//! begin, and the confusing one is hidden; its group is joined beforehand, so that it still counts and kills.

use std::path::{Path, PathBuf};

use tare_wire::launch::PrivateMount;

/// How the control groups are arranged for a runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arrangement {
    /// The group's path from the root of every hierarchy.
    pub group: String,
    /// Mounts to be made first.
    pub mounts: Vec<PrivateMount>,
    /// Files through which the runtime joins groups that it will not see.
    pub join: Vec<PathBuf>,
    /// Groups that the runtime makes by itself, in hierarchies that tare does not use, and may leave behind.
    pub strays: Vec<PathBuf>,
}

/// A mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hierarchy {
    at: PathBuf,
    version_2: bool,
}

impl Arrangement {
    /// For the group whose directories these are, on this host.
    pub(super) fn of(directories: &[PathBuf]) -> Self {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        Self::among(directories, &hierarchies(&mounts))
    }

    fn among(directories: &[PathBuf], hierarchies: &[Hierarchy]) -> Self {
        let group = directories.first().and_then(|directory| two_last(directory)).unwrap_or_default();
        let mut arrangement =
            Self { group: format!("/{}", group.display()), mounts: Vec::new(), join: Vec::new(), strays: Vec::new() };
        let placed: Vec<(&PathBuf, &Hierarchy)> = directories
            .iter()
            .filter_map(|directory| {
                let around = hierarchies.iter().filter(|h| directory.starts_with(&h.at));
                around.max_by_key(|h| h.at.components().count()).map(|h| (directory, h))
            })
            .collect();
        let unused = hierarchies.iter().filter(|h| !h.version_2 && placed.iter().all(|(_, used)| used != h));
        arrangement.strays = unused.map(|h| h.at.join(arrangement.group.trim_start_matches('/'))).collect();
        let mixed = placed.iter().any(|(_, h)| !h.version_2);
        for (directory, hierarchy) in placed {
            if hierarchy.version_2 && mixed {
                arrangement.join.push(directory.join("cgroup.procs"));
                arrangement.mounts.push(PrivateMount::Hide { at: hierarchy.at.clone() });
                continue;
            }
            let base = directory.parent().and_then(Path::parent);
            if let Some(base) = base.filter(|base| *base != hierarchy.at) {
                arrangement.mounts.push(PrivateMount::Bind { from: base.to_owned(), at: hierarchy.at.clone() });
            }
        }
        arrangement
    }
}

/// Removes groups that a runtime left behind, and those of the run above them when they were the last.
/// One that is gone, or still used by another guest, is as it should be.
///
/// # Errors
/// Which one could not be removed.
pub(super) fn remove_strays(strays: &[PathBuf]) -> Result<(), String> {
    for stray in strays {
        for group in [Some(stray.as_path()), stray.parent()].into_iter().flatten() {
            match std::fs::remove_dir(group) {
                Err(error) if group == stray && error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(format!("the control group {} could not be removed: {error}", group.display()));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// `RUN/GUEST` of a group's directory.
fn two_last(directory: &Path) -> Option<PathBuf> {
    let guest = directory.file_name()?;
    Some(Path::new(directory.parent()?.file_name()?).join(guest))
}

/// The hierarchies in `/proc/self/mounts` (proc(5)). Control groups are not mounted on paths with
/// blanks, so nothing needs to be unescaped.
fn hierarchies(mounts: &str) -> Vec<Hierarchy> {
    let lines = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    lines
        .filter(|(_, kind)| matches!(*kind, "cgroup" | "cgroup2"))
        .map(|(at, kind)| Hierarchy { at: at.into(), version_2: kind == "cgroup2" })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
        cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
        cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n\
        cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";

    #[test]
    fn what_a_runtime_makes_elsewhere_is_known() {
        let mounts = format!("{HYBRID}cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n");
        let directories = ["cpu/tare-r/g", "memory/tare-r/g"].map(|d| Path::new("/sys/fs/cgroup").join(d));
        let arrangement = Arrangement::among(&directories, &hierarchies(&mounts));
        assert_eq!(arrangement.strays, [PathBuf::from("/sys/fs/cgroup/pids/tare-r/g")]);
    }

    #[test]
    fn on_a_hybrid_host_groups_are_shown_from_their_base_and_version_2_is_hidden() {
        let directories = ["cpu/tare-r/g", "memory/box/7/tare-r/g", "unified/tare-r/g"];
        let directories = directories.map(|d| Path::new("/sys/fs/cgroup").join(d));
        let arrangement = Arrangement::among(&directories, &hierarchies(HYBRID));
        assert_eq!(arrangement.group, "/tare-r/g");
        let memory = PathBuf::from("/sys/fs/cgroup/memory");
        assert_eq!(
            arrangement.mounts,
            [
                PrivateMount::Bind { from: memory.join("box/7"), at: memory },
                PrivateMount::Hide { at: "/sys/fs/cgroup/unified".into() }
            ]
        );
        assert_eq!(arrangement.join, [PathBuf::from("/sys/fs/cgroup/unified/tare-r/g/cgroup.procs")]);
    }

    #[test]
    fn on_a_version_2_host_nothing_needs_arranging() {
        let arrangement = Arrangement::among(
            &["/sys/fs/cgroup/tare-r/g".into()],
            &hierarchies("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"),
        );
        assert_eq!(
            arrangement,
            Arrangement { group: "/tare-r/g".into(), mounts: vec![], join: vec![], strays: vec![] }
        );
    }
}
