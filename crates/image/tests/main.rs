//! Images that virtual machines boot from.
//!
//! `cargo xtask test image/` runs each module in a process of its own.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod boot;
mod machine;
mod seed;
