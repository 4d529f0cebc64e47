//! The few system calls that need `unsafe`.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use rustix::thread::UnshareFlags;

/// Which side of a fork this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forked {
    /// The process that forked.
    Parent {
        /// The new process.
        child: Pid,
    },
    /// The new process.
    Child,
}

/// Forks. To be called only while the process has one thread.
///
/// # Errors
/// The system's, such as no more processes.
pub fn fork() -> io::Result<Forked> {
    // SAFETY: the process has one thread (the caller's duty, kept by `enter`, which starts none), so
    // that no lock can be held by a thread that the child does not have.
    match unsafe { libc::fork() } {
        0 => Ok(Forked::Child),
        raw => Pid::from_raw(raw)
            .filter(|_| raw > 0)
            .map_or_else(|| Err(io::Error::last_os_error()), |child| Ok(Forked::Parent { child })),
    }
}

/// Has large pieces of memory come from the kernel, each with pages of its own, and go back to it when they are freed. glibc keeps them
/// after the first was freed, and hands the same pages out again: work that moves into other memory would not, and a guest would seem to use
/// what its agent once had. musl never keeps them.
pub fn large_memory_is_the_kernels() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it sets a number of the allocator's own, before there is a second thread.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
    }
}

/// Moves the process into new namespaces. To be called only while the process has one thread.
///
/// # Errors
/// The system's: not permitted, or too many namespaces.
pub fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: the unsafe case of unshare is CLONE_FILES in a process with several threads; no caller
    // passes it and the process has one thread.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(io::Error::from)
}

/// Makes the command die when the thread that starts it dies, and be the leader of a process group of
/// its own, so that it can be killed with its children.
pub fn bind_to_this_thread(command: &mut Command) {
    let parent = rustix::process::getpid();
    let check = move || {
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)?;
        // The parent may have died before the signal was set.
        if getppid() == Some(parent) { Ok(()) } else { Err(io::Error::from(io::ErrorKind::BrokenPipe)) }
    };
    // SAFETY: the closure makes two system calls and allocates nothing: it is safe between fork and exec.
    unsafe { command.pre_exec(check) };
    command.process_group(0);
}

/// Lets the kernel merge equal pages of this process with those of others, also of its children and after an exec
/// (PR_SET_MEMORY_MERGE, include/uapi/linux/prctl.h; Linux 6.4).
///
/// # Errors
/// The system's: such a kernel has no merging.
pub fn let_memory_merge() -> io::Result<()> {
    const PR_SET_MEMORY_MERGE: libc::c_int = 67;
    // The kernel refuses arguments that are not 0 in all of their width.
    let (on, none): (libc::c_ulong, libc::c_ulong) = (1, 0);
    // SAFETY: the call takes no pointer.
    let result = unsafe { libc::prctl(PR_SET_MEMORY_MERGE, on, none, none, none) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes a mount and all mounts below it read-only.
///
/// # Errors
/// The system's.
pub fn make_read_only(at: &Path) -> io::Result<()> {
    let path = CString::new(at.as_os_str().as_bytes())?;
    let attributes = libc::mount_attr { attr_set: libc::MOUNT_ATTR_RDONLY, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: `path` is a terminated string and `attributes` the structure that the call expects, of
    // the size that is passed; both outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE as libc::c_uint,
            std::ptr::from_ref(&attributes),
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// MTU of an interface of this process's network namespace, bytes (SIOCGIFMTU, netdevice(7)).
///
/// # Errors
/// The system's: no such interface.
pub fn interface_mtu(name: &str) -> io::Result<i32> {
    use std::os::fd::AsRawFd;
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: `ifreq` is plain data for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (slot, &byte) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
        *slot = byte as libc::c_char;
    }
    // SAFETY: the call reads the terminated name (shorter than the field, the rest is zero) and writes
    // the MTU into the same structure, which outlives it.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, std::ptr::from_mut(&mut request)) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: after success the union holds the MTU.
    Ok(unsafe { request.ifr_ifru.ifru_mtu })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether one mapping of this process holds all of these bytes.
    fn is_mapped(at: usize, bytes: usize) -> bool {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let ends = maps.lines().map(|line| line.split_once(' ').unwrap().0.split_once('-').unwrap());
        let number = |text| usize::from_str_radix(text, 16).unwrap();
        ends.map(|(from, to)| (number(from), number(to))).any(|(from, to)| from <= at && at + bytes <= to)
    }

    #[test]
    fn large_memory_goes_back_to_the_kernel_whenever_it_is_freed() {
        large_memory_is_the_kernels();
        // Of glibc by itself the second piece would stay. Other threads may have parts of where a piece was, but not all of it.
        for _ in 0..2 {
            let piece = std::hint::black_box(vec![1_u8; 24 << 20]);
            let (at, bytes) = (piece.as_ptr().addr(), piece.len());
            assert!(is_mapped(at, bytes));
            drop(piece);
            assert!(!is_mapped(at, bytes), "it stayed");
        }
    }
}
