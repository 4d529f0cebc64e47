//! The daemon behind a socket: whether tare and it see the same files, and where it finds shims.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::net::sockopt::socket_peercred;
use tare_model::Refusal;

use super::options::Runtime;

/// A daemon that listens.
#[derive(Debug)]
pub(super) struct Daemon {
    process: u32,
}

/// Whether there is a socket at that path; nothing is connected to.
///
/// # Errors
/// What is there instead, and the remedy.
pub(super) fn look(address: &Path) -> Result<(), Refusal> {
    match address.metadata().map(|found| found.file_type().is_socket()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(absent(address, "it is no socket")),
        Err(error) => Err(absent(address, &error.to_string())),
    }
}

fn absent(address: &Path, why: &str) -> Refusal {
    let reason = format!("no containerd listens at {}: {why}", address.display());
    let remedy = "Install it: on Debian and Ubuntu, `apt-get install containerd`; start it: `systemctl start containerd`; or \
                  name its socket by `address = \"PATH\"`";
    Refusal::new(reason, remedy)
}

impl Daemon {
    /// Connects to the socket, and lets it go.
    ///
    /// # Errors
    /// When nobody listens, or in another process namespace.
    pub(super) fn find(address: &Path) -> Result<Self, Refusal> {
        let stream = UnixStream::connect(address).map_err(|error| absent(address, &error.to_string()))?;
        let peer = socket_peercred(&stream).map_err(|error| absent(address, &error.to_string()))?;
        Ok(Self { process: peer.pid.as_raw_nonzero().get().unsigned_abs() })
    }

    /// Refuses a daemon that would not see the guest's root where tare mounts it.
    ///
    /// # Errors
    /// That it is elsewhere.
    pub(super) fn sees_our_mounts(&self) -> Result<(), Refusal> {
        let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/mnt"));
        let why = match (namespace(&self.process.to_string()), namespace("self")) {
            (Ok(theirs), Ok(ours)) if theirs == ours => return Ok(()),
            (Err(error), _) | (_, Err(error)) => format!("it cannot be seen where containerd runs: {error}"),
            _ => format!("containerd, process {}, is in another mount namespace than tare", self.process),
        };
        let remedy = "Run tare and containerd on the same host and in the same mount namespace: neither of them in a \
                      container, nor in a unit with PrivateMounts, PrivateTmp, ProtectSystem or the like";
        Err(Refusal::new(why, remedy))
    }

    /// The shim of a runtime, where containerd looks for it: in its own PATH, then beside its own program.
    ///
    /// # Errors
    /// That it is not there, and how it is had.
    pub(super) fn shim(&self, runtime: &Runtime) -> Result<PathBuf, Refusal> {
        let environment = std::fs::read(format!("/proc/{}/environ", self.process)).unwrap_or_default();
        let program = std::fs::read_link(format!("/proc/{}/exe", self.process)).ok();
        let places = places(&environment, program.as_deref());
        find(runtime, &places)
    }
}

/// Where a daemon with this environment and this program looks for shims.
fn places(environment: &[u8], program: Option<&Path>) -> Vec<PathBuf> {
    let path = environment.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(b"PATH="));
    let path = String::from_utf8_lossy(path.unwrap_or_default()).into_owned();
    let beside = program.and_then(Path::parent).map(Path::to_owned);
    path.split(':').filter(|place| place.starts_with('/')).map(PathBuf::from).chain(beside).collect()
}

fn find(runtime: &Runtime, places: &[PathBuf]) -> Result<PathBuf, Refusal> {
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    let tried = places.iter().map(|place| place.join(&runtime.shim));
    if let Some(found) = tried.into_iter().find(is_program) {
        return Ok(found);
    }
    let mut shown: Vec<String> = Vec::new();
    for place in places.iter().map(|place| place.display().to_string()) {
        if !shown.contains(&place) {
            shown.push(place);
        }
    }
    let shim = &runtime.shim;
    let reason = match shim.starts_with('/') {
        true => format!("there is no program {shim}"),
        false => format!("containerd finds no `{shim}`: it looks in {}", shown.join(", ")),
    };
    Err(Refusal::new(reason, remedy(runtime)))
}

fn remedy(runtime: &Runtime) -> String {
    if runtime.is_machine() {
        return "Install Kata Containers: https://github.com/kata-containers/kata-containers/blob/main/docs/install/README.md. \
                Its shim must be in containerd's PATH; where it is in /opt/kata, `ln -s \
                /opt/kata/bin/containerd-shim-kata-v2 /usr/local/bin/`, or name it by `runtime = \"PATH\"`"
            .into();
    }
    match runtime.shim.contains("-runc-") {
        true => "Install containerd anew: on Debian and Ubuntu, `apt-get install --reinstall containerd runc`".into(),
        false => "Install the shim in containerd's PATH, or name it by `runtime = \"PATH\"`".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime(shim: &str) -> Runtime {
        Runtime { name: "x".into(), shim: shim.into() }
    }

    #[test]
    fn a_shim_is_looked_for_where_the_daemon_looks() {
        let place = tempfile::tempdir().unwrap();
        let environment = format!("HOME=/\0PATH={}:relative:/nowhere\0X=1", place.path().display());
        let places = places(environment.as_bytes(), Some(Path::new("/nowhere/containerd")));
        assert_eq!(places, [place.path(), Path::new("/nowhere"), Path::new("/nowhere")]);
        let kata = runtime("containerd-shim-kata-v2");
        let Refusal { reason, remedy } = find(&kata, &places).unwrap_err();
        assert!(reason.contains("containerd-shim-kata-v2") && reason.ends_with(", /nowhere"), "{reason}");
        assert!(remedy.contains("docs/install") && remedy.contains("ln -s"), "{remedy}");
        let shim = place.path().join(&kata.shim);
        std::fs::write(&shim, "").unwrap();
        assert!(find(&kata, &places).is_err(), "it cannot be run");
        std::fs::set_permissions(&shim, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find(&kata, &places).unwrap(), shim);
        assert_eq!(find(&runtime(shim.to_str().unwrap()), &[PathBuf::from("/")]).unwrap(), shim);
        let Refusal { reason, remedy } = find(&runtime("/none/containerd-shim-x-v2"), &places).unwrap_err();
        assert!(reason.contains("no program /none") && remedy.contains("PATH"), "{reason} {remedy}");
        assert!(find(&runtime("containerd-shim-runc-v2"), &[]).unwrap_err().remedy.contains("apt-get"));
    }

    #[test]
    fn who_listens_is_found_and_who_does_not_is_said() {
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("s");
        for (at, word) in [(socket.as_path(), "No such file"), (place.path(), "no socket")] {
            let Refusal { reason, remedy } = look(at).unwrap_err();
            assert!(reason.contains(word) && remedy.contains("systemctl start"), "{reason} {remedy}");
        }
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        look(&socket).unwrap();
        let daemon = Daemon::find(&socket).unwrap();
        assert_eq!(daemon.process, std::process::id());
        daemon.sees_our_mounts().unwrap();
        drop(listener);
        assert!(Daemon::find(&socket).unwrap_err().reason.contains("refused"));
    }
}
