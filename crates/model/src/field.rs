//! An error about one field of what a user wrote, wherever it is found out.

/// What is wrong with one field. Whoever holds the file turns `path` into a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", path.join("."))]
pub struct FieldError {
    /// Keys from the root of what was checked to the field, list positions as numbers. Empty: the whole.
    pub path: Vec<String>,
    /// What is wrong, and why.
    pub message: String,
    /// What was meant, or what to write instead.
    pub help: Option<String>,
}

impl FieldError {
    /// An error about the field at `path`.
    pub fn new(path: &[&str], message: impl Into<String>) -> Self {
        Self { path: path.iter().map(|&key| key.to_owned()).collect(), message: message.into(), help: None }
    }

    /// The same error with a remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same error seen from further out: `keys` lead from there to where it was found.
    #[must_use]
    pub fn within(mut self, keys: &[&str]) -> Self {
        let mut path: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
        path.append(&mut self.path);
        self.path = path;
        self
    }
}
