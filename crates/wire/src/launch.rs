//! How the agent's program is started inside the namespaces of a guest.
//!
//! `tare-agent enter JSON` carries this out: a small, static, single-threaded program may enter and
//! unshare namespaces freely, which the controller, with its threads, may not.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::confine::Confinement;

/// What `tare-agent wait` prints before it begins as an agent: it then waits for one byte, so that whoever started it may move
/// it into control groups first. What it has touched until then is gone when it begins.
pub const WAITING: &[u8] = b"tare-agent waits\n";

/// The number that the first of [`Launch::devices`] has as an open file; the others follow.
pub const FIRST_DEVICE: i32 = 100;

/// Everything about the start of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Files that a `0` is written to, so that the process and its children are in these control groups.
    pub cgroup_procs: Vec<PathBuf>,
    /// Network namespace to enter; `None` stays.
    pub netns: Option<PathBuf>,
    /// CPUs to be bound to (sched_setaffinity), beside any control group; empty means any.
    pub cpu_set: Vec<u32>,
    /// Namespaces to make anew.
    pub unshare: Vec<Namespace>,
    /// Mounts made in the new mount namespace before the root is changed, in order (needs
    /// [`Namespace::Mount`]). The host's own mount table never sees them.
    #[serde(default)]
    pub mounts: Vec<PrivateMount>,
    /// Whether these mounts are made in the mount namespace that the process is in already, for a program outside of the guest
    /// that must see them. Whoever asks for that takes them away, and gives a place that is shared with no other namespace.
    #[serde(default)]
    pub mounts_stay: bool,
    /// Root file system to change to; `None` stays.
    pub root: Option<Root>,
    /// Directories of the host's that the new root shows, each at a place of its own, as they are and not through an
    /// overlay (needs a root to change to).
    #[serde(default)]
    pub shown: Vec<Shown>,
    /// Host name inside (needs [`Namespace::Uts`]).
    pub hostname: Option<String>,
    /// Whether the memory of the process, and of all that it starts, may be merged with equal memory of others
    /// (`PR_SET_MEMORY_MERGE`, kept by children and across exec). Where the kernel refuses, the start fails.
    #[serde(default)]
    pub merge: bool,
    /// Who the program is, for one that serves a guest from the host; `None` stays who starts it.
    #[serde(default)]
    pub user: Option<LaunchUser>,
    /// Whether the program is to find that it gave up its groups (`setgroups` succeeds and changes nothing): for one that ends
    /// where it cannot, in a user namespace in which nobody can.
    #[serde(default)]
    pub keeps_groups: bool,
    /// Devices that the program finds open for reading and writing, by numbers from [`FIRST_DEVICE`] on, for one that cannot find them
    /// by a name.
    #[serde(default)]
    pub devices: Vec<PathBuf>,
    /// Whether the process, and all that it starts, is confined as [`crate::confine`] has it, and how far.
    #[serde(default)]
    pub confine: Option<Confinement>,
    /// Program and arguments, as seen from inside; empty means this agent itself, as an agent.
    pub argv: Vec<String>,
}

/// A kind of namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Namespace {
    /// Mounts.
    Mount,
    /// Process ids: the program becomes process 1, and all else inside dies with it.
    Pid,
    /// System V IPC and POSIX message queues.
    Ipc,
    /// Host name.
    Uts,
    /// Control groups.
    Cgroup,
    /// Network devices, addresses and sockets: the new one has no link.
    Network,
}

/// A user that a program becomes, for good: it may not gain rights by running others. One that it is already keeps its groups,
/// and starts in `/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchUser {
    /// Number of the user.
    pub uid: u32,
    /// Number of its one group.
    pub gid: u32,
    /// The capabilities that it has all the same, and the most that it can ever have.
    pub capabilities: Vec<LaunchCapability>,
}

/// A capability (capabilities(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaunchCapability {
    /// Read and write files whatever their owner and mode.
    DacOverride,
    /// Do with files what their owner may, such as opening them so that the time of access stays.
    FileOwner,
    /// Give up capabilities for good (CAP_SETPCAP).
    SetCapabilities,
    /// Change the root directory.
    Chroot,
}

/// A change to the mounts of the new mount namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrivateMount {
    /// A directory tree seen through an overlay, mounted on a directory, for a program that wants a root
    /// file system by path. The mount points that every guest needs are made in the overlay, where the tree has none.
    Overlay {
        /// The tree. `/` is the host's root, with the host's other file systems on their places.
        lower: PathBuf,
        /// Where the overlay is mounted.
        at: PathBuf,
        /// Where writes go.
        upper: Upper,
    },
    /// Shows a directory at another place.
    Bind {
        /// The directory.
        from: PathBuf,
        /// The place.
        at: PathBuf,
    },
    /// Shows the host's root, with the host's other file systems on their places, where nothing can be written: for a
    /// program that hands files on to somebody who must not change them. Views of the kernel (`/proc`, `/sys`, `/dev`)
    /// and what is in memory (`/run`) are not shown.
    HostReadOnly {
        /// The place.
        at: PathBuf,
    },
    /// Shows a directory at another place, where nothing can be written.
    ReadOnly {
        /// The directory.
        from: PathBuf,
        /// The place.
        at: PathBuf,
    },
    /// Takes a mount away, for a program that cannot cope with it.
    Hide {
        /// Its mount point.
        at: PathBuf,
    },
}

/// A directory of the host's that is shown in a new root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// The directory, as the host names it.
    pub from: PathBuf,
    /// Where it is shown inside: an absolute path, made where it is not there.
    pub at: PathBuf,
    /// Whether nobody inside may write to it, whoever he is.
    #[serde(default)]
    pub read_only: bool,
}

/// A root file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Root {
    /// A directory tree seen through an overlay: all reads are the tree's files, all writes are the guest's.
    Overlay {
        /// The tree, as in [`PrivateMount::Overlay`].
        lower: PathBuf,
        /// Where writes go.
        upper: Upper,
    },
    /// A directory, as it is.
    Directory(PathBuf),
}

/// Where the writes of an overlay go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Upper {
    /// A tmpfs inside the guest's mount namespace: nothing is left when the guest is gone.
    Memory,
    /// Two directories, `upper` and `work`, are made in this one on the host's disk.
    Disk(PathBuf),
}
