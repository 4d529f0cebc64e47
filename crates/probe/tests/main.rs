//! What is sampled, on captured files and on this host.
//!
//! `cargo xtask test probe/` runs each module in a process of its own.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod captured;
mod real;
