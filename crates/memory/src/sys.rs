//! Calls of the kernel that no safe library offers.

use std::io;

/// Whether this process may open its memory to merging (`PR_SET_MEMORY_MERGE`, Linux 6.4): it is done and undone.
pub(crate) fn may_merge() -> io::Result<()> {
    if prctl(libc::PR_GET_MEMORY_MERGE, 0)? == 1 {
        return Ok(());
    }
    prctl(libc::PR_SET_MEMORY_MERGE, 1)?;
    prctl(libc::PR_SET_MEMORY_MERGE, 0).map(drop)
}

/// Opens the memory of this process to merging, without huge pages, which are not merged: for benches and tests.
///
/// # Errors
/// When the kernel refuses.
pub fn open_to_merging() -> io::Result<()> {
    prctl(libc::PR_SET_THP_DISABLE, 1)?;
    prctl(libc::PR_SET_MEMORY_MERGE, 1).map(drop)
}

fn prctl(option: libc::c_int, value: libc::c_ulong) -> io::Result<libc::c_int> {
    let none: libc::c_ulong = 0;
    // SAFETY: these two options take numbers alone, and all five arguments are given.
    match unsafe { libc::prctl(option, value, none, none, none) } {
        -1 => Err(io::Error::last_os_error()),
        answer => Ok(answer),
    }
}
