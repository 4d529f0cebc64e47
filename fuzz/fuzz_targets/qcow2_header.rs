//! Headers of qcow2 files: none that refers to another file is accepted.
#![no_main]

#[path = "../../crates/image/src/qcow2.rs"]
#[allow(dead_code)]
mod qcow2;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // The length of the file is not in its header; what is looked at may be all of it, or its start.
    for length in [bytes.len() as u64, qcow2::LOOKED_AT, u64::MAX] {
        if qcow2::virtual_size(bytes, length).is_ok() {
            let backing = &bytes[8..20];
            assert!(bytes.starts_with(&qcow2::MAGIC) && backing == [0; 12], "a backing file was accepted");
            // Version 3 says by a bit of its features that the data are in another file.
            assert!(bytes[7] != 3 || bytes[79] & 4 == 0, "a data file was accepted");
        }
    }
});
