//! What the probes saw, on one timeline.

use serde::{Deserialize, Serialize};

/// Where a sample was taken.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The host that carries the guests.
    Host,
    /// The control group of a guest, seen from the host.
    Guest(String),
    /// Inside a guest, as its own kernel view tells (in a container that is the host's).
    InGuest(String),
    /// The driver's side.
    Client,
    /// What a command of the user's prints about the host under the guests. Nothing is judged by it.
    UserCommand,
    /// Counters of the hypervisor under the guests, as it counts them by itself. Nothing is judged by them.
    Hypervisor,
}

/// What series of [`Source::UserCommand`] begin with where they stand among others.
pub const BY_COMMAND: &str = "by_command_";
/// The same of [`Source::Hypervisor`].
pub const BY_HYPERVISOR: &str = "by_hypervisor_";

/// One value of one series. Counters are cumulative since some past moment and only their
/// differences mean anything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// CLOCK_MONOTONIC of the host, nanoseconds.
    pub at_ns: u64,
    /// Where.
    pub source: Source,
    /// Series with its unit last, such as `cpu_user_s` or `memory_available_bytes`.
    pub series: String,
    /// Value.
    pub value: f64,
}

/// CPU seconds that the SUT spent in a window, by where they were spent. Parts do not overlap and
/// add up to `total_s`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CpuAccount {
    /// Length of the window, seconds.
    pub window_s: f64,
    /// CPUs that the account covers (the SUT's CPU set).
    pub cpus: u32,
    /// The measured guest's control group, user mode.
    pub guest_user_s: f64,
    /// The measured guest's control group, kernel mode.
    pub guest_system_s: f64,
    /// The neighbours' control groups.
    pub neighbours_s: f64,
    /// Software interrupts, which the kernel charges to no group.
    pub softirq_s: f64,
    /// Hardware interrupts.
    pub irq_s: f64,
    /// Kernel threads outside of all guests' control groups, whomever they worked for.
    pub kernel_s: f64,
    /// All other tasks: programs that have nothing to do with the guests, and tare's own where they ran there.
    pub foreign_s: f64,
    /// Busy time of all SUT CPUs (steal not included).
    pub total_s: f64,
    /// Time that the hypervisor under the host took away from the SUT's CPUs.
    pub steal_s: f64,
    /// The probe's own CPU in the window; it runs outside the SUT's CPU set where it can.
    pub probe_s: f64,
}

impl CpuAccount {
    /// What the measured guests cost: everything that was busy but neighbours and foreign tasks. Seconds.
    pub fn work_s(&self) -> f64 {
        self.total_s - self.neighbours_s - self.foreign_s
    }
}
