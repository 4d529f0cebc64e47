//! The server and the runtime it comes with: where they are on this host.

use std::path::{Path, PathBuf};

use tare_model::Refusal;

use crate::folder::bytes_in;

/// Where `scripts/bundle.sh web` puts it, in tare's cache: a link to the newest.
const BUNDLE: &str = "bundle/web";
/// The program, in the bundle and in what guests are given.
pub(super) const PROGRAM: &str = "runtime/bin/java";
/// What tells the runtime's version, in the bundle.
const RELEASE: &str = "runtime/release";
/// The server's jars, in the bundle and in what guests are given.
pub(super) const JARS: &str = "lib";
const REMEDY: &str =
    "run `make platforms`, or scripts/bundle.sh web alone, which builds it with the JDK and Maven of this host";

/// A server with its runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bundle {
    /// Its directory on this host, no link. Its name tells its contents.
    pub place: PathBuf,
    /// Bytes that it takes on the disk.
    pub bytes: u64,
}

/// The bundle of this host.
///
/// # Errors
/// What is missing, with the remedy.
pub(super) fn find() -> Result<Bundle, Refusal> {
    at(&tare_image::cache_directory().join(BUNDLE))
}

/// The bundle that a link leads to.
pub(super) fn at(link: &Path) -> Result<Bundle, Refusal> {
    let Ok(place) = link.canonicalize() else {
        return Err(Refusal::new(format!("there is no web server for guests at {}", link.display()), REMEDY));
    };
    let mut missing: Vec<&str> = [PROGRAM, RELEASE].into_iter().filter(|file| !place.join(file).is_file()).collect();
    let jars = std::fs::read_dir(place.join(JARS)).into_iter().flatten().flatten();
    if !jars.map(|entry| entry.path()).any(|path| path.extension().is_some_and(|kind| kind == "jar")) {
        missing.push("lib/*.jar");
    }
    let broken = |why: String| Refusal::new(why, format!("remove {}; then {REMEDY}", place.display()));
    if !missing.is_empty() {
        return Err(broken(format!("the web server in {} has no {}", place.display(), missing.join(", no "))));
    }
    match bytes_in(&place) {
        Ok(bytes) => Ok(Bundle { place, bytes }),
        Err(error) => Err(broken(format!("the web server in {} cannot be read: {error}", place.display()))),
    }
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A bundle that is whole and runs nothing.
    pub fn made(folder: &Path) -> PathBuf {
        let whole = folder.join("web-0123");
        std::fs::create_dir_all(whole.join("runtime/bin")).unwrap();
        std::fs::create_dir_all(whole.join(JARS)).unwrap();
        for (file, text) in
            [(PROGRAM, "#!"), (RELEASE, "JAVA_VERSION=\"17.0.15\"\n"), ("lib/a.jar", "a"), ("lib/b.jar", "b")]
        {
            std::fs::write(whole.join(file), text).unwrap();
        }
        whole
    }

    #[test]
    fn only_what_is_whole_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("web");
        assert!(at(&link).unwrap_err().reason.contains("no web server"));
        let whole = made(folder.path());
        std::os::unix::fs::symlink("web-0123", &link).unwrap();
        let found = at(&link).unwrap();
        assert_eq!(found.place, whole.canonicalize().unwrap());
        assert!(found.bytes > 0);
        std::fs::remove_file(whole.join("lib/a.jar")).unwrap();
        std::fs::remove_file(whole.join("lib/b.jar")).unwrap();
        let Refusal { reason, remedy } = at(&link).unwrap_err();
        assert!(reason.contains("lib/*.jar") && remedy.contains("scripts/bundle.sh web"), "{reason}: {remedy}");
    }
}
