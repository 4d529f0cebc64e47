//! Replays the seeds of the fuzz targets: recorded conversations, whole, cut off, and damaged at every place.

#[path = "../../../fuzz/harness/frames.rs"]
mod harness;

use std::path::Path;

use tare_wire::{Greeting, PROTOCOL};

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let seeds: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
    assert!(seeds.len() >= 5, "{} is not complete", folder.display());
    for seed in &seeds {
        let greeting = Greeting::read(&mut seed.as_slice()).unwrap();
        assert_eq!(greeting.protocol, PROTOCOL, "{} is of another protocol: record it again", folder.display());
    }
    seeds
}

/// The seed; its beginnings; and it with one byte changed, at some hundred places.
fn variants(seed: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let step = seed.len() / 100 + 1;
    let places = (0..seed.len()).step_by(step);
    let cut = places.clone().map(|at| seed[..at].to_vec());
    let damaged = places.flat_map(|at| {
        [0x00, 0x7f, 0xff].map(|value| {
            let mut bytes = seed.to_vec();
            bytes[at] ^= value;
            bytes
        })
    });
    cut.chain(damaged)
}

#[test]
fn what_agents_said_is_decoded_or_refused() {
    for seed in seeds("agent_frames") {
        variants(&seed).for_each(|bytes| harness::from_agent(&bytes));
    }
}

#[test]
fn what_agents_said_passes_through_a_link_or_ends_it() {
    for seed in seeds("agent_link") {
        variants(&seed).step_by(7).for_each(|bytes| harness::to_a_link(&bytes));
    }
}

#[test]
fn what_controllers_said_is_decoded_or_refused() {
    for seed in seeds("controller_frames") {
        variants(&seed).for_each(|bytes| harness::from_controller(&bytes));
    }
}
