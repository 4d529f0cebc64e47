//! The place of a file set, and who makes it, uses it or takes it away: a lock beside it tells.
//!
//! Names and locks are as those of the store's gold copies, which lie in the same directory: who makes a set or removes it
//! holds its lock alone, who uses it shares the lock until the run ends.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::error::{WebError, file};
use crate::WorkloadError;

/// How the name begins of what is not whole.
const PARTIAL: &str = ".partial-";
/// How the names of all file sets begin.
pub(super) const PREFIX: &str = "web-";
/// In a file set, beside the tree: the payload that is in it.
const MADE_WITH: &str = "payload";

/// A set that nobody has used for so long is taken away when another is made.
const UNUSED: Duration = Duration::from_secs(30 * 86_400);

/// Where a file set is kept.
#[derive(Debug)]
pub(super) struct Place {
    /// The directory of all gold copies.
    folder: PathBuf,
    /// Its name there.
    key: String,
}

/// A lock that is held until this is dropped, or its process ends.
#[derive(Debug)]
pub(super) struct Held(#[expect(dead_code, reason = "an open file is what holds the lock")] File);

impl Place {
    pub fn new(folder: &Path, key: String) -> Self {
        Self { folder: folder.to_owned(), key }
    }

    /// The set itself, which has this name only when it is whole.
    pub fn whole(&self) -> PathBuf {
        self.folder.join(&self.key)
    }

    /// The same while it is made.
    pub fn partial(&self) -> PathBuf {
        self.folder.join(format!("{PARTIAL}{}", self.key))
    }

    /// Shares the set, so that it stays. `pause` is called while somebody else makes it.
    ///
    /// # Errors
    /// When the lock cannot be had, or `pause` fails.
    pub fn share(&self, pause: &dyn Fn() -> Result<(), WorkloadError>) -> Result<Held, WorkloadError> {
        self.lock(FlockOperation::NonBlockingLockShared, pause)
    }

    /// Has the set alone, so that it can be made.
    ///
    /// # Errors
    /// As for [`Self::share`].
    pub fn own(&self, pause: &dyn Fn() -> Result<(), WorkloadError>) -> Result<Held, WorkloadError> {
        self.lock(FlockOperation::NonBlockingLockExclusive, pause)
    }

    fn lock(&self, how: FlockOperation, pause: &dyn Fn() -> Result<(), WorkloadError>) -> Result<Held, WorkloadError> {
        let path = lock_of(&self.folder, &self.key);
        let lock = File::create(&path).map_err(file("write", &path))?;
        while let Err(error) = flock(&lock, how) {
            if error != Errno::WOULDBLOCK {
                return Err(file("lock", &path)(error.into()).into());
            }
            pause()?;
        }
        Ok(Held(lock))
    }

    /// Removes what runs that were interrupted have left of file sets, sets with another payload than this one, which nobody
    /// will ask for again, and those that nobody has used for a month.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn sweep(&self, payload: &str) -> Result<(), WebError> {
        for entry in fs::read_dir(&self.folder).map_err(file("read", &self.folder))?.flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            let Some(name) = name.to_str() else { continue };
            let (key, begun) = name.strip_prefix(PARTIAL).map_or((name, false), |key| (key, true));
            if !key.starts_with(PREFIX) || !path.is_dir() {
                continue;
            }
            let stale = || fs::read_to_string(path.join(MADE_WITH)).is_ok_and(|with| with.trim() != payload);
            if !begun && !stale() && !unused(&self.folder, key) {
                continue;
            }
            // Its own lock is held by who calls this.
            if key == self.key {
                remove(&path)?;
            } else if let Some(_lock) = taken(&self.folder, key)? {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

/// Whether a set was not used for a month: who uses it writes its lock anew, which is empty.
fn unused(folder: &Path, key: &str) -> bool {
    let age = fs::metadata(lock_of(folder, key)).and_then(|seen| seen.modified()).map(|at| at.elapsed());
    // A clock that was set back tells nothing.
    matches!(age, Ok(Ok(age)) if age > UNUSED)
}

/// The lock of a set that nobody makes or uses; `None`: somebody does.
fn taken(folder: &Path, key: &str) -> Result<Option<File>, WebError> {
    let path = lock_of(folder, key);
    let lock = File::create(&path).map_err(file("write", &path))?;
    Ok(flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(lock))
}

/// Notes in a set that is made what payload is in it.
///
/// # Errors
/// When it cannot be written.
pub(super) fn note_payload(set: &Path, payload: &str) -> Result<(), WebError> {
    let path = set.join(MADE_WITH);
    fs::write(&path, payload).map_err(file("write", &path))
}

/// The lock of a set. It stays when the set goes, for somebody may be waiting for it.
fn lock_of(folder: &Path, key: &str) -> PathBuf {
    folder.join(format!(".{key}.lock"))
}

/// Removes a directory with all in it, if it is there.
///
/// # Errors
/// When it cannot be removed.
pub(super) fn remove(place: &Path) -> Result<(), WebError> {
    match fs::remove_dir_all(place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(file("remove", place)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_given_up_or_has_an_old_payload_is_swept_away_and_what_is_used_or_is_of_another_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, payload: &str| {
            fs::create_dir_all(folder.path().join(name).join("tree")).unwrap();
            note_payload(&folder.path().join(name), payload).unwrap();
        };
        for name in [".partial-web-mine", ".partial-web-made", ".partial-store-x", "web-old-used", "web-old", "store-y"]
        {
            make(name, "web-1");
        }
        make("web-new", "web-2");
        let hold = |key: &str| {
            let lock = File::create(lock_of(folder.path(), key)).unwrap();
            flock(&lock, FlockOperation::NonBlockingLockShared).unwrap();
            lock
        };
        let held = [hold("web-made"), hold("web-old-used")];
        let place = Place::new(folder.path(), "web-mine".to_owned());
        place.sweep("web-2").unwrap();
        let there = |name: &str| folder.path().join(name).exists();
        assert!(!there(".partial-web-mine") && !there("web-old"));
        assert!(there(".partial-web-made") && there("web-old-used"), "somebody has them");
        assert!(there(".partial-store-x") && there("store-y") && there("web-new"));
        drop(held);
        place.sweep("web-2").unwrap();
        assert!(!there(".partial-web-made") && !there("web-old-used"));
    }

    #[test]
    fn a_set_that_nobody_has_used_for_a_month_goes_when_another_is_made() {
        let folder = tempfile::tempdir().unwrap();
        for (name, days) in [("web-old", 31), ("web-new", 29)] {
            fs::create_dir(folder.path().join(name)).unwrap();
            let lock = File::create(lock_of(folder.path(), name)).unwrap();
            lock.set_modified(std::time::SystemTime::now() - Duration::from_secs(days * 86_400)).unwrap();
        }
        let place = Place::new(folder.path(), "web-mine".to_owned());
        place.sweep("web-1").unwrap();
        let there = |name: &str| folder.path().join(name).exists();
        assert!(!there("web-old") && there("web-new"));
        // Using it makes it new.
        let lock = lock_of(folder.path(), "web-new");
        drop(Place::new(folder.path(), "web-new".to_owned()).share(&|| Ok(())).unwrap());
        assert!(fs::metadata(lock).unwrap().modified().unwrap().elapsed().unwrap() < Duration::from_secs(86_400));
    }

    #[test]
    fn who_waits_for_a_lock_pauses_and_may_give_up() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(folder.path(), "web-1".to_owned());
        let held = place.own(&|| Ok(())).unwrap();
        let pauses = std::cell::Cell::new(0);
        let pause = || {
            pauses.set(pauses.get() + 1);
            if pauses.get() < 3 { Ok(()) } else { Err(WorkloadError::NotConnected) }
        };
        assert!(place.share(&pause).is_err());
        assert_eq!(pauses.get(), 3);
        drop(held);
        let _shared = (place.share(&pause).unwrap(), place.share(&pause).unwrap());
    }
}
