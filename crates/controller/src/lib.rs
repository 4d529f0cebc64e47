//! Runs a Plan: phases, journal, teardown, resume, reap.
//!
//! The controller is blocking and plain: one thread runs trials one after another, short-lived
//! threads start guests side by side, and nothing of it is on a driver's hot path. Whatever it makes on
//! the host is written to the ledger of the run first, so that its reaper or any fresh process can take it away.

mod beside;
mod calibration;
mod cancel;
mod capacity;
mod charges;
mod cleanliness;
mod client;
mod clock;
mod cpu_target;
mod doctor;
mod error;
mod governors;
mod host;
mod idle;
mod inside;
mod ledger;
mod neighbours;
mod observer;
mod outside;
mod places;
mod reap;
mod reaper;
mod redaction;
mod registry;
mod room;
mod run;
mod sampling;
mod setup;
mod share;
mod text;
mod trial;
mod workloads;

pub use cancel::Cancel;
pub use doctor::{
    Doctor, Examined, May, PlatformReport, Started, emulated_unasked, every_platform, examine, on_request, unavailable,
};
pub use error::ControllerError;
pub use host::{HostAccess, ThisHost};
pub use observer::{CpuSearchNow, Observer, Quiet, ScaleUpNow, TryNow};
pub use places::no_place_for_data;
pub use reap::{ReapedRun, reap_dead, reap_run};
pub use reaper::attend;
pub use redaction::redactor;
pub use registry::{Registry, Shipped};
pub use room::cannot_merge;
pub use run::{RunEnd, RunOptions, run};
pub use setup::gold_directory;
pub use workloads::{Found, WorkloadReport, every_workload, named_programs, workloads_of};
