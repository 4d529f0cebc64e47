//! The calls that need `unsafe`, each with why it is sound.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;

/// Marks all descriptors from 3 on as closed on exec.
pub(crate) fn close_range_on_exec() -> io::Result<()> {
    let (first, last, flags) = (3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
    // SAFETY: with this flag the call closes nothing now and takes no pointer: it changes what happens at the next exec.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Marks one descriptor as closed on exec. One that is not open is left alone.
pub(crate) fn close_on_exec(descriptor: RawFd) {
    // SAFETY: the call takes no pointer, closes nothing, and of a number that is not open it says so.
    let _ = unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
}

/// The version of Landlock's interface in this kernel.
pub(crate) fn landlock_version() -> io::Result<u32> {
    // LANDLOCK_CREATE_RULESET_VERSION (linux/landlock.h).
    let (no_rules, size, only_version) = (std::ptr::null::<u8>(), 0_usize, 1_u32);
    // SAFETY: with this flag the call makes nothing and follows no pointer: it answers with a number.
    let result = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, no_rules, size, only_version) };
    u32::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// A file as a careless shell leaves it to the programs that it starts.
#[cfg(test)]
pub(crate) fn inheritable(file: std::fs::File) -> std::fs::File {
    use std::os::fd::AsRawFd;
    // SAFETY: as above; the descriptor is open while `file` lives.
    let _ = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, 0) };
    file
}
