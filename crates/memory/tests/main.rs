//! Memory that is merged and overcommitted, on this host's kernel or a made-up one.
//!
//! `cargo xtask test memory/` runs each module in a process of its own.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod common;
mod cost;
mod governor;
mod host;
