//! Requests as they are written, and what users say in forms.

use std::io::Write;

use crate::social::contents::tag_name;
use crate::social::spec::StoredFile;
use tare_model::marker::{FNV_BASIS, fnv1a};

use super::member::Member;
use super::outgoing::Outgoing;
use super::world::World;

/// After the day that all static files are of, so that none has changed since.
const UNCHANGED: &str = "If-Modified-Since: Wed, 01 Jan 2025 00:00:00 GMT\r\n";
/// What parts of a form are divided by; no text of ours and no file has it.
const BOUNDARY: &str = "----tare-7d1f0c93b5e2468a";
/// What people write.
const WORDS: &[u8] =
    b"we meet once a month to talk play and eat together and whoever likes to come is welcome to bring friends along ";
/// Lengths of what is said of a person, and of an event in short and at length, characters.
const SUMMARY: (u32, u32) = (250, 2_500);
const SHORT: (u32, u32) = (50, 100);
const DESCRIPTION: (u32, u32) = (50, 495);
/// Most tags of an event, and how many days ahead events are at most.
const TAGS: u32 = 7;
const DAYS: u32 = 540;

/// Where a request goes, and who asks.
#[derive(Debug, Clone, Copy)]
pub(super) struct To<'a> {
    pub host: &'a str,
    /// Empty: none.
    pub cookie: &'a [u8],
}

// Writing to memory does not fail.
macro_rules! put {
    ($out:expr, $($text:tt)*) => { { let _ = write!($out, $($text)*); } };
}

/// The lines that every head begins with.
fn begin(out: &mut Vec<u8>, method: &str, path: &str, to: To<'_>) {
    put!(out, "{method} {path} HTTP/1.1\r\nHost: {}\r\n", to.host);
    if !to.cookie.is_empty() {
        out.extend_from_slice(b"Cookie: SESSION=");
        out.extend_from_slice(to.cookie);
        out.extend_from_slice(b"\r\n");
    }
}

/// Asks for something, or whether it has changed.
pub(super) fn get(out: &mut Outgoing, to: To<'_>, path: &str, unchanged: bool) {
    begin(&mut out.text, "GET", path, to);
    put!(out.text, "{}\r\n", if unchanged { UNCHANGED } else { "" });
}

/// Says something in one line.
pub(super) fn say(out: &mut Outgoing, to: To<'_>, path: &str, body: &str) {
    begin(&mut out.text, "POST", path, to);
    put!(out.text, "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}", body.len());
}

/// Number of what a member brings in this drive, as names and titles have it.
fn serial(world: &World, member: &Member) -> String {
    format!("{}-{}-{}", world.names, member.index, member.uploaded)
}

/// Full name of the person that a member has registered last.
pub(super) fn new_name(world: &World, member: &Member) -> String {
    format!("New {}", serial(world, member))
}

/// The same, to log in with.
pub(super) fn new_user(world: &World, member: &Member) -> String {
    format!("new-{}", serial(world, member))
}

/// Title of the event that a member has announced last.
pub(super) fn new_title(world: &World, member: &Member) -> String {
    format!("New event {}", serial(world, member))
}

/// What the markers of a file are made with that a member has uploaded last.
pub(super) fn new_file(world: &World, member: &Member, kind: StoredFile) -> u64 {
    let text = format!("{}/{}/{}", member.instance, serial(world, member), kind.path(0));
    fnv1a(FNV_BASIS, text.as_bytes())
}

/// Registers a person with their picture.
pub(super) fn person(out: &mut Outgoing, to: To<'_>, world: &World, member: &mut Member) {
    let user = new_user(world, member);
    field(out, "user", user.as_bytes());
    field(out, "password", b"secret");
    field(out, "first", b"New");
    field(out, "last", serial(world, member).as_bytes());
    field(out, "email", format!("{user}@example.test").as_bytes());
    common(out);
    text(out, "summary", SUMMARY, member);
    place(out, member);
    file(out, "image", StoredFile::PersonImage, world, member);
    file(out, "thumbnail", StoredFile::PersonThumbnail, world, member);
    finish(out, "/person", to);
}

/// Announces an event with its picture and its document.
pub(super) fn event(out: &mut Outgoing, to: To<'_>, world: &World, member: &mut Member) {
    field(out, "title", new_title(world, member).as_bytes());
    text(out, "summary", SHORT, member);
    text(out, "description", DESCRIPTION, member);
    common(out);
    field(out, "time", day(member.dice.below(DAYS)).as_bytes());
    let mut tags: Vec<u32> =
        (0..=member.dice.below(TAGS)).map(|_| 1 + member.dice.below(world.scale.tags.max(1))).collect();
    tags.sort_unstable();
    tags.dedup();
    let tags: Vec<String> = tags.into_iter().map(|tag| tag_name(tag.into())).collect();
    field(out, "tags", tags.join(" ").as_bytes());
    place(out, member);
    file(out, "image", StoredFile::EventImage, world, member);
    file(out, "thumbnail", StoredFile::EventThumbnail, world, member);
    file(out, "document", StoredFile::EventDocument, world, member);
    finish(out, "/event", to);
}

