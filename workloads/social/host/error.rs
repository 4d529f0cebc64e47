//! What can go wrong with the social application, or with what it uses.

/// What was tried, why it failed, and the remedy.
#[derive(Debug, thiserror::Error)]
#[error("cannot {tried}: {why}; {remedy}")]
pub struct SocialError {
    /// What was tried, as in "cannot TRIED".
    pub tried: String,
    /// Why it failed.
    pub why: String,
    /// What to do about it.
    pub remedy: String,
    /// Whether an instance was at work, or was to be, and is gone for want of memory.
    pub lost: bool,
}

impl SocialError {
    /// An error.
    pub fn new(tried: impl Into<String>, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { tried: tried.into(), why: why.into(), remedy: remedy.into(), lost: false }
    }

    /// The same, for an instance that is gone.
    #[must_use]
    pub(super) const fn lost(mut self, lost: bool) -> Self {
        self.lost = lost;
        self
    }
}
