//! Tells this build's messages from any other's: a hash of the sources that define them.

use std::path::{Path, PathBuf};

/// What the messages are made of beside the model, which they carry. A copy of this crate without the model beside it hashes
/// its own sources alone, at both ends alike.
const SOURCES: [&str; 4] = ["src/message.rs", "src/frame.rs", "src/launch.rs", "../driver/src/protocol.rs"];
const MODEL: &str = "../model/src";

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    println!("cargo::rerun-if-changed={}", here.join(MODEL).display());
    let mut hash = Fnv::new();
    for source in SOURCES.map(str::to_owned).into_iter().chain(in_model(&here)) {
        let path = here.join(&source);
        if let Some(text) = read(&path) {
            println!("cargo::rerun-if-changed={}", path.display());
            hash.add(source.as_bytes());
            definitions(&text).for_each(|line| hash.add(line.as_bytes()));
        }
    }
    println!("cargo::rustc-env=TARE_WIRE_BUILD={:016x}", hash.0);
}

/// The model's sources, by name.
fn in_model(here: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(here.join(MODEL)).into_iter().flatten().filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut sources: Vec<String> =
        names.filter(|name| name.ends_with(".rs")).map(|name| format!("{MODEL}/{name}")).collect();
    sources.sort_unstable();
    sources
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The lines of a source that can change a message: no comments, no tests.
fn definitions(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .take_while(|line| *line != "#[cfg(test)]")
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
}

/// FNV-1a of 64 bits (draft-eastlake-fnv): the same on every machine and with every compiler.
struct Fnv(u64);

impl Fnv {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes.iter().chain(b"\n") {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
