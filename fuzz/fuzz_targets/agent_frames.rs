//! What an agent sends, as the controller decodes it.
#![no_main]

#[path = "../harness/frames.rs"]
#[allow(dead_code)]
mod harness;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| harness::from_agent(bytes));
