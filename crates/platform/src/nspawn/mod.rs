//! `nspawn`: system containers started by systemd-nspawn.
//!
//! Its program runs in the guest's control groups and in a mount namespace of its own, where the guest's overlay is
//! mounted: it refuses the host's `/` itself. It makes groups in hierarchies that tare does not use and leaves them
//! behind empty, so they are written down and removed.

use std::path::{Path, PathBuf};

use rustix::process::Rlimit;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::field::FieldError;
use tare_model::guest::{GuestSpec, Seccomp};
use tare_model::{Refusal, Span};

use crate::data::{DataDirectory, INSIDE};
use crate::error::Result;
use crate::groups::{Arrangement, Hierarchy, Strays};
use crate::making::{Particulars, absolute, confined, environment, limits};
use crate::options as common;
use crate::registry::{Entry, PLAIN};
use crate::rootfs::overlay;
use crate::system::{AGENT, Begun, Options, Starter, private_state};
use crate::{Availability, Comparable, DataWanted, Guest, HostView, Platform, PlatformError, ReapSite, Site};

const NAME: &str = "nspawn";

const STARTER: Starter = Starter { program: "systemd-nspawn", package: "systemd-container" };

/// Where the program keeps locks and mount points of its containers.
const STATE: &str = "/run/systemd/nspawn";

pub(crate) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "system containers of systemd-nspawn, over the host's root, a directory, an archive or a container image",
    schema: common::schema::<Options>,
    check_options: common::fill::<Options>,
    make,
    start_estimate: Span::from_millis(80),
    reap,
    variants: PLAIN,
};

fn make(value: &Value) -> std::result::Result<Box<dyn Platform>, FieldError> {
    common::read(value).map(|options| Box::new(Nspawn { options }) as Box<dyn Platform>)
}

/// What is written down of a guest.
#[derive(Debug, Serialize, Deserialize)]
struct Held {
    run_id: String,
    strays: Strays,
}

fn reap(site: &ReapSite<'_>, token: &Value) -> Result<()> {
    take_away(site.run_id, token).map_err(|why| PlatformError::Reap {
        tried: format!("remove the control groups {token}"),
        why,
        remedy: "End the processes in them, then remove them with rmdir".into(),
    })
}

fn take_away(run_id: &str, token: &Value) -> std::result::Result<(), String> {
    let held: Held =
        serde_json::from_value(token.clone()).map_err(|error| format!("the note of it cannot be read: {error}"))?;
    if held.run_id != run_id {
        return Err(format!("it is of run {}", held.run_id));
    }
    held.strays.check(run_id)?;
    held.strays.remove()
}

struct Nspawn {
    options: Options,
}

impl Platform for Nspawn {
    fn look(&self, host: &HostView) -> Availability {
        STARTER.look(host, &self.options)
    }

    fn check(&self, host: &HostView) -> Availability {
        STARTER.check(host, &self.options)
    }

    fn disclosures(&self) -> Vec<String> {
        let mut disclosures = vec![
            self.options.rootfs.disclosure(self.options.upper),
            "The guest is a process below systemd-nspawn's stub init, as root. Its capabilities and its filter of system calls \
             are not the program's own but those of every arm: the guest's agent sees to them."
                .into(),
            "Its /run is a file system in memory of the program's, wherever its other writes go.".into(),
        ];
        disclosures.extend(self.options.data.as_ref().and_then(DataDirectory::disclosure));
        disclosures
    }

    fn comparable(&self) -> Comparable {
        Comparable::Yes
    }

    fn merging_refusal(&self) -> Option<Refusal> {
        None
    }

    fn data_refusal(&self, wanted: DataWanted) -> Option<Refusal> {
        self.options.data.as_ref()?.refusal(wanted)
    }

    fn versions(&self) -> Vec<(String, String)> {
        STARTER.versions()
    }

