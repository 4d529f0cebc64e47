//! The runtime's program: finding it, and taking away what it keeps.

use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tare_lab::RUN_VARIABLE;
use tare_model::Refusal;
use tare_model::guest::GuestSpec;
use tare_wire::launch::{Namespace, PrivateMount};

use super::gvisor::{Gvisor, is_gvisor};
use super::known;
use super::options::Options;
use crate::builder::{environment, plain_launch};
use crate::groups::{Arrangement, Strays};
use crate::held;
use crate::{ReapSite, Site, program};

/// How long a runtime may take for anything but running a guest.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A runtime that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Runtime {
    pub program: PathBuf,
    pub flags: Vec<String>,
    /// Set when it is gVisor's.
    pub gvisor: Option<Gvisor>,
}

impl Runtime {
    /// Finds the program, and the arguments it needs.
    ///
    /// # Errors
    /// Why it cannot be used, and the remedy.
    pub(super) fn find(options: &Options) -> Result<Self, Refusal> {
        let name = &options.runtime;
        let program = program::find(name)
            .ok_or_else(|| Refusal::new(format!("there is no runtime `{name}` here"), known::remedy(name)))?;
        let program = std::path::absolute(&program).unwrap_or(program);
        let gvisor = is_gvisor(&program).then(|| options.gvisor.unwrap_or_default());
        let flags = options.flags.clone().or_else(|| gvisor.map(Gvisor::flags)).unwrap_or_default();
        Ok(Self { program, flags, gvisor })
    }
}

/// A container as it is written down: enough to take it away from a fresh process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Held {
    program: PathBuf,
    flags: Vec<String>,
    /// The runtime's own state directory.
    root: PathBuf,
    id: String,
    run_id: String,
    /// Mounts that the runtime needs around it, whatever it is asked.
    mounts: Vec<PrivateMount>,
    /// Control groups that it may leave behind.
    strays: Strays,
}

/// The container's id of a guest. No id is the beginning of another one's: gVisor takes the beginning of an id for the id, so that
/// the deletion of `g`, already gone, would kill `g-2`. No name of a run or of a guest has a dot in it.
fn id(run_id: &str, guest: &str) -> String {
    format!("tare-{run_id}-{guest}.guest")
}

impl Held {
    /// The container of a guest.
    pub(super) fn new(runtime: &Runtime, site: &Site<'_>, spec: &GuestSpec, arrangement: &Arrangement) -> Self {
        Self {
            program: runtime.program.clone(),
            flags: runtime.flags.clone(),
            root: site.state.join("oci"),
            id: id(site.run_id, &spec.name),
            run_id: site.run_id.to_owned(),
            mounts: arrangement.mounts.clone(),
            strays: arrangement.strays.clone(),
        }
    }

    /// The runtime's program with these arguments, the last of which will be the container's id.
    pub(super) fn command(&self, arguments: &[&str]) -> Vec<String> {
        let mut argv = vec![self.program.to_string_lossy().into_owned()];
        argv.extend(self.flags.iter().cloned());
        argv.extend(["--root".to_owned(), self.root.to_string_lossy().into_owned()]);
        argv.extend(arguments.iter().map(|&argument| argument.to_owned()));
        argv.push(self.id.clone());
        argv
    }

    fn delete(&self, agent: &Path) -> Result<(), String> {
        if !self.is_kept() {
            return Ok(());
        }
        let deleted = self.run(agent, &["delete", "--force"])?;
        // Already gone is as good, and only the runtime knows whether it is.
        if deleted.success || !self.run(agent, &["state"])?.success {
            return Ok(());
        }
        Err(format!("`{} delete --force {}` failed: {}", self.program.display(), self.id, deleted.output.trim()))
    }

    /// Whether the runtime may know the container: it keeps a directory of its id below its root, or, as gVisor does, files with the
    /// id in their names (`ID_sandbox:ID.state`).
    fn is_kept(&self) -> bool {
        let entries = std::fs::read_dir(&self.root).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().contains(&self.id))
    }

    /// Runs the runtime's program with these arguments about the container, to its end.
    pub(super) fn run(&self, agent: &Path, arguments: &[&str]) -> Result<program::Ran, String> {
        let mut launch = plain_launch();
        launch.unshare = vec![Namespace::Mount];
        // What is no longer there need not be shown.
        launch.mounts = self.mounts.iter().filter(|mount| is_there(mount)).cloned().collect();
        launch.argv = self.command(arguments);
        let description = serde_json::to_string(&launch).map_err(|error| error.to_string())?;
        let mut command = Command::new(agent);
        command.arg("enter").arg(description).env_clear().envs(environment(&self.run_id)).env_remove(RUN_VARIABLE);
        program::run(&mut command, TIMEOUT)
            .map_err(|error| format!("`{} {}` failed: {error}", self.program.display(), arguments.join(" ")))
    }
}

