//! What a controller sends, seen by the agent. Nothing of it is carried out.
#![no_main]

#[path = "../harness/frames.rs"]
#[allow(dead_code)]
mod harness;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| harness::from_controller(bytes));
