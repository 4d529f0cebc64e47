//! Where the data of guests lie in directories of the host's, as a study says it.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access, statvfs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tare_lab::is_in_memory;
use tare_model::Refusal;
use tare_model::field::FieldError;

use crate::DataWanted;
use crate::numbered::{for_number, number};
use crate::restore::{file_system, human};

/// File systems on which copies may share blocks with what they are copied from.
const SHARES_BLOCKS: [&str; 4] = ["xfs", "btrfs", "bcachefs", "zfs"];

/// The user that a guest's servers run as.
pub(crate) const NOBODY: u32 = 65_534;

/// Where a guest's data lie on the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct DataDirectory {
    /// A directory of the host's that is there, such as the mount point of a disk, a LUN or another file system: tare
    /// makes a directory of its own in it for each guest's data, and takes it away again. Data are cloned only from a
    /// gold copy on the same file system, so where that can clone, `TARE_CACHE` may name a directory on it. `{guest}` stands
    /// for the guest's number in its trial (1, 2, ..).
    pub directory: PathBuf,
    /// The same for the log of a database, where the workload has one: a directory on another file system, since the log is to
    /// have a disk of its own. Left out: the log lies with the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_directory: Option<PathBuf>,
    /// Whether they may be in memory (tmpfs); without this such a directory is refused.
    #[serde(default)]
    pub in_memory: bool,
}

/// The directories of one guest, without links on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// That of the data.
    pub data: PathBuf,
    /// That of the log, where it has one of its own.
    pub log: Option<PathBuf>,
}

impl DataDirectory {
    /// Refuses what cannot be meant, whatever the host.
    ///
    /// # Errors
    /// Which field is wrong and why.
    pub(crate) fn check(&self) -> Result<(), FieldError> {
        let same = |log: &PathBuf| log.components().eq(self.directory.components());
        if !self.log_directory.as_ref().is_some_and(same) {
            return Ok(());
        }
        let why = format!("the data lie in {} too, and the log is to have a disk of its own", self.directory.display());
        let help = "name a directory on another disk, or leave it out: the log then lies with the data";
        Err(FieldError::new(&["data", "log-directory"], why).help(help))
    }

    /// The directories of the guest with this number.
    fn of(&self, number: u32) -> Self {
        let own = |path: &Path| PathBuf::from(for_number(&path.to_string_lossy(), number));
        let log_directory = self.log_directory.as_deref().map(own);
        Self { directory: own(&self.directory), log_directory, in_memory: self.in_memory }
    }

    /// Those of the guest with this name.
    pub(crate) fn of_guest(&self, name: &str) -> Self {
        self.of(number(name))
    }

    /// Looks whether data can lie there, as far as can be seen before a run. Of those that are each guest's the first
    /// guest's is looked at.
    ///
    /// # Errors
    /// Why they cannot, and the remedy.
    pub(crate) fn look(&self) -> Result<(), Refusal> {
        self.of(1).places().map(drop)
    }

    /// The same for guests that see the host's files as they are, so that their servers must get there by themselves.
    ///
    /// # Errors
    /// Why they cannot, and the remedy.
    pub(crate) fn look_as_nobody(&self) -> Result<(), Refusal> {
        let own = self.of(1);
        let Places { data, log } = own.places()?;
        let named = [(Some(&data), Some(&own.directory)), (log.as_ref(), own.log_directory.as_ref())];
        for (place, named) in named {
            let Some((place, named)) = place.zip(named) else { continue };
            let Some(closed) = closed_to_nobody(place) else { continue };
            let reason = format!(
                "the directory for the data {} cannot be reached by the guest's servers, which run as nobody: {} is closed to others",
                named.display(),
                closed.display()
            );
            return Err(Refusal::new(reason, "Open it with `chmod o+x`, or name another one"));
        }
        Ok(())
    }

