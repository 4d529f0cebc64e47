//! The host's root as the guest's: a file server (virtiofsd) beside the machine.

use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};
use tare_wire::launch::{Launch, Namespace, PrivateMount};

use super::Lack;
use super::options::Options;
use crate::making::plain_launch;
use crate::program::find;

/// Tag of the share.
pub(super) const TAG: &str = "hostroot";
/// Name of the server's socket in the guest's directory.
pub(super) const SOCKET: &str = "fs";
/// Where distributions put the server, beside PATH.
const PLACES: [&str; 4] = ["virtiofsd", "/usr/libexec/virtiofsd", "/usr/lib/qemu/virtiofsd", "/usr/lib/virtiofsd"];

/// The server's program.
pub(super) fn server(options: &Options) -> Result<PathBuf, Lack> {
    let remedy = "Install it (Debian: qemu-system-common or virtiofsd), or name it: virtiofsd = \"PATH\"";
    match &options.virtiofsd {
        Some(path) => find(&path.to_string_lossy())
            .ok_or_else(|| Lack::new(format!("there is no program {}", path.display()), remedy)),
        None => PLACES.iter().find_map(|place| find(place)).ok_or_else(|| {
            Lack::new("the image `host` needs virtiofsd, and it is not here", format!("{remedy}. Or use another image"))
        }),
    }
}

/// How the server is started. `folder` is the guest's own directory.
///
/// It sees that directory as `/run`: the server that comes with QEMU keeps a lock there which it never removes.
pub(super) fn launch(program: &Path, folder: &Path, cgroup_procs: Vec<PathBuf>, cpu_set: Vec<u32>) -> Launch {
    let mut launch = plain_launch();
    launch.cgroup_procs = cgroup_procs;
    launch.cpu_set = cpu_set;
    launch.unshare = vec![Namespace::Mount];
    launch.mounts = vec![PrivateMount::Bind { from: folder.to_owned(), at: "/run".into() }];
    launch.argv = vec![
        program.to_string_lossy().into_owned(),
        format!("--socket-path=/run/{SOCKET}"),
        "-o".into(),
        "source=/,cache=always,sandbox=chroot,xattr".into(),
        "-f".into(),
    ];
    // Left to itself it asks for a million open files, which not every host grants.
    if let Some(most) = getrlimit(Resource::Nofile).maximum {
        launch.argv.push(format!("--rlimit-nofile={most}"));
    }
    launch
}

/// QEMU's words for the share.
pub(super) fn words(folder: &Path, bus: &str) -> Vec<String> {
    let socket = super::command::escaped(&folder.join(SOCKET));
    let backend = format!("socket,id=share,path={socket}");
    let device = format!("vhost-user-fs-{bus},chardev=share,tag={TAG}");
    ["-chardev", &backend, "-device", &device].map(str::to_owned).to_vec()
}
