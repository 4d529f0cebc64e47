//! Removing a directory tree without ever leaving it: not through a link, not across a mount point.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, chmodat, openat, openat2, unlinkat};
use rustix::io::Errno;

/// Deeper trees are refused: each level keeps a descriptor open.
const DEPTH_MAX: u32 = 256;

/// Removes `path` and all in it. No error when it is not there.
///
/// The last component must be a directory, not a link to one. What lies behind a mount point inside is
/// left alone, and reported as an error of kind `CrossesDevices`. All that can be removed is, whatever else cannot.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the root directory is never removed"));
    };
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let parent = match openat(CWD, parent, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        other => other?,
    };
    let name = CString::new(name.as_encoded_bytes())?;
    match remove_directory(parent.as_fd(), &name, 0) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn remove_directory(parent: BorrowedFd<'_>, name: &CStr, depth: u32) -> io::Result<()> {
    if depth > DEPTH_MAX {
        return Err(io::Error::other(format!("more than {DEPTH_MAX} directories in each other")));
    }
    let directory = open_below(parent, name)?;
    let entries: Vec<(CString, FileType)> = Dir::read_from(&directory)?
        .map(|entry| entry.map(|entry| (entry.file_name().to_owned(), entry.file_type())))
        .collect::<Result<_, Errno>>()?;
    let mut first_error = Ok(());
    for (entry, kind) in entries {
        if entry.as_bytes() == b"." || entry.as_bytes() == b".." {
            continue;
        }
        let unlinked = match kind {
            FileType::Directory => Err(Errno::ISDIR),
            _ => unlinkat(&directory, &entry, AtFlags::empty()),
        };
        let gone = match unlinked {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::ISDIR) => remove_directory(directory.as_fd(), &entry, depth + 1),
            Err(e) => Err(named(e.into(), &entry)),
        };
        first_error = first_error.and(gone);
    }
    first_error?;
    unlinkat(parent, name, AtFlags::REMOVEDIR).map_err(|e| named(e.into(), name))
}

/// Opens a directory below `parent`, refusing links and mount points. One that we own but may not
/// enter (an overlay's `work` is made with mode 0) is opened up first.
fn open_below(parent: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    let open = || {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        openat2(parent, name, flags, Mode::empty(), within)
    };
    let opened = match open() {
        Err(Errno::ACCESS) => {
            // A link has no mode to change: chmod would follow it. It was refused with LOOP above.
            chmodat(parent, name, Mode::RWXU, AtFlags::empty()).map_err(|e| named(e.into(), name))?;
            open()
        }
        other => other,
    };
    opened.map_err(|e| match e {
        Errno::XDEV => named(io::Error::new(io::ErrorKind::CrossesDevices, "something is mounted there"), name),
        Errno::LOOP | Errno::NOTDIR => named(io::Error::new(io::ErrorKind::NotADirectory, "no directory"), name),
        other => named(other.into(), name),
    })
}

fn named(error: io::Error, name: &CStr) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", name.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_tree_goes_whole_and_what_its_links_point_at_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (tree, other) = (dir.path().join("tree"), dir.path().join("other"));
        fs::create_dir_all(tree.join("a/b")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("kept"), "x").unwrap();
        fs::write(tree.join("a/b/file"), "x").unwrap();
        symlink(&other, tree.join("a/link")).unwrap();
        fs::create_dir(tree.join("closed")).unwrap();
        fs::set_permissions(tree.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
        remove(&tree).unwrap();
        assert!(!tree.exists());
        assert!(other.join("kept").exists());
        remove(&tree).unwrap();
    }

    #[test]
    fn a_link_in_the_place_of_the_tree_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (link, other) = (dir.path().join("link"), dir.path().join("other"));
        fs::create_dir(&other).unwrap();
        fs::write(other.join("kept"), "x").unwrap();
        symlink(&other, &link).unwrap();
        assert_eq!(remove(&link).unwrap_err().kind(), io::ErrorKind::NotADirectory);
        assert!(other.join("kept").exists());
        assert!(remove(Path::new("/")).is_err());
    }
}
