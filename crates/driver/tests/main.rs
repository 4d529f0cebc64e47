//! Drivers against servers: those of the driver itself, real ones, and ones that misbehave.
//!
//! `cargo xtask test driver/` runs each module in a process of its own.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

#[path = "../../../workloads/web/tests/backend.rs"]
mod backend;
mod common;
mod exchanges;
mod failures;
#[path = "../../../workloads/social/tests/file_store.rs"]
mod file_store;
#[path = "../../../workloads/java/tests/agent.rs"]
mod java;
mod postgres_client;
#[path = "../../../workloads/social/tests/agent.rs"]
mod social;
#[path = "../../../workloads/social/tests/load.rs"]
mod social_load;
#[path = "../../../workloads/social/tests/turns.rs"]
mod social_turns;
#[path = "../../../workloads/store/tests/agent.rs"]
mod store;
#[path = "../../../workloads/store/tests/flow.rs"]
mod store_flow;
mod streams;
mod tokens;
mod truth;
mod turns;
#[path = "../../../workloads/web/tests/agent.rs"]
mod web;
#[path = "../../../workloads/web/tests/stall.rs"]
mod web_stall;
#[path = "../../../workloads/web/tests/tls.rs"]
mod web_tls;
#[path = "../../../workloads/web/tests/turns.rs"]
mod web_turns;
