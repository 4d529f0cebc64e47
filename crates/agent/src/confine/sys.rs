//! The calls of confinement that need `unsafe`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::sock_filter;

/// Installs a filter for this thread and all that it starts. New privileges must have been given up.
///
/// # Errors
/// The system's: no such filters in this kernel, or a program that it refuses.
pub(super) fn install(program: &[sock_filter]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let described = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    let with = |flags: libc::c_ulong| {
        // SAFETY: `described` and the instructions that it points to outlive the call, which reads them and writes nothing.
        let result = unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, std::ptr::from_ref(&described))
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // Before Linux 5.16 a filter switches Speculative Store Bypass Disable on for the process unless this flag is given. Guests
    // with the filter would be slower than those without for a reason that is not the filter. Linux 4.17 is the first with it.
    match with(libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => with(0),
        installed => installed,
    }
}

/// Rights on a port, as the kernel takes them (`struct landlock_net_port_attr`).
#[repr(C)]
pub(super) struct PortRule {
    pub rights: u64,
    pub port: u64,
}

/// Rights on all beneath a directory, as the kernel takes them (`struct landlock_path_beneath_attr`).
#[repr(C, packed)]
struct PathRule {
    rights: u64,
    at: libc::c_int,
}

/// Makes rules that refuse these rights on files, on ports and beyond the process, until others allow them.
///
/// # Errors
/// The system's: no Landlock, or rights that it does not know.
pub(super) fn landlock_ruleset(refused: [u64; 3]) -> io::Result<OwnedFd> {
    // SAFETY: the call reads the numbers, which outlive it (`struct landlock_ruleset_attr`); older kernels take a longer struct whose end is 0.
    let made = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, refused.as_ptr(), std::mem::size_of_val(&refused), 0_u32)
    };
    let made = i32::try_from(made).ok().filter(|made| *made >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the descriptor was just made, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}

/// Allows rights on all beneath an open path.
pub(super) fn landlock_allow(ruleset: BorrowedFd<'_>, at: BorrowedFd<'_>, rights: u64) -> io::Result<()> {
    let rule = PathRule { rights, at: at.as_raw_fd() };
    // LANDLOCK_RULE_PATH_BENEATH.
    add_rule(ruleset, 1, std::ptr::from_ref(&rule).cast())
}

/// Allows rights on a port.
pub(super) fn landlock_allow_port(ruleset: BorrowedFd<'_>, rule: &PortRule) -> io::Result<()> {
    // LANDLOCK_RULE_NET_PORT.
    add_rule(ruleset, 2, std::ptr::from_ref(rule).cast())
}

/// `rule` is of that kind.
fn add_rule(ruleset: BorrowedFd<'_>, kind: u32, rule: *const libc::c_void) -> io::Result<()> {
    // SAFETY: both callers give the struct of that kind, which outlives the call; the kernel reads it.
    let result = unsafe { libc::syscall(libc::SYS_landlock_add_rule, ruleset.as_raw_fd(), kind, rule, 0_u32) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Puts this thread, and all that it starts, under the rules. New privileges must have been given up.
pub(super) fn landlock_restrict(ruleset: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the call takes no pointer.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0_u32) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What each call answers in a process that `prepare` has readied: 0, or the number of its error. Calls are named with their
/// arguments, none of which is a pointer that is followed.
#[cfg(test)]
pub(super) fn answers_in_a_child(
    prepare: impl Fn() -> bool,
    calls: &[(libc::c_long, [libc::c_long; 4])],
) -> Vec<libc::c_int> {
    use std::io::Read;
    let mut ends = [0; 2];
    // SAFETY: the call writes two descriptors into the array.
    assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    // SAFETY: both were just made and nobody else has them.
    let [reader, writer] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    // SAFETY: other threads of the test's process are not in the child. Until it ends, the child makes system calls, and what
    // `prepare` does: it is to make system calls as well and to allocate nothing.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let ready = prepare();
        for (call, [a, b, c, d]) in calls {
            // SAFETY: the tests name calls that are refused, or that take numbers and null pointers.
            let result = unsafe { libc::syscall(*call, *a, *b, *c, *d) };
            // SAFETY: the place of this thread's error number is always there.
            let error = if result < 0 { unsafe { *libc::__errno_location() } } else { 0 };
            let bytes = if ready { error } else { -1 }.to_ne_bytes();
            // SAFETY: the bytes live until the call returns.
            unsafe { libc::write(writer.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
        }
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(0) };
    }
    assert!(child > 0, "{}", io::Error::last_os_error());
    drop(writer);
    let mut bytes = Vec::new();
    let read = std::fs::File::from(reader).read_to_end(&mut bytes);
    // SAFETY: takes no pointer but a null one, which says that the status is not wanted.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    assert!(read.is_ok());
    bytes.chunks_exact(4).map(|b| libc::c_int::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect()
}
