//! Processes that end at once.

use std::io;

/// A process that has ended or is about to. It is collected when it is dropped.
pub(super) struct Child(libc::pid_t);

impl Child {
    /// Starts one as fork(2) does, from any thread. Its end sends no signal, so that only who waits for it by number and for all kinds of
    /// children (`__WALL`, wait(2)) collects it, and nobody who collects the children of the whole process.
    ///
    /// # Errors
    /// The system's: no more processes, or no memory.
    pub fn start() -> io::Result<Self> {
        const NONE: libc::c_long = 0;
        // SAFETY: without CLONE_VM the child has its own copy of all memory, and without a stack of its own it goes on from here on the copy of
        // this one. It makes nothing but the system call below, which takes no lock and touches no memory.
        match unsafe { libc::syscall(libc::SYS_clone, NONE, NONE, NONE, NONE, NONE) } {
            0 => loop {
                // SAFETY: the call takes no pointer, and does not return.
                unsafe { libc::syscall(libc::SYS_exit_group, NONE) };
            },
            pid => match libc::pid_t::try_from(pid) {
                Ok(pid) if pid > 0 => Ok(Self(pid)),
                _ => Err(io::Error::last_os_error()),
            },
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: no state is asked for, so the call takes no pointer.
        while unsafe { libc::waitpid(self.0, std::ptr::null_mut(), libc::__WALL) } < 0
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_ends_at_once_and_is_collected() {
        let child = Child::start().unwrap();
        let folder = format!("/proc/{}", child.0);
        let stat = std::fs::read_to_string(format!("{folder}/stat")).unwrap();
        assert!(stat.contains(&format!(" {} ", std::process::id())), "{stat}");
        drop(child);
        assert!(!std::path::Path::new(&folder).exists());
    }
}