    /// Why the data of so many guests have no room there; `None` when they have, or where copies may share blocks, so that
    /// nobody can say beforehand.
    pub(crate) fn refusal(&self, wanted: DataWanted) -> Option<Refusal> {
        let (data, log) = match self.log_directory {
            Some(_) => wanted.apart(),
            None => (wanted, wanted.apart().1),
        };
        // What each file system is to hold, with a directory on it.
        let mut asked: BTreeMap<u64, (PathBuf, u64)> = BTreeMap::new();
        let mut ask = |place: PathBuf, bytes: u64| {
            let device = place.metadata().map_or(0, |found| found.dev());
            let of = asked.entry(device).or_insert((place, 0));
            of.1 = of.1.saturating_add(bytes);
        };
        for number in 1..=wanted.guests {
            match self.of(number).places() {
                Err(refusal) => return Some(refusal),
                Ok(places) => {
                    ask(places.data, data.size.0);
                    places.log.into_iter().for_each(|place| ask(place, log.size.0));
                }
            }
        }
        asked.into_values().find_map(|(place, needed)| no_room(&place, needed, wanted.guests))
    }

    /// The directories without links on the way.
    ///
    /// # Errors
    /// Why data cannot lie there, and the remedy.
    pub(crate) fn places(&self) -> Result<Places, Refusal> {
        let data = self.usable(&self.directory)?;
        let log = self.log_directory.as_deref().map(|directory| self.usable(directory)).transpose()?;
        let device = |path: &Path| path.metadata().map(|found| found.dev()).ok();
        match log {
            Some(log) if device(&log) == device(&data) => {
                let reason = format!(
                    "the directory for the log {} is on the same file system as that for the data, {}",
                    log.display(),
                    data.display()
                );
                Err(Refusal::new(reason, "Name a directory on another disk, or leave `log-directory` out"))
            }
            log => Ok(Places { data, log }),
        }
    }

    fn usable(&self, directory: &Path) -> Result<PathBuf, Refusal> {
        const REMEDY: &str = "Mount the disk, and check the path in the study";
        let refused = |why: &str, remedy: &str| {
            Refusal::new(format!("the directory for the data {} {why}", directory.display()), remedy)
        };
        let unusable = |error: &dyn std::fmt::Display| refused(&format!("cannot be used: {error}"), REMEDY);
        let place = directory.canonicalize();
        let place = place.map_err(|error| refused(&format!("is not there ({error})"), REMEDY))?;
        if !place.is_dir() {
            return Err(refused("is no directory", REMEDY));
        }
        access(&place, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| unusable(&error))?;
        if !self.in_memory && is_in_memory(&place).map_err(|error| unusable(&error))? {
            let remedy = "Name a directory on a disk, or write `in-memory = true` beside it where there is that option";
            return Err(refused("is in memory (tmpfs)", remedy));
        }
        Ok(place)
    }

    /// What a reader must know about it.
    pub(crate) fn disclosure(&self) -> Vec<String> {
        let memory =
            "The guests' data may lie in the host's memory, outside of their limits: nothing waits for a disk.";
        let apart = "The log of a database lies on a file system of its own, apart from its data.";
        let said = [(self.in_memory, memory), (self.log_directory.is_some(), apart)];
        said.into_iter().filter(|(holds, _)| *holds).map(|(_, sentence)| sentence.to_owned()).collect()
    }
}

/// Why so many bytes for so many guests have no room where a directory is.
fn no_room(place: &Path, needed: u64, guests: u32) -> Option<Refusal> {
    let found = statvfs(place).ok()?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    if needed <= free || SHARES_BLOCKS.contains(&file_system(place).as_str()) {
        return None;
    }
    let (needed, free) = (human(needed), human(free));
    let reason = format!("the data of {guests} guest(s) take {needed}, and {} has {free} free", place.display());
    Some(Refusal::new(reason, "Make room there, ask for less data or fewer guests, or name another directory"))
}

