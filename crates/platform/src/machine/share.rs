//! A tree of the host's as the guest's root, mostly the host's own root: a file server (virtiofsd) beside the machine, in the guest's control group.
//!
//! The guest's own root is not to be trusted with the host's files. So the server works in mounts of its own, in which
//! all that it shares is read-only: whatever the guest asks for, the host's kernel answers EROFS.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use tare_model::Refusal;
use tare_wire::launch::{Launch, LaunchCapability, Namespace, PrivateMount};

use super::image::Image;
use super::user::{self, Confined};
use super::volume::image_error;
use crate::builder::{GuestBuilder, plain_launch};
use crate::error::Result;
use crate::program;

/// Tag of the share, by which the guest mounts it.
pub(crate) const TAG: &str = "root";
/// What it is called.
const PROGRAM: &str = "virtiofsd";
/// Name of the server's socket in the guest's directory.
pub(crate) const SOCKET: &str = "fs";
/// What a reader of a report must know about it.
const DISCLOSURE: &str = "The share is read-only to the guest, its root included; what of it the host's root may read, the guest's root may read. Its server works \
     in namespaces of its own without a network; the one of QEMU 7.2 is a user of its own with CAP_DAC_OVERRIDE and CAP_FOWNER, later ones are root with \
     the capabilities that they keep.";
/// The same without root.
const DISCLOSURE_ROOTLESS: &str = "The share is read-only to the guest, its root included; it shows what the user who runs tare may read, and files of others as nobody's. Its server works \
     as this user in namespaces of its own without a network.";
/// Where distributions put the server, beside PATH.
const PLACES: [&str; 4] = ["virtiofsd", "/usr/libexec/virtiofsd", "/usr/lib/qemu/virtiofsd", "/usr/lib/virtiofsd"];
/// What helps where there is none.
const REMEDY: &str = "Install it (Debian 12: part of qemu-system-common; later: `apt install virtiofsd`)";
/// Capabilities that the older server would keep, to write as the guest's users: nothing of what it serves can be written.
const NEEDLESS: &str = "-chown:-fsetid:-mknod:-setfcap:-setuid:-setgid";
/// How long the server may take until it listens, and to tell its options.
const LISTENS: Duration = Duration::from_secs(20);
/// How often it is looked whether it listens.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Name of the directory, in the guest's own, on which the server has the tree.
const HOST: &str = "host";

/// What a reader of a report must know about it here.
pub(crate) fn disclosure() -> &'static str {
    if tare_lab::is_rootless() { DISCLOSURE_ROOTLESS } else { DISCLOSURE }
}

/// The server's program: the one that was named, or the first that is found. Otherwise what is missing, and the remedy.
pub(crate) fn server(named: Option<&Path>) -> std::result::Result<PathBuf, Refusal> {
    match named {
        Some(path) => program::find(&path.to_string_lossy())
            .ok_or_else(|| Refusal::new(format!("there is no program {}", path.display()), REMEDY)),
        None => PLACES.iter().find_map(|place| program::find(place)).ok_or_else(|| {
            let reason = "a root that is shared with the guest needs virtiofsd, and it is not here";
            Refusal::new(reason, format!("{REMEDY}, or use an image with a disk: image = {{ debian = {{}} }}"))
        }),
    }
}

/// The server that serves a guest, and what it is to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Serving {
    process: u32,
    asked: Option<Confined>,
}

impl Serving {
    /// Looks what it is, once the machine has connected to it: only then does it give up the last of its rights.
    pub(crate) fn check(self, builder: &mut GuestBuilder<'_>) -> Result<()> {
        match self.asked {
            Some(asked) => user::hold_to(builder, PROGRAM, self.process, asked),
            None => {
                user::note_as_found(
                    builder,
                    PROGRAM,
                    self.process,
                    "it changes its root only as root, and chooses what it keeps",
                );
                Ok(())
            }
        }
    }
}

