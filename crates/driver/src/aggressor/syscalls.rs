//! Enters the kernel as often as it can: what a layer that intercepts system calls pays for, and what its neighbours may.

use std::io;
use std::sync::atomic::AtomicU32;

use rustix::process::getppid;
use rustix::thread::futex;

use super::Aggressor;

/// Turns of a piece; some hundred microseconds where a call takes a microsecond.
const TURNS: u64 = 256;
/// Calls of a turn.
const CALLS: u64 = 2;

/// Asks for the parent's number, which takes no lock, and wakes nobody, which takes one of the kernel's table of waiters. Neither is
/// answered without the kernel (vDSO), and neither reads a clock.
#[derive(Default)]
pub(super) struct Syscalls {
    nobody: AtomicU32,
}

impl Aggressor for Syscalls {
    fn piece(&mut self, _until_ns: u64) -> io::Result<u64> {
        for _ in 0..TURNS {
            let _ = getppid();
            futex::wake(&self.nobody, futex::Flags::PRIVATE, 1)?;
        }
        Ok(TURNS * CALLS)
    }
}
