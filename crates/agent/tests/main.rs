//! The agent as a program, spoken to over its standard input and output.
//!
//! `cargo xtask test agent/` runs each module in a process of its own.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod aggressors;
mod confined;
mod conversation;
mod copies;
mod started;
