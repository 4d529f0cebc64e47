//! The control groups as container runtimes understand them.
//!
//! A runtime looks for a group by a path from the root of each hierarchy, and expects either version 2
//! or version 1. tare's groups may lie deeper (below the group that tare itself is in), and beside
//! version 1 there may be a version 2 hierarchy without controllers, which confuses some runtimes. In
//! the runtime's own mount namespace both are set right: each hierarchy is shown from where tare's groups
//! begin, and the confusing one is hidden; its group is joined beforehand, so that it still counts and kills.
//!
//! In version 2 a runtime gives every controller that the kernel has to all groups from the root on (runc `CreateCgroupPath`,
//! crun `enable_controllers`), and leaves them so. tare has given the run's group what guests need already. So in the runtime's
//! mount namespace nothing that it writes to that file of the root comes to the kernel: the host's groups stay as they are.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tare_wire::launch::PrivateMount;

/// How long a group may take to be empty after its processes were killed.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The controllers that the groups below a group have, as a file of the group's.
const ENABLED: &str = "cgroup.subtree_control";

/// How the control groups are arranged for a runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arrangement {
    /// The group's path from the root of every hierarchy.
    pub group: String,
    /// Mounts to be made first.
    pub mounts: Vec<PrivateMount>,
    /// Files through which the runtime joins groups that it will not see.
    pub join: Vec<PathBuf>,
    /// Groups that the runtime makes by itself, in hierarchies that tare does not use, and may leave behind.
    pub strays: Strays,
}

/// A mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    /// Its mount point.
    pub at: PathBuf,
    /// Whether it is of version 2.
    pub version_2: bool,
}

impl Hierarchy {
    /// Those that are mounted on this host.
    pub(crate) fn mounted() -> Vec<Self> {
        hierarchies(&std::fs::read_to_string("/proc/self/mounts").unwrap_or_default())
    }
}

impl Arrangement {
    /// For the group whose directories these are, on this host.
    pub(crate) fn of(directories: &[PathBuf]) -> Self {
        Self::among(directories, &Hierarchy::mounted())
    }

    fn among(directories: &[PathBuf], hierarchies: &[Hierarchy]) -> Self {
        let group = directories.first().and_then(|directory| two_last(directory)).unwrap_or_default();
        let mut arrangement = Self {
            group: format!("/{}", group.display()),
            mounts: Vec::new(),
            join: Vec::new(),
            strays: Strays::default(),
        };
        let placed: Vec<(&PathBuf, &Hierarchy)> = directories
            .iter()
            .filter_map(|directory| {
                let around = hierarchies.iter().filter(|h| directory.starts_with(&h.at));
                around.max_by_key(|h| h.at.components().count()).map(|h| (directory, h))
            })
            .collect();
        let unused = hierarchies.iter().filter(|h| !h.version_2 && placed.iter().all(|(_, used)| used != h));
        arrangement.strays = Strays(unused.map(|h| h.at.join(arrangement.group.trim_start_matches('/'))).collect());
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
            if hierarchy.version_2 {
                // After what is shown there: of the groups above the run's, the runtime sees this one alone.
                let at = hierarchy.at.join(ENABLED);
                arrangement.mounts.push(PrivateMount::Bind { from: "/dev/null".into(), at });
            }
        }
        arrangement
    }

    /// Shows the runtime, as the controllers that there are, those that the groups below the root have. gVisor's enables all in
    /// each group down to the guest's, and gives up where the kernel refuses one. Others look into the file by ways that
    /// refuse mounts.
    pub(crate) fn list_enabled_controllers(&mut self) {
        let is_closed = |mount: &PrivateMount| matches!(mount, PrivateMount::Bind { at, .. } if at.ends_with(ENABLED));
        let Some(index) = self.mounts.iter().position(is_closed) else { return };
        let PrivateMount::Bind { at, .. } = self.mounts[index].clone() else { return };
        self.mounts.insert(index, PrivateMount::Bind { at: at.with_file_name("cgroup.controllers"), from: at });
    }
}

/// Groups outside of tare's own that a runtime may leave behind, as they are written down.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Strays(pub Vec<PathBuf>);

impl Strays {
    /// Refuses a note that is not of this run: what it names will be removed.
    ///
    /// # Errors
    /// What in it is not the run's.
    pub(crate) fn check(&self, run_id: &str) -> Result<(), String> {
        let run = format!("tare-{run_id}");
        let plain = |path: &Path| path.components().all(|part| part != Component::ParentDir);
        let ours = |stray: &PathBuf| plain(stray) && stray.parent().and_then(Path::file_name) == Some(run.as_ref());
        match self.0.iter().find(|stray| !ours(stray)) {
            Some(stray) => Err(format!("the control group {} is not of run {run_id}", stray.display())),
            None => Ok(()),
        }
    }

