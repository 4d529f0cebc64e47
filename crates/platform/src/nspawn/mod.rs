//! `nspawn`: system containers started by systemd-nspawn.
//!
//! Its program runs in the guest's control groups and in a mount namespace of its own, where the guest's overlay is
//! mounted: it refuses the host's `/` itself. It makes groups in hierarchies that tare does not use and leaves them
//! behind empty, so they are written down and removed.

use std::path::{Path, PathBuf};

use rustix::process::Rlimit;
use serde::{Deserialize, Serialize};
use tare_model::Span;

use crate::builder::{Particulars, absolute, environment, limits};
use crate::entry::Entry;
use crate::error::Result;
use crate::groups::{Arrangement, Hierarchy, Strays};
use crate::guest_setup::{AGENT, GuestSetup};
use crate::held::{self, Held};
use crate::rootfs::overlay;
use crate::system::{Begun, Options, Starter, SystemContainers, private_state};
use crate::{Guest, ReapSite};

const NAME: &str = "nspawn";

/// Where the program keeps locks and mount points of its containers.
const STATE: &str = "/run/systemd/nspawn";

pub(crate) const ENTRY: Entry = Entry {
    reap: held::reap::<Groups>,
    ..Entry::of::<SystemContainers<Nspawn>>(
        NAME,
        "system containers of systemd-nspawn, over the host's root, a directory, an archive or a container image",
        Span::from_millis(80),
    )
};

/// The groups that the program leaves behind, as they are written down.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Groups {
    run_id: String,
    strays: Strays,
}

impl Held for Groups {
    const WHAT: &'static str = "the control groups";
    const REMEDY: &'static str = "End the processes in them, then remove them with rmdir";

    fn check(&self, site: &ReapSite<'_>) -> std::result::Result<(), String> {
        if self.run_id != site.run_id {
            return Err(format!("it is of run {}", self.run_id));
        }
        self.strays.check(site.run_id)
    }

    fn take_away(&self, _: &Path) -> std::result::Result<(), String> {
        self.strays.remove()
    }
}

struct Nspawn;

impl Starter for Nspawn {
    const PROGRAM: &'static str = "systemd-nspawn";
    const PACKAGE: &'static str = "systemd-container";

    fn disclosures() -> Vec<String> {
        vec![
            "The guest is a process below systemd-nspawn's stub init, as root. Its capabilities and its filter of system calls \
             are not the program's own but those of every arm: the guest's agent sees to them."
                .into(),
            "Its /run is a file system in memory of the program's, wherever its other writes go.".into(),
        ]
    }

    fn start(begun: Begun<'_>, options: &Options) -> Result<Box<dyn Guest>> {
        let Begun { mut builder, program, lower, data, confinement, mut launch, netns, folder } = begun;
        let site = builder.site;
        let groups =
            Groups { run_id: site.run_id.to_owned(), strays: strays(&builder.groups(), &Hierarchy::mounted()) };
        // A host with version 2 alone has no groups but tare's own, which the run's teardown removes.
        if !groups.strays.0.is_empty() {
            builder.hold(NAME, groups)?;
        }

        let root = folder.join("root");
        let state = std::fs::create_dir(&root)
            .map_err(|error| format!("{}: {error}", root.display()))
            .and_then(|()| private_state(&folder, STATE))
            .map_err(|why| builder.failed("make its directories", why, "Is the file system full or read-only?"))?;
        launch.mounts = vec![overlay(&mut builder, lower, &root, options.upper)?, state];
        let agent = absolute(site.agent);
        let setup = builder.setup(&agent, &data, &confinement);
        launch.argv = arguments(&program, &setup, &root, &netns);
        let mut command = builder.entering(&launch)?;
        // Its /tmp is a directory of the root's, as on every other arm, and not in memory.
        command.env("SYSTEMD_NSPAWN_TMPFS_TMP", "0");
        // One filter, that of every arm, and not two.
        command.env("SYSTEMD_SECCOMP", "0");
        builder.spawn_command(&mut command)?;
        builder.greet(site.timeout)?;
        builder.finish(Particulars::default())
    }
}

/// The groups that the program makes: it takes the path of its version 2 group for that in systemd's own hierarchy
/// of version 1.
fn strays(groups: &[PathBuf], mounted: &[Hierarchy]) -> Strays {
    let mut strays = Arrangement::of(groups).strays;
    for unified in mounted.iter().filter(|hierarchy| hierarchy.version_2) {
        let inside = groups.iter().filter_map(|group| group.strip_prefix(&unified.at).ok());
        let legacy = || mounted.iter().filter(|hierarchy| !hierarchy.version_2);
        strays.0.extend(inside.flat_map(|path| legacy().map(|hierarchy| hierarchy.at.join(path)).collect::<Vec<_>>()));
    }
    strays.0.retain(|stray| !groups.contains(stray));
    strays.0.sort();
    strays.0.dedup();
    strays
}

