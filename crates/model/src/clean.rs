//! What an agent reports, made fit to be shown and to be kept.
//!
//! What a guest says ends on terminals and in files that people open. An escape sequence there could clear a screen,
//! rewrite what was said before or set a title; a sign that turns the direction of writing could make a line read
//! as another. So both are taken out, once, where an answer comes in, and lists are cut where they are longer than any that tare makes.

use crate::text::{is_unfit, readable};
use crate::trial::{RequestType, Step};

/// Longest text of an answer that is kept, bytes; what a command printed is not text here.
const LONGEST_BYTES: usize = 16 << 10;
/// Most facts, reasons, settings or rows that are kept of one answer.
pub const MOST_ENTRIES: usize = 1000;

/// What an agent reports, and nobody has looked at yet.
pub trait Untrusted {
    /// Makes all its text fit to be shown and cuts its lists ([`MOST_ENTRIES`]). Bytes, such as a command's output, stay as they are.
    fn clean(&mut self);
}

impl Untrusted for () {
    fn clean(&mut self) {}
}

/// Most text is fit already and stays where it is.
impl Untrusted for String {
    fn clean(&mut self) {
        if self.len() > LONGEST_BYTES || self.chars().any(is_unfit) {
            *self = clipped(self);
        }
    }
}

impl Untrusted for u64 {
    fn clean(&mut self) {}
}

impl<T: Untrusted> Untrusted for Option<T> {
    fn clean(&mut self) {
        self.iter_mut().for_each(Untrusted::clean);
    }
}

impl<T: Untrusted> Untrusted for Vec<T> {
    fn clean(&mut self) {
        self.truncate(MOST_ENTRIES);
        self.iter_mut().for_each(Untrusted::clean);
    }
}

impl<A: Untrusted, B: Untrusted> Untrusted for (A, B) {
    fn clean(&mut self) {
        self.0.clean();
        self.1.clean();
    }
}

impl<A: Untrusted, B: Untrusted, C: Untrusted> Untrusted for (A, B, C) {
    fn clean(&mut self) {
        self.0.clean();
        self.1.clean();
        self.2.clean();
    }
}

impl<T: Untrusted, E: Untrusted> Untrusted for Result<T, E> {
    fn clean(&mut self) {
        match self {
            Ok(value) => value.clean(),
            Err(error) => error.clean(),
        }
    }
}

impl Untrusted for Step {
    fn clean(&mut self) {
        self.name.clean();
    }
}

impl Untrusted for RequestType {
    fn clean(&mut self) {
        self.name.clean();
    }
}

/// The text fit to be shown: its beginning, if it is very long.
pub fn clipped(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST_BYTES);
    let mut shown = readable(&text[..end]);
    if end < text.len() {
        shown.push_str(" ...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_and_lists_are_cut() {
        let long = clipped(&"é".repeat(LONGEST_BYTES));
        assert!(long.len() <= LONGEST_BYTES + 4 && long.ends_with(" ..."));
        let mut facts = vec![("k\u{1b}".to_owned(), Some("v\u{7}".to_owned())); MOST_ENTRIES + 1];
        facts.clean();
        assert_eq!(facts.len(), MOST_ENTRIES);
        assert_eq!(facts[0], ("k\u{fffd}".to_owned(), Some("v\u{fffd}".to_owned())));
    }
}
