//! What a guest that shares the host's kernel keeps of root's power, as container engines have it by default.
//!
//! The agent confines itself before it serves, and where a platform's own program sets such things up it is given the same
//! lists: so every arm is confined alike. Landlock is an option of arms.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tare_model::guest::Seccomp;

use crate::sys;

/// The capabilities that container engines leave to root, each by its name and the kernel's number (capabilities(7)). Some engines
/// leave `CAP_MKNOD` as well and then filter devices by a control group; here, as with others, nobody makes device files.
pub const CAPABILITIES: [(&str, u32); 13] = [
    ("CAP_CHOWN", 0),
    ("CAP_DAC_OVERRIDE", 1),
    ("CAP_FOWNER", 3),
    ("CAP_FSETID", 4),
    ("CAP_KILL", 5),
    ("CAP_SETGID", 6),
    ("CAP_SETUID", 7),
    ("CAP_SETPCAP", 8),
    ("CAP_NET_BIND_SERVICE", 10),
    ("CAP_NET_RAW", 13),
    ("CAP_SYS_CHROOT", 18),
    ("CAP_AUDIT_WRITE", 29),
    ("CAP_SETFCAP", 31),
];

/// Those capabilities as a set of bits, as `/proc/PID/status` has it.
pub const fn capability_bits() -> u64 {
    let (mut bits, mut at) = (0, 0);
    while at < CAPABILITIES.len() {
        bits |= 1 << CAPABILITIES[at].1;
        at += 1;
    }
    bits
}

/// Files and directories of the kernel that are empty inside.
pub const MASKED: [&str; 11] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];

/// Directories and files of the kernel that cannot be written inside.
pub const READ_ONLY: [&str; 6] = ["/sys", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// How the agent of a guest confines itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// The filter of system calls.
    pub seccomp: Seccomp,
    /// What Landlock leaves of the rights on files and ports; `None`: all.
    #[serde(default)]
    pub landlock: Option<Landlock>,
}

impl From<Seccomp> for Confinement {
    /// Confinement without Landlock.
    fn from(seccomp: Seccomp) -> Self {
        Self { seccomp, landlock: None }
    }
}

/// Rules of Landlock (landlock(7)) for a process and all that it starts. They read and run every file that they see. Signals and abstract
/// sockets of those outside are out of their reach, where the kernel has that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landlock {
    /// The only directories that they may write beneath. One that is not there is left out.
    pub write: Vec<PathBuf>,
    /// The only TCP ports that they may bind to; 0 stands for one that the kernel chooses. `None`: all.
    pub tcp_bind: Option<Vec<u16>>,
    /// The only TCP ports that they may connect to. `None`: all.
    pub tcp_connect: Option<Vec<u16>>,
}

impl Landlock {
    /// The least version of the interface that has what these rules need. Before version 2 (Linux 5.19) nothing can be moved from one
    /// directory to another; ports came with version 4 (Linux 6.7).
    pub const fn least_version(&self) -> u32 {
        if self.tcp_bind.is_some() || self.tcp_connect.is_some() { 4 } else { 2 }
    }
}

/// The version of Landlock's interface in this kernel, from 1 on.
///
/// # Errors
/// `ENOSYS`: the kernel was built without it. `EOPNOTSUPP`: it is not among the security modules that the kernel was booted with.
pub fn landlock_version() -> io::Result<u32> {
    sys::landlock_version()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_is_that_of_container_engines() {
        assert_eq!(format!("{:016x}", capability_bits()), "00000000a00425fb");
    }
}
