//! What may be believed: files and directories that nobody else can have written.
//!
//! Reaping acts on what it reads, up to running programs that a ledger names. Another user can put a directory
//! under a name that we would look for, such as in `/tmp`; what is in it must never be acted upon.

use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::{LabError, Result};

/// Whether this user is the owner. In tare's own user namespace both numbers are 0 for what is ours, and every
/// other owner shows as nobody, so the comparison holds there too.
pub(crate) fn ours(found: &fs::Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw()
}

/// Opens a file whose content may be believed: a regular file that is this user's own and that nobody else may
/// write. `None` when there is none. What was looked at is what is opened, so read it through this handle.
///
/// # Errors
/// [`LabError::Refused`] when it is none; [`LabError::System`] when it cannot be opened.
pub fn open_trusted(path: &Path) -> Result<Option<File>> {
    open_checked(path, 0o022, "may write")
}

/// Opens a file whose content may be acted upon: besides, nobody else may read it.
///
/// # Errors
/// As [`open_trusted`].
pub(crate) fn open_closed(path: &Path) -> Result<Option<File>> {
    open_checked(path, 0o077, "may read and write")
}

/// Opens a regular file of this user's with one name, and without these bits in its mode.
fn open_checked(path: &Path, forbidden: u32, may: &str) -> Result<Option<File>> {
    let tried = || format!("act upon {}", path.display());
    let refused = |why: String| {
        let remedy = "Others may have written it: look into it, then take away by hand what it rightly names";
        LabError::Refused { tried: tried(), why, remedy: remedy.into() }
    };
    // A pipe in its place must not keep us waiting.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(refused("it is a link".into())),
        other => File::from(other.map_err(|e| LabError::system(tried(), e))?),
    };
    let found = file.metadata().map_err(|e| LabError::system(tried(), e))?;
    if found.is_file() && ours(&found) && found.mode() & forbidden == 0 && found.nlink() == 1 {
        return Ok(Some(file));
    }
    Err(refused(format!(
        "it must be a regular file with one name that only its owner, this user, {may}; it has owner {}, mode {:o} and {} names",
        found.uid(),
        found.mode(),
        found.nlink()
    )))
}

/// Checks that a directory is this user's own and closed to all others. One that is not there is fine: `false`.
///
/// # Errors
/// [`LabError::Refused`] when it is a link, another's, or open to others.
pub(crate) fn check_private(dir: &Path) -> Result<bool> {
    let tried = || format!("use the private directory {}", dir.display());
    let found = match fs::symlink_metadata(dir) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        other => other.map_err(|e| LabError::system(tried(), e))?,
    };
    if found.is_dir() && ours(&found) && found.mode() & 0o077 == 0 {
        return Ok(true);
    }
    Err(LabError::Refused {
        tried: tried(),
        why: format!("what is there has owner {} and mode {:o}", found.uid(), found.mode() & 0o7777),
        remedy: "Remove it, or make it a directory of yours with mode 0700".into(),
    })
}

/// Makes a directory that only its owner may enter. One that is there already must be just that: in `/tmp`
/// another user may have put something in its place.
pub(crate) fn make_private(dir: &Path) -> Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(LabError::system(format!("make the private directory {}", dir.display()), e));
        }
        _ => {}
    }
    check_private(dir).map(|_| ())
}

/// Checks that a directory is this user's own and that others cannot write to it; they may pass through. One that is not
/// there is fine: `false`.
///
/// # Errors
/// [`LabError::Refused`] when it is a link, another's, or others may write to it.
pub(crate) fn check_passage(dir: &Path) -> Result<bool> {
    let tried = || format!("use the directory {}", dir.display());
    let found = match fs::symlink_metadata(dir) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        other => other.map_err(|e| LabError::system(tried(), e))?,
    };
    if found.is_dir() && ours(&found) && found.mode() & 0o022 == 0 {
        return Ok(true);
    }
    Err(LabError::Refused {
        tried: tried(),
        why: format!("what is there has owner {} and mode {:o}", found.uid(), found.mode() & 0o7777),
        remedy: "Remove it, or make it a directory of yours with mode 0711".into(),
    })
}

/// Makes a directory that others may pass through and do no more with. One that is there already must be such a one.
pub(crate) fn make_passage(dir: &Path) -> Result<()> {
    match fs::DirBuilder::new().mode(0o711).create(dir) {
        // Whatever the mask of this process.
        Ok(()) => fs::set_permissions(dir, fs::Permissions::from_mode(0o711)),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e),
    }
    .map_err(|e| LabError::system(format!("make the directory {}", dir.display()), e))?;
    check_passage(dir).map(|_| ())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Read;
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    fn refused<T>(result: Result<T>) -> bool {
        matches!(result, Err(LabError::Refused { .. } | LabError::System { .. }))
    }

    #[test]
    fn a_file_that_others_may_write_or_own_is_not_acted_upon() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("journal");
        fs::write(&file, "mine").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let mut text = String::new();
        open_trusted(&file).unwrap().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "mine");
        for mode in [0o664, 0o646] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            assert!(matches!(open_trusted(&file), Err(LabError::Refused { .. })), "{mode:o}");
        }
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let link = dir.path().join("link");
        symlink(&file, &link).unwrap();
        assert!(refused(open_trusted(&link)) && refused(open_trusted(dir.path())));
        assert!(open_trusted(&dir.path().join("none")).unwrap().is_none());
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: needs root, to give a file away");
            return;
        }
        chown(&file, Some(65_534), None).unwrap();
        assert!(matches!(open_trusted(&file), Err(LabError::Refused { .. })));
    }

    #[test]
    fn a_directory_that_others_may_enter_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        fs::DirBuilder::new().mode(0o755).create(&open).unwrap();
        assert!(matches!(make_private(&open), Err(LabError::Refused { .. })));
        let link = dir.path().join("link");
        symlink("/tmp", &link).unwrap();
        assert!(matches!(make_private(&link), Err(LabError::Refused { .. })));
        let new = dir.path().join("new");
        assert!(!check_private(&new).unwrap());
        make_private(&new).unwrap();
        assert!(check_private(&new).unwrap());
    }
}
