//! Whole trials of workloads, run for real: the tests lie in the workloads' folders (`workloads/X/tests/trial.rs`) and are found there.

mod common;

include!(concat!(env!("OUT_DIR"), "/workloads.rs"));
