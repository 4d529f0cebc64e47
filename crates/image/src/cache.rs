//! Where images are kept, and how they get there: by content, whole or not at all.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::error::{Result, reading, writing};

/// Folder of initial file systems.
pub(crate) const INITRDS: &str = "initrd";

/// Folder of images.
pub(crate) const IMAGES: &str = "images";

/// Folder of gold copies: a directory for each, with the disks that were made of it.
const GOLD: &str = "gold";

/// Folder of unpacked container images: a directory for each.
pub(crate) const CONTAINERS: &str = "containers";

/// Folder of what a release of one file unpacked (crates/launcher): a directory for each version.
const PROGRAMS: &str = "program";

/// How the names begin of what is not finished.
pub(crate) const BEGUN: &str = ".new-";

/// Digits of the names in the cache: 128 bits, against accidents.
const NAME_DIGITS: usize = 32;

/// Where kernels, initial file systems and images are kept: `TARE_CACHE`, else `/var/cache/tare` for root, else
/// `$XDG_CACHE_HOME/tare` or `~/.cache/tare`. A user who is root of a user namespace of tare's own is no root here.
pub fn cache_directory() -> PathBuf {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(named) = named("TARE_CACHE") {
        return named;
    }
    if !tare_lab::is_rootless() {
        return PathBuf::from("/var/cache/tare");
    }
    named("XDG_CACHE_HOME")
        .unwrap_or_else(|| named("HOME").unwrap_or_else(|| PathBuf::from("/tmp")).join(".cache"))
        .join("tare")
}

/// A file of the cache, or a directory that belongs together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cached {
    /// Where it is.
    pub path: PathBuf,
    /// Room that it takes up on the disk, bytes.
    pub bytes: u64,
}

/// What is in the cache besides kernels and bundle, which only set-up brings, sorted by path: initial file systems,
/// images with what is written beside them, gold copies of data, each a directory with the disks made of it, container
/// images that were unpacked, and the programs of releases.
///
/// # Errors
/// When the cache cannot be read.
pub fn cached() -> Result<Vec<Cached>> {
    cached_in(&cache_directory())
}

fn cached_in(cache: &Path) -> Result<Vec<Cached>> {
    let mut found = Vec::new();
    for folder in [INITRDS, IMAGES].map(|name| cache.join(name)) {
        for entry in entries(&folder)? {
            let path = entry.map_err(reading(&folder))?.path();
            let seen = path.symlink_metadata().map_err(reading(&path))?;
            let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if seen.is_file() && !hidden {
                found.push(Cached { path, bytes: seen.blocks() * 512 });
            }
        }
    }
    for folder in [GOLD, CONTAINERS, PROGRAMS].map(|name| cache.join(name)) {
        for entry in entries(&folder)? {
            let path = entry.map_err(reading(&folder))?.path();
            if path.symlink_metadata().is_ok_and(|seen| seen.is_dir()) {
                let bytes = room(&path)?;
                found.push(Cached { path, bytes });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// What is in a directory; nothing where there is none.
fn entries(folder: &Path) -> Result<impl Iterator<Item = io::Result<fs::DirEntry>>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None.into_iter().flatten()),
        other => Ok(Some(other.map_err(reading(folder))?).into_iter().flatten()),
    }
}

/// Room that a directory takes up on the disk with all in it, bytes.
pub(crate) fn room(folder: &Path) -> Result<u64> {
    let (mut bytes, mut folders) = (0, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in entries(&folder)? {
            let path = entry.map_err(reading(&folder))?.path();
            let Ok(seen) = path.symlink_metadata() else { continue };
            bytes += seen.blocks() * 512;
            if seen.is_dir() {
                folders.push(path);
            }
        }
    }
    Ok(bytes)
}

/// Removes all of [`cached`] but gold copies and container images that a run makes or uses, and gives what is gone. What is needed again is
/// made again; a guest that runs goes on with what it has open.
///
/// # Errors
/// When one cannot be removed.
pub fn clear() -> Result<Vec<Cached>> {
    clear_in(&cache_directory())
}

fn clear_in(cache: &Path) -> Result<Vec<Cached>> {
    let mut gone = Vec::new();
    for cached in cached_in(cache)? {
        let is_folder = cached.path.symlink_metadata().is_ok_and(|seen| seen.is_dir());
        let removed = if is_folder {
            let Some(_alone) = alone(&cached.path)? else { continue };
            fs::remove_dir_all(&cached.path)
        } else {
            fs::remove_file(&cached.path)
        };
        removed.map_err(writing(&cached.path))?;
        gone.push(cached);
    }
    Ok(gone)
}

/// The lock of a gold copy or an unpacked image, held alone; `None` while a run makes it or uses it. It is the file `.NAME.lock` beside
/// the copy, and stays when the copy goes, for somebody may be waiting for it.
fn alone(copy: &Path) -> Result<Option<fs::File>> {
    let name = copy.file_name().unwrap_or_default().to_string_lossy();
    let path = copy.with_file_name(format!(".{name}.lock"));
    let lock = fs::File::create(&path).map_err(writing(&path))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(lock)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(writing(&path)(error.into())),
    }
}

