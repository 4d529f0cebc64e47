//! What can go wrong: what was tried, why it failed, and the remedy.

use std::io;
use std::path::PathBuf;

/// Result of everything in this crate.
pub type Result<T> = std::result::Result<T, MemoryError>;

/// Why memory could not be looked at or governed.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// A file of the kernel could not be read or written.
    #[error("could not {tried} {}: {source}. {remedy}", path.display())]
    File {
        /// What was tried, as a verb phrase: `read`, `write 1 to`.
        tried: String,
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
        /// What would help.
        remedy: &'static str,
    },
    /// A file of the kernel holds what is not understood.
    #[error("could not understand {}: it holds `{held}`, expected {expected}. Report this with the kernel's version", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What it holds, shortened.
        held: String,
        /// What was expected.
        expected: &'static str,
    },
    /// This kernel cannot do it, or this process may not.
    #[error("could not {tried}: {why}. {remedy}")]
    Unsupported {
        /// What was tried.
        tried: String,
        /// What is missing.
        why: String,
        /// What would help.
        remedy: String,
    },
    /// What was found on the host could not be put back.
    #[error("the host's memory settings are not all as they were found: {why}. `tare reap` tries again")]
    NotPutBack {
        /// Each file, what it should hold and why it does not.
        why: String,
    },
    /// The list of what must be put back could not be written, so nothing was changed.
    #[error(transparent)]
    Ledger(#[from] tare_lab::LedgerError),
}

impl MemoryError {
    /// A file that was refused, with the remedy that fits the error number.
    pub(crate) fn file(tried: impl Into<String>, path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        let remedy = match source.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => "Run as root",
            Some(libc::EROFS) => {
                "It is mounted read-only here: run where it can be written, such as outside a container"
            }
            Some(libc::ENOENT) => {
                "This kernel does not have it, or the process has gone: `tare doctor` tells what this host can do"
            }
            Some(libc::ENOMEM) => "Memory is too short for what is merged to be taken apart: end some guests first",
            Some(libc::EBUSY | libc::EINVAL) => "Something else governs it, such as ksmtuned: stop that first",
            _ => "`tare doctor` tells what this host can do",
        };
        Self::File { tried: tried.into(), path: path.into(), source, remedy }
    }
}
