//! Directories of the host's that disks for data are files in.

use std::path::{Path, PathBuf};

use tare_model::Refusal;

use super::options::{DataDisk, Options};
use crate::DataWanted;
use crate::data_directory::DataDirectory;

/// Where disks are that no directory is named for, or will be.
pub(super) fn usual() -> PathBuf {
    let place = tare_lab::disk_path("");
    place.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

/// A directory that is named for one disk.
pub(super) fn named(directory: &Path, log: Option<&Path>) -> DataDirectory {
    DataDirectory { directory: directory.into(), log_directory: log.map(Path::to_owned), in_memory: false }
}

/// Looks whether the disks of the first guest can be there: directories on disks, and where one is named for the log, on another file
/// system than the data.
///
/// # Errors
/// Why they cannot, and the remedy.
pub(super) fn look(options: &Options) -> Result<(), Refusal> {
    of(options).map_or(Ok(()), |(directories, _)| directories.look())
}

/// The same for all guests, and whether there is room for what they are given.
///
/// # Errors
/// Why they cannot, and the remedy.
pub(super) fn have_room(options: &Options, wanted: DataWanted) -> Result<(), Refusal> {
    let Some((directories, holds)) = of(options) else { return Ok(()) };
    let (data, log) = wanted.apart();
    let wanted = match holds {
        Holds::Both => wanted,
        Holds::Data => data,
        Holds::Log => log,
    };
    directories.refusal(wanted).map_or(Ok(()), Err)
}

/// What lies in the directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Both,
    Data,
    Log,
}

fn of(options: &Options) -> Option<(DataDirectory, Holds)> {
    let data = options.data_disk.clone().unwrap_or_default();
    let log = options.log_disk.as_ref().and_then(|disk| disk.directory.as_deref());
    match (data.directory.as_deref(), log) {
        (None, None) => None,
        (Some(directory), None) if options.log_disk.is_some() => Some((named(directory, None), Holds::Data)),
        (Some(directory), log) => Some((named(directory, log), Holds::Both)),
        (None, Some(log)) if is_file(&data) => Some((named(&usual(), Some(log)), Holds::Both)),
        (None, Some(log)) => Some((named(log, None), Holds::Log)),
    }
}

/// Whether a disk is a file of this host's, also where a target serves it.
fn is_file(disk: &DataDisk) -> bool {
    disk.device.is_none() && disk.san.is_none()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_log_that_has_a_directory_is_on_another_file_system_than_the_data() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let of = |options: Value| of(&crate::options::read::<Options>(&options).unwrap());
        let log = json!({"directory": place.path()});
        assert_eq!(of(json!({"log-disk": {}})), None);
        let (directories, holds) = of(json!({"log-disk": log})).unwrap();
        assert_eq!((directories.directory, holds), (usual(), Holds::Both), "the data lie where they usually do");
        let (directories, holds) = of(json!({"data-disk": {"device": "/dev/sdb"}, "log-disk": log})).unwrap();
        assert_eq!((directories.directory.as_path(), holds), (place.path(), Holds::Log));
        let (directories, holds) = of(json!({"data-disk": log, "log-disk": {}})).unwrap();
        assert_eq!((directories.log_directory, holds), (None, Holds::Data));
        let both =
            json!({"data-disk": {"directory": place.path()}, "log-disk": {"directory": place.path().join("..")}});
        let options = crate::options::read::<Options>(&both).unwrap();
        assert!(look(&options).unwrap_err().reason.contains("same file system"));
    }
}
