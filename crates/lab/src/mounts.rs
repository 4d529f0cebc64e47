//! What is mounted in this mount namespace: `/proc/self/mountinfo` (proc(5)).

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The part of the file system that is seen.
    pub(crate) root: PathBuf,
    /// Where it is seen.
    pub(crate) point: PathBuf,
    /// Kind of file system.
    pub(crate) kind: String,
    /// Options of the file system, such as a hierarchy's controllers.
    pub(crate) options: String,
}

/// All mounts, in the kernel's order: a later one may hide an earlier one.
pub(crate) fn all() -> io::Result<Vec<Mount>> {
    Ok(parse(&fs::read_to_string("/proc/self/mountinfo")?))
}

pub(crate) fn parse(mountinfo: &str) -> Vec<Mount> {
    mountinfo.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    // A variable number of fields stands before the dash.
    let (head, tail) = line.split_once(" - ")?;
    let mut head = head.split(' ').skip(3);
    let mut tail = tail.split(' ');
    Some(Mount {
        root: unescape(head.next()?),
        point: unescape(head.next()?),
        kind: tail.next()?.to_owned(),
        options: tail.nth(1)?.to_owned(),
    })
}

/// The kernel writes space, tab, newline and backslash as a backslash and three octal digits.
fn unescape(text: &str) -> PathBuf {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(|_| *byte == b'\\') {
            Some(code) => {
                out.push(code);
                at += 4;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    OsString::from_vec(out).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_point_with_a_space_is_read_and_optional_fields_are_passed_over() {
        let text = "36 35 98:0 /part /mnt/with\\040space\\134 rw,noatime master:1 shared:7 - ext3 /dev/root rw,errors=continue\n\
                    no mount\n";
        let expected = Mount {
            root: "/part".into(),
            point: "/mnt/with space\\".into(),
            kind: "ext3".into(),
            options: "rw,errors=continue".into(),
        };
        assert_eq!(parse(text), [expected]);
    }
}
