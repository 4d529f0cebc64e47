//! What every process that is started for a guest is started with.

use std::path::{Path, PathBuf};

use tare_lab::RUN_VARIABLE;
use tare_wire::launch::Launch;

use crate::program::PATH;

/// The environment of everything that is started for a guest.
pub(crate) fn environment(run_id: &str) -> [(&str, &str); 4] {
    [("PATH", PATH), ("HOME", "/root"), ("LANG", "C.UTF-8"), (RUN_VARIABLE, run_id)]
}

/// Every limit on resources that tare itself has, as on every other arm: its name without `RLIMIT_`, what holds and
/// what it may be raised to; `None` is no limit. So a program that would set limits of its own sets these.
pub(crate) fn limits() -> [(&'static str, rustix::process::Rlimit); 16] {
    use rustix::process::Resource as Kind;
    [
        ("AS", Kind::As),
        ("CORE", Kind::Core),
        ("CPU", Kind::Cpu),
        ("DATA", Kind::Data),
        ("FSIZE", Kind::Fsize),
        ("LOCKS", Kind::Locks),
        ("MEMLOCK", Kind::Memlock),
        ("MSGQUEUE", Kind::Msgqueue),
        ("NICE", Kind::Nice),
        ("NOFILE", Kind::Nofile),
        ("NPROC", Kind::Nproc),
        ("RSS", Kind::Rss),
        ("RTPRIO", Kind::Rtprio),
        ("RTTIME", Kind::Rttime),
        ("SIGPENDING", Kind::Sigpending),
        ("STACK", Kind::Stack),
    ]
    .map(|(name, kind)| (name, rustix::process::getrlimit(kind)))
}

/// A launch that changes nothing.
pub(crate) fn plain_launch() -> Launch {
    Launch {
        cgroup_procs: Vec::new(),
        netns: None,
        cpu_set: Vec::new(),
        unshare: Vec::new(),
        mounts: Vec::new(),
        mounts_stay: false,
        root: None,
        shown: Vec::new(),
        hostname: None,
        merge: false,
        user: None,
        keeps_groups: false,
        devices: Vec::new(),
        confine: None,
        argv: Vec::new(),
    }
}

/// The agent's path, which must be absolute: it is used by programs with other working directories.
pub(crate) fn absolute(agent: &Path) -> PathBuf {
    std::path::absolute(agent).unwrap_or_else(|_| agent.to_owned())
}
