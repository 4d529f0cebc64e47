//! What a server of PostgreSQL refused, or how the connection to it ended.

use tare_model::sql::SqlFailure;

use super::frame::Fields;

/// Why a statement or a connection failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", sqlstate.as_deref().map(|code| format!("{code}: ")).unwrap_or_default())]
pub struct PgError {
    /// The server's code of five characters; `None` when the server said nothing.
    pub sqlstate: Option<String>,
    /// What was tried and what was said, for people.
    pub message: String,
    /// Whether the connection is of no more use.
    pub broken: bool,
}

impl PgError {
    /// The connection is of no more use, and no server said why.
    pub(crate) fn broken(message: impl Into<String>) -> Self {
        Self { sqlstate: None, message: message.into(), broken: true }
    }

    /// The other end does not keep to the protocol.
    #[cold]
    pub(crate) fn protocol(what: &str) -> Self {
        Self::broken(format!("the server does not speak the protocol of PostgreSQL: {what}"))
    }

    /// What an ErrorResponse says. FATAL and PANIC end the session.
    #[cold]
    pub(crate) fn of_response(body: &[u8]) -> Self {
        let mut error = Self { sqlstate: None, message: String::new(), broken: false };
        let (mut detail, mut hint) = (None, None);
        for (kind, value) in Fields::of(body) {
            let text = || String::from_utf8_lossy(value).into_owned();
            match kind {
                // Not translated, since PostgreSQL 9.6; `S` is the same in the server's language.
                b'V' => error.broken = value == b"FATAL" || value == b"PANIC",
                b'C' => error.sqlstate = Some(text()),
                b'M' => error.message = text(),
                b'D' => detail = Some(text()),
                b'H' => hint = Some(text()),
                _ => {}
            }
        }
        if error.message.is_empty() {
            error.message = "the server reports an error without saying which".to_owned();
        }
        // A deadlock's detail names processes and rows; in counted errors only the message stands, which comes first.
        for (word, more) in [("detail", detail), ("hint", hint)] {
            if let Some(more) = more {
                error.message.push_str(&format!("\n{word}: {more}"));
            }
        }
        error
    }

    /// The connection broke after the server had said why, or without a word: what it said comes first.
    pub(crate) fn at_the_end(said: Option<Self>, broken: Self) -> Self {
        said.map_or(broken, |said| Self { broken: true, ..said })
    }

    /// Whether the server gave this code.
    pub fn is(&self, sqlstate: &str) -> bool {
        self.sqlstate.as_deref() == Some(sqlstate)
    }

    /// The same, with what was tried before it.
    pub(crate) fn while_trying(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }
}

impl From<PgError> for SqlFailure {
    fn from(error: PgError) -> Self {
        Self { sqlstate: error.sqlstate, message: error.message }
    }
}
