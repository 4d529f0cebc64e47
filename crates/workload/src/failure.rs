//! What a workload could not do.

use std::path::Path;

use tare_model::Refusal;
use tare_model::field::FieldError;

/// What was tried, why it failed, and the remedy.
#[derive(Debug, thiserror::Error)]
#[error("cannot {tried}: {why}; {remedy}")]
pub struct Failure {
    /// What was tried, as in "cannot TRIED".
    pub tried: String,
    /// Why it failed.
    pub why: String,
    /// What to do about it.
    pub remedy: String,
    /// Whether what was at work in the guest is gone, as a rule for want of memory.
    pub lost: bool,
}

impl Failure {
    /// A failure of something that is still there.
    pub fn new(tried: impl Into<String>, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { tried: tried.into(), why: why.into(), remedy: remedy.into(), lost: false }
    }

    /// What was tried and cannot be on this host.
    pub(crate) fn refused(tried: impl Into<String>, refusal: Refusal) -> Self {
        Self::new(tried, refusal.reason, refusal.remedy)
    }

    /// What was tried in guests that are too small for a parameter.
    pub(crate) fn too_small(tried: impl Into<String>, error: FieldError) -> Self {
        Self::new(tried, error.message, error.help.unwrap_or_else(|| "ask for larger guests".to_owned()))
    }

    /// The same, of something that is gone.
    #[must_use]
    pub const fn lost(mut self, lost: bool) -> Self {
        self.lost = lost;
        self
    }
}

/// `map_err` for a file of this host's.
pub(crate) fn file<'a>(doing: &'a str, path: &'a Path) -> impl FnOnce(std::io::Error) -> Failure + use<'a> {
    move |error| {
        let full = error.kind() == std::io::ErrorKind::StorageFull;
        let remedy = if full {
            "free some room there, or set TARE_CACHE to a directory on a larger disk"
        } else {
            "check that the directory can be written, or set TARE_CACHE to another"
        };
        Failure::new(format!("{doing} {}", path.display()), error.to_string(), remedy)
    }
}
