//! What may be believed: files and directories that nobody else can have written.
//!
//! Reaping acts on what it reads, up to running programs that a ledger names. Another user can put a directory
//! under a name that we would look for, such as in `/tmp`; what is in it must never be acted upon.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::{LabError, Result};
use crate::rootless::is_rootless;

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

/// The directory `name` of this user's cache, which nobody else can enter: in `/var/cache/tare` for root, else in
/// `$XDG_CACHE_HOME/tare` or `~/.cache/tare`. It is made where it is missing.
///
/// # Errors
/// When there is no place for it, or what is there is not this user's alone.
pub fn private_cache(name: &str) -> Result<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = || absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    let base = if is_rootless() { own() } else { Some("/var/cache".into()) };
    let base = base.ok_or_else(|| LabError::Unavailable {
        tried: format!("find a directory for {name}"),
        why: "neither XDG_CACHE_HOME nor HOME names one".into(),
        remedy: "Set HOME".into(),
    })?;
    let place = base.join("tare").join(name);
    make_private_below(&place).map(|()| place)
}

/// Makes a directory that only its owner may enter, with what is missing above it.
fn make_private_below(dir: &Path) -> Result<()> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    if check_private(dir)? {
        return Ok(());
    }
    let error = made.err().unwrap_or_else(|| io::ErrorKind::NotFound.into());
    Err(LabError::system(format!("make the private directory {}", dir.display()), error))
}

/// Writes a file that nobody else may read, in a directory that is private: aside, then under its name, so that nobody ever
/// reads half of it and a link in its place is replaced and not followed.
///
/// # Errors
/// When it cannot be written.
pub fn write_private(file: &Path, bytes: &[u8]) -> Result<()> {
    let aside = file.with_extension(format!("{}.{:?}", std::process::id(), std::thread::current().id()));
    // Of a process that had this number before.
    let _ = fs::remove_file(&aside);
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&aside)
        .and_then(|mut new| new.write_all(bytes))
        .and_then(|()| fs::rename(&aside, file));
    written.map_err(|error| {
        // What was half written is found by nobody, as no name leads to it.
        let _ = fs::remove_file(&aside);
        LabError::system(format!("write {}", file.display()), error)
    })
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
    fn a_private_file_is_written_whole_and_through_no_link() {
        let above = tempfile::tempdir().unwrap();
        let place = above.path().join("tare/logs");
        make_private_below(&place).unwrap();
        make_private_below(&place).unwrap();
        let (file, other) = (place.join("x.log"), above.path().join("other"));
        fs::write(&other, "kept").unwrap();
        symlink(&other, &file).unwrap();
        write_private(&file, b"first, and longer").unwrap();
        write_private(&file, b"second").unwrap();
        assert_eq!((fs::read(&file).unwrap(), fs::read(&other).unwrap()), (b"second".to_vec(), b"kept".to_vec()));
        assert_eq!(fs::symlink_metadata(&file).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(fs::read_dir(&place).unwrap().count(), 1, "nothing is left aside");
        assert!(refused(write_private(&place.join("none/x"), b"")));
        fs::set_permissions(&place, fs::Permissions::from_mode(0o750)).unwrap();
        assert!(refused(make_private_below(&place)));
        let link = above.path().join("link");
        symlink("/tmp", &link).unwrap();
        assert!(refused(make_private_below(&link)) && refused(make_private_below(Path::new("/proc/none"))));
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
