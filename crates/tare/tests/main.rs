//! `tare` as a program, from the command line to what it prints, writes and leaves.
//!
//! `cargo xtask test tare/` runs each module in a process of its own.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod again;
mod browser;
mod cli;
mod common;
mod compare;
mod confined;
mod density;
mod exec;
mod export;
mod formats;
mod gate;
mod history;
mod hostile;
mod hostile_input;
mod import;
mod isolation;
mod ksm;
mod poor_hosts;
mod precision;
mod prove;
mod published;
mod reader;
mod readme;
mod reaper;
mod recompute;
mod remote;
mod run;
mod said;
mod secrets;
mod size;
mod starts;
mod storage;
mod strangers;
mod survive;
mod turns;
mod vsphere;
mod wire;

// The workloads' tests of whole trials, one module a workload: `workloads/X/tests/trial.rs`.
include!(concat!(env!("OUT_DIR"), "/workloads.rs"));
