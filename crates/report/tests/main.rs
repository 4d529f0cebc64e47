//! Reports of made-up findings.
//!
//! `cargo xtask test report/` runs each module in a process of its own.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod contents;
mod density;
mod export;
mod fixture;
mod gate;
mod history;
mod instances;
mod isolation;
mod outputs;
mod page;
mod serving;
mod store;
mod tables;
mod test_bed;
mod tiles;
mod visible;
