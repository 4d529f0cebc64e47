//! Gold copies: what takes long to make and is the same in every trial, made once, kept from run to run, and copied or shown to guests.
//!
//! Each lies in one directory of tare's cache under a name that tells what it was made of. [`found_or_made`] is the way to all of
//! them; [`cluster`] makes those that are databases.

mod place;

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;
use sha2::{Digest, Sha256};

pub(crate) use crate::failure::file;
pub(crate) use place::Held;

use crate::asked::Asked;
use crate::{Failure, SetupSite, WorkloadError};
use place::{Place, remove};

/// In tare's cache: all gold copies.
const FOLDER: &str = "gold";
/// In a gold copy: what guests are given or shown. Beside it lies what tells of it.
pub(crate) const TREE: &str = "tree";
const MIB: u64 = 1 << 20;

/// What makes a gold copy.
pub(crate) trait Making {
    /// What it is, for people, such as `database`.
    fn noun(&self) -> &'static str;

    /// Whether what has the copy's name is whole and what is asked for. Nothing else ever has this name, unless somebody has changed it.
    fn is_whole(&self, place: &Path) -> bool;

    /// Whether nobody will ask again for the copy of that name, made by an earlier build or bundle: then it goes when this one is made.
    fn is_stale(&self, name: &str, place: &Path) -> bool {
        let _ = (name, place);
        false
    }

    /// Makes all that is in it, in `partial`, which is not there yet, and has it written to the disk. What a failure leaves is removed.
    ///
    /// # Errors
    /// What cannot be made, and that there is no room for it in `folder`, before anything is made.
    fn make(&self, folder: &Path, partial: &Path) -> Result<(), WorkloadError>;
}

/// Finds a gold copy by its name, or makes it: its directory, which stays where it is as long as what is given with it is held.
///
/// # Errors
/// When the cache cannot be written, or the copy cannot be made.
pub(crate) fn found_or_made(
    site: &SetupSite<'_>,
    name: String,
    making: &dyn Making,
) -> Result<(PathBuf, Held), WorkloadError> {
    let folder = site.cache.join(FOLDER);
    DirBuilder::new().recursive(true).mode(0o755).create(&folder).map_err(file("make", &folder))?;
    let noted = std::cell::Cell::new(false);
    let pause = || {
        if !noted.replace(true) {
            (site.note)(&format!("another run makes the same {}; waiting for it", making.noun()));
        }
        at_host(site).pause()
    };
    let place = Place::new(&folder, name);
    let held = loop {
        let held = place.share(&pause)?;
        if making.is_whole(&place.whole()) {
            break held;
        }
        drop(held);
        let _own = place.own(&pause)?;
        place.sweep(&|name, path| making.is_stale(name, path))?;
        // Meanwhile another may have made it.
        if !making.is_whole(&place.whole()) {
            remove(&place.whole())?;
            made(&folder, &place, making)?;
        }
    };
    Ok((place.whole(), held))
}

/// Makes a copy under another name and gives it its own when it is whole.
fn made(folder: &Path, place: &Place, making: &dyn Making) -> Result<(), WorkloadError> {
    let partial = place.partial();
    if let Err(error) = making.make(folder, &partial) {
        // What is left of it is swept away by the next who makes one, if this fails too.
        let _ = remove(&partial);
        return Err(error);
    }
    fs::rename(&partial, place.whole()).map_err(file("put in its place", &partial))?;
    File::open(folder).and_then(|opened| opened.sync_all()).map_err(file("write out", folder))?;
    Ok(())
}

/// The agent that makes what is made on this host.
pub(crate) const fn at_host<'a>(site: &SetupSite<'a>) -> Asked<'a> {
    Asked { link: site.here, side: "host", timeout: site.timeout }
}

/// Where a gold copy of that name is, or would be, whoever made it.
pub(crate) fn place_of(cache: &Path, name: &str) -> PathBuf {
    cache.join(FOLDER).join(name)
}

/// A name: the kind, and a digest of all that decides what is in the copy.
pub(crate) fn name(kind: &str, made_of: &str) -> String {
    let digest = Sha256::digest(made_of.as_bytes());
    let digest: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("{kind}-{digest}")
}

/// What is free where gold copies are made.
pub(crate) struct Free {
    /// Bytes.
    pub bytes: u64,
    /// Files; `None` where the file system has no fixed number of them.
    pub files: Option<u64>,
}

