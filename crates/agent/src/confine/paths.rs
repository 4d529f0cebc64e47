//! Files of the kernel that reach beyond a guest: hidden, or closed to writing, in a mount namespace of the agent's own.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags, StatVfsMountFlags, fstatvfs, open};
use rustix::mount::{MountFlags, mount, mount_bind, mount_bind_recursive};
use rustix::thread::UnshareFlags;
use tare_wire::confine::{MASKED, READ_ONLY};

use crate::error::{EnterError, during};
use crate::{fstab, root, sys};

/// Hides and closes the paths in a new mount namespace, so that nobody outside the guest sees a difference.
pub fn close() -> Result<(), EnterError> {
    sys::unshare(UnshareFlags::NEWNS).map_err(during("make a mount namespace to hide paths of the kernel in"))?;
    root::make_private()?;
    for path in MASKED.map(Path::new) {
        // What is hidden already stays so: a runtime may have done it.
        if !is_masked(path) {
            mask(path).map_err(during(format!("hide {} from the guest", path.display())))?;
        }
    }
    for path in READ_ONLY.map(Path::new) {
        if !is_read_only(path) {
            close_to_writing(path).map_err(during(format!("make {} read-only in the guest", path.display())))?;
        }
    }
    Ok(())
}

/// Those of the paths that are neither hidden nor closed here, as they are now.
pub fn open_paths() -> Vec<&'static str> {
    let masked = MASKED.into_iter().filter(|path| !is_masked(Path::new(path)));
    masked.chain(READ_ONLY.into_iter().filter(|path| !is_read_only(Path::new(path)))).collect()
}

fn mask(path: &Path) -> io::Result<()> {
    if !path.is_dir() {
        return Ok(mount_bind("/dev/null", path)?);
    }
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("tmpfs", path, "tmpfs", flags, c"size=0,mode=0555")?)
}

fn close_to_writing(path: &Path) -> io::Result<()> {
    // Of a mount point there is nothing to be bound: the mount itself is this namespace's own.
    if sys::make_read_only(path).is_ok() && is_read_only(path) {
        return Ok(());
    }
    // With all below it: in a user namespace a part cannot be shown without what is mounted on it.
    mount_bind_recursive(path, path)?;
    sys::make_read_only(path)
}

/// A path that is not there is hidden well enough. A directory is hidden by an empty one.
fn is_masked(path: &Path) -> bool {
    let Ok(seen) = fs::metadata(path) else { return true };
    if seen.is_dir() {
        return fs::read_dir(path).map_or(true, |mut entries| entries.next().is_none());
    }
    let null = fs::metadata("/dev/null").ok();
    seen.file_type().is_char_device() && null.is_some_and(|null| null.rdev() == seen.rdev())
}

/// Whether nothing at the path or below it can be written: some runtimes mount a writable part on a directory that is read-only.
fn is_read_only(path: &Path) -> bool {
    let Ok(mountinfo) = fs::read_to_string("/proc/self/mountinfo") else { return false };
    let below = fstab::parse_mountinfo(&mountinfo).into_iter().map(|mount| mount.at).filter(|at| {
        // Control groups are shown as each runtime does it, and bounded by those above them.
        at.starts_with(path) && !at.starts_with("/sys/fs/cgroup")
    });
    // What another mount covers is listed too. The path leads to the one that is seen.
    is_shown_read_only(path) && below.into_iter().all(|at| is_shown_read_only(&at))
}

/// Of the one mount that is seen at the path. A path that is not there cannot be written.
fn is_shown_read_only(path: &Path) -> bool {
    // Opened as a mere path, so that no automount is triggered.
    let seen = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).and_then(fstatvfs);
    seen.map_or(true, |seen| seen.f_flag.contains(StatVfsMountFlags::RDONLY))
}
