//! The place of a gold copy, and who makes it, uses it or takes it away: a lock beside it tells.
//!
//! Who makes a copy or removes it holds its lock alone. Who uses it shares the lock until the run ends, so that nobody takes
//! the copy away from under a trial.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::Failure;
use crate::WorkloadError;
use crate::failure::file;

/// How the name begins of what is not whole.
const PARTIAL: &str = ".partial-";
/// A copy that nobody has used for so long is taken away when another is made.
const UNUSED: Duration = Duration::from_secs(30 * 86_400);

/// Where a gold copy is kept.
#[derive(Debug)]
pub(crate) struct Place {
    /// The directory of all gold copies.
    folder: PathBuf,
    /// Its name there.
    name: String,
}

/// A lock that is held until this is dropped, or its process ends.
#[derive(Debug)]
pub(crate) struct Held(#[expect(dead_code, reason = "an open file is what holds the lock")] File);

/// What is done between two looks at a lock that somebody else has.
type Pause<'a> = &'a dyn Fn() -> Result<(), WorkloadError>;

impl Place {
    pub fn new(folder: &Path, name: String) -> Self {
        Self { folder: folder.to_owned(), name }
    }

    /// The copy itself, which has this name only when it is whole.
    pub fn whole(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// The same while it is made.
    pub fn partial(&self) -> PathBuf {
        self.folder.join(format!("{PARTIAL}{}", self.name))
    }

    /// Shares the copy, so that it stays. `pause` is called while somebody else makes it.
    ///
    /// # Errors
    /// When the lock cannot be had, or `pause` fails.
    pub fn share(&self, pause: Pause<'_>) -> Result<Held, WorkloadError> {
        self.lock(FlockOperation::NonBlockingLockShared, pause)
    }

    /// Has the copy alone, so that it can be made.
    ///
    /// # Errors
    /// As for [`Self::share`].
    pub fn own(&self, pause: Pause<'_>) -> Result<Held, WorkloadError> {
        self.lock(FlockOperation::NonBlockingLockExclusive, pause)
    }

    fn lock(&self, how: FlockOperation, pause: Pause<'_>) -> Result<Held, WorkloadError> {
        let path = lock_of(&self.folder, &self.name);
        let lock = File::create(&path).map_err(file("write", &path))?;
        while let Err(error) = flock(&lock, how) {
            if error != Errno::WOULDBLOCK {
                return Err(file("lock", &path)(error.into()).into());
            }
            pause()?;
        }
        Ok(Held(lock))
    }

    /// Removes what runs that were interrupted have left of copies, copies that are `stale` by name and place, and those that nobody has
    /// used for a month: of every kind, unless somebody makes or uses them.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn sweep(&self, stale: &dyn Fn(&str, &Path) -> bool) -> Result<(), Failure> {
        for entry in fs::read_dir(&self.folder).map_err(file("read", &self.folder))?.flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            let Some(name) = name.to_str() else { continue };
            let (name, begun) = name.strip_prefix(PARTIAL).map_or((name, false), |name| (name, true));
            // Locks are files, and so is whatever is not a copy.
            if !path.is_dir() || !(begun || stale(name, &path) || unused(&self.folder, name)) {
                continue;
            }
            // Its own lock is held by who calls this.
            if name == self.name {
                remove(&path)?;
            } else if let Some(_lock) = taken(&self.folder, name)? {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

/// Whether a copy was not used for a month: who uses it writes its lock anew, which is empty.
fn unused(folder: &Path, name: &str) -> bool {
    let age = fs::metadata(lock_of(folder, name)).and_then(|seen| seen.modified()).map(|at| at.elapsed());
    // A clock that was set back tells nothing.
    matches!(age, Ok(Ok(age)) if age > UNUSED)
}

/// The lock of a copy that nobody makes or uses; `None`: somebody does.
fn taken(folder: &Path, name: &str) -> Result<Option<File>, Failure> {
    let path = lock_of(folder, name);
    let lock = File::create(&path).map_err(file("write", &path))?;
    Ok(flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(lock))
}

/// The lock of a copy. It stays when the copy goes, for somebody may be waiting for it.
fn lock_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!(".{name}.lock"))
}

/// Removes a directory with all in it, if it is there.
///
/// # Errors
/// When it cannot be removed.
pub(crate) fn remove(place: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(file("remove", place)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_up_or_is_stale_is_swept_away_and_what_is_made_or_used_is_not() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".partial-mine", ".partial-given-up", ".partial-being-made", "old", "old-used", "store-y"] {
            fs::create_dir_all(folder.path().join(name).join("tree")).unwrap();
        }
        let hold = |name: &str, how| {
            let lock = File::create(lock_of(folder.path(), name)).unwrap();
            flock(&lock, how).unwrap();
            lock
        };
        let held = [
            hold("being-made", FlockOperation::NonBlockingLockExclusive),
            hold("old-used", FlockOperation::NonBlockingLockShared),
            // As whoever sweeps holds it.
            hold("mine", FlockOperation::NonBlockingLockExclusive),
        ];
        let place = Place::new(folder.path(), "mine".to_owned());
        let stale = |name: &str, path: &Path| name.starts_with("old") && path.join("tree").is_dir();
        place.sweep(&stale).unwrap();
        let there = |name: &str| folder.path().join(name).exists();
        assert!(!there(".partial-mine") && !there(".partial-given-up") && !there("old"));
        assert!(there(".partial-being-made") && there("old-used"), "somebody has them");
        assert!(there("store-y") && there(".old.lock"));
        drop(held);
        place.sweep(&stale).unwrap();
        assert!(!there(".partial-being-made") && !there("old-used"));
    }

    #[test]
    fn a_copy_that_nobody_has_used_for_a_month_goes_when_another_is_made() {
        let folder = tempfile::tempdir().unwrap();
        for (name, days) in [("store-old", 31), ("store-new", 29)] {
            fs::create_dir(folder.path().join(name)).unwrap();
            let lock = File::create(lock_of(folder.path(), name)).unwrap();
            lock.set_modified(std::time::SystemTime::now() - Duration::from_secs(days * 86_400)).unwrap();
        }
        let place = Place::new(folder.path(), "web-mine".to_owned());
        place.sweep(&|_, _| false).unwrap();
        let there = |name: &str| folder.path().join(name).exists();
        assert!(!there("store-old") && there("store-new"));
        // Using it makes it new.
        let lock = lock_of(folder.path(), "store-new");
        drop(Place::new(folder.path(), "store-new".to_owned()).share(&|| Ok(())).unwrap());
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
