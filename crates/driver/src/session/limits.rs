//! What the process of a driver may have open, and what it has in memory.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::DriverError;

/// Files that the process has open beside connections.
const OTHER_FILES: u64 = 64;
/// Files of a thread beside connections: what it waits with.
const FILES_A_THREAD: u64 = 2;
/// Most threads: more than machines have CPUs.
pub(crate) const THREADS_MAX: u32 = 1024;

/// Raises the limit of open files as far as so many connections and threads need and as is allowed.
///
/// # Errors
/// When more files are needed than are allowed.
pub(crate) fn room_for_files(connections: u64, threads: u32) -> Result<(), DriverError> {
    let needed = connections + FILES_A_THREAD * u64::from(threads) + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|most| most < needed) {
        let most = limit.maximum.unwrap_or_default();
        let what = format!("its sessions need {needed} open files, and the limit is {most}");
        let remedy =
            "raise the hard limit (ulimit -Hn), or use fewer sessions, connections a session, or several client hosts";
        return Err(DriverError::invalid(what, remedy));
    }
    let raised = Rlimit { current: Some(needed), maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).map_err(DriverError::resource("raise the limit of open files"))
}

/// What the process has in memory that belongs to no file, bytes (proc(5)); `None` where the kernel does not tell.
pub(crate) fn memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
