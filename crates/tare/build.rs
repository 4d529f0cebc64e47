//! Lists the workloads' tests of whole trials (`workloads/X/tests/trial.rs`) for `tests/main.rs`, so that a workload need not be named
//! there.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    let variable = |name| PathBuf::from(std::env::var_os(name).unwrap_or_default());
    let workloads = variable("CARGO_MANIFEST_DIR").join("../../workloads");
    println!("cargo::rerun-if-changed={}", workloads.display());
    let mut found: Vec<PathBuf> = std::fs::read_dir(&workloads)?.flatten().map(|entry| entry.path()).collect();
    found.sort();
    let mut list = String::new();
    for folder in found {
        let test = folder.join("tests/trial.rs");
        if let Some(name) = folder.file_name().and_then(|name| name.to_str()).filter(|_| Path::is_file(&test)) {
            // A string takes all that is written to it.
            let _ = writeln!(list, "#[path = {test:?}]\nmod {name};");
        }
    }
    std::fs::write(variable("OUT_DIR").join("workloads.rs"), list)
}
