//! Whether an answer is what it must be. It is judged while it comes, and nothing of it is kept but its beginning.

use memchr::memmem;
use sha2::{Digest, Sha256};

use super::spec::Expected;
use crate::session::fault::Fault;

/// Statuses by which a server says that it is too busy: too many requests, unavailable (RFC 6585, section 4; RFC 9110, section 15.6.4).
const BUSY: [u16; 2] = [429, 503];
/// Of a wrong answer's body so much is shown, bytes.
const SHOWN_BYTES: usize = 120;

/// The body lacks a text, has another length, or other bytes.
const TEXT: Fault = Fault::Kind("wrong answer: text is missing");
const LENGTH: Fault = Fault::Kind("wrong answer: length");
const DIGEST: Fault = Fault::Kind("wrong answer: SHA-256");

/// What has been seen of an answer.
#[derive(Debug, Default)]
pub(super) struct Judge {
    status: u16,
    bytes: u64,
    /// The text that must be there has come.
    found: bool,
    /// The last bytes of the body, one fewer than the text has: it may end in what comes next.
    tail: Vec<u8>,
    digest: Sha256,
    /// The beginning of the body.
    shown: Vec<u8>,
    /// What is wrong, so far.
    fault: Option<Fault>,
}

impl Judge {
    /// Ready for the next answer; its memory is kept.
    pub fn clear(&mut self) {
        (self.status, self.bytes, self.found, self.fault) = (0, 0, false, None);
        self.tail.clear();
        self.shown.clear();
        self.digest.reset();
    }

    /// The head has come.
    pub fn head(&mut self, must: &Expected, status: u16) {
        self.status = status;
        let right = must.status.map_or((200..300).contains(&status), |expected| expected == status);
        self.fault = (!right).then_some(Fault::Status(status));
    }

    /// The next bytes of the body have come, in any pieces.
    pub fn body(&mut self, must: &Expected, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        let room = SHOWN_BYTES.saturating_sub(self.shown.len()).min(piece.len());
        self.shown.extend_from_slice(&piece[..room]);
        if must.sha256.is_some() {
            self.digest.update(piece);
        }
        if !self.found && !must.contains.is_empty() {
            self.search(&must.contains, piece);
        }
    }

    /// Looks for a text that may begin in an earlier piece.
    fn search(&mut self, text: &[u8], piece: &[u8]) {
        let has = |bytes: &[u8]| memmem::find(bytes, text).is_some();
        let keeps = text.len() - 1;
        self.tail.extend_from_slice(&piece[..piece.len().min(keeps)]);
        self.found = has(&self.tail) || has(piece);
        if piece.len() >= keeps {
            self.tail.clear();
            self.tail.extend_from_slice(&piece[piece.len() - keeps..]);
        } else {
            self.tail.drain(..self.tail.len().saturating_sub(keeps));
        }
    }

    /// The answer has come in full.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn end(&mut self, must: &Expected) -> Result<(), Fault> {
        if self.fault.is_none() {
            self.fault = if must.bytes.is_some_and(|bytes| bytes != self.bytes) {
                Some(LENGTH)
            } else if !must.contains.is_empty() && !self.found {
                Some(TEXT)
            } else if must.sha256.is_some_and(|digest| self.digest.finalize_reset() != digest) {
                Some(DIGEST)
            } else {
                None
            };
        }
        self.fault.map_or(Ok(()), Err)
    }

    /// What is wrong, if anything is by now.
    pub const fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Whether the server has said that it is too busy, and was not to say so.
    pub fn is_busy(&self) -> bool {
        matches!(self.fault, Some(Fault::Status(status)) if BUSY.contains(&status))
    }

    /// What is wrong, for people.
    pub fn words(&self, must: &Expected) -> String {
        let what = match self.fault {
            Some(Fault::Status(status)) => {
                let wanted = must.status.map_or("2xx".to_owned(), |status| status.to_string());
                format!("status {status} in place of {wanted}")
            }
            Some(LENGTH) => {
                format!("a body of {} bytes in place of {}", self.bytes, must.bytes.unwrap_or_default())
            }
            Some(TEXT) => format!("its body lacks \"{}\"", must.contains.escape_ascii()),
            Some(DIGEST) => "its body has another SHA-256".to_owned(),
            Some(fault) => fault.to_string(),
            None => "it is right".to_owned(),
        };
        let shown = self.shown.escape_ascii();
        if self.shown.is_empty() { what } else { format!("{what}; it begins \"{shown}\"") }
    }
}

#[cfg(test)]
#[path = "../tests/judge.rs"]
mod tests;
