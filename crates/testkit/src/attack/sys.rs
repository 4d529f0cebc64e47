//! Waiting for a child with its account of memory, and following what it runs, which the standard library does not do.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

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

/// The programs that a command runs beside itself; `None` where it cannot be followed.
pub(super) fn programs_run_by(command: &mut Command, limit: Duration) -> io::Result<Option<Vec<String>>> {
    let follow_me = || {
        // SAFETY: PTRACE_TRACEME takes no arguments, and is a system call that is safe between fork and exec.
        match unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // SAFETY: the closure makes one system call, and allocates nothing.
    let spawned = unsafe { command.pre_exec(follow_me) }.spawn();
    let child = match spawned {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => return Ok(None),
        spawned => spawned?,
    };
    let child = child.id().cast_signed();
    let (deadline, mut programs, mut begun) = (Instant::now() + limit, Vec::new(), false);
    loop {
        let mut status = 0;
        // SAFETY: the pointer is to a live variable. Only children of this thread are waited for.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG) };
        match pid {
            -1 => return Err(io::Error::last_os_error()),
            0 if Instant::now() >= deadline => {
                // SAFETY: the child was not waited for to its end, so the number is still its own. What it runs ends with it (EXITKILL).
                unsafe { libc::kill(child, libc::SIGKILL) };
                return Err(io::Error::new(io::ErrorKind::TimedOut, format!("it did not end within {limit:?}")));
            }
            0 => std::thread::sleep(Duration::from_micros(200)),
            pid if !libc::WIFSTOPPED(status) => {
                if pid == child {
                    return Ok(Some(programs));
                }
            }
            pid => {
                if !begun {
                    // The first stop is that after its own exec.
                    begun = true;
                    let options = libc::PTRACE_O_TRACEFORK
                        | libc::PTRACE_O_TRACEVFORK
                        | libc::PTRACE_O_TRACECLONE
                        | libc::PTRACE_O_TRACEEXEC
                        | libc::PTRACE_O_EXITKILL;
                    // SAFETY: the child is stopped and followed by this thread; options are passed as a number.
                    unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options) };
                }
                if status >> 16 == libc::PTRACE_EVENT_EXEC {
                    let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
                    programs.push(program.display().to_string());
                }
                let signal = libc::WSTOPSIG(status);
                // Stops that only the following makes are no signals of the child's.
                let signal = if matches!(signal, libc::SIGTRAP | libc::SIGSTOP) { 0 } else { signal };
                // SAFETY: the process is stopped and followed by this thread; the signal is passed as a number.
                unsafe { libc::ptrace(libc::PTRACE_CONT, pid, 0, signal) };
            }
        }
    }
}
