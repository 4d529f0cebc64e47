//! Why a guest could not be entered.

use std::io;

/// What of a guest could not be entered, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}: {source}{}", "cannot enter the guest", remedy(.source))]
pub struct EnterError {
    /// What was tried.
    pub what: String,
    /// Why it failed.
    pub source: io::Error,
}

fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => " (this needs root, or a user namespace of its own)",
        io::ErrorKind::StorageFull => " (a limit on namespaces or mounts was met: see /proc/sys/user)",
        _ => "",
    }
}

/// Adds what was tried to a system error.
pub(crate) fn during<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> EnterError {
    let what = what.into();
    |source| EnterError { what, source: source.into() }
}
