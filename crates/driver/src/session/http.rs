//! Answers of HTTP/1.1, taken apart as they come. Nothing of an answer is kept but a head that came in pieces.

use std::mem::MaybeUninit;

/// Longest head that is read, bytes; Tomcat and nginx send at most 8 KiB.
const HEAD_MAX: usize = 64 << 10;
/// Most header fields of an answer.
const FIELDS_MAX: usize = 64;
/// Longest line of a chunk's length with its extensions, or of a trailer, bytes.
const LINE_MAX: u16 = 4096;
/// Name of the cookie that a session is known by.
const COOKIE: &[u8] = b"SESSION=";

/// What the head of an answer says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Head {
    pub status: u16,
    /// Whether another request may follow on the connection.
    pub keeps: bool,
    /// The value of the cookie `SESSION`, where one is set.
    pub cookie: Option<Box<[u8]>>,
    /// Where a redirection leads.
    pub location: Option<Box<[u8]>>,
}

/// One step through an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// All that came is used up.
    More,
    Head(Head),
    /// A piece of the body, its transfer coding taken off.
    Body(&'a [u8]),
    /// The answer is complete.
    Done,
}

/// The bytes are no answer of HTTP/1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken;

/// Where in an answer the next byte belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Part {
    #[default]
    Head,
    /// So many bytes of the body are to come.
    Length(u64),
    /// The body ends with the connection.
    UntilClosed,
    /// In the line of a chunk's length: its value so far, how many digits it has, whether its extension has begun.
    ChunkLength {
        value: u64,
        digits: u8,
        extension: bool,
    },
    /// So many bytes of the chunk are to come.
    Chunk(u64),
    /// In the end of the line behind a chunk.
    ChunkEnd {
        carriage: bool,
    },
    /// In a line behind the last chunk, with so many bytes of it seen.
    Trailer(u16),
    Done,
}

/// An answer while it comes.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    part: Part,
    /// The beginning of a head whose end has not come.
    held: Vec<u8>,
}

impl Answer {
    /// Ready for the next one; its memory is kept.
    pub fn clear(&mut self) {
        self.part = Part::Head;
        self.held.clear();
    }

    /// Whether nothing of it has come.
    pub fn untouched(&self) -> bool {
        self.part == Part::Head && self.held.is_empty()
    }

    /// Whether it is complete if the connection ends here.
    pub fn ends_with_connection(&self) -> bool {
        self.part == Part::UntilClosed
    }

    /// Takes the next step through what came, of which it leaves what is not used up.
    ///
    /// # Errors
    /// When it is no answer of HTTP/1.1.
    pub fn step<'a>(&mut self, input: &mut &'a [u8]) -> Result<Step<'a>, Broken> {
        loop {
            match self.part {
                Part::Head if input.is_empty() => return Ok(Step::More),
                Part::Head => match self.head(input)? {
                    // The first line alone, of an interim answer; the answer follows.
                    Some(head) if (100..200).contains(&head.status) => self.clear(),
                    Some(head) => return Ok(Step::Head(head)),
                    None => return Ok(Step::More),
                },
                Part::Length(0) => self.part = Part::Done,
                Part::Done => return Ok(Step::Done),
                _ if input.is_empty() => return Ok(Step::More),
                Part::Length(left) => {
                    let piece = take(input, left);
                    self.part = Part::Length(left - piece.len() as u64);
                    return Ok(Step::Body(piece));
                }
                Part::UntilClosed => return Ok(Step::Body(take(input, u64::MAX))),
                Part::Chunk(left) => {
                    let piece = take(input, left);
                    let left = left - piece.len() as u64;
                    self.part = if left == 0 { Part::ChunkEnd { carriage: false } } else { Part::Chunk(left) };
                    return Ok(Step::Body(piece));
                }
                _ => self.part = self.part.after(take(input, 1)[0])?,
            }
        }
    }

    /// Reads a head; `None` where its end has not come.
    fn head(&mut self, input: &mut &[u8]) -> Result<Option<Head>, Broken> {
        if self.held.is_empty() {
            return match parse(input)? {
                Some((length, head, part)) => {
                    *input = &input[length..];
                    self.part = part;
                    Ok(Some(head))
                }
                None => {
                    self.held.extend_from_slice(take(input, HEAD_MAX as u64 + 1));
                    if self.held.len() > HEAD_MAX { Err(Broken) } else { Ok(None) }
                }
            };
        }
        let before = self.held.len();
        let room = (HEAD_MAX + 1).saturating_sub(before);
        self.held.extend_from_slice(&input[..input.len().min(room)]);
        match parse(&self.held)? {
            Some((length, head, part)) => {
                // It was not complete before, so that it ends in what came now.
                *input = &input[length.saturating_sub(before)..];
                self.held.clear();
                self.part = part;
                Ok(Some(head))
            }
            None if self.held.len() > HEAD_MAX => Err(Broken),
            None => {
                *input = &[];
                Ok(None)
            }
        }
    }
}

