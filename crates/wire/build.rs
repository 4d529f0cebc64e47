//! Tells this build's messages from any other's: a hash of the sources that define them.

use std::path::{Path, PathBuf};

/// What the messages are made of beside the model and the workloads' specifications, which they carry. A copy of this crate without
/// those beside it hashes its own sources alone, at both ends alike.
const SOURCES: [&str; 4] = ["src/message.rs", "src/frame.rs", "src/launch.rs", "../driver/src/protocol.rs"];
const MODEL: &str = "../model/src";
const WORKLOADS: &str = "../../workloads";

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let model = names(&here.join(MODEL)).into_iter().filter(|name| name.ends_with(".rs"));
    let specs = names(&here.join(WORKLOADS)).into_iter().map(|name| format!("{WORKLOADS}/{name}/spec.rs"));
    // Cargo looks through a whole folder: the workloads' would have everything built anew for any change in one of them.
    println!("cargo::rerun-if-changed={}", here.join(MODEL).display());
    let mut hash = Fnv::new();
    for source in SOURCES.map(str::to_owned).into_iter().chain(model.map(|name| format!("{MODEL}/{name}"))).chain(specs)
    {
        let path = here.join(&source);
        if let Some(text) = read(&path) {
            println!("cargo::rerun-if-changed={}", path.display());
            hash.add(source.as_bytes());
            definitions(&text).for_each(|line| hash.add(line.as_bytes()));
        }
    }
    println!("cargo::rustc-env=TARE_WIRE_BUILD={:016x}", hash.0);
}

/// Names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
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
