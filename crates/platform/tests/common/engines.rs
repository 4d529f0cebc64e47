//! Container engines of the tests' own, so that those of the machine are never touched.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::this_test;

/// Says to a test that was started again where the engine's things are.
const PLACE: &str = "TEST_ENGINE_PLACE";

/// In a mount namespace that sees the host's mounts, and shows it none: what a daemon mounts goes with it.
const APART: [&str; 3] = ["--mount", "--propagation", "slave"];

/// Runs the test of this name again with a Docker daemon, for the checks start it again themselves; in there, its options.
pub fn with_docker() -> Option<Value> {
    again(Engine::Docker)
}

/// The same with containerd's daemon.
pub fn with_containerd() -> Option<Value> {
    again(Engine::Containerd)
}

/// The same with a place for Podman's images.
pub fn with_podman() -> Option<Value> {
    again(Engine::Podman)
}

#[derive(Clone, Copy)]
enum Engine {
    Docker,
    Podman,
    Containerd,
}

impl Engine {
    fn options(self, place: &Path) -> Value {
        match self {
            Self::Docker => json!({"host": format!("unix://{}", place.join("socket").display())}),
            Self::Podman => json!({"runtime": "runc", "flags": podman_flags(place)}),
            Self::Containerd => json!({"address": place.join("socket")}),
        }
    }

    /// The command of its daemon, where it has one.
    fn daemon(self, place: &Path) -> Option<Command> {
        let mut command = match self {
            Self::Podman => return None,
            Self::Docker => {
                let mut command = Command::new("unshare");
                command.args(APART).args(["dockerd", "--bridge=none", "--iptables=false", "--ip6tables=false"]);
                command.arg("--data-root").arg(place.join("data")).arg("--exec-root").arg(place.join("exec"));
                command.arg("--pidfile").arg(place.join("pid"));
                command.arg("--host").arg(format!("unix://{}", place.join("socket").display()));
                command
            }
            // Where the tests are, for it must see what tare mounts; it mounts nothing itself.
            Self::Containerd => {
                let config = "version = 2\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n";
                fs::write(place.join("config"), config).unwrap();
                let mut command = Command::new("containerd");
                command.arg("--config").arg(place.join("config")).arg("--root").arg(place.join("data"));
                command.arg("--state").arg(place.join("exec")).arg("--address").arg(place.join("socket"));
                command
            }
        };
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        Some(command)
    }
}

fn again(engine: Engine) -> Option<Value> {
    if let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) {
        return Some(engine.options(&place));
    }
    let _turn = super::turn();
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let daemon = match engine.daemon(place.path()).map(|command| Daemon::start(command, place.path())).transpose() {
        Ok(daemon) => daemon,
        Err(why) => {
            super::skipped(&why);
            return None;
        }
    };
    let before = groups();
    let inner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &this_test(), "--nocapture"])
        .env(PLACE, place.path())
        .output()
        .unwrap();
    let said = [inner.stdout, inner.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    drop(daemon);
    // What engines leave above their containers' groups.
    groups().difference(&before).for_each(|group| remove(group));
    let log = fs::read_to_string(place.path().join("log")).unwrap_or_default();
    said.lines().filter_map(|line| line.strip_prefix("SKIPPED: ")).for_each(super::skipped);
    assert!(inner.status.success(), "{said}\nthe daemon: {log}");
    None
}

/// Arguments with which Podman keeps everything in this place.
pub fn podman_flags(place: &Path) -> Vec<String> {
    [("--root", "store"), ("--runroot", "run"), ("--tmpdir", "tmp")]
        .into_iter()
        .flat_map(|(flag, name)| [flag.to_owned(), place.join(name).to_string_lossy().into_owned()])
        .collect()
}

/// Runs the engine's program with the options of a study; what it printed on standard output.
pub fn engine(name: &str, options: &Value, arguments: &[&str]) -> String {
    let mut command = Command::new(name);
    for (option, flag) in [("host", "--host"), ("address", "--address")] {
        command.args(options[option].as_str().into_iter().flat_map(|value| [flag, value]));
    }
    command.args(options["flags"].as_array().into_iter().flatten().filter_map(Value::as_str));
    if tare_lab::is_rootless() {
        // As within a user namespace that Podman has made itself.
        command.env("_CONTAINERS_USERNS_CONFIGURED", "done").env("_CONTAINERS_ROOTLESS_UID", "64123");
    }
    let ran = command.args(arguments).output().unwrap();
    assert!(ran.status.success(), "{name} {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

struct Daemon {
    child: Child,
    groups: BTreeSet<PathBuf>,
}

impl Daemon {
    /// Starts a daemon that will listen at `socket`; why there is none.
    fn start(mut command: Command, place: &Path) -> Result<Self, String> {
        let name = format!("{command:?}");
        let name = ["dockerd", "containerd"].into_iter().find(|known| name.contains(known)).unwrap();
        if tare_lab::is_rootless() {
            return Err(format!("{name} needs root"));
        }
        let (socket, log) = (place.join("socket"), place.join("log"));
        let said = fs::File::create(&log).unwrap();
        let groups = groups();
        let child = command.stdin(Stdio::null()).stdout(said.try_clone().unwrap()).stderr(said).spawn();
        let child = child.map_err(|error| format!("{:?} does not start: {error}", command.get_program()))?;
        let mut daemon = Self { child, groups };
        let deadline = Instant::now() + Duration::from_secs(60);
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            let said = || fs::read_to_string(&log).unwrap_or_default();
            if let Some(status) = daemon.child.try_wait().unwrap() {
                return Err(format!("{name} does not run here ({status}): {}", said()));
            }
            assert!(Instant::now() < deadline, "{name} does not listen: {}", said());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(daemon)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            let pid = rustix::process::Pid::from_child(&self.child);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let deadline = Instant::now() + Duration::from_secs(20);
            while self.child.try_wait().is_ok_and(|status| status.is_none()) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        groups().difference(&self.groups).for_each(|group| remove(group));
    }
}

/// The groups in which engines make those of their containers, by hierarchy.
fn groups() -> BTreeSet<PathBuf> {
    let hierarchies = fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten().map(|entry| entry.path());
    let places = hierarchies.flat_map(|at| ["docker", "libpod_parent"].map(|name| at.join(name)));
    places.filter(|group| group.is_dir()).collect()
}

fn remove(group: &Path) {
    for below in fs::read_dir(group).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir()) {
        let _ = fs::remove_dir(below.path());
    }
    let _ = fs::remove_dir(group);
}
