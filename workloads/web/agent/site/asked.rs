//! What was asked for, and whether what comes is that.

use super::compile::{Page, Site, What};
use crate::session::body::{CLOSING, agrees, keep_last, marked};
use crate::session::fault::Fault;

/// What follows the proof.
const AFTER_PROOF: &[u8] = b"\">";
/// Digits of a proof.
const PROOF: usize = 16;

/// How the head of an answer has it go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A body follows, to be fed and finished.
    Body,
    /// The file has not changed: there is no body, and the answer is right.
    NotModified,
}

/// A request that waits for its answer, and how much of the body has come. What the answer must be is computed while it
/// comes, not kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// Bytes of the body that have come.
    at: u64,
    pub(super) what: Expected,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Expected {
    Page {
        proof: [u8; PROOF],
        /// The last bytes that came.
        last: [u8; CLOSING.len()],
        state: u16,
    },
    File {
        id: u64,
        bytes: u64,
        /// Whether it was asked for only if it has changed.
        unchanged: bool,
    },
}

impl Default for Asked {
    fn default() -> Self {
        Self::file(0, 0, false)
    }
}

impl Asked {
    pub(super) const fn page(state: u16, proof: [u8; PROOF]) -> Self {
        Self { at: 0, what: Expected::Page { proof, last: [0; CLOSING.len()], state } }
    }

    pub(super) const fn file(id: u64, bytes: u64, unchanged: bool) -> Self {
        Self { at: 0, what: Expected::File { id, bytes, unchanged } }
    }

    /// Judges the status of the answer. "Not modified" is right only where that was asked.
    ///
    /// # Errors
    /// [`Fault::Status`].
    pub const fn status(&self, status: u16) -> Result<Answer, Fault> {
        match (status, &self.what) {
            (200, _) => Ok(Answer::Body),
            (304, Expected::File { unchanged: true, .. }) => Ok(Answer::NotModified),
            _ => Err(Fault::Status(status)),
        }
    }

    /// Judges the next bytes of the body, in any pieces; transfer coding removed.
    ///
    /// # Errors
    /// `title`, `proof`: a page does not begin as it must; `marker`: a file is another one, or not all of it has come; `length`: a
    /// file is too long. What comes after that is of no use.
    #[inline]
    pub fn feed(&mut self, site: &Site, piece: &[u8]) -> Result<(), Fault> {
        let at = self.at;
        self.at += piece.len() as u64;
        if !site.check {
            return Ok(());
        }
        match &mut self.what {
            Expected::Page { proof, last, state } => {
                keep_last(last, piece);
                match page_of(site, *state) {
                    Some(page) => begins(page, *proof, at, piece),
                    None => Ok(()),
                }
            }
            Expected::File { bytes, .. } if self.at > *bytes => Err(Fault::Kind("length")),
            Expected::File { id, .. } => marked(*id, at, piece),
        }
    }

    /// Judges a body that has come to its end.
    ///
    /// # Errors
    /// `length`: a file is too short, or a page shorter than its padding; `end`: a page does not end as it must.
    pub fn finish(&self, site: &Site) -> Result<(), Fault> {
        if !site.check {
            return Ok(());
        }
        match &self.what {
            Expected::Page { last, state, .. } => {
                let least = page_of(site, *state).map_or(0, |page| page.least.max(page.begins_until()));
                if self.at < least {
                    return Err(Fault::Kind("length"));
                }
                if *last == CLOSING { Ok(()) } else { Err(Fault::Kind("end")) }
            }
            Expected::File { bytes, .. } if self.at == *bytes => Ok(()),
            Expected::File { .. } => Err(Fault::Kind("length")),
        }
    }
}

impl Page {
    /// Bytes at the beginning that are known.
    const fn begins_until(&self) -> u64 {
        (self.beginning.len() + PROOF + AFTER_PROOF.len()) as u64
    }
}

fn page_of(site: &Site, state: u16) -> Option<&Page> {
    match &site.states[usize::from(state)].what {
        What::Page(page) => Some(page),
        What::File(_) | What::Download => None,
    }
}

/// Compares what a piece that begins at `at` has of the known beginning of a page.
fn begins(page: &Page, proof: [u8; PROOF], at: u64, piece: &[u8]) -> Result<(), Fault> {
    if at >= page.begins_until() {
        return Ok(());
    }
    let mut from = 0;
    for (text, kind) in [(&page.beginning[..], "title"), (&proof[..], "proof"), (AFTER_PROOF, "proof")] {
        if !agrees(text, from, at, piece) {
            return Err(Fault::Kind(kind));
        }
        from += text.len() as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_small() {
        assert!(size_of::<Asked>() <= 48, "{}", size_of::<Asked>());
    }
}