/// The program with its arguments.
fn arguments(program: &Path, setup: &GuestSetup<'_>, root: &Path, netns: &Path) -> Vec<String> {
    // A host name does not end so.
    let machine = setup.spec.name.trim_end_matches('-');
    let mut argv = vec![program.to_string_lossy().into_owned()];
    let fixed = [
        // The guest is not registered with the host's managers, and no unit is made: the control groups are tare's.
        "--quiet",
        "--register=no",
        "--keep-unit",
        "--settings=no",
        "--as-pid2",
        "--pipe",
        // Files of the guest's root stay as they are.
        "--resolv-conf=off",
        "--timezone=off",
        "--link-journal=no",
        // As large as on every other arm: half of the memory there is, and not a tenth.
        "--tmpfs=/dev/shm:mode=1777,nosuid,nodev",
    ];
    argv.extend(fixed.map(str::to_owned));
    argv.push(format!("--directory={}", root.display()));
    argv.push(format!("--machine={machine}"));
    argv.push(format!("--network-namespace-path={}", netns.display()));
    argv.push(format!("--bind-ro={}:{AGENT}", escaped(&setup.agent.to_string_lossy())));
    argv.extend(setup.data.iter().map(|data| {
        let bind = if data.read_only { "--bind-ro" } else { "--bind" };
        format!("{bind}={}:{}", escaped(&data.from.to_string_lossy()), data.at.display())
    }));
    // Left to itself the program sets those of the host's first process.
    argv.extend(limits().map(written));
    argv.extend(environment(setup.run_id).map(|(name, value)| format!("--setenv={name}={value}")));
    argv.extend(["--".to_owned(), AGENT.to_owned()]);
    argv.extend(setup.confined());
    argv
}

/// Colons part the fields of a bind mount (systemd-nspawn(1)).
fn escaped(path: &str) -> String {
    path.replace('\\', "\\\\").replace(':', "\\:")
}

/// A limit as `--rlimit=` takes it.
fn written((name, limit): (&str, Rlimit)) -> String {
    let number = |limit: Option<u64>| limit.map_or_else(|| "infinity".to_owned(), |limit| limit.to_string());
    format!("--rlimit={name}={}:{}", number(limit.current), number(limit.maximum))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest_setup::shown;
    use serde_json::json;
    use tare_model::ByteSize;
    use tare_model::guest::{GuestSize, GuestSpec, Seccomp};

    #[test]
    fn groups_in_systemds_own_hierarchy_are_known() {
        let hierarchy = |name: &str, version_2| Hierarchy { at: Path::new("/sys/fs/cgroup").join(name), version_2 };
        let mounted = [hierarchy("cpu", false), hierarchy("systemd", false), hierarchy("unified", true)];
        let groups = ["cpu/box/tare-r/g", "unified/box/tare-r/g"].map(|path| Path::new("/sys/fs/cgroup").join(path));
        let strays = strays(&groups, &mounted);
        assert!(strays.0.contains(&"/sys/fs/cgroup/systemd/box/tare-r/g".into()), "{strays:?}");
        assert!(groups.iter().all(|group| !strays.0.contains(group)), "{strays:?}");
        assert_eq!(strays.check("r"), Ok(()));
    }

    #[test]
    fn a_note_of_another_run_is_refused() {
        for (token, word) in [
            (json!({"run_id": "other", "strays": []}), "run other"),
            (json!({"run_id": "r", "strays": ["/sys/fs/cgroup/systemd/system.slice"]}), "not of run r"),
            (json!({"strays": 1}), "cannot be read"),
        ] {
            let site = ReapSite { run_id: "r", state: Path::new("/run/tare/r"), agent: Path::new("/agent") };
            let why = (ENTRY.reap)(&site, &token).unwrap_err().to_string();
            assert!(why.contains(word), "{why}");
        }
    }

    #[test]
    fn an_agents_path_cannot_end_its_field() {
        let size = GuestSize { cpus: 1, memory: ByteSize(1 << 30) };
        let spec = GuestSpec { seccomp: Seccomp::Off, ..GuestSpec::new("g-", size) };
        let [open, closed] = [false, true].map(|read_only| shown("/mnt/a:b", read_only));
        let setup = GuestSetup::of(&spec, "/a:b\\c", &open);
        let (root, netns) = (Path::new("/g/root"), Path::new("/proc/1/fd/9"));
        let arguments = |setup| arguments(Path::new("/usr/bin/x"), setup, root, netns);
        let argv = arguments(&setup);
        assert!(argv.contains(&"--bind=/mnt/a\\:b:/.tare/data".to_owned()), "{argv:?}");
        assert!(argv.contains(&"--bind-ro=/a\\:b\\\\c:/.tare/agent".to_owned()), "{argv:?}");
        assert!(argv.contains(&"--setenv=TARE_RUN=r".to_owned()), "{argv:?}");
        assert!(argv.contains(&"--machine=g".to_owned()), "{argv:?}");
        assert!(argv.ends_with(&["/.tare/agent", "--confine", "off"].map(str::to_owned)), "{argv:?}");
        let argv = arguments(&GuestSetup { data: &closed, ..setup });
        assert!(argv.contains(&"--bind-ro=/mnt/a\\:b:/.tare/data".to_owned()), "{argv:?}");
    }
}