    /// Kills what is in the groups and removes them with all below them, and those of the run above them when they
    /// were the last. One that is gone, or still used by another guest, is as it should be.
    ///
    /// # Errors
    /// Which one could not be removed.
    pub(crate) fn remove(&self) -> Result<(), String> {
        let deadline = Instant::now() + TIMEOUT;
        for stray in &self.0 {
            while let Err(error) = remove_below(stray) {
                kill_below(stray);

                if error.kind() != ErrorKind::ResourceBusy || Instant::now() >= deadline {
                    return Err(format!("the control group {} could not be removed: {error}", stray.display()));
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            if let Some(run) = stray.parent() {
                // Another guest's may be in it.
                let _ = std::fs::remove_dir(run);
            }
        }
        Ok(())
    }
}

/// Kills every process of a group and of the groups in it that is still there to be killed. What is no control group kills
/// nobody, whatever its files are called.
fn kill_below(group: &Path) {
    if !tare_lab::is_control_group(group) {
        return;
    }
    let members = || {
        let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect::<Vec<_>>()
    };
    for pid in members().into_iter().filter(|pid| *pid != rustix::process::getpid()) {
        // Held first and looked for again: the number cannot come to mean another process between look and signal.
        if let Ok(held) = pidfd_open(pid, PidfdFlags::empty())
            && members().contains(&pid)
        {
            let _ = pidfd_send_signal(held, Signal::KILL);
        }
    }
    let entries = std::fs::read_dir(group).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .for_each(|entry| kill_below(&entry.path()));
}

/// Removes a group and the groups in it.
fn remove_below(group: &Path) -> std::io::Result<()> {
    let gone = |error: std::io::Error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) };
    let entries = match std::fs::read_dir(group) {
        Ok(entries) => entries,
        Err(error) => return gone(error),
    };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove_below(&entry.path())?;
    }
    std::fs::remove_dir(group).or_else(gone)
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
        assert_eq!(arrangement.strays.0, [PathBuf::from("/sys/fs/cgroup/pids/tare-r/g")]);
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
    fn on_a_version_2_host_the_root_is_closed_to_what_a_runtime_would_give_to_all_groups() {
        let version_2 = hierarchies("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
        let arrangement = Arrangement::among(&["/sys/fs/cgroup/tare-r/g".into()], &version_2);
        let root = Path::new("/sys/fs/cgroup");
        let closed = PrivateMount::Bind { from: "/dev/null".into(), at: root.join("cgroup.subtree_control") };
        let mounts = vec![closed.clone()];
        assert_eq!(
            arrangement,
            Arrangement { group: "/tare-r/g".into(), mounts, join: vec![], strays: Strays::default() }
        );
        let mut deeper = Arrangement::among(&[root.join("box/7/tare-r/g")], &version_2);
        let shown = PrivateMount::Bind { from: root.join("box/7"), at: root.to_owned() };
        assert_eq!(
            deeper.mounts,
            [shown.clone(), closed.clone()],
            "the file that is closed is that of the group that is shown as the root"
        );
        let listed =
            PrivateMount::Bind { from: root.join("cgroup.subtree_control"), at: root.join("cgroup.controllers") };
        deeper.list_enabled_controllers();
        assert_eq!(deeper.mounts, [shown, listed, closed], "read before it is closed");
    }

    #[test]
    fn a_plain_directory_with_the_files_of_a_group_kills_nobody() {
        let place = tempfile::tempdir().unwrap();
        let stray = place.path().join("tare-r/g");
        std::fs::create_dir_all(&stray).unwrap();
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        std::fs::write(stray.join("cgroup.procs"), format!("{}\n", child.id())).unwrap();
        let removed = Strays(vec![stray.clone()]).remove();
        let lives = child.try_wait().unwrap().is_none();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(lives, "it was killed: {removed:?}");
        assert!(removed.unwrap_err().contains("could not be removed") && stray.exists());
    }

    #[test]
    fn strays_go_with_what_is_below_them_and_those_of_others_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let run = place.path().join("tare-r");
        std::fs::create_dir_all(run.join("g/payload/inner")).unwrap();
        std::fs::create_dir_all(run.join("other")).unwrap();
        let strays = |path: PathBuf| Strays(vec![path]);
        strays(run.join("g")).remove().unwrap();
        strays(run.join("g")).remove().unwrap();
        assert!(!run.join("g").exists() && run.join("other").exists());
        strays(run.join("other")).remove().unwrap();
        assert!(!run.exists(), "the run's own goes with the last");
        assert_eq!(strays(run.join("g")).check("r"), Ok(()));
        for wrong in ["/sys/fs/cgroup/system.slice", "/x/tare-r2/g", "/x/tare-r/g/h", "/x/../tare-r/g/.."] {
            assert!(strays(wrong.into()).check("r").unwrap_err().contains("not of run r"), "{wrong}");
        }
    }
}
