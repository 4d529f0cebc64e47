//! The two protocols: requests as bytes, and answers from bytes that may be anything.

use super::spec::{Protocol, Said};

/// Longest line of an answer. Longer ones are none of these protocols'.
const LINE_BYTES: usize = 2048;
/// Longest answer of text that is taken whole, such as that to INFO.
pub(super) const TEXT_BYTES: usize = 256 << 10;
/// Of what a server refuses so much is kept.
const REASON_BYTES: usize = 120;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    Set,
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer<'a> {
    /// A GET's value.
    Value(&'a [u8]),
    /// A GET found none.
    Missing,
    /// A SET was done.
    Stored,
    /// The server did not do it; its words.
    Refused(String),
}

/// What bytes begin with, and its length; `None` where it is not whole yet.
type Begun<T> = Result<Option<(T, usize)>, Fault>;

/// Why bytes are no answer. The connection has lost step and is of no more use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Fault(String);

impl Fault {
    #[cold]
    fn of(what: &str, bytes: &[u8]) -> Self {
        Self(format!("{what}: \"{}\"", shown(bytes)))
    }
}

/// The beginning of bytes, for people.
fn shown(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(REASON_BYTES)].escape_ascii().to_string()
}

impl Protocol {
    /// Adds a GET.
    #[inline]
    pub(super) fn get(self, to: &mut Vec<u8>, key: &[u8]) {
        match self {
            Self::Redis => {
                to.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
                bulk(to, key);
            }
            Self::Memcached => {
                to.extend_from_slice(b"get ");
                to.extend_from_slice(key);
                to.extend_from_slice(b"\r\n");
            }
        }
    }

    /// Adds a SET of a value in two parts.
    #[inline]
    pub(super) fn set(self, to: &mut Vec<u8>, key: &[u8], (mark, rest): (&[u8], &[u8])) {
        let bytes = mark.len() + rest.len();
        match self {
            Self::Redis => {
                to.extend_from_slice(b"*3\r\n$3\r\nSET\r\n");
                bulk(to, key);
                to.push(b'$');
            }
            Self::Memcached => {
                to.extend_from_slice(b"set ");
                to.extend_from_slice(key);
                to.extend_from_slice(b" 0 0 ");
            }
        }
        number(to, bytes);
        to.extend_from_slice(b"\r\n");
        to.extend_from_slice(mark);
        to.extend_from_slice(rest);
        to.extend_from_slice(b"\r\n");
    }

    /// Where in a request its key of so many bytes begins.
    #[inline]
    pub(super) const fn key_at(self, verb: Verb, key_bytes: usize) -> usize {
        let sized = match key_bytes {
            0..10 => 4,
            10..100 => 5,
            _ => 6,
        };
        match (self, verb) {
            // The list, the command, and the key's own length.
            (Self::Redis, _) => 13 + sized,
            (Self::Memcached, _) => 4,
        }
    }

    /// The answer that `bytes` begin with and its length; `None` where it is not whole yet. `key` and `most` are the key that was asked
    /// for and the longest value that it can have.
    #[inline]
    pub(super) fn answer<'a>(self, verb: Verb, key: &[u8], most: usize, bytes: &'a [u8]) -> Begun<Answer<'a>> {
        let Some(line) = line(bytes)? else { return Ok(None) };
        let after = line.len() + 2;
        match (self, verb) {
            (Self::Redis, Verb::Set) if line == b"+OK" => Ok(Some((Answer::Stored, after))),
            (Self::Redis, Verb::Get) if line == b"$-1" => Ok(Some((Answer::Missing, after))),
            (Self::Redis, Verb::Get) if line.first() == Some(&b'$') => {
                Ok(value(&line[1..], after, b"\r\n", most, bytes)?)
            }
            (Self::Redis, _) if line.first() == Some(&b'-') => Ok(Some((refused(&line[1..]), after))),
            (Self::Memcached, Verb::Set) if line == b"STORED" => Ok(Some((Answer::Stored, after))),
            (Self::Memcached, Verb::Get) if line == b"END" => Ok(Some((Answer::Missing, after))),
            (Self::Memcached, Verb::Get) if line.starts_with(b"VALUE ") => {
                value(size_of(line, key)?, after, b"\r\nEND\r\n", most, bytes)
            }
            (Self::Memcached, _) if is_error(line) => Ok(Some((refused(line), after))),
            _ => Err(Fault::of("no answer to what was asked", line)),
        }
    }

    /// What asks a server about itself.
    pub(super) const fn questions(self) -> &'static [&'static [u8]] {
        match self {
            Self::Redis => &[
                b"INFO everything\r\n",
                b"CONFIG GET maxmemory\r\n",
                b"CONFIG GET maxmemory-policy\r\n",
                b"CONFIG GET io-threads\r\n",
            ],
            Self::Memcached => &[b"stats\r\n", b"stats settings\r\n"],
        }
    }

    /// The names and values that the answer to a question begins `bytes` with, and its length; `None` where it is not whole yet.
    pub(super) fn said(self, bytes: &[u8]) -> Begun<Said> {
        match self {
            Self::Redis => redis_said(bytes),
            Self::Memcached => memcached_said(bytes),
        }
    }
}

