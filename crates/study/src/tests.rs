//! The whole way: text to study to plan, and every way in which a text can be wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod capacity;
mod cpu_target;
mod density;
mod parsing;
mod planning;
mod refusing;
mod shipping;
mod sweep;
mod tiles;

use tare_model::study::Study;
use tare_model::units::ByteSize;

use crate::host::HostFacts;
use crate::testing::Fake;

/// A study that uses every field of the format.
const GOOD: &str = include_str!("tests/good.toml");

fn good() -> Study {
    crate::parse("good.toml", GOOD, &Fake).unwrap_or_else(|error| panic!("{}", error.render(false))).study
}

/// A host on which all studies fit.
fn roomy() -> HostFacts {
    HostFacts {
        cpus: (0..8).collect(),
        shared_cores: Vec::new(),
        memory_available: ByteSize(64 << 30),
        memory_total: ByteSize(72 << 30),
        disk_free: ByteSize(1 << 40),
        ..HostFacts::default()
    }
}