impl held::Held for Held {
    const WHAT: &'static str = "the container";
    const REMEDY: &'static str = "Remove it with the runtime's own `delete --force`";

    fn check(&self, site: &ReapSite<'_>) -> Result<(), String> {
        let group = format!("tare-{}", site.run_id);
        let plain = |path: &Path| path.components().all(|part| part != Component::ParentDir);
        if self.run_id != site.run_id || !self.id.strip_prefix(&group).is_some_and(|rest| rest.starts_with('-')) {
            return Err(format!("`{}` of run {} is no container of run {}", self.id, self.run_id, site.run_id));
        }
        // The id becomes a file name below the root.
        if self.id.contains('/') {
            return Err(format!("`{}` is no name of a container", self.id));
        }
        if !self.root.starts_with(site.state) || self.root == site.state || !plain(&self.root) {
            let (root, state) = (self.root.display(), site.state.display());
            return Err(format!("its state {root} is not below the run's directory {state}"));
        }
        self.strays.check(site.run_id)
    }

    fn take_away(&self, agent: &Path) -> Result<(), String> {
        self.delete(agent)?;
        self.strays.remove()
    }
}

fn is_there(mount: &PrivateMount) -> bool {
    match mount {
        PrivateMount::Bind { from, .. } => from.exists(),
        PrivateMount::Hide { at } => at.exists(),
        PrivateMount::Overlay { .. } | PrivateMount::HostReadOnly { .. } | PrivateMount::ReadOnly { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::held::Held as _;

    fn held() -> Held {
        Held {
            program: "/usr/bin/x".into(),
            flags: vec!["--quiet".into()],
            root: "/run/tare/r/oci".into(),
            id: id("r", "g"),
            run_id: "r".into(),
            mounts: vec![PrivateMount::Hide { at: "/sys/fs/cgroup/unified".into() }],
            strays: Strays(vec!["/sys/fs/cgroup/pids/tare-r/g".into()]),
        }
    }

    #[test]
    fn a_note_that_is_not_of_the_run_is_refused() {
        let site = ReapSite { run_id: "r", state: Path::new("/run/tare/r"), agent: Path::new("/agent") };
        assert_eq!(held().check(&site), Ok(()));
        let wrong = [
            (Held { root: "/home/x/oci".into(), ..held() }, "not below"),
            (Held { root: "/run/tare/r".into(), ..held() }, "not below"),
            (Held { root: "/run/tare/r2/oci".into(), ..held() }, "not below"),
            (Held { root: "/run/tare/r/../x".into(), ..held() }, "not below"),
            (Held { id: "tare-other-g".into(), ..held() }, "no container of run r"),
            (Held { id: "tare-r2-g".into(), ..held() }, "no container of run r"),
            (Held { id: "tare-r-../../x".into(), ..held() }, "no name"),
            (Held { run_id: "other".into(), ..held() }, "no container of run r"),
            (Held { strays: Strays(vec!["/sys/fs/cgroup/system.slice".into()]), ..held() }, "not of run r"),
        ];
        for (held, word) in wrong {
            let why = held.check(&site).unwrap_err();
            assert!(why.contains(word), "{held:?}: {why}");
            let refused = (super::super::ENTRY.reap)(&site, &held.token()).unwrap_err().to_string();
            assert!(refused.contains(word), "{refused}");
        }
    }

    #[test]
    fn what_a_runtime_keeps_of_a_container_is_seen() {
        let root = tempfile::tempdir().unwrap();
        let held = Held { root: root.path().to_owned(), ..held() };
        assert!(!Held { root: "/nonexistent".into(), ..held.clone() }.is_kept());
        // Another guest of this run, whose name begins with this one's.
        let (this, another) = (id("r", "g"), id("r", "g-2"));
        std::fs::create_dir(root.path().join(&another)).unwrap();
        assert!(!held.is_kept());
        std::fs::write(root.path().join(format!("{this}_sandbox:{this}.state")), "{}").unwrap();
        assert!(held.is_kept());
        let runc = Held { id: another, ..held };
        assert!(runc.is_kept());
    }

    #[test]
    fn a_container_is_found_again_from_its_note() {
        let held = held();
        assert_eq!(Held::from_token(&held.token()).unwrap(), held);
        assert_eq!(
            held.command(&["state"]),
            ["/usr/bin/x", "--quiet", "--root", "/run/tare/r/oci", "state", "tare-r-g.guest"]
        );
        assert!(Held::from_token(&serde_json::json!({"id": 1})).is_err());
    }

    #[test]
    fn a_runtime_that_is_not_here_is_said_to_be() {
        let options = Options { runtime: "no-such-runtime".into(), ..Options::default() };
        let Refusal { reason, remedy } = Runtime::find(&options).unwrap_err();
        assert!(reason.contains("no-such-runtime") && remedy.contains("Install"), "{reason} {remedy}");
    }
}
