//! A place on a disk for what guests write and what is unpacked for them: the state directory is in memory on
//! most hosts (`/run` is a tmpfs), where a layer "on disk" would be paid for in memory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{LabError, Result};
use crate::name::check_run_id;
use crate::rootless;
use crate::trust::{check_private, make_private, ours};

/// File systems whose files are in memory (`linux/magic.h`).
const TMPFS_MAGIC: u64 = 0x0102_1994;
const RAMFS_MAGIC: u64 = 0x8584_58f6;

/// Makes the directory of a run's layers and unpacked archives, mode 0700: `/var/lib/tare/RUN` for root,
/// `$XDG_STATE_HOME/tare/RUN` or `~/.local/state/tare/RUN` for others (`/var/tmp/tare-UID/RUN` for those without a
/// home). Reaping finds it by the run's id.
///
/// # Errors
/// When it cannot be made, or what is there is open to others.
pub fn make_disk_directory(run_id: &str) -> Result<PathBuf> {
    check_run_id(run_id)?;
    let base = base();
    if let Some(parent) = base.parent() {
        fs::create_dir_all(parent)
            .map_err(|e| LabError::system(format!("make the directory {}", parent.display()), e))?;
    }
    make_private(&base)?;
    let path = base.join(run_id);
    match make_private(&path) {
        // Another run ended at this moment, and took the empty directory with it.
        Err(e) if e.errno() == Some(libc::ENOENT) => {
            make_private(&base)?;
            make_private(&path)?;
        }
        other => other?,
    }
    Ok(path)
}

/// Where [`make_disk_directory`] makes it, whether it is there or not.
pub fn disk_path(run_id: &str) -> PathBuf {
    base().join(run_id)
}

/// Refuses a directory whose files are in memory for what a study wants on disk.
///
/// # Errors
/// [`LabError::Refused`] when it is on a tmpfs or ramfs; [`LabError::System`] when the type of its file system is unknown.
pub fn check_on_disk(path: &Path) -> Result<()> {
    if !is_in_memory(path)? {
        return Ok(());
    }
    Err(LabError::Refused {
        tried: format!("keep a guest's writes on disk in {}", path.display()),
        why: "it is on a tmpfs: what is written there is in memory, and is not charged as on a disk".into(),
        remedy: "Mount a disk there (without root, XDG_STATE_HOME names another place), or write `upper = \"memory\"` \
                 in the study"
            .into(),
    })
}

/// Whether files there are in memory (tmpfs, ramfs).
///
/// # Errors
/// [`LabError::System`] when the type of the file system is unknown.
pub fn is_in_memory(path: &Path) -> Result<bool> {
    let found = rustix::fs::statfs(path)
        .map_err(|e| LabError::system(format!("look at the file system of {}", path.display()), e))?;
    Ok(matches!(found.f_type as u64 & 0xffff_ffff, TMPFS_MAGIC | RAMFS_MAGIC))
}

/// Ids of runs that have such a directory; a reboot takes the state directories and leaves these.
pub(crate) fn runs() -> Result<Vec<String>> {
    let base = base();
    if !check_private(&base)? {
        return Ok(Vec::new());
    }
    runs_in(&base)
}

/// Ids of the runs that have a directory in this one.
pub(crate) fn runs_in(base: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(base) {
        Ok(entries) => entries,
        // Another run ended at this moment, and took the empty directory with it.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(LabError::system(format!("read directory {}", base.display()), e)),
    };
    let directories = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let names = directories.filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter(|name| check_run_id(name).is_ok()).collect())
}

pub(crate) fn base() -> PathBuf {
    if !rootless::is_rootless() {
        return PathBuf::from("/var/lib/tare");
    }
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    // A home that another user's shell left in the environment is none.
    let home = absolute("HOME").filter(|home| fs::metadata(home).is_ok_and(|found| ours(&found)));
    let state_home = absolute("XDG_STATE_HOME").or_else(|| home.map(|home| home.join(".local/state")));
    match state_home {
        // Without links on the way: reaping refuses those.
        Some(dir) => dir.canonicalize().unwrap_or(dir).join("tare"),
        None => PathBuf::from(format!("/var/tmp/tare-{}", rootless::outer_uid())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_not_taken_for_a_disk() {
        let shared = Path::new("/dev/shm");
        let Ok(found) = rustix::fs::statfs(shared) else {
            eprintln!("SKIPPED: needs /dev/shm");
            return;
        };
        assert_eq!(check_on_disk(shared).is_err(), found.f_type as u64 == TMPFS_MAGIC);
        assert!(check_on_disk(Path::new("/proc")).is_ok(), "only what keeps files in memory is refused");
    }
}
