//! What an agent sends to a controller that makes requests.
#![no_main]

#[path = "../harness/frames.rs"]
#[allow(dead_code)]
mod harness;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| harness::to_a_link(bytes));