/// Starts the server and waits until it listens. `folder` is the guest's own directory; `image` says which tree.
pub(crate) fn serve(
    builder: &mut GuestBuilder<'_>,
    server: &Path,
    folder: &Path,
    image: &Image,
    groups: Vec<PathBuf>,
) -> Result<Serving> {
    let tried = "share the guest's root";
    let tree = builder.aside(|_| image.tree()).map_err(|error| image_error(builder, error))?;
    let (tree, commands) = tree.unzip();
    builder.parts.commands = commands;
    match std::fs::create_dir(folder.join(HOST)) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(builder.failed(tried, error.to_string(), "Is the file system full or read-only?"));
        }
        _ => {}
    }
    let help = builder.aside(|_| help(server));
    let mut launch = launch(server, folder, tree, &help, builder.site.run_id);
    launch.cgroup_procs = groups;
    launch.cpu_set = builder.spec.cpu_set.clone();
    let process = builder.beside(&launch)?;
    // It serves one client alone, so it is not connected to here; a socket that is there is being listened on.
    let socket = folder.join(SOCKET);
    let deadline = Instant::now() + LISTENS;
    while !socket.exists() {
        if Instant::now() >= deadline {
            let why = format!("{} does not listen after {LISTENS:?}", server.display());
            return Err(builder.failed(tried, why, "See below what it said"));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    // It is the machine's to connect to, and a machine of another daemon's may be root without capabilities. What is there is in the
    // server's hands, so no link is followed.
    std::os::unix::fs::lchown(&socket, Some(0), Some(0))
        .map_err(|error| builder.failed(tried, error.to_string(), "Is its directory on an ordinary file system?"))?;
    let asked = launch.user.as_ref().map(|user| Confined::new(user.uid, user::ALL_FILES, true));
    Ok(Serving { process, asked })
}

/// How the server is started: in namespaces of its own, without a network. The older server starts as a user of its own who may read
/// all files (the guest's overlay opens them so that their time of access stays, which takes CAP_FOWNER), and has no other capability left when it serves. The later one changes its root only as root, and
/// gives up most capabilities by itself.
///
/// It sees the guest's directory as `/run`: the server that comes with QEMU keeps a lock there which it never removes.
fn launch(server: &Path, folder: &Path, tree: Option<PathBuf>, help: &str, run_id: &str) -> Launch {
    use LaunchCapability::{Chroot, DacOverride, FileOwner, SetCapabilities};
    let shared = Path::new("/run").join(HOST);
    let mut launch = plain_launch();
    launch.unshare = vec![Namespace::Mount, Namespace::Ipc, Namespace::Uts, Namespace::Network];
    // Either ends where it cannot give up its groups.
    launch.keeps_groups = tare_lab::is_rootless();
    launch.user = (!is_later(help)).then(|| user::own(run_id, &[DacOverride, FileOwner, SetCapabilities, Chroot]));
    launch.mounts = vec![
        PrivateMount::Bind { from: folder.to_owned(), at: "/run".into() },
        match tree {
            Some(from) => PrivateMount::ReadOnly { from, at: shared.clone() },
            None => PrivateMount::HostReadOnly { at: shared.clone() },
        },
    ];
    launch.argv = vec![server.to_string_lossy().into_owned()];
    launch.argv.extend(arguments(help, &shared));
    launch
}

/// The older server is written in C and came with QEMU up to 7.2, the later one in Rust.
fn is_later(help: &str) -> bool {
    help.contains("--shared-dir")
}

fn arguments(help: &str, shared: &Path) -> Vec<String> {
    let shared = shared.display();
    let mut words = vec![format!("--socket-path=/run/{SOCKET}")];
    // Left to itself it asks for a million open files, which not every host grants.
    if let Some(most) = getrlimit(Resource::Nofile).maximum {
        words.push(format!("--rlimit-nofile={most}"));
    }
    if is_later(help) {
        words.push(format!("--shared-dir={shared}"));
        words.extend(["--cache=always", "--sandbox=chroot", "--xattr"].map(str::to_owned));
        // The guest's overlay enters no directory that is announced as a mount point.
        for word in ["--readonly", "--no-announce-submounts"] {
            words.extend(help.contains(word).then(|| word.to_owned()));
        }
    } else {
        words.extend([
            "-f".into(),
            "-o".into(),
            format!("source={shared},cache=always,sandbox=chroot,xattr,modcaps={NEEDLESS}"),
        ]);
    }
    words
}

/// What the server tells of its options, asked once in this process.
fn help(server: &Path) -> String {
    static TEXTS: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());
    // Held while it is asked: others wait for the same.
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = texts.get(server) {
        return known.clone();
    }
    let ran = program::run(Command::new(server).arg("--help"), LISTENS);
    let text = ran.map(|ran| ran.output).unwrap_or_default();
    texts.insert(server.to_owned(), text.clone());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_server_is_given_the_read_only_tree() {
        let shared = Path::new("/run/host");
        let older = arguments("-o source=PATH  shared directory tree", shared);
        assert!(older.iter().any(|word| word.starts_with("source=/run/host,cache=always")), "{older:?}");
        let later = arguments("--shared-dir <SHARED_DIR> --readonly --no-announce-submounts", shared);
        assert!(later.contains(&"--no-announce-submounts".to_owned()));
        assert!(later.contains(&"--shared-dir=/run/host".to_owned()) && later.contains(&"--readonly".to_owned()));
        assert!(!arguments("--shared-dir <SHARED_DIR>", shared).contains(&"--readonly".to_owned()));
        let folder = Path::new("/run/tare/r/guests/g");
        assert_eq!(super::launch(Path::new("/x"), folder, None, "--shared-dir", "r").user, None);
        let launch = launch(Path::new("/x"), folder, None, "", "r");
        assert!(launch.user.as_ref().is_some_and(|user| user.uid > 0), "{launch:?}");
        assert_eq!(launch.mounts.last(), Some(&PrivateMount::HostReadOnly { at: shared.to_owned() }));
        assert!(launch.unshare.contains(&Namespace::Mount));
        let tree = super::launch(Path::new("/x"), folder, Some("/cache/tree".into()), "", "r");
        let shown = PrivateMount::ReadOnly { from: "/cache/tree".into(), at: shared.to_owned() };
        assert_eq!(tree.mounts.last(), Some(&shown));
    }

    #[test]
    fn a_server_that_is_not_there_is_reported() {
        let Refusal { reason, remedy } = server(Some(Path::new("/none/virtiofsd"))).unwrap_err();
        assert!(reason.contains("/none/virtiofsd") && remedy.contains("apt install"), "{reason}. {remedy}");
    }
}
