//! A frame that is announced and never comes. Alone in its program, for it looks at the memory of its process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::io::{Read, Write};
use std::time::Duration;

use common::{TIMEOUT, link};
use tare_wire::{Link, MAX_FRAME_BYTES, Request, WireError};

/// For what will not come.
const SHORT: Duration = Duration::from_millis(100);

#[test]
fn half_a_frame_costs_the_time_that_was_given_and_no_memory() {
    let links: Vec<Link> = (0..8)
        .map(|_| {
            link(|mut stream| {
                // Announced in full, sent in part, and then held open.
                let _ = stream.write_all(&(MAX_FRAME_BYTES as u32).to_le_bytes());
                let _ = stream.write_all(&[0; 1000]);
                let _ = stream.read(&mut [0; 100]);
                std::thread::sleep(TIMEOUT);
            })
        })
        .collect();
    let before = resident_bytes();
    for link in &links {
        let error = link.call(Request::Facts, SHORT).unwrap_err();
        assert!(matches!(error, WireError::Timeout { .. }), "{error}");
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < MAX_FRAME_BYTES as u64, "grown by {grown} bytes for what was only announced");
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}
