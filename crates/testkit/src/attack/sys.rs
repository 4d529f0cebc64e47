//! Waiting for a child with its account of memory, which the standard library does not tell.

use std::io;
use std::process::Child;

/// How a child ended.
pub(super) struct Ended {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// The most memory that it had resident, bytes.
    pub peak_bytes: u64,
}

/// Looks whether the child has ended. Once it has, its handle must not be waited for.
pub(super) fn ended(child: &Child) -> io::Result<Option<Ended>> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live variables of the right types.
    match unsafe { libc::wait4(child.id().cast_signed(), &raw mut status, libc::WNOHANG, &raw mut usage) } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        _ => {
            let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
            // Linux counts in KiB (getrusage(2)).
            Ok(Some(Ended { code, peak_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024 }))
        }
    }
}
