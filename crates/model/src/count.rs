//! Names of the counts of a trial that more than one crate knows ([`crate::trial::Measurement::counts`]). Counts of one workload alone are
//! named in its own folder.

/// Operations that ended in the measured window.
pub const OPERATIONS: &str = "operations";
/// Bytes that were carried in the measured window, both ways.
pub const BYTES: &str = "bytes";
/// Operations that failed, all reasons together ([`error`] has one of them).
pub const ERRORS: &str = "errors";
/// Operations whose answer never came.
pub const LOST: &str = "lost";
/// Operations that were due in the window and not done when the load stopped.
pub const UNFINISHED: &str = "unfinished";
/// Largest number of operations that were due and not started at one time.
pub const BACKLOG_MAX: &str = "backlog_max";
/// CPU time of the drivers in the measured window, nanoseconds.
pub const DRIVER_CPU_NS: &str = "driver_cpu_ns";
/// Time in which the drivers' threads were ready and waited for a CPU, nanoseconds.
pub const DRIVER_RUN_DELAY_NS: &str = "driver_run_delay_ns";
/// Sessions that were offered at one time, where operations are parts of sessions.
pub const SESSIONS: &str = "sessions";
/// Instances of an application whose heap lay in large pages.
pub const ON_LARGE_PAGES: &str = "instances_on_large_pages";
/// Sessions that began in the measured window, where arrivals are sessions of many operations each.
pub const SESSIONS_BEGAN: &str = "sessions_began";
/// Answers that were wrong, or that never came, of all types of requests together.
pub const VALIDATION_ERRORS: &str = "validation_errors";
/// The load that a guest was offered by all its drivers, where it is a share of another case's capacity or was looked for: clients, or whole
/// arrivals a second.
pub const OFFERED_LOAD_MAX: &str = "offered_load_max";

/// What the system refused the neighbours in the turns of a condition, such as memory or a process.
pub const AGGRESSOR_REFUSED: &str = "aggressor_refused";
/// Neighbours that ended in the turns of a condition.
pub const AGGRESSOR_ENDED: &str = "aggressor_ended";

/// What is missing of the operations that were due. It is reported even where a workload did not count it: nothing counted means none.
pub const MISSING: [&str; 3] = [ERRORS, LOST, UNFINISHED];

const ERROR: &str = "errors: ";
const SERVER_ERROR: &str = "server errors: ";

/// The count of operations that failed for a reason.
pub fn error(reason: &str) -> String {
    format!("{ERROR}{reason}")
}

/// The count of errors that the server itself counted, by their reason.
pub fn server_error(reason: &str) -> String {
    format!("{SERVER_ERROR}{reason}")
}

/// The reason of a count that [`error`] has named.
pub fn reason(name: &str) -> Option<&str> {
    name.strip_prefix(ERROR)
}

/// A count of errors, of the driver or the server, as one of a part of the workload: the part's name stands before the reason. `None` of any other count.
pub fn error_of(part: &str, name: &str) -> Option<String> {
    let of = |prefix: &str| Some(format!("{prefix}{part}: {}", name.strip_prefix(prefix)?));
    of(ERROR).or_else(|| of(SERVER_ERROR))
}

/// Whether the count of several trials, guests or drivers is the largest of theirs; else it is their sum.
pub fn is_largest(name: &str) -> bool {
    name.ends_with("_max")
}