/// A directory of the cache, made if it is not there.
pub(crate) fn folder(name: &str) -> Result<PathBuf> {
    let path = cache_directory().join(name);
    fs::create_dir_all(&path).map_err(writing(&path))?;
    Ok(path)
}

/// Removes what was begun in a folder and given up. To be called only by who holds the lock of all who write there.
pub(crate) fn sweep(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(reading(folder))? {
        let path = entry.map_err(reading(folder))?.path();
        if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(BEGUN.as_bytes())) {
            let gone = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            gone.map_err(writing(&path))?;
        }
    }
    Ok(())
}

/// A file that is being written beside its final place; dropped, it is gone.
pub(crate) fn beside(path: &Path) -> Result<NamedTempFile> {
    let folder = path.parent().unwrap_or(Path::new("."));
    // Machine monitors may run as users of their own.
    let readable = Permissions::from_mode(0o644);
    tempfile::Builder::new().prefix(BEGUN).permissions(readable).tempfile_in(folder).map_err(writing(path))
}

/// Puts a finished file in its place. Another caller's, made meanwhile of the same content, is as good.
pub(crate) fn publish(file: NamedTempFile, path: &Path) -> Result<()> {
    file.persist(path).map(drop).map_err(|error| writing(path)(error.error))
}

/// Names things by what goes into them.
#[derive(Default)]
pub(crate) struct Key(Sha256);

impl Key {
    /// One more thing, with its length, so that two never look like another two.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// The name: hexadecimal digits.
    pub(crate) fn name(self) -> String {
        let mut name: String = self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        name.truncate(NAME_DIGITS);
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cached_is_listed_and_nothing_else() {
        let cache = tempfile::tempdir().unwrap();
        assert_eq!(cached_in(cache.path()).unwrap(), []);
        for file in [
            "initrd/a.cpio",
            "images/b.raw",
            "images/.lock",
            "kernel/boot/vmlinuz-1",
            "other",
            "gold/k/tree/f",
            "bundle/p/x",
            "containers/c/root/f",
            "containers/.c.lock",
        ] {
            let path = cache.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, [1; 5000]).unwrap();
        }
        let found = cached_in(cache.path()).unwrap();
        let names: Vec<_> = found.iter().map(|c| c.path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["c", "k", "b.raw", "a.cpio"]);
        assert!(found[0].bytes >= 5000, "{found:?}");
    }

    #[test]
    fn a_gold_copy_that_a_run_uses_stays_when_the_cache_is_cleared() {
        let cache = tempfile::tempdir().unwrap();
        for name in ["free", "held"] {
            fs::create_dir_all(cache.path().join("gold").join(name).join("tree")).unwrap();
        }
        let used = fs::File::create(cache.path().join("gold/.held.lock")).unwrap();
        flock(&used, FlockOperation::NonBlockingLockShared).unwrap();
        let names = |gone: Vec<Cached>| -> Vec<String> {
            gone.iter().map(|c| c.path.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        assert_eq!(names(clear_in(cache.path()).unwrap()), ["free"]);
        assert!(cache.path().join("gold/held/tree").is_dir());
        drop(used);
        assert_eq!(names(clear_in(cache.path()).unwrap()), ["held"]);
    }

    #[test]
    fn what_was_given_up_is_swept_away() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".new-a", "whole"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::create_dir_all(folder.path().join(".new-b/root")).unwrap();
        sweep(folder.path()).unwrap();
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["whole"]);
    }

    #[test]
    fn names_tell_what_goes_in_and_where_it_ends() {
        let name = |parts: &[&[u8]]| {
            let mut key = Key::default();
            parts.iter().for_each(|part| key.add(part));
            key.name()
        };
        assert_eq!(name(&[b"a", b"b"]), name(&[b"a", b"b"]));
        assert_ne!(name(&[b"a", b"b"]), name(&[b"ab", b""]));
        assert_eq!(name(&[]).len(), NAME_DIGITS);
    }
}
