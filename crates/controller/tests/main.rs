//! Plans run from end to end, with platforms and workloads that do as a test likes.
//!
//! `cargo xtask test controller/` runs each module in a process of its own.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod capacity;
mod common;
mod cpu_target;
mod density;
mod failing;
mod hosts;
mod several;
mod tiles;
