//! Whether this process works without root, and whose it is.

use std::fs;

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
