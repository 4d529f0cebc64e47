//! The host's root file system as the guest's: a file server (virtiofsd) that tare starts, in the guest's own control
//! group, and that libvirt is told the socket of.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tare_wire::launch::{Namespace, PrivateMount};

use crate::making::{Making, plain_launch};
use crate::program;

/// Where distributions put it, which is not in PATH.
const PLACES: [&str; 4] = ["virtiofsd", "/usr/libexec/virtiofsd", "/usr/lib/qemu/virtiofsd", "/usr/lib/virtiofsd"];
/// How long it may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);
/// Name of its socket in the guest's directory.
pub(super) const SOCKET: &str = "root";
/// Name of the share in the guest.
pub(super) const TAG: &str = "tare-root";

/// What helps when there is none.
pub(super) const REMEDY: &str = "Install it (Debian 12: part of qemu-system-common; later: `apt install virtiofsd`), or \
                                 choose an image with a disk: image = { debian = {} }";

/// The file server's program.
pub(super) fn find() -> Option<PathBuf> {
    PLACES.iter().find_map(|place| program::find(place))
}

/// Starts it for the host's root and waits until it listens in the guest's own `folder`.
///
/// It sees that directory as `/run`: the server that comes with QEMU keeps a lock there which it never removes.
pub(super) fn start(making: &mut Making<'_>, groups: Vec<PathBuf>, folder: &Path) -> crate::error::Result<()> {
    let Some(program) = find() else {
        return Err(making.failed("share the host's root", "there is no virtiofsd".into(), REMEDY));
    };
    let mut launch = plain_launch();
    launch.cgroup_procs = groups;
    launch.cpu_set = making.spec.cpu_set.clone();
    launch.unshare = vec![Namespace::Mount];
    launch.mounts = vec![PrivateMount::Bind { from: folder.to_owned(), at: "/run".into() }];
    launch.argv = vec![program.to_string_lossy().into_owned()];
    launch.argv.extend(making.aside(|_| arguments(&program)));
    making.beside(&launch)?;
    let socket = folder.join(SOCKET);
    let deadline = Instant::now() + PATIENCE;
    while !socket.exists() {
        if Instant::now() >= deadline {
            let why = format!("it does not listen after {PATIENCE:?}");
            return Err(making.failed(&format!("start {}", program.display()), why, "See below what it said"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// The older one is written in C and came with QEMU up to 7.2, the later one in Rust.
fn arguments(program: &Path) -> Vec<String> {
    let help = program::run(Command::new(program).arg("--help"), PATIENCE).map(|ran| ran.output).unwrap_or_default();
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum.unwrap_or(1 << 20);
    let mut words = vec![format!("--socket-path=/run/{SOCKET}"), format!("--rlimit-nofile={files}")];
    let own: &[&str] = if help.contains("--shared-dir") {
        &["--shared-dir=/", "--cache=always", "--sandbox=chroot", "--xattr"]
    } else {
        &["-o", "source=/,cache=always,sandbox=chroot,xattr"]
    };
    words.extend(own.iter().map(|&word| word.to_owned()));
    words
}
