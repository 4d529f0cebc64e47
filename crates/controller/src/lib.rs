//! Runs a Plan: phases, journal, teardown, resume, reap.
//!
//! The controller is blocking and plain: one thread runs trials one after another, short-lived
//! threads start guests side by side, and nothing of it is on a driver's hot path. Whatever it makes on
//! the host is written to the ledger of the run first, so that its reaper or any fresh process can take it away.

mod bench;
mod blocks;
mod calibration;
mod cancel;
mod capacity;
mod cleanliness;
mod client;
mod clock;
mod cpu_target;
mod data_storage;
mod doctor;
mod error;
mod governors;
mod guest_probe;
mod host;
mod host_counters;
mod host_memory;
mod host_metrics;
mod host_starts;
mod idle;
mod ledger;
mod machines;
mod made;
mod neighbours;
mod observer;
mod offered_load;
mod open_files;
mod other_runs;
mod parallel;
mod reap;
mod reaper;
mod redaction;
mod registry;
mod remote_guests;
mod run;
mod sampling;
mod setup;
mod text;
mod thread_cpu;
mod time_limits;
mod trial;
mod workloads;

pub use blocks::BlockRule;
pub use cancel::Cancel;
pub use data_storage::no_place_for_data;
pub use doctor::{
    Doctor, Examined, May, PlatformReport, Started, emulated, emulated_unasked, every_platform, examine, on_request,
    unavailable,
};
pub use error::ControllerError;
pub use host::{HostAccess, ThisHost};
pub use host_memory::cannot_merge;
pub use host_starts::cannot_start;
pub use observer::{CpuSearchNow, Observer, Quiet, ScaleUpNow, TryNow};
pub use reap::{ReapedRun, forget_run, reap_dead, reap_run};
pub use reaper::attend;
pub use redaction::redactor;
pub use registry::{Registry, Shipped};
pub use run::{RunEnd, RunOptions, run};
pub use setup::gold_directory;
pub use workloads::{Found, WorkloadReport, every_workload, named_programs, workloads_of};
