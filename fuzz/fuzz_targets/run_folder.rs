//! Whole run folders: opened, verified and analysed as `tare report --altered` does.
#![no_main]

#[path = "../harness/folder.rs"]
mod harness;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| harness::read(bytes));