/// The evening of a day of 2026 and after, 0 being the first.
fn day(mut days: u32) -> String {
    const MONTHS: [u32; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let (year, mut month) = (2026 + days / 365, 0);
    days %= 365;
    while days >= MONTHS[month] {
        days -= MONTHS[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02}T18:00", month + 1, days + 1)
}

fn common(out: &mut Outgoing) {
    field(out, "telephone", b"0018585550100");
    field(out, "timezone", b"PST");
}

fn place(out: &mut Outgoing, member: &mut Member) {
    field(out, "street1", format!("{} Main Street", 1 + member.dice.below(9_999)).as_bytes());
    field(out, "street2", b"");
    field(out, "city", b"Springfield");
    field(out, "state", b"CA");
    field(out, "zip", format!("{:05}", member.dice.below(100_000)).as_bytes());
    field(out, "country", b"USA");
}

fn field(out: &mut Outgoing, name: &str, value: &[u8]) {
    put!(out.text, "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
    out.text.extend_from_slice(value);
    out.text.extend_from_slice(b"\r\n");
}

/// As many words as a length between these has room for.
fn text(out: &mut Outgoing, name: &str, (least, most): (u32, u32), member: &mut Member) {
    let length = (least + member.dice.below(most - least + 1)) as usize;
    let mut words: Vec<u8> = WORDS.iter().copied().cycle().take(length).collect();
    if let Some(last) = words.last_mut() {
        *last = b'.';
    }
    field(out, name, &words);
}

fn file(out: &mut Outgoing, name: &str, kind: StoredFile, world: &World, member: &Member) {
    let (ending, of) = match kind {
        StoredFile::EventDocument => ("pdf", "application/pdf"),
        _ => ("jpg", "image/jpeg"),
    };
    put!(
        out.text,
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{name}.{ending}\"\r\n\
         Content-Type: {of}\r\n\r\n"
    );
    out.upload(kind, new_file(world, member, kind));
    out.text.extend_from_slice(b"\r\n");
}

/// Ends the form and puts the head before it.
fn finish(out: &mut Outgoing, path: &str, to: To<'_>) {
    put!(out.text, "--{BOUNDARY}--\r\n");
    let mut head = Vec::with_capacity(256);
    begin(&mut head, "POST", path, to);
    put!(head, "Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {}\r\n\r\n", out.bytes());
    out.head(&head);
}

#[cfg(test)]
mod tests {
    use super::super::outgoing::Template;
    use super::super::simulate::tests::drive;
    use super::super::world::Instance;
    use super::*;

    #[test]
    fn a_form_has_the_length_that_it_says_and_its_files_in_the_midst_in_whatever_pieces_it_is_sent() {
        let world = World::of(&drive(), 3, vec![Instance { host: "a:1".to_owned(), users: 25 }]);
        let mut member = Member::new(&world, 0, 4);
        let (mut out, mut template) = (Outgoing::default(), Template::default());
        event(&mut out, To { host: "a:1", cookie: b"c" }, &world, &mut member);
        let mut wholes = [70_000, 999].map(|step| {
            let mut whole = Vec::new();
            while (whole.len() as u64) < out.bytes() {
                let piece = out.piece(whole.len() as u64, &mut template);
                assert!(!piece.is_empty());
                whole.extend_from_slice(&piece[..piece.len().min(step)]);
            }
            whole
        });
        assert!(wholes[0] == wholes[1] && out.piece(out.bytes(), &mut template).is_empty());
        let whole = std::mem::take(&mut wholes[0]);
        let find = |what: &[u8]| whole.windows(what.len()).position(|at| at == what);
        let body = find(b"\r\n\r\n").unwrap() + 4;
        let head = std::str::from_utf8(&whole[..body]).unwrap();
        assert!(head.starts_with("POST /event HTTP/1.1\r\nHost: a:1\r\nCookie: SESSION=c\r\n"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", whole.len() - body)), "{head}");
        for kind in [StoredFile::EventImage, StoredFile::EventThumbnail, StoredFile::EventDocument] {
            let at = find(&tare_model::marker::marker(new_file(&world, &member, kind), 0)).unwrap();
            let end = at + kind.bytes() as usize;
            assert_eq!((&whole[at - 4..at], &whole[end..end + 4]), (&b"\r\n\r\n"[..], &b"\r\n--"[..]));
        }
        assert!(whole.ends_with(b"--\r\n"));
    }

    #[test]
    fn days_are_days_of_the_calendar() {
        assert_eq!(
            [0, 30, 31, 58, 59, 364, 365, 539].map(day),
            [
                "2026-01-01T18:00",
                "2026-01-31T18:00",
                "2026-02-01T18:00",
                "2026-02-28T18:00",
                "2026-03-01T18:00",
                "2026-12-31T18:00",
                "2027-01-01T18:00",
                "2027-06-24T18:00"
            ]
        );
    }
}
