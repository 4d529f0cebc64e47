//! Workloads with an agent and the program that they measure.
//!
//! `cargo xtask test workload/` runs each module in a process of its own.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod common;
#[path = "../../../workloads/http/tests/host.rs"]
mod http;
#[path = "../../../workloads/java/tests/host.rs"]
mod java;
#[path = "../../../workloads/social/tests/host.rs"]
mod social;
#[path = "../../../workloads/store/tests/host.rs"]
mod store;
#[path = "../../../workloads/stream/tests/host.rs"]
mod stream;
mod turns;
#[path = "../../../workloads/web/tests/host.rs"]
mod web;
