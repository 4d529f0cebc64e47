//! A user namespace in which this process is root over what it makes.

use std::fs;
use std::io::Write;

use rustix::mount::MountPropagationFlags;

use crate::error::{LabError, Result};
use crate::sys;

/// Moves this process into a user namespace of its own, with a mount namespace, in which it is uid 0.
/// Afterwards the lab works as it does for root; control groups are those that the user had before.
///
/// Call it first thing in `main`, while the process has one thread, and only when it is not root.
/// Reaping is better done outside: from within, processes in other user namespaces cannot be looked into.
///
/// # Errors
/// When the kernel does not allow it, or the process already has threads.
pub fn enter_user_namespace() -> Result<()> {
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    sys::unshare(sys::Unshare::UserAndMounts).map_err(|source| {
        let tried = "make a user namespace".to_owned();
        if source.raw_os_error() == Some(libc::EINVAL) {
            let remedy = "It must be made before the process starts any thread".to_owned();
            return LabError::System { tried, source, remedy };
        }
        LabError::system(tried, source)
    })?;
    // The kernel takes a map of groups from an unprivileged process only once setgroups is given up.
    for (file, text) in
        [("setgroups", "deny".to_owned()), ("uid_map", format!("0 {uid} 1")), ("gid_map", format!("0 {gid} 1"))]
    {
        let path = format!("/proc/self/{file}");
        // One write each: the kernel takes a map whole or not at all.
        fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut f| f.write_all(text.as_bytes()))
            .map_err(|e| LabError::system(format!("write `{text}` to {path}"), e))?;
    }
    rustix::mount::mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
        .map_err(|e| LabError::system("make the mounts of the user namespace private", e))
}
