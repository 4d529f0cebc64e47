//! Working without root: a user namespace in which this process is root over what it makes.

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

/// Whether this process works without root: it is not root, or root only in a user namespace that maps one user.
pub fn is_rootless() -> bool {
    !rustix::process::geteuid().is_root() || mapped_single_user().is_some()
}

/// The user id outside, when `/proc/self/uid_map` maps exactly one user.
pub(crate) fn mapped_single_user() -> Option<u32> {
    parse_uid_map(&fs::read_to_string("/proc/self/uid_map").ok()?)
}

fn parse_uid_map(text: &str) -> Option<u32> {
    let mut fields = text.split_whitespace().map(str::parse::<u32>);
    let (inside, outside, count) = (fields.next()?.ok()?, fields.next()?.ok()?, fields.next()?.ok()?);
    (inside == 0 && count == 1 && fields.next().is_none()).then_some(outside)
}

/// The user this process is outside of any user namespace of tare's.
pub(crate) fn outer_uid() -> u32 {
    mapped_single_user().unwrap_or_else(|| rustix::process::getuid().as_raw())
}

/// The name of this user outside, for remedies: its number where it has none.
pub(crate) fn user_name() -> String {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let uid = outer_uid();
    name_of(&users, uid).map_or_else(|| uid.to_string(), str::to_owned)
}

/// A user's name, from `/etc/passwd` (passwd(5)).
pub(crate) fn name_of(users: &str, uid: u32) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_of_a_user_namespace_is_distinguished_from_the_hosts() {
        assert_eq!(parse_uid_map("         0          0 4294967295\n"), None);
        assert_eq!(parse_uid_map("         0       1000          1\n"), Some(1000));
        assert_eq!(parse_uid_map("0 1000 1\n1 100000 65536\n"), None);
        assert_eq!(parse_uid_map(""), None);
    }
}
