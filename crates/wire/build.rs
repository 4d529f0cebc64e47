//! Tells this build's messages from any other's: a hash of the sources that define them.

mod source_hash;

use std::path::{Path, PathBuf};

use source_hash::SourceHash;

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
    let mut hash = SourceHash::new();
    for source in SOURCES.map(str::to_owned).into_iter().chain(model.map(|name| format!("{MODEL}/{name}"))).chain(specs)
    {
        let path = here.join(&source);
        if let Ok(text) = std::fs::read_to_string(&path) {
            println!("cargo::rerun-if-changed={}", path.display());
            hash.add(&source);
            hash.add_definitions(&text);
        }
    }
    hash.tell("TARE_WIRE_BUILD");
}

/// Names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}
