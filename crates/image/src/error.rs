//! What can go wrong with guest images.

use std::fmt::Display;
use std::path::Path;

use tare_model::Refusal;

/// Why an image, a kernel or a seed could not be had: what was tried, why it failed, what helps.
#[derive(Debug, thiserror::Error)]
#[error("cannot {tried}: {why}; {remedy}")]
pub struct ImageError {
    /// What was tried, as in "cannot ...".
    pub tried: String,
    /// Why it failed.
    pub why: String,
    /// What the user can do about it.
    pub remedy: String,
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, ImageError>;

impl ImageError {
    pub(crate) fn new(tried: impl Into<String>, why: impl Display, remedy: impl Into<String>) -> Self {
        Self { tried: tried.into(), why: why.to_string(), remedy: remedy.into() }
    }
}

impl From<ImageError> for Refusal {
    fn from(error: ImageError) -> Self {
        Self::new(format!("cannot {}: {}", error.tried, error.why), error.remedy)
    }
}

/// An error of a file that should be readable.
pub(crate) fn reading(path: &Path) -> impl FnOnce(std::io::Error) -> ImageError {
    let tried = format!("read {}", path.display());
    move |error| ImageError::new(tried, error, "is it there and readable for you?")
}

/// An error of a file or directory that is being made.
pub(crate) fn writing(path: &Path) -> impl FnOnce(std::io::Error) -> ImageError {
    let tried = format!("write {}", path.display());
    move |error| ImageError::new(tried, error, "is the file system full, read-only or not yours?")
}
