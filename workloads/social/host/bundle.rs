//! The application and the runtime it comes with: where they are on this host.

use std::path::{Path, PathBuf};

use tare_model::guest::GuestData;
use tare_model::{ByteSize, Refusal};

use crate::Failure;
use crate::folder::bytes_in;

/// Where `scripts/bundle.sh social` puts it, in tare's cache: a link to the newest.
const BUNDLE: &str = "bundle/social";
/// The program, in the bundle.
pub(super) const PROGRAM: &str = "runtime/bin/java";
/// What tells the runtime's version, in the bundle.
const RELEASE: &str = "runtime/release";
/// The application's jars, in the bundle.
pub(super) const JARS: &str = "lib";
/// What is kept for guests that see disks and not the host's files, bytes: one with a runtime of some 70 MB and the jars, and
/// what its file system takes.
pub(super) const DISK_BYTES: u64 = 112 << 20;
/// What a guest writes to it, although it is for reading, bytes: when it was mounted, and when files were read.
pub(super) const OVERLAY_BYTES: u64 = 8 << 20;
const REMEDY: &str =
    "run `make platforms`, or scripts/bundle.sh social alone, which builds it with the JDK and Maven of this host";

/// An application with its runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bundle {
    /// Its directory on this host, no link. Its name tells its contents.
    pub place: PathBuf,
}

/// The bundle of this host.
///
/// # Errors
/// What is missing, with the remedy.
pub(super) fn find() -> Result<Bundle, Refusal> {
    at(&tare_image::cache_directory().join(BUNDLE))
}

/// The bundle that a link leads to.
fn at(link: &Path) -> Result<Bundle, Refusal> {
    let Ok(place) = link.canonicalize() else {
        return Err(Refusal::new(format!("there is no social application for guests at {}", link.display()), REMEDY));
    };
    let mut missing: Vec<&str> = [PROGRAM, RELEASE].into_iter().filter(|file| !place.join(file).is_file()).collect();
    let jars = std::fs::read_dir(place.join(JARS)).into_iter().flatten().flatten();
    if !jars.map(|entry| entry.path()).any(|path| path.extension().is_some_and(|kind| kind == "jar")) {
        missing.push("lib/*.jar");
    }
    if missing.is_empty() {
        return Ok(Bundle { place });
    }
    let why = format!("the social application in {} has no {}", place.display(), missing.join(", no "));
    Err(Refusal::new(why, format!("remove {}; then {REMEDY}", place.display())))
}

impl Bundle {
    /// What every guest is given: nobody writes to it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn data(&self) -> Result<GuestData, Failure> {
        let bytes = bytes_in(&self.place).map_err(|error| {
            let tried = format!("read the social application in {}", self.place.display());
            Failure::new(tried, error.to_string(), REMEDY)
        })?;
        // A file system of its own takes some for itself.
        let room = bytes + bytes / 4 + (64 << 20);
        Ok(GuestData { gold: self.place.clone(), size: ByteSize(room), shared: true })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_what_is_whole_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("social");
        assert!(at(&link).unwrap_err().reason.contains("no social application"));
        let whole = folder.path().join("social-0123");
        std::fs::create_dir_all(whole.join("runtime/bin")).unwrap();
        std::fs::create_dir_all(whole.join(JARS)).unwrap();
        for file in [PROGRAM, RELEASE, "lib/a.jar"] {
            std::fs::write(whole.join(file), "x").unwrap();
        }
        std::os::unix::fs::symlink("social-0123", &link).unwrap();
        let found = at(&link).unwrap();
        assert_eq!(found.place, whole.canonicalize().unwrap());
        let data = found.data().unwrap();
        assert!(data.shared && data.size.0 > 64 << 20);
        std::fs::remove_file(whole.join("lib/a.jar")).unwrap();
        let Refusal { reason, remedy } = at(&link).unwrap_err();
        assert!(reason.contains("lib/*.jar") && remedy.contains("scripts/bundle.sh social"), "{reason}: {remedy}");
    }
}
