//! What can go wrong with a gold copy.

use std::path::Path;

/// What was tried, why it failed, and the remedy.
#[derive(Debug, thiserror::Error)]
#[error("cannot {tried}: {why}; {remedy}")]
pub struct GoldError {
    /// What was tried, as in "cannot TRIED".
    pub tried: String,
    /// Why it failed.
    pub why: String,
    /// What to do about it.
    pub remedy: String,
}

impl GoldError {
    /// An error.
    pub fn new(tried: impl Into<String>, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { tried: tried.into(), why: why.into(), remedy: remedy.into() }
    }
}

/// `map_err` for a file of this host's.
pub(crate) fn file<'a>(doing: &'a str, path: &'a Path) -> impl FnOnce(std::io::Error) -> GoldError + use<'a> {
    move |error| {
        let full = error.kind() == std::io::ErrorKind::StorageFull;
        let remedy = if full {
            "free some room there, or set TARE_CACHE to a directory on a larger disk"
        } else {
            "check that the directory can be written, or set TARE_CACHE to another"
        };
        GoldError::new(format!("{doing} {}", path.display()), error.to_string(), remedy)
    }
}
