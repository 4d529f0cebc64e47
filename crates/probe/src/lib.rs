//! What is sampled on a host and in a guest, on one timeline.
//!
//! [`HostProbe`] samples the host from a thread of its own; [`GuestProbe`] does the same with less inside a guest;
//! [`cpu_account`] and [`flags`] turn samples into the CPU bill of a window and into warnings about it;
//! [`environment::capture`] describes the host once.
//!
//! # How precise the CPU figures are
//!
//! The kernel keeps CPU time in several places, of very different precision. What is used here, and why
//! (kernel/sched/cputime.c, kernel/sched/cpuacct.c, kernel/time/tick-sched.c, kernel/sched/stats.h):
//!
//! - `/proc/stat` prints units of 10 ms (`USER_HZ`). Its `user`, `system`, `irq` and `softirq` are, on kernels
//!   with `CONFIG_TICK_CPU_ACCOUNTING`, *sampled*: whoever runs when the timer ticks is charged the whole tick
//!   (1 to 4 ms). Its `idle` and `iowait` are *measured* (the time between entering and leaving the tickless idle
//!   state), and so is `steal` where the hypervisor reports it. So busy time is taken as window minus idle, not as
//!   the sum of the busy columns. Printing in 10 ms limits that to about 0.5 % of one CPU in a window of 2 s.
//! - `/sys/devices/system/cpu/cpuN/cpuidle/stateM/time` counts the same idle time in microseconds, but only when a
//!   sleep ends. It refines `/proc/stat` within the rounding of the latter and never overrides it.
//! - A control group's `cpu.stat` (version 2) or `cpuacct.usage` (version 1) is the scheduler's own sum of run
//!   time, in microseconds or nanoseconds, up to date to one tick. Its split into user and system follows ticks, so
//!   the split is good to a few percent when the total is good to a fraction of one.
//! - The root group's `cpuacct.usage_percpu` is the same for every task of the host by CPU: all time that any task
//!   ran. What is busy beyond it are interrupts that hit an idle CPU.
//! - Elsewhere `/proc/schedstat` has the run time of a CPU. It is updated only when tasks switch, so a lone busy loop is
//!   invisible for seconds: it counts as interrupts until then, unless a guest's group shows it.
//! - `/proc/uptime` is not used: it repeats `/proc/stat`'s idle.
//! - `/proc/TID/schedstat` of kernel threads tells what of the tasks outside all groups is the kernel's own work. It is read at
//!   the edges of turns for threads that have run; once a second `/proc` is searched for others.
//!
//! # What is foreign
//!
//! All that tasks ran on the SUT's CPUs, less guests, neighbours and kernel threads. It is a difference, so tasks that come
//! and go between two samples are in it, and so are the errors of the other figures: some ms in a window. A
//! worker that is bound to no CPU counts where it was last seen. tare's own processes are foreign, too, where they
//! use the SUT's CPUs. Where interrupts are charged to the task they interrupt, those that interrupt a foreign task are
//! foreign: on a host with foreign load, service demand of network cases is too low. A CPU that polls while idle is idle. A host that polls for a halted virtual CPU (`halt_poll_ns`)
//! does so in that CPU's thread: the guest's group is charged.
//!
//! # Where interrupt time goes
//!
//! With `CONFIG_IRQ_TIME_ACCOUNTING` interrupts and softirqs are measured apart and no task or group is charged for
//! them. Without it, they are charged to whatever task they interrupted (on loopback and veth most of the network
//! stack runs that way, in the sender's group), so adding `/proc/stat`'s softirq to a group's time would count it
//! twice. The probe finds out which (series `irq_time_accounting`) and [`cpu_account`] follows. A kernel that neither
//! measures them apart nor tells the run time of tasks by CPU cannot distinguish foreign tasks from interrupts: no account there.

pub mod environment;

mod account;
mod collector;
mod disk;
mod error;
mod ethtool;
mod flags;
mod group;
mod guest;
mod host;
mod irq;
mod network;
mod reader;
mod sampler;
mod schedule;
mod stat;
mod sys;
mod text;
mod threads;
mod timeline;

pub use account::cpu_account;
pub use collector::CountReader;
pub use disk::disk_of;
pub use error::ProbeError;
pub use ethtool::{Ethtool, Offload};
pub use flags::{DRIVER_LIMIT, FOREIGN_LIMIT, Offering, STEAL_LIMIT, driver_saturated, flags, guest_flags};
pub use group::Group;
pub use guest::GuestProbe;
pub use host::{HostConfig, HostProbe};
pub use network::Interface;
pub use sampler::ProbeData;
pub use timeline::{gain, gain_of_all, gain_over};

/// CLOCK_MONOTONIC now, nanoseconds: the clock that stamps every sample.
pub fn now_ns() -> u64 {
    clock_ns(rustix::time::ClockId::Monotonic)
}

/// A clock's reading in nanoseconds.
pub(crate) fn clock_ns(clock: rustix::time::ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    // Both clocks in use start at 0 and never run backwards, so neither part is negative.
    (time.tv_sec.max(0) as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.max(0) as u64)
}