    fn start(&self, site: &Site<'_>, spec: &GuestSpec) -> Result<Box<dyn Guest>> {
        let Begun { mut making, program, lower, data, mut launch, netns, folder } =
            STARTER.begin(&self.options, site, spec)?;
        let held = Held { run_id: site.run_id.to_owned(), strays: strays(&making.groups(), &Hierarchy::mounted()) };
        // A host with version 2 alone has no groups but tare's own, which the run's teardown removes.
        if !held.strays.0.is_empty() {
            let token = serde_json::to_value(&held).unwrap_or_default();
            making.hold(NAME, token, Box::new(move || held.strays.remove()))?;
        }

        let root = folder.join("root");
        let state = std::fs::create_dir(&root)
            .map_err(|error| format!("{}: {error}", root.display()))
            .and_then(|()| private_state(&folder, STATE))
            .map_err(|why| making.failed("make its directories", why, "Is the file system full or read-only?"))?;
        launch.mounts = vec![overlay(&mut making, lower, &root, self.options.upper)?, state];
        let agent = absolute(site.agent);
        let inside = Inside {
            root: &root,
            netns: &netns,
            agent: &agent,
            data: data.as_deref(),
            read_only: making.is_data_shared(),
            seccomp: making.confine(),
        };
        launch.argv = arguments(&program, &inside, &spec.name, site.run_id);
        let mut command = making.entering(&launch)?;
        // Its /tmp is a directory of the root's, as on every other arm, and not in memory.
        command.env("SYSTEMD_NSPAWN_TMPFS_TMP", "0");
        // One filter, that of every arm, and not two.
        command.env("SYSTEMD_SECCOMP", "0");
        making.spawn_command(&mut command)?;
        making.greet(site.timeout)?;
        making.finish(Particulars::default())
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

/// What of the host's a guest is made of.
struct Inside<'a> {
    root: &'a Path,
    netns: &'a Path,
    agent: &'a Path,
    data: Option<&'a Path>,
    /// Whether nobody inside may write to its data.
    read_only: bool,
    /// The filter of system calls that the agent installs inside.
    seccomp: Seccomp,
}

/// The program with its arguments.
fn arguments(program: &Path, inside: &Inside<'_>, guest: &str, run_id: &str) -> Vec<String> {
    // A host name does not end so.
    let machine = guest.trim_end_matches('-');
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
    argv.push(format!("--directory={}", inside.root.display()));
    argv.push(format!("--machine={machine}"));
    argv.push(format!("--network-namespace-path={}", inside.netns.display()));
    argv.push(format!("--bind-ro={}:{AGENT}", escaped(&inside.agent.to_string_lossy())));
    let bind = if inside.read_only { "--bind-ro" } else { "--bind" };
    argv.extend(inside.data.map(|data| format!("{bind}={}:{INSIDE}", escaped(&data.to_string_lossy()))));
    // Left to itself the program sets those of the host's first process.
    argv.extend(limits().map(written));
    argv.extend(environment(run_id).map(|(name, value)| format!("--setenv={name}={value}")));
    argv.extend(["--".to_owned(), AGENT.to_owned()]);
    argv.extend(confined(inside.seccomp));
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
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

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
            let why = reap(&site, &token).unwrap_err().to_string();
            assert!(why.contains(word), "{why}");
        }
    }

    #[test]
    fn an_agents_path_cannot_end_its_field() {
        let inside = Inside {
            root: Path::new("/g/root"),
            netns: Path::new("/proc/1/fd/9"),
            agent: Path::new("/a:b\\c"),
            data: Some(Path::new("/mnt/a:b")),
            read_only: false,
            seccomp: Seccomp::Off,
        };
        let argv = arguments(Path::new("/usr/bin/x"), &inside, "g-", "r");
        assert!(argv.contains(&"--bind=/mnt/a\\:b:/.tare/data".to_owned()), "{argv:?}");
        assert!(argv.contains(&"--bind-ro=/a\\:b\\\\c:/.tare/agent".to_owned()), "{argv:?}");
        assert!(argv.contains(&"--setenv=TARE_RUN=r".to_owned()), "{argv:?}");
        assert!(argv.contains(&"--machine=g".to_owned()), "{argv:?}");
        assert!(argv.ends_with(&["/.tare/agent", "--confine", "off"].map(str::to_owned)), "{argv:?}");
        let argv = arguments(Path::new("/usr/bin/x"), &Inside { read_only: true, ..inside }, "g-", "r");
        assert!(argv.contains(&"--bind-ro=/mnt/a\\:b:/.tare/data".to_owned()), "{argv:?}");
    }
}
