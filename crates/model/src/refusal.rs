//! Why something cannot be done on this host, and what would help.

use std::fmt;

/// Something that cannot be done here. It is found out before anything is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Why, without a full stop at its end.
    pub reason: String,
    /// What would help, without a full stop at its end.
    pub remedy: String,
}

impl Refusal {
    /// A refusal for this reason, with what would help.
    pub fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { reason: reason.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}. {}", self.reason, self.remedy)
    }
}
