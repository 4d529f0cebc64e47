//! A place for the data that guests are given. A server of theirs that runs as nobody must reach it also where the guest
//! sees the host's own files, so others may pass through these directories, but neither list nor change them; what else a
//! run keeps on disk stays private.

use std::fs;
use std::path::{Path, PathBuf};

use crate::disk;
use crate::error::{LabError, Result};
use crate::name::{check_run_id, run_group};
use crate::trust::{check_passage, make_passage, make_private};

/// Name of the directory, within that of the run, that only its owner may enter.
const CLOSED: &str = "closed";

/// Makes the directory of the data of a run's guests, mode 0711: beside the directory of
/// [`make_disk_directory`](crate::make_disk_directory) for root, `/var/lib/tare-data/RUN`, for others the like; or
/// `tare-RUN` within a directory that is there. Reaping finds the first by the run's id, the second where it is written
/// down.
///
/// # Errors
/// When it cannot be made, or what is there is another's or can be written by others.
pub fn make_data_directory(run_id: &str, within: Option<&Path>) -> Result<PathBuf> {
    check_run_id(run_id)?;
    let path = data_path(run_id, within);
    if within.is_some() {
        return make_passage(&path).map(|()| path);
    }
    let base = base();
    if let Some(parent) = base.parent() {
        fs::create_dir_all(parent)
            .map_err(|e| LabError::system(format!("make the directory {}", parent.display()), e))?;
    }
    make_passage(&base)?;
    match make_passage(&path) {
        // Another run ended at this moment, and took the empty directory with it.
        Err(e) if e.errno() == Some(libc::ENOENT) => {
            make_passage(&base)?;
            make_passage(&path)?;
        }
        other => other?,
    }
    Ok(path)
}

/// The same with another in it that only its owner may enter, for guests that do not see the host's files and are shown
/// theirs: nobody else on the host reaches what they keep, such as programs with the bit of set-user-id.
///
/// # Errors
/// As [`make_data_directory`].
pub fn make_closed_data_directory(run_id: &str, within: Option<&Path>) -> Result<PathBuf> {
    make_data_directory(run_id, within)?;
    let path = closed_data_path(run_id, within);
    make_private(&path).map(|()| path)
}

/// Where [`make_closed_data_directory`] makes it, whether it is there or not.
pub fn closed_data_path(run_id: &str, within: Option<&Path>) -> PathBuf {
    data_path(run_id, within).join(CLOSED)
}

/// Where [`make_data_directory`] makes it, whether it is there or not.
pub fn data_path(run_id: &str, within: Option<&Path>) -> PathBuf {
    within.map_or_else(|| base().join(run_id), |within| within.join(run_group(run_id)))
}

/// Whether what is above the runs' own directories can be believed to be ours.
pub(crate) fn check_base() -> Result<bool> {
    check_passage(&base())
}

/// Ids of runs that have such a directory.
pub(crate) fn runs() -> Result<Vec<String>> {
    if !check_base()? {
        return Ok(Vec::new());
    }
    disk::runs_in(&base())
}

fn base() -> PathBuf {
    let mut name = disk::base().into_os_string();
    name.push("-data");
    name.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn others_may_pass_through_and_no_more() {
        let place = tempfile::tempdir().unwrap();
        let made = make_data_directory("r-1", Some(place.path())).unwrap();
        assert_eq!(made, place.path().join("tare-r-1"));
        assert_eq!(made.metadata().unwrap().permissions().mode() & 0o7777, 0o711);
        assert_eq!(make_data_directory("r-1", Some(place.path())).unwrap(), made, "it may be there");
        let closed = make_closed_data_directory("r-1", Some(place.path())).unwrap();
        assert_eq!(closed, made.join("closed"));
        assert_eq!(closed.metadata().unwrap().permissions().mode() & 0o7777, 0o700);
        fs::set_permissions(&made, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(make_data_directory("r-1", Some(place.path())), Err(LabError::Refused { .. })));
        symlink("/tmp", place.path().join("tare-r-2")).unwrap();
        assert!(matches!(make_data_directory("r-2", Some(place.path())), Err(LabError::Refused { .. })));
        assert!(make_data_directory("..", Some(place.path())).is_err());
        assert_ne!(base(), disk::base());
    }

    #[test]
    fn data_of_a_run_that_left_no_list_are_found_by_its_id() {
        let run_id = format!("test-{}-data", std::process::id());
        let made = make_data_directory(&run_id, None).unwrap();
        fs::create_dir(made.join("guest")).unwrap();
        fs::write(made.join("guest/table"), "x").unwrap();
        assert!(crate::leftovers(&run_id).contains(&format!("directory {}", made.display())));
        let of_guests = crate::left_by_guests(&run_id).unwrap();
        assert_eq!(of_guests, [format!("directory {}", made.join("guest").display())]);
        assert!(crate::StateDir::list().unwrap().iter().any(|run| run.run_id == run_id && !run.live));
        let report = crate::reap(&run_id, &[], &mut |_, _| Ok(()));
        assert!(report.is_clean() && !made.exists(), "{report:?}");
        assert_eq!(crate::leftovers(&run_id), Vec::<String>::new());
    }
}