impl Part {
    /// After one byte of what lies around chunks (RFC 9112, section 7.1).
    const fn after(self, byte: u8) -> Result<Self, Broken> {
        Ok(match (self, byte) {
            (Self::ChunkLength { value, digits, extension: false }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = if byte <= b'9' { byte - b'0' } else { (byte | 0x20) - b'a' + 10 };
                if digits == 15 {
                    return Err(Broken);
                }
                Self::ChunkLength { value: (value << 4) | digit as u64, digits: digits + 1, extension: false }
            }
            (Self::ChunkLength { digits: 0, .. }, _) => return Err(Broken),
            (Self::ChunkLength { value: 0, .. }, b'\n') => Self::Trailer(0),
            (Self::ChunkLength { value, .. }, b'\n') => Self::Chunk(value),
            (Self::ChunkLength { value, digits, extension: true }, _)
            | (Self::ChunkLength { value, digits, .. }, b';' | b' ' | b'\t' | b'\r') => {
                Self::ChunkLength { value, digits, extension: true }
            }
            (Self::ChunkEnd { carriage: false }, b'\r') => Self::ChunkEnd { carriage: true },
            (Self::ChunkEnd { .. }, b'\n') => Self::ChunkLength { value: 0, digits: 0, extension: false },
            (Self::Trailer(0), b'\n') => Self::Done,
            (Self::Trailer(_), b'\n') | (Self::Trailer(0), b'\r') => Self::Trailer(0),
            (Self::Trailer(seen), _) if seen < LINE_MAX => Self::Trailer(seen + 1),
            _ => return Err(Broken),
        })
    }
}

fn take<'a>(input: &mut &'a [u8], most: u64) -> &'a [u8] {
    let length = most.min(input.len() as u64) as usize;
    let (piece, rest) = input.split_at(length);
    *input = rest;
    piece
}

/// Length of the head, what it tells, and what follows it; `None` where its end has not come.
fn parse(bytes: &[u8]) -> Result<Option<(usize, Head, Part)>, Broken> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut answer = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut answer, bytes, &mut fields);
    let length = match parsed {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Broken),
    };
    let status = answer.code.ok_or(Broken)?;
    let mut head = Head { status, keeps: answer.version == Some(1), cookie: None, location: None };
    let (mut content, mut chunked) = (None, false);
    for field in answer.headers.iter() {
        // By length first: most fields are none of these.
        match field.name.len() {
            14 if field.name.eq_ignore_ascii_case("content-length") => {
                let length = number(field.value).ok_or(Broken)?;
                // Two that differ leave open where the answer ends (RFC 9112, section 6.3).
                if content.replace(length).is_some_and(|other| other != length) {
                    return Err(Broken);
                }
            }
            17 if field.name.eq_ignore_ascii_case("transfer-encoding") => {
                chunked = field.value.trim_ascii().eq_ignore_ascii_case(b"chunked");
                if !chunked {
                    return Err(Broken);
                }
            }
            10 if field.name.eq_ignore_ascii_case("connection") => {
                if field.value.eq_ignore_ascii_case(b"close") {
                    head.keeps = false;
                } else if field.value.eq_ignore_ascii_case(b"keep-alive") {
                    head.keeps = true;
                }
            }
            8 if (300..400).contains(&status) && field.name.eq_ignore_ascii_case("location") => {
                head.location = Some(field.value.into());
            }
            10 if field.name.eq_ignore_ascii_case("set-cookie") && field.value.starts_with(COOKIE) => {
                let value = &field.value[COOKIE.len()..];
                let end = value.iter().position(|&b| b == b';').unwrap_or(value.len());
                head.cookie = Some(value[..end].into());
            }
            _ => {}
        }
    }
    let part = match (status, chunked, content) {
        // Without a body whatever the fields say (RFC 9112, section 6.3).
        (100..200 | 204 | 304, ..) => Part::Done,
        (_, true, _) => Part::ChunkLength { value: 0, digits: 0, extension: false },
        (_, false, Some(length)) => Part::Length(length),
        (_, false, None) => {
            head.keeps = false;
            Part::UntilClosed
        }
    };
    Ok(Some((length, head, part)))
}

/// A decimal number and nothing else.
fn number(text: &[u8]) -> Option<u64> {
    let digit =
        |value: u64, &b: &u8| value.checked_mul(10)?.checked_add(u64::from(b.is_ascii_digit().then(|| b - b'0')?));
    if text.is_empty() { None } else { text.iter().try_fold(0, digit) }
}

#[cfg(test)]
mod tests;
