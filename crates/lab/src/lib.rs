//! The lab on one host: network namespaces, links, control groups, CPU binding, the state directory of a
//! run, and how all of it is taken away, also from a fresh process after the controller was killed.
//!
//! - [`Lab`] holds the namespaces `client` and `sut`, the bridge between them, and gives each guest a
//!   [`Port`]: a namespace of its own with `eth0` in it. A guest with a network card of its own gets a [`Tap`].
//! - [`Cgroup`] gives a guest its CPU quota, CPU set and memory limit, reads back what the kernel granted,
//!   and accounts for what the guest used.
//! - [`StateDir`] is where a run keeps what must not outlive it, and the lock that says it is alive.
//! - [`Resource`], [`Ledger`] and [`reap()`](reap()) are the contract of teardown: what will be torn down is
//!   written to the [`FileLedger`] of the state directory first, and reaping is idempotent.
//!
//! - [`confine_reader`] takes root's rights from a process that reads what strangers made.
//!
//! The interface is synchronous. Whatever enters a namespace does so on a scratch thread, so the caller's
//! threads stay where they are.

mod addresses;
mod arp;
mod attach;
mod cgroup;
mod clean;
mod cpu;
mod data;
mod disk;
mod empty;
mod error;
mod feature;
mod lab;
mod ledger;
mod links;
mod mounts;
mod name;
mod netlink;
mod netns;
mod offload;
mod overlay;
mod port;
mod process;
mod rate;
mod reader;
mod reap;
mod resource;
mod rootless;
mod settings;
mod state;
mod steer;
mod sys;
mod sysctl;
mod tap;
mod tree;
mod trust;
mod user_namespace;
mod wire;

pub use cgroup::{
    Cgroup, CgroupMode, CgroupPlan, GroupCpu, GroupMemory, Hierarchies, Limits, PROCESSES, PageFaults, PromptJoins,
    detect, ends_with_session, freeze, freezing_refusal, is_control_group, kill_guest, limit_run,
    number as keyed_number, oom_kills_in, page_faults_in, processes_in, remove_run_groups, run_groups,
    settle_in_own_group,
};
pub use clean::left_by_guests;
pub use cpu::{Cpu, cpu_topology, online_cpus, set_affinity};
pub use data::{closed_data_path, data_path, make_closed_data_directory, make_data_directory};
pub use disk::{check_on_disk, disk_path, is_in_memory, make_disk_directory};
pub use empty::empty_root;
pub use error::{LabError, Result};
pub use feature::{device_refusal, open_device, refusal};
pub use lab::{Lab, LabConfig};
pub use ledger::{FileLedger, still_planned};
pub use netns::NetNs;
pub use overlay::overlay_refusal;
pub use port::Port;
pub use process::is_of_run;
pub use reader::{NamedPath, confine_reader};
pub use reap::{Killed, ReapReport, leftovers, reap, unmount_exact};
pub use resource::{Ledger, LedgerError, NoLedger, Resource};
pub use rootless::is_rootless;
pub use settings::{chosen_word, put_back_settings};
pub use state::{FoundRun, RunInfo, StateDir, state_path};
pub use tap::{Place, Tap};
pub use trust::{open_trusted, private_cache, write_private};
pub use user_namespace::enter_user_namespace;
pub use wire::Wire;

/// Name of the environment variable that every process of a run carries; its value is the run id.
pub const RUN_VARIABLE: &str = "TARE_RUN";