impl Free {
    /// What a file system tells.
    ///
    /// # Errors
    /// When it tells nothing.
    pub fn of(folder: &Path) -> Result<Self, Failure> {
        let seen = statvfs(folder).map_err(|error| file("look at", folder)(error.into()))?;
        let files = (seen.f_files > 0).then_some(seen.f_favail);
        Ok(Self { bytes: seen.f_bavail.saturating_mul(seen.f_frsize), files })
    }
}

/// Refuses what does not fit into the directory of gold copies. `tried` and `remedy` are an error's.
///
/// # Errors
/// That it does not fit, with both figures.
pub(crate) fn fits(folder: &Path, need: u64, tried: &str, remedy: &str) -> Result<(), Failure> {
    let free = Free::of(folder)?.bytes;
    if free >= need {
        return Ok(());
    }
    let why = format!("that takes {} of disk in {}, which has {}", shown(need), folder.display(), shown(free));
    Err(Failure::new(tried, why, format!("{remedy}, or set TARE_CACHE to a directory on a larger disk")))
}

/// Bytes on the disk of all that is in a directory; each file is written out on request.
///
/// # Errors
/// What cannot be read or written out.
pub(crate) fn walk(folder: &Path, sync: bool) -> Result<u64, Failure> {
    let (mut bytes, mut folders) = (0, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(file("read", &folder))? {
            let path = entry.map_err(file("read", &folder))?.path();
            let seen = path.symlink_metadata().map_err(file("look at", &path))?;
            bytes += seen.blocks() * 512;
            if seen.is_dir() {
                folders.push(path);
            } else if sync && seen.is_file() {
                File::open(&path).and_then(|opened| opened.sync_all()).map_err(file("write out", &path))?;
            }
        }
        if sync {
            File::open(&folder).and_then(|opened| opened.sync_all()).map_err(file("write out", &folder))?;
        }
    }
    Ok(bytes)
}

/// So many bytes for people.
pub(crate) fn shown(bytes: u64) -> String {
    if bytes >= 1 << 30 {
        format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64)
    } else {
        format!("{:.0} MiB", bytes as f64 / MIB as f64)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Makes a copy of one file, or fails in the midst of it.
    struct One {
        fails: bool,
        made: Cell<u32>,
    }

    impl Making for One {
        fn noun(&self) -> &'static str {
            "file"
        }

        fn is_whole(&self, place: &Path) -> bool {
            fs::read_to_string(place.join(TREE)).is_ok_and(|text| text == "whole")
        }

        fn make(&self, _: &Path, partial: &Path) -> Result<(), WorkloadError> {
            self.made.set(self.made.get() + 1);
            fs::create_dir(partial).unwrap();
            fs::write(partial.join(TREE), "whole").unwrap();
            if self.fails { Err(WorkloadError::NotConnected) } else { Ok(()) }
        }
    }

    #[test]
    fn what_is_made_has_its_name_when_it_is_whole_and_leaves_nothing_when_it_fails() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(folder.path(), "file-1".to_owned());
        let one = One { fails: true, made: Cell::new(0) };
        assert!(made(folder.path(), &place, &one).is_err());
        assert!(!place.partial().exists() && !place.whole().exists());
        let one = One { fails: false, ..one };
        made(folder.path(), &place, &one).unwrap();
        assert!(one.is_whole(&place.whole()) && !place.partial().exists());
        assert_eq!(one.made.get(), 2);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_both_figures() {
        let folder = tempfile::tempdir().unwrap();
        let free = Free::of(folder.path()).unwrap().bytes;
        assert!(fits(folder.path(), free / 2, "make it", "ask for less").is_ok());
        let error = fits(folder.path(), 1 << 60, "make it", "ask for less").unwrap_err().to_string();
        for word in ["cannot make it", "1073741824.0 GiB", "iB; ask for less", "TARE_CACHE"] {
            assert!(error.contains(word), "{word}: {error}");
        }
        assert_eq!((shown(3 << 29), shown(5 << 20)), ("1.5 GiB".into(), "5 MiB".into()));
    }

    #[test]
    fn names_differ_by_what_the_copy_is_made_of() {
        assert_eq!(name("web", "a").len(), "web-".len() + 24);
        assert_ne!(name("web", "a"), name("web", "b"));
        assert!(place_of(Path::new("/c"), &name("web", "a")).starts_with("/c/gold/"));
    }
}
