//! Taking the file systems away from a program that has opened all that it needs.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{chdir, pivot_root};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::{LabError, Result};
use crate::netns::scratch;
use crate::sys;

/// Makes the root of a process in a mount namespace of its own an empty directory, and takes all else out of that namespace. What the
/// process has open stays open. It needs no right of its own for that, and can take none of it back. `place` is a directory that it
/// sees, too; its working directory must be its root.
///
/// # Errors
/// When the kernel refuses, or the process sees files afterwards.
pub fn empty_root(pid: u32, place: &Path) -> Result<()> {
    let tried = format!("take the file systems away from process {pid}");
    let failed = |source: std::io::Error| LabError::system(tried.clone(), source);
    let own = |kind: &str| fs::read_link(format!("/proc/{kind}/ns/mnt"));
    if own(&pid.to_string()).map_err(failed)? == own("self").map_err(failed)? {
        return Err(failed(std::io::Error::other("it is in the mount namespace of tare")));
    }
    let namespace = File::open(format!("/proc/{pid}/ns/mnt")).map_err(failed)?;
    scratch("tare-empty", || {
        sys::unshare(sys::Unshare::Directories)?;
        Ok(change(&namespace, place)?)
    })?
    .map_err(failed)?;
    for directory in ["root", "cwd"] {
        let seen = fs::read_dir(format!("/proc/{pid}/{directory}")).map_err(failed)?.count();
        if seen > 0 {
            return Err(failed(std::io::Error::other(format!("its {directory} has {seen} files all the same"))));
        }
    }
    Ok(())
}

/// For a thread that ends then. The kernel moves every process whose root was the old one to the new one.
fn change(namespace: &File, place: &Path) -> std::result::Result<(), Errno> {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount))?;
    let nothing = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("tmpfs", place, "tmpfs", nothing, c"size=4k,mode=0555")?;
    chdir(place)?;
    // The old root ends up stacked on the new one, and is taken off (pivot_root(2), NOTES).
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)
}
