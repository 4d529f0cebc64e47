//! Pages, looked through as they come: nothing of them is kept but what a user goes on with and what must be right.

use crate::social::spec::StoredFile;

use super::member::EVENTS;
use crate::session::body::{agrees, keep_last};
use crate::session::draw::Dice;
use crate::session::fault::Fault;

/// How every page begins.
const BEGINNING: &[u8] = b"<!DOCTYPE html><html><head><title>";
/// How every page ends.
const CLOSING: [u8; 8] = *b"</html>\n";
/// Longest text of an element that is looked at, bytes; of a longer one the beginning is held against what it must be, and is not that.
const HELD_MAX: usize = 1024;
/// Most pictures of a page that are loaded; pages have ten at most.
const PICTURES_MAX: usize = 64;

/// An element whose text is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Heading,
    User,
    Hits,
    Attendees,
    Attend,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Mode {
    #[default]
    Between,
    Tag,
    Inside(Field),
}

/// What was found in a page.
#[derive(Debug, Default)]
pub(super) struct Page {
    mode: Mode,
    /// The beginning of a tag or a text whose end has not come.
    held: Vec<u8>,
    /// Bytes that have come, and the last of them.
    at: u64,
    last: [u8; CLOSING.len()],
    begins: bool,
    /// How often each element was there: heading, user.
    headings: u8,
    users: u8,
    pub heading: Vec<u8>,
    pub user: Vec<u8>,
    pub hits: Option<u32>,
    pub attendees: Option<u32>,
    /// Whether the user can say that they will attend.
    pub attend: Option<bool>,
    pub events: [u32; EVENTS],
    pub listed: u8,
    /// Links to people, and one of them, all equally likely.
    pub people: u32,
    pub person: u32,
    /// References to pictures; those of the store, in order.
    pub references: u32,
    pub pictures: Vec<(StoredFile, u32)>,
    /// A link or a picture leads nowhere that there can be.
    pub astray: bool,
}

impl Page {
    /// Ready for the next; memory is kept.
    pub fn clear(&mut self) {
        let mut old = std::mem::take(self);
        old.held.clear();
        old.heading.clear();
        old.user.clear();
        old.pictures.clear();
        let Self { held, heading, user, pictures, .. } = old;
        *self = Self { held, heading, user, pictures, begins: true, ..Self::default() };
    }

    /// Bytes that have come.
    #[cfg(test)]
    pub const fn at(&self) -> u64 {
        self.at
    }

    /// Looks through the next bytes, in any pieces.
    pub fn feed(&mut self, piece: &[u8], dice: &mut Dice) {
        self.begins &= agrees(BEGINNING, 0, self.at, piece);
        keep_last(&mut self.last, piece);
        self.at += piece.len() as u64;
        let mut rest = piece;
        loop {
            let stop = if self.mode == Mode::Tag { b'>' } else { b'<' };
            let Some(end) = rest.iter().position(|&byte| byte == stop) else {
                if self.mode != Mode::Between {
                    self.hold(rest);
                }
                return;
            };
            let (token, after) = (&rest[..end], &rest[end + 1..]);
            rest = after;
            if self.held.is_empty() {
                self.token(token, dice);
            } else {
                self.hold(token);
                let held = std::mem::take(&mut self.held);
                self.token(&held, dice);
                self.held = held;
                self.held.clear();
            }
        }
    }

