//! Links to agents that misbehave, and frames of strangers.
//!
//! `cargo xtask test wire/` runs each module in a process of its own.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod common;
mod hostile;
mod seeds;
