//! What is mounted on the host.

use std::path::{Path, PathBuf};

/// One line of `/proc/self/mountinfo`, as far as it is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The directory of the file system that is mounted: `/` unless it is a bind mount.
    pub root: String,
    /// Where.
    pub at: PathBuf,
    /// Type of the file system.
    pub kind: String,
}

/// File systems that hold a host's files. Mounts of other types are the kernel's views of itself, or
/// memory, which a guest gets anew.
const FILE_SYSTEMS: [&str; 9] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs", "overlay"];

impl Mount {
    /// Whether this is a file system with files of the host's, mounted whole below the root.
    pub fn holds_files(&self) -> bool {
        let kernels_own = ["/proc", "/sys", "/dev", "/run", "/tmp"].iter().any(|top| self.at.starts_with(top));
        self.at != Path::new("/") && self.root == "/" && !kernels_own && FILE_SYSTEMS.contains(&self.kind.as_str())
    }
}

/// Parses `/proc/self/mountinfo` (proc(5)); a line that is not understood is left out.
pub fn parse_mountinfo(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ').skip(3);
    let root = unescape(fields.next()?);
    let at = PathBuf::from(unescape(fields.next()?));
    Some(Mount { root, at, kind: after.split(' ').next()?.to_owned() })
}

/// Blanks, tabs, newlines and backslashes are written as three octal digits.
fn unescape(field: &str) -> String {
    let mut plain = String::with_capacity(field.len());
    let mut rest = field;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        match after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(char::from(byte));
                rest = &after[3..];
            }
            None => {
                plain.push('\\');
                rest = after;
            }
        }
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_that_hold_files_are_distinguished_from_views_of_the_kernel() {
        let mounts = parse_mountinfo(
            "21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
             22 21 0:20 / /proc rw - proc proc rw\n\
             30 21 254:1 / /home\\040of\\040all rw,relatime shared:2 master:1 - xfs /dev/vdb rw\n\
             31 21 254:0 /var/lib/a /srv/a rw - ext4 /dev/vda rw\n\
             32 21 0:30 / /run/x rw - ext4 /dev/vdc rw\n\
             torn line\n",
        );
        assert_eq!(mounts.len(), 5);
        let held: Vec<_> = mounts.iter().filter(|m| m.holds_files()).map(|m| m.at.clone()).collect();
        assert_eq!(held, [PathBuf::from("/home of all")]);
    }
}
