//! The place of a gold copy, and who makes it, uses it or takes it away: a lock beside it tells.
//!
//! Who makes a copy or removes it holds its lock alone. Who uses it shares the lock until the run ends, so that nobody takes
//! the copy away from under a trial.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::asked::Asked;
use super::error::{StoreError, file};
use crate::WorkloadError;

/// How the name begins of what is not whole.
const PARTIAL: &str = ".partial-";
/// Between two looks at a lock that somebody else has.
const LOOK_EVERY: &str = "0.2";
/// Longest that such a pause may take.
const LOOK_AT_MOST: Duration = Duration::from_secs(20);

/// Where a gold copy is kept.
#[derive(Debug)]
pub(crate) struct Place {
    /// The directory of all gold copies.
    folder: PathBuf,
    /// Its name there.
    key: String,
}

/// A lock that is held until this is dropped, or its process ends.
#[derive(Debug)]
pub(crate) struct Held(#[expect(dead_code, reason = "an open file is what holds the lock")] File);

impl Place {
    pub fn new(folder: &Path, key: String) -> Self {
        Self { folder: folder.to_owned(), key }
    }

    /// The copy itself, which has this name only when it is whole.
    pub fn whole(&self) -> PathBuf {
        self.folder.join(&self.key)
    }

    /// The same while it is made.
    pub fn partial(&self) -> PathBuf {
        self.folder.join(format!("{PARTIAL}{}", self.key))
    }

    /// Shares the copy, so that it stays.
    ///
    /// # Errors
    /// When the lock cannot be had, or the wait for it was cancelled.
    pub fn share(&self, asked: Asked<'_>, note: &dyn Fn(&str)) -> Result<Held, WorkloadError> {
        self.lock(FlockOperation::NonBlockingLockShared, asked, note)
    }

    /// Has the copy alone, so that it can be made.
    ///
    /// # Errors
    /// As for [`Self::share`].
    pub fn own(&self, asked: Asked<'_>, note: &dyn Fn(&str)) -> Result<Held, WorkloadError> {
        self.lock(FlockOperation::NonBlockingLockExclusive, asked, note)
    }

    fn lock(&self, how: FlockOperation, asked: Asked<'_>, note: &dyn Fn(&str)) -> Result<Held, WorkloadError> {
        let path = lock_of(&self.folder, &self.key);
        let lock = File::create(&path).map_err(file("write", &path))?;
        let mut told = false;
        while let Err(error) = flock(&lock, how) {
            if error != Errno::WOULDBLOCK {
                return Err(file("lock", &path)(error.into()).into());
            }
            if !told {
                told = true;
                note("another run makes the same database; waiting for it");
            }
            // The pause is the agent's, which ends it when somebody wishes to stop.
            asked.run(&["sleep", LOOK_EVERY], None, LOOK_AT_MOST)?;
        }
        Ok(Held(lock))
    }

    /// Removes what runs that were interrupted have left of copies, also of others than this one.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn sweep(&self) -> Result<(), StoreError> {
        for entry in fs::read_dir(&self.folder).map_err(file("read", &self.folder))?.flatten() {
            let name = entry.file_name();
            let Some(key) = name.to_str().and_then(|name| name.strip_prefix(PARTIAL)) else { continue };
            if key == self.key {
                // Its lock is held by who calls this.
                remove(&entry.path())?;
                continue;
            }
            let path = lock_of(&self.folder, key);
            let lock = File::create(&path).map_err(file("write", &path))?;
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
                remove(&entry.path())?;
            }
        }
        Ok(())
    }
}

/// The lock of a copy. It stays when the copy goes, for somebody may be waiting for it.
fn lock_of(folder: &Path, key: &str) -> PathBuf {
    folder.join(format!(".{key}.lock"))
}

/// Removes a directory with all in it, if it is there.
///
/// # Errors
/// When it cannot be removed.
pub(crate) fn remove(place: &Path) -> Result<(), StoreError> {
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
    fn what_was_begun_and_given_up_is_swept_away_and_what_somebody_makes_is_not() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".partial-mine", ".partial-given-up", ".partial-being-made", "whole"] {
            fs::create_dir_all(folder.path().join(name).join("tree")).unwrap();
        }
        let lock = File::create(lock_of(folder.path(), "being-made")).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
        let place = Place::new(folder.path(), "mine".to_owned());
        place.sweep().unwrap();
        let there = |name: &str| folder.path().join(name).exists();
        assert!(!there(".partial-mine") && !there(".partial-given-up"));
        assert!(there(".partial-being-made") && there("whole"));
        drop(lock);
        place.sweep().unwrap();
        assert!(!there(".partial-being-made"));
    }
}
