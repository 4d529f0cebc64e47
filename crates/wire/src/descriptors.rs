//! The open files that a program was started with.

use std::os::fd::RawFd;

use crate::sys;

/// Marks every open file above standard error as one that no program started from here inherits. Whoever started this one may
/// have left anything open: a directory of the host's, or a file that it has locked. Called before anything else is done.
pub fn keep_to_ourselves() {
    if sys::close_range_on_exec().is_ok() {
        return;
    }
    // Before Linux 5.11 they are marked one by one. What cannot be listed there is nothing that this program could change.
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let open = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
    for descriptor in open.filter(|descriptor| *descriptor > 2).collect::<Vec<_>>() {
        sys::close_on_exec(descriptor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    /// Of every open file, whether it is closed when another program is started.
    fn is_marked(descriptor: RawFd) -> bool {
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).unwrap();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim();
        // O_CLOEXEC, which the kernel shows among the flags.
        u32::from_str_radix(flags, 8).unwrap() & 0o2_000_000 != 0
    }

    #[test]
    fn both_ways_mark_what_was_left_open() {
        for mark in [|_: RawFd| keep_to_ourselves(), sys::close_on_exec] {
            let file = sys::inheritable(std::fs::File::open("/").unwrap());
            assert!(!is_marked(file.as_raw_fd()));
            mark(file.as_raw_fd());
            assert!(is_marked(file.as_raw_fd()));
        }
    }
}
