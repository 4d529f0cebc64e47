//! What can go wrong with a web site, its files or its server.

use std::path::Path;

/// What was tried, why it failed, and the remedy.
#[derive(Debug, thiserror::Error)]
#[error("cannot {tried}: {why}; {remedy}")]
pub struct WebError {
    /// What was tried, as in "cannot TRIED".
    pub tried: String,
    /// Why it failed.
    pub why: String,
    /// What to do about it.
    pub remedy: String,
    /// Whether the server was at work and is gone.
    pub lost: bool,
}

impl WebError {
    /// An error.
    pub fn new(tried: impl Into<String>, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { tried: tried.into(), why: why.into(), remedy: remedy.into(), lost: false }
    }

    /// The same, for a server that is gone.
    #[must_use]
    pub(super) const fn lost(mut self, lost: bool) -> Self {
        self.lost = lost;
        self
    }
}

/// `map_err` for a file of this host's.
pub(super) fn file<'a>(doing: &'a str, path: &'a Path) -> impl FnOnce(std::io::Error) -> WebError + use<'a> {
    move |error| {
        let full = error.kind() == std::io::ErrorKind::StorageFull;
        let remedy = if full {
            "free some room there, or set TARE_CACHE to a directory on a larger disk"
        } else {
            "check that the directory can be written, or set TARE_CACHE to another"
        };
        WebError::new(format!("{doing} {}", path.display()), error.to_string(), remedy)
    }
}
