//! The few calls that need `unsafe`.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

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

/// Bytes that were handed to a TCP socket and that the other end's kernel has not yet acknowledged (SIOCOUTQ; tcp(7)).
pub(crate) fn unacknowledged(fd: BorrowedFd<'_>) -> std::io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open while it is borrowed, and the pointer is to a writable int of our own.
    match unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) } {
        0 => Ok(u64::try_from(bytes).unwrap_or(0)),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Bytes of a huge page on x86-64 and on aarch64 with pages of 4 KiB.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// Asks the kernel to lay the first `bytes` of a file in memory, a multiple of [`HUGE_PAGE`], in huge pages at once
/// (MADV_COLLAPSE, Linux 6.1; madvise(2)).
pub(crate) fn collapse(file: BorrowedFd<'_>, bytes: usize) -> std::io::Result<()> {
    const MADV_COLLAPSE: libc::c_int = 25;
    let failed = |address: *mut libc::c_void| (address == libc::MAP_FAILED).then(std::io::Error::last_os_error);
    let room = bytes + HUGE_PAGE;
    // SAFETY: a new mapping at an address of the kernel's choice; nothing of ours is touched.
    let reserved = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        libc::mmap(std::ptr::null_mut(), room, libc::PROT_NONE, flags, -1, 0)
    };
    if let Some(error) = failed(reserved) {
        return Err(error);
    }
    let aligned = reserved.wrapping_byte_add(reserved.align_offset(HUGE_PAGE));
    // SAFETY: the range lies within the reservation above, which nobody else knows of, so replacing a part
    // of it and advising on that part touches no memory that a reference points to.
    let advised = unsafe {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
        let mapped = libc::mmap(aligned, bytes, access, flags, file.as_raw_fd(), 0);
        match failed(mapped) {
            None if libc::madvise(mapped, bytes, MADV_COLLAPSE) == 0 => Ok(()),
            None => Err(std::io::Error::last_os_error()),
            Some(error) => Err(error),
        }
    };
    // SAFETY: the whole reservation, made above and used by nobody.
    unsafe { libc::munmap(reserved, room) };
    advised
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

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

    #[test]
    fn a_file_in_memory_keeps_its_bytes_when_it_is_laid_in_huge_pages() {
        use std::io::{Read, Seek, Write};
        let fd = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).map(std::fs::File::from);
        let mut file = fd.unwrap();
        let written: Vec<u8> = (0..HUGE_PAGE).map(|i| (i / 4096 + i) as u8).collect();
        file.write_all(&written).unwrap();
        if let Err(error) = collapse(file.as_fd(), HUGE_PAGE) {
            println!("SKIPPED: no huge pages here: {error}");
            return;
        }
        let mut read = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut read).unwrap();
        assert!(read == written);
        assert!(collapse(file.as_fd(), 2 * HUGE_PAGE).is_err(), "what is not there cannot be collapsed");
    }
}