/// The first directory on the way to `path` that the guest's servers, which run as nobody, may not pass through; `None`
/// when all is open.
pub(crate) fn closed_to_nobody(path: &Path) -> Option<&Path> {
    let passes = |found: &Metadata| {
        let shift = if found.uid() == NOBODY { 6 } else { if found.gid() == NOBODY { 3 } else { 0 } };
        (found.permissions().mode() >> shift) & 0o1 != 0
    };
    let way: Vec<&Path> = path.ancestors().collect();
    way.into_iter().rev().find(|directory| !directory.metadata().is_ok_and(|found| passes(&found)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use tare_model::ByteSize;

    fn named(directory: &Path, in_memory: bool) -> DataDirectory {
        DataDirectory { directory: directory.into(), log_directory: None, in_memory }
    }

    #[test]
    fn a_place_for_data_is_there_writable_and_on_a_disk() {
        let place = tempfile::tempdir().unwrap();
        let said = |directory: &Path, in_memory| named(directory, in_memory).look().err().map(|why| format!("{why:?}"));
        assert!(said(&place.path().join("none"), false).unwrap().contains("not there"));
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(said(&file, false).unwrap().contains("no directory"));
        assert!(said(Path::new("/proc"), false).is_none_or(|why| why.contains("cannot be used")));
        let shared = Path::new("/dev/shm");
        if is_in_memory(shared).unwrap_or_default() {
            assert!(said(shared, false).unwrap().contains("in-memory = true"));
            assert_eq!(said(shared, true), None);
        }
    }

    #[test]
    fn a_directory_that_nobody_may_not_pass_is_found() {
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o711)).unwrap();
        assert_eq!(closed_to_nobody(&inner), None);
        fs::set_permissions(place.path().join("a"), fs::Permissions::from_mode(0o710)).unwrap();
        assert_eq!(closed_to_nobody(&inner), Some(place.path().join("a").as_path()));
        let named = named(&inner, true);
        assert_eq!(named.look(), Ok(()));
        let said = format!("{:?}", named.look_as_nobody().unwrap_err());
        assert!(said.contains("/a is closed") && said.contains("chmod o+x"), "{said}");
        assert!(closed_to_nobody(&place.path().join("none")).is_some());
    }

    #[test]
    fn the_log_is_on_another_file_system_than_the_data() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let (data, log) = (place.path().join("data"), place.path().join("log"));
        [&data, &log].iter().for_each(|directory| fs::create_dir(directory).unwrap());
        let with_log = |log: &Path| DataDirectory { log_directory: Some(log.into()), ..named(&data, true) };
        let error = with_log(&place.path().join("data/")).check().unwrap_err();
        assert_eq!(error.path, ["data", "log-directory"]);
        assert!(error.message.contains("disk of its own"), "{}", error.message);
        assert!(with_log(&log).check().is_ok(), "what file systems there are is asked on the host");
        let said = with_log(&log).look().unwrap_err().to_string();
        assert!(said.contains("same file system") && said.contains("log-directory"), "{said}");
        assert!(with_log(&place.path().join("none")).look().unwrap_err().reason.contains("not there"));
        let other = Path::new("/dev/shm");
        if is_in_memory(other).unwrap_or_default() {
            let places = with_log(other).places().unwrap();
            assert_eq!(places.log.as_deref(), Some(other.canonicalize().unwrap().as_path()));
            assert_eq!(with_log(other).disclosure().len(), 2);
        }
    }

    #[test]
    fn each_guest_has_the_directory_with_its_number() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::create_dir(place.path().join("pool-1")).unwrap();
        let each = named(&place.path().join("pool-{guest}"), true);
        let wanted = |guests, size| DataWanted { guests, size: ByteSize(size), log: ByteSize(0) };
        assert_eq!((each.look(), each.refusal(wanted(1, 1))), (Ok(()), None));
        assert!(each.refusal(wanted(2, 1)).unwrap().reason.contains("pool-2 is not there"));
        assert_eq!(each.of_guest("t3x1").directory, place.path().join("pool-2"));
        let full = named(place.path(), true).refusal(wanted(2, 1 << 60));
        let shares = SHARES_BLOCKS.contains(&file_system(place.path()).as_str());
        assert!(shares || full.as_ref().is_some_and(|why| why.reason.contains("2 guest(s) take")), "{full:?}");
    }
}
