//! Tells the rows and tables of this build's store, and of its social application, from any other's: a hash of the sources that make
//! them. A gold copy that another build made is not taken for this one's.

#[path = "../wire/source_hash.rs"]
mod source_hash;

use std::io::{Error, Result};
use std::path::{Path, PathBuf};

use source_hash::SourceHash;

/// Where databases are made, and what tells this build's from others'.
const MADE: [(&str, &str); 2] =
    [("../../workloads/store/agent", "TARE_STORE_BUILD"), ("../../workloads/social/agent", "TARE_SOCIAL_BUILD")];
/// What decides what is in them, by the beginning of the name: tables, words, rows, the loading of them, and indexes.
const PARTS: [&str; 5] = ["schema", "words", "data", "load", "indexes"];
/// What all of them are filled by: numbers that are drawn, how rows are written, cut and sent.
const FILL: &str = "../driver/src/fill";

fn main() -> Result<()> {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    for (place, name) in MADE {
        tell(&here.join(place), &here.join(FILL), name)?;
    }
    Ok(())
}

/// Tells the hash of what is made of a directory's sources, and of those of `fill`.
fn tell(store: &Path, fill: &Path, name: &str) -> Result<()> {
    println!("cargo::rerun-if-changed={}", store.display());
    println!("cargo::rerun-if-changed={}", fill.display());
    let mut sources = entries(fill)?;
    for path in entries(store)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if PARTS.iter().any(|part| name.starts_with(part)) {
            if path.is_dir() { sources.extend(entries(&path)?) } else { sources.push(path) }
        }
    }
    sources.sort();
    let mut hash = SourceHash::new();
    for source in sources {
        println!("cargo::rerun-if-changed={}", source.display());
        let text = std::fs::read_to_string(&source)?;
        hash.add_definitions(&text);
    }
    hash.tell(name);
    Ok(())
}

/// What is in a folder that has to be there: without it databases of every build would look alike.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let missing = |error| Error::other(format!("{}: {error}", folder.display()));
    std::fs::read_dir(folder).map_err(missing)?.map(|entry| Ok(entry?.path())).collect()
}
