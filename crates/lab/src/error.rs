//! What can go wrong in the lab: what was tried, why it failed, and the remedy.

use std::io;
use std::path::PathBuf;

use crate::feature::{self, remedy_for};
use crate::rootless::is_rootless;

/// Result of everything in this crate.
pub type Result<T> = std::result::Result<T, LabError>;

/// Why the lab could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The kernel refused a call.
    #[error("could not {tried}: {source}. {remedy}")]
    System {
        /// What was tried, as a verb phrase with the object's name.
        tried: String,
        /// The kernel's answer.
        source: io::Error,
        /// What would help.
        remedy: String,
    },
    /// This host cannot do it at all, or not as it is set up.
    #[error("could not {tried}: {why}. {remedy}")]
    Unavailable {
        /// What was tried.
        tried: String,
        /// What is missing.
        why: String,
        /// What would help.
        remedy: String,
    },
    /// Something was waited for and did not come.
    #[error("gave up after {waited_ms} ms to {tried}: {seen}. {remedy}")]
    Timeout {
        /// What was tried.
        tried: String,
        /// How long, milliseconds.
        waited_ms: u64,
        /// What was last seen instead.
        seen: String,
        /// What would help.
        remedy: String,
    },
    /// A name that cannot be the name of a directory, a control group or a link.
    #[error("`{written}` is no {what}: {expected}")]
    Name {
        /// What it was to name.
        what: &'static str,
        /// As written.
        written: String,
        /// What a good one looks like.
        expected: &'static str,
    },
    /// A run's state directory is there already.
    #[error("the state directory {} is there already: {}", path.display(), if *live {
        "its run is still going on; stop it or choose another run id"
    } else {
        "its run died; `tare reap` removes what it left"
    })]
    RunExists {
        /// The directory.
        path: PathBuf,
        /// Whether a controller holds its lock.
        live: bool,
    },
    /// Something that must not be touched.
    #[error("refused to {tried}: {why}. {remedy}")]
    Refused {
        /// What was asked.
        tried: String,
        /// Why it would do harm.
        why: String,
        /// What to do instead.
        remedy: String,
    },
}

impl LabError {
    /// A refusal by the kernel, with the remedy that fits the error number.
    pub(crate) fn system(tried: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        // Capabilities do not help against a policy.
        let denied = source.raw_os_error() == Some(libc::EACCES) && !is_rootless();
        let remedy = if denied { feature::remedy(&source, "") } else { remedy_for(&source).to_owned() };
        Self::System { tried: tried.into(), source, remedy }
    }

    /// The same about a feature that a module of the kernel provides.
    pub(crate) fn feature(tried: impl Into<String>, source: impl Into<io::Error>, module: &str) -> Self {
        let source = source.into();
        match source.raw_os_error() {
            Some(libc::ENODEV | libc::ENOENT | libc::ENXIO | libc::EOPNOTSUPP) => {
                let (remedy, tried) = (feature::remedy(&source, module), tried.into());
                Self::System { tried, source, remedy }
            }
            _ => Self::system(tried, source),
        }
    }

    /// The kernel's error number, when the kernel was the one to refuse.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::System { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}