/// Adds a string of RESP's.
#[inline]
fn bulk(to: &mut Vec<u8>, bytes: &[u8]) {
    to.push(b'$');
    number(to, bytes.len());
    to.extend_from_slice(b"\r\n");
    to.extend_from_slice(bytes);
    to.extend_from_slice(b"\r\n");
}

/// Adds a number in decimal digits. Formatting would cost more than the rest of a request.
#[inline]
fn number(to: &mut Vec<u8>, mut number: usize) {
    let (mut digits, mut at) = ([0; 20], 20);
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return to.extend_from_slice(&digits[at..]);
        }
    }
}

/// The first line, without its end.
#[inline]
fn line(bytes: &[u8]) -> Result<Option<&[u8]>, Fault> {
    let looked = &bytes[..bytes.len().min(LINE_BYTES)];
    match looked.iter().position(|byte| *byte == b'\n') {
        Some(end) if end > 0 && looked[end - 1] == b'\r' => Ok(Some(&looked[..end - 1])),
        None if looked.len() < LINE_BYTES => Ok(None),
        _ => Err(Fault::of("a line without its end", looked)),
    }
}

/// A value of so many bytes, as text, that begins at `from` and ends with `end`.
#[inline]
fn value<'a>(size: &[u8], from: usize, end: &[u8], most: usize, bytes: &'a [u8]) -> Begun<Answer<'a>> {
    let size =
        digits(size).filter(|size| *size <= most).ok_or_else(|| Fault::of("a value of no size it can have", size))?;
    let whole = from + size + end.len();
    match bytes.get(from..whole) {
        None => Ok(None),
        Some(rest) if rest.ends_with(end) => Ok(Some((Answer::Value(&rest[..size]), whole))),
        Some(rest) => Err(Fault::of("a value that does not end where it should", &rest[size..])),
    }
}

/// A number without a sign that fits.
fn digits(text: &[u8]) -> Option<usize> {
    let plain = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| plain)?.parse().ok()
}

/// The size in a line `VALUE key flags bytes` of this key.
fn size_of<'a>(line: &'a [u8], key: &[u8]) -> Result<&'a [u8], Fault> {
    let mut words = line.split(|byte| *byte == b' ').skip(1);
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some(of), Some(_), Some(size), None) if of == key => Ok(size),
        (Some(of), ..) if of != key => Err(Fault::of("the value of another key", line)),
        _ => Err(Fault::of("no line of a value", line)),
    }
}

fn is_error(line: &[u8]) -> bool {
    line == b"ERROR"
        || line == b"NOT_STORED"
        || [b"SERVER_ERROR", b"CLIENT_ERROR"].iter().any(|word| line.starts_with(*word))
}

#[cold]
fn refused<'a>(words: &[u8]) -> Answer<'a> {
    Answer::Refused(shown(words))
}

/// INFO's lines `name:value` in one string, or a list of names and values.
fn redis_said(bytes: &[u8]) -> Begun<Said> {
    let Some(first) = line(bytes)? else { return Ok(None) };
    if first.first() == Some(&b'*') {
        return redis_pairs(first, bytes);
    }
    let Some((text, length)) = redis_text(bytes)? else { return Ok(None) };
    let text = String::from_utf8_lossy(text);
    let pairs = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(':'));
    Ok(Some((pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect(), length)))
}

fn redis_pairs(first: &[u8], bytes: &[u8]) -> Begun<Said> {
    let count = digits(&first[1..]).filter(|count| *count <= 2 && count.is_multiple_of(2));
    let count = count.ok_or_else(|| Fault::of("a list of no length that it can have", first))?;
    let (mut words, mut at) = (Vec::new(), first.len() + 2);
    for _ in 0..count {
        let Some((text, length)) = redis_text(&bytes[at..])? else { return Ok(None) };
        words.push(String::from_utf8_lossy(text).into_owned());
        at += length;
    }
    let value = words.pop().zip(words.pop());
    Ok(Some((value.map(|(value, name)| (name, value)).into_iter().collect(), at)))
}

/// The string that `bytes` begin with.
fn redis_text(bytes: &[u8]) -> Begun<&[u8]> {
    let Some(first) = line(bytes)? else { return Ok(None) };
    match first.first() {
        Some(b'$') => match value(&first[1..], first.len() + 2, b"\r\n", TEXT_BYTES, bytes)? {
            Some((Answer::Value(text), length)) => Ok(Some((text, length))),
            _ => Ok(None),
        },
        _ => Err(Fault::of("no answer to what was asked", first)),
    }
}

/// Lines `STAT name value` up to `END`.
fn memcached_said(bytes: &[u8]) -> Begun<Said> {
    let (mut pairs, mut at) = (Vec::new(), 0);
    while let Some(next) = line(&bytes[at..])? {
        at += next.len() + 2;
        if next == b"END" {
            return Ok(Some((pairs, at)));
        }
        let text = String::from_utf8_lossy(next);
        let Some((name, value)) = text.strip_prefix("STAT ").and_then(|pair| pair.split_once(' ')) else {
            return Err(Fault::of("no answer to what was asked", next));
        };
        pairs.push((name.to_owned(), value.to_owned()));
    }
    Ok(None)
}

#[cfg(test)]
#[path = "../tests/protocol.rs"]
mod tests;
