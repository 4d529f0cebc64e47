//! Platforms on this host, started for real.
//!
//! `cargo xtask test platform/` runs each module in a process of its own.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod common;
mod containers;
mod libvirt;
mod machines;
mod memory;
mod platforms;
mod remote;
mod stores;
mod volumes;
mod vsphere;
mod warm;