    fn hold(&mut self, bytes: &[u8]) {
        let room = HELD_MAX.saturating_sub(self.held.len());
        self.held.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// A tag without its angles, or the text before one, is complete.
    fn token(&mut self, token: &[u8], dice: &mut Dice) {
        self.mode = match self.mode {
            Mode::Between => Mode::Tag,
            Mode::Tag => self.tag(token, dice),
            Mode::Inside(field) => {
                self.text(field, token);
                Mode::Tag
            }
        };
    }

    fn tag(&mut self, tag: &[u8], dice: &mut Dice) -> Mode {
        match tag.first() {
            Some(b'h') if tag == b"h1" => Mode::Inside(Field::Heading),
            Some(b'p') => match tag {
                b"p id=\"user\"" => Mode::Inside(Field::User),
                b"p id=\"hits\"" => Mode::Inside(Field::Hits),
                b"p id=\"attendees\"" => Mode::Inside(Field::Attendees),
                b"p id=\"attend\"" => Mode::Inside(Field::Attend),
                _ => Mode::Between,
            },
            Some(b'a') => {
                self.link(tag, dice);
                Mode::Between
            }
            Some(b'i') => {
                self.picture(tag);
                Mode::Between
            }
            _ => Mode::Between,
        }
    }

    fn link(&mut self, tag: &[u8], dice: &mut Dice) {
        if let Some(number) = tag.strip_prefix(b"a href=\"/event?id=") {
            match (attribute(number).and_then(decimal), usize::from(self.listed)) {
                (Some(event), at) if at < EVENTS => {
                    self.events[at] = event;
                    self.listed += 1;
                }
                (Some(_), _) => {}
                (None, _) => self.astray = true,
            }
        } else if let Some(number) = tag.strip_prefix(b"a href=\"/person?id=") {
            let Some(person) = attribute(number).and_then(decimal) else { return self.astray = true };
            self.people += 1;
            // Each of those that have come is the one with the same probability (reservoir sampling, one place).
            if dice.below(self.people) == 0 {
                self.person = person;
            }
        }
    }

    fn picture(&mut self, tag: &[u8]) {
        let Some(path) = tag.strip_prefix(b"img src=\"/image") else { return };
        self.references += 1;
        let path = attribute(path).and_then(|path| std::str::from_utf8(path).ok());
        match path.and_then(StoredFile::parse).map(|(kind, id)| (kind, u32::try_from(id))) {
            Some((kind, Ok(id))) if kind != StoredFile::EventDocument => {
                if self.pictures.len() < PICTURES_MAX {
                    self.pictures.push((kind, id));
                }
            }
            _ => self.astray = true,
        }
    }

    fn text(&mut self, field: Field, text: &[u8]) {
        match field {
            Field::Heading => {
                self.headings = self.headings.saturating_add(1);
                self.heading.clear();
                self.heading.extend_from_slice(text);
            }
            Field::User => {
                self.users = self.users.saturating_add(1);
                self.user.clear();
                self.user.extend_from_slice(text);
            }
            Field::Hits => self.hits = decimal(text),
            Field::Attendees => self.attendees = decimal(text),
            Field::Attend => {
                self.attend = match text {
                    b"yes" => Some(true),
                    b"no" => Some(false),
                    _ => None,
                }
            }
        }
    }

    /// Judges what every page must have. Both elements once, for one that is there twice may be wrong the first time.
    ///
    /// # Errors
    /// `page`, `end`, `heading`, `user`, `link`.
    pub fn judge(&self, user: &str) -> Result<(), Fault> {
        let kind = if !self.begins || self.at < BEGINNING.len() as u64 {
            "page"
        } else if self.last != CLOSING {
            "end"
        } else if self.headings != 1 {
            "heading"
        } else if self.users != 1 || self.user != user.as_bytes() {
            "user"
        } else if self.astray {
            "link"
        } else {
            return Ok(());
        };
        Err(Fault::Kind(kind))
    }
}

/// What comes before the quote that ends an attribute.
fn attribute(text: &[u8]) -> Option<&[u8]> {
    text.iter().position(|&byte| byte == b'"').map(|end| &text[..end])
}

/// A decimal number and nothing else.
pub(super) fn decimal(text: &[u8]) -> Option<u32> {
    let digit =
        |value: u32, &b: &u8| value.checked_mul(10)?.checked_add(u32::from(b.is_ascii_digit().then(|| b - b'0')?));
    if text.is_empty() { None } else { text.iter().try_fold(0, digit) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = "<!DOCTYPE html><html><head><title>Event 7</title></head><body><p id=\"user\">First Last</p><h1>Event 7</h1>\
        <p id=\"attendees\">12</p><p id=\"attend\">yes</p><img src=\"/image/event/7.jpg\"><a href=\"/document/event/7.pdf\">d</a>\
        <a href=\"/person?id=3\">A</a><img src=\"/image/person/3t.jpg\"><a href=\"/person?id=4\">B</a>\
        <a href=\"/event?id=9\">E</a><a href=\"/tag?name=tag1\">tag1</a><p>text</p></body></html>\n";

    fn looked(text: &str, size: usize) -> Page {
        let (mut page, mut dice) = (Page::default(), Dice::new(1, 1));
        page.clear();
        for piece in text.as_bytes().chunks(size) {
            page.feed(piece, &mut dice);
        }
        page
    }

    #[test]
    fn a_page_tells_the_same_in_whatever_pieces_it_comes() {
        for size in [1, 2, 3, 7, 19, 64, 5_000] {
            let page = looked(EVENT, size);
            assert_eq!(page.judge("First Last"), Ok(()));
            assert_eq!((page.heading.as_slice(), page.at()), (&b"Event 7"[..], EVENT.len() as u64));
            assert_eq!((page.attendees, page.attend, page.hits), (Some(12), Some(true), None));
            assert_eq!((page.listed, page.events[0], page.people, page.references), (1, 9, 2, 2));
            assert!([3, 4].contains(&page.person));
            assert_eq!(page.pictures, [(StoredFile::EventImage, 7), (StoredFile::PersonThumbnail, 3)]);
        }
    }

    #[test]
    fn what_is_wrong_is_reported() {
        let wrong = |from: &str, to: &str| looked(&EVENT.replacen(from, to, 1), 11).judge("First Last");
        for (from, to, kind) in [
            ("<!DOCTYPE", "<!doctype", "page"),
            ("</html>\n", "</html>", "end"),
            ("<h1>Event 7</h1>", "", "heading"),
            ("<h1>", "<h1>Other</h1><h1>", "heading"),
            (">First Last<", ">-<", "user"),
            ("<p id=\"user\">First Last</p>", "", "user"),
            ("/person?id=3", "/person?id=x", "link"),
            ("/event?id=9", "/event?id=", "link"),
            ("/image/event/7.jpg", "/image/event/07.jpg", "link"),
        ] {
            assert_eq!(wrong(from, to), Err(Fault::Kind(kind)), "{from} -> {to}");
        }
        assert_eq!(looked("", 1).judge("-"), Err(Fault::Kind("page")));
    }

    #[test]
    fn one_of_the_people_is_drawn_evenly() {
        let text: String = (1..=20).map(|n| format!("<a href=\"/person?id={n}\">x</a>")).collect();
        let (mut dice, mut drawn) = (Dice::new(2, 3), [0u32; 20]);
        for _ in 0..20_000 {
            let mut page = Page::default();
            page.clear();
            page.feed(text.as_bytes(), &mut dice);
            drawn[page.person as usize - 1] += 1;
        }
        assert!(drawn.iter().all(|n| n.abs_diff(1_000) < 160), "{drawn:?}");
    }
}
