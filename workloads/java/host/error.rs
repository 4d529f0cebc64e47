//! What can go wrong with the Java application.

/// What was tried, why it failed, and the remedy.
#[derive(Debug, thiserror::Error)]
#[error("cannot {tried}: {why}; {remedy}")]
pub struct JavaError {
    /// What was tried, as in "cannot TRIED".
    pub tried: String,
    /// Why it failed.
    pub why: String,
    /// What to do about it.
    pub remedy: String,
    /// Whether the application was at work and is gone.
    pub lost: bool,
}

impl JavaError {
    /// An error.
    pub fn new(tried: impl Into<String>, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { tried: tried.into(), why: why.into(), remedy: remedy.into(), lost: false }
    }

    /// The same, for an application that is gone.
    #[must_use]
    pub(super) const fn lost(mut self, lost: bool) -> Self {
        self.lost = lost;
        self
    }
}
