//! What is done between fork and exec.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes the command the leader of a session of its own, and so of a process group: it has no controlling terminal, to which it
/// could write or push input (TIOCSTI).
pub(crate) fn in_own_session(command: &mut Command) -> &mut Command {
    // SAFETY: the closure makes one system call and allocates nothing: it is safe between fork and exec.
    unsafe { command.pre_exec(|| rustix::process::setsid().map(drop).map_err(std::io::Error::from)) }
}
