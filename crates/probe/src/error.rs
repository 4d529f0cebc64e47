//! What can go wrong with a probe.

use std::io;
use std::path::PathBuf;

/// Why a probe could not start or finish.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A file that nothing can be measured without.
    #[error("the probe cannot read `{}` ({source}): is /proc mounted, and readable for this user?", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file that does not hold what it holds on Linux.
    #[error("`{}` does not read as expected: {missing} is missing; is this a Linux /proc?", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        missing: &'static str,
    },
    /// A CPU of the SUT that this host does not have online.
    #[error("CPU {cpu} of the SUT is not online here: choose among the CPUs in /sys/devices/system/cpu/online")]
    NoSuchCpu {
        /// The CPU.
        cpu: u32,
    },
    /// None of a group's directories tells its CPU time.
    #[error(
        "no CPU time of control group `{name}` found in {searched:?}: give its version 2 directory, or its \
             version 1 directory under cpuacct, and give it while the group exists"
    )]
    Group {
        /// The group, for people.
        name: String,
        /// The directories searched.
        searched: Vec<PathBuf>,
    },
    /// A network interface that is not there.
    #[error(
        "network interface `{name}` cannot be watched ({reason}): start the probe after the interface is made, \
             as root where it lives in a namespace of its own"
    )]
    Interface {
        /// The interface.
        name: String,
        /// Why.
        reason: String,
    },
    /// A disk that is not there.
    #[error("disk `{name}` is not in /proc/diskstats: name it as in /sys/block")]
    Disk {
        /// The disk.
        name: String,
    },
    /// An interval of nothing.
    #[error("a sample interval of 0 would never sleep: give at least 1 ms")]
    Interval,
    /// The probe's thread could not be made.
    #[error("the probe's thread could not be started: {source}")]
    Thread {
        /// The system's reason.
        source: io::Error,
    },
    /// The probe's thread could not be set up.
    #[error("the probe's thread could not {doing}: {source}")]
    Setup {
        /// What was tried.
        doing: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The probe's thread ended on its own.
    #[error("the probe's thread died and its samples are lost; this is a defect of tare")]
    Died,
}
