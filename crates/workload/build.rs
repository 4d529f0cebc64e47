//! Tells the rows and tables of this build's store, and of its social application, from any other's: a hash of the sources that make
//! them. A gold copy that another build made is not taken for this one's.

use std::path::{Path, PathBuf};

/// Where databases are made, and what tells this build's from others'.
const MADE: [(&str, &str); 2] =
    [("../driver/src/store", "TARE_STORE_BUILD"), ("../driver/src/social", "TARE_SOCIAL_BUILD")];
/// What decides what is in them, by the beginning of the name: tables, words, rows, the loading of them, and indexes.
const PARTS: [&str; 5] = ["schema", "words", "data", "load", "indexes"];
/// What all of them are filled by: numbers that are drawn, how rows are written, cut and sent.
const FILL: &str = "../driver/src/fill";

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    for (place, name) in MADE {
        tell(&here.join(place), &here.join(FILL), name);
    }
}

/// Tells the hash of what is made of a directory's sources, and of those of `fill`.
fn tell(store: &Path, fill: &Path, name: &str) {
    println!("cargo::rerun-if-changed={}", store.display());
    println!("cargo::rerun-if-changed={}", fill.display());
    let mut sources = entries(fill);
    for path in entries(store) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if PARTS.iter().any(|part| name.starts_with(part)) {
            if path.is_dir() { sources.extend(entries(&path)) } else { sources.push(path) }
        }
    }
    sources.sort();
    let mut hash = Fnv::new();
    for source in sources {
        println!("cargo::rerun-if-changed={}", source.display());
        let text = std::fs::read_to_string(&source).unwrap_or_default();
        definitions(&text).for_each(|line| hash.add(line.as_bytes()));
    }
    println!("cargo::rustc-env={name}={:016x}", hash.0);
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// The lines of a source that can change the store: no comments, no tests.
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
