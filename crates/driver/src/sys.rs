//! The few calls that need `unsafe`.

use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, RawFd};

/// CPU time that the calling thread has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CpuTime {
    /// In user mode, nanoseconds.
    pub user_ns: u64,
    /// In the kernel, nanoseconds.
    pub system_ns: u64,
}

/// CPU time of the calling thread so far (getrusage(RUSAGE_THREAD); resolution 1 us).
pub(crate) fn thread_cpu() -> CpuTime {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a writable rusage of our own. The call cannot fail with these arguments, and
    // an all-zero rusage is a valid value should it do so anyway.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    CpuTime { user_ns: ns(usage.ru_utime), system_ns: ns(usage.ru_stime) }
}

/// Shuts a socket down in both directions by its number, waking whoever is blocked on it.
///
/// # Safety
/// `fd` must stay open for the length of the call.
pub(crate) unsafe fn shutdown_raw(fd: RawFd) {
    // SAFETY: the caller guarantees that the descriptor stays open while it is borrowed.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    // A socket that is not connected any more says ENOTCONN and is as shut as can be.
    let _ = rustix::net::shutdown(fd, rustix::net::Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_works_uses_cpu_and_one_that_sleeps_does_not() {
        let before = thread_cpu();
        let mut x = 1u64;
        while (thread_cpu().user_ns + thread_cpu().system_ns) < before.user_ns + before.system_ns + 2_000_000 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        let (slept, wall) = std::thread::spawn(|| {
            let before = thread_cpu();
            std::thread::sleep(std::time::Duration::from_millis(30));
            let after = thread_cpu();
            (after.user_ns + after.system_ns - before.user_ns - before.system_ns, 30_000_000)
        })
        .join()
        .unwrap_or((u64::MAX, 0));
        assert!(slept < wall / 2, "a sleeping thread was charged {slept} ns");
    }
}
