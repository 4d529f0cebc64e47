//! The one call of this part that no safe crate offers as it is needed. The only file here with `unsafe`.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

/// Which connection an event is of, and what is up with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    /// What was given when interest was registered.
    pub data: u64,
    /// EPOLLIN and so on.
    pub flags: u32,
}

/// Most events of one call.
pub(crate) const BATCH: usize = 64;

/// Waits for events for at most `timeout_ns`, to the nanosecond where the kernel can (epoll_pwait2(2), Linux 5.11); before that to the
/// millisecond, rounded up. `None`: until there are some. An interrupted wait has no events.
pub(crate) fn wait(
    epoll: BorrowedFd<'_>,
    timeout_ns: Option<u64>,
    events: &mut [Event; BATCH],
) -> Result<usize, Errno> {
    /// The kernel has said that it has no such call.
    static COARSE: AtomicBool = AtomicBool::new(false);
    let mut raw = [libc::epoll_event { events: 0, u64: 0 }; BATCH];
    let mut returned = -1;
    if !COARSE.load(Ordering::Relaxed) {
        let limit = timeout_ns
            .map(|ns| libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ });
        let timeout = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let none = std::ptr::null::<libc::sigset_t>();
        // SAFETY: the array is writable and as long as said, the timeout is none or lives through the call, and no signal mask is given.
        returned = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                epoll.as_raw_fd(),
                raw.as_mut_ptr(),
                BATCH as libc::c_int,
                timeout,
                none,
                0_usize,
            )
        };
        if returned < 0 && last_error() == Errno::NOSYS {
            COARSE.store(true, Ordering::Relaxed);
        }
    }
    if COARSE.load(Ordering::Relaxed) {
        let ms = timeout_ns.map_or(-1, |ns| ns.div_ceil(1_000_000).min(i32::MAX as u64) as libc::c_int);
        // SAFETY: as above.
        returned = unsafe { libc::epoll_wait(epoll.as_raw_fd(), raw.as_mut_ptr(), BATCH as libc::c_int, ms) }.into();
    }
    if returned < 0 {
        return match last_error() {
            Errno::INTR => Ok(0),
            errno => Err(errno),
        };
    }
    let count = (returned as usize).min(BATCH);
    for (event, raw) in events.iter_mut().zip(&raw[..count]) {
        *event = Event { data: raw.u64, flags: raw.events };
    }
    Ok(count)
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}
