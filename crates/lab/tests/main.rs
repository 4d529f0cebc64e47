//! The lab on this host, taken down after a kill, and readers that are confined.
//!
//! `cargo xtask test lab/` runs each module in a process of its own.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod crash;
mod reader;
