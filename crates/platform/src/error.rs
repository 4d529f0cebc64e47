//! Why a guest could not be had, or could not be taken away.

use tare_lab::{LabError, LedgerError};

/// Result of everything in this crate.
pub type Result<T> = std::result::Result<T, PlatformError>;

/// An error of a platform: what was tried, why it failed, the remedy.
#[derive(Debug, thiserror::Error)]
pub enum PlatformError {
    /// A guest did not come up, or what was asked of one that stands failed.
    #[error("guest {guest}: could not {tried}: {why}. {remedy}{}", said(.diagnostics))]
    Start {
        /// The guest.
        guest: String,
        /// What was tried, as a verb phrase.
        tried: String,
        /// Why it failed.
        why: String,
        /// What would help.
        remedy: String,
        /// The end of what the guest, or what starts it, printed on standard error.
        diagnostics: String,
    },
    /// The lab could not give the guest what it needs.
    #[error("guest {guest}: {source}")]
    Lab {
        /// The guest.
        guest: String,
        /// The lab's reason.
        source: LabError,
    },
    /// What was about to be made could not be written down, so it was not made.
    #[error("guest {guest}: {source}")]
    Ledger {
        /// The guest.
        guest: String,
        /// The ledger's reason.
        source: LedgerError,
    },
    /// Something of a guest is still there.
    #[error("guest {guest} could not be taken away entirely: {}. `tare reap` tries again", .failures.join("; "))]
    Destroy {
        /// The guest.
        guest: String,
        /// What failed, each as a sentence.
        failures: Vec<String>,
    },
    /// What a run that is over left with a platform could not be taken away.
    #[error("could not {tried}: {why}. {remedy}")]
    Reap {
        /// What was tried.
        tried: String,
        /// Why it failed.
        why: String,
        /// What would help.
        remedy: String,
    },
}

impl PlatformError {
    /// What could not be done with a guest that has nothing to say about it.
    pub(crate) fn of_guest(guest: &str, tried: &str, why: String, remedy: String) -> Self {
        Self::Start { guest: guest.to_owned(), tried: tried.to_owned(), why, remedy, diagnostics: String::new() }
    }
}

fn said(diagnostics: &str) -> String {
    let text = diagnostics.trim();
    if text.is_empty() { String::new() } else { format!(" It said:\n{text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_guest_said_is_shown_when_it_said_something() {
        let error = |diagnostics: &str| {
            PlatformError::Start {
                guest: "g".into(),
                tried: "start".into(),
                why: "it died".into(),
                remedy: "Try again".into(),
                diagnostics: diagnostics.into(),
            }
            .to_string()
        };
        assert!(error("no such file\n").ends_with("It said:\nno such file"));
        assert!(error(" ").ends_with("Try again"));
    }
}
