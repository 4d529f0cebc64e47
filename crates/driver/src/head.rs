//! Heads of requests of HTTP/1.1, as the servers here read them.

use std::str::FromStr;

/// Most lines of a head; Java's own client sends five.
const MOST_LINES: usize = 64;

/// What the bytes received so far are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    /// Not yet a whole head.
    Partial,
    /// A head.
    Head(Head<'a>),
    /// Something else.
    Malformed(&'static str),
}

/// The head of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head<'a> {
    /// Such as `GET`.
    pub method: &'a str,
    /// What is asked for, as it was sent: address and query.
    pub target: &'a str,
    /// Bytes of the head.
    pub length: usize,
    /// The body that follows.
    pub body: Body,
    /// Whether the connection ends after it.
    pub close: bool,
    /// Whether the client waits for a word before it sends the body (`Expect: 100-continue`).
    pub waits: bool,
}

/// What follows a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// So many bytes, as the head says.
    Length(u64),
    /// Nothing: no line of the head tells of a body.
    None,
    /// Something whose length is not stated beforehand.
    Chunked,
}

/// Reads the head that `bytes` begin with.
pub(crate) fn parse(bytes: &[u8]) -> Parsed<'_> {
    if bytes.is_empty() {
        return Parsed::Partial;
    }
    let mut lines = [httparse::EMPTY_HEADER; MOST_LINES];
    let mut request = httparse::Request::new(&mut lines);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Parsed::Partial,
        Err(_) => return Parsed::Malformed("no head of HTTP"),
    };
    let (Some(method), Some(target)) = (request.method, request.path) else {
        return Parsed::Malformed("no head of HTTP");
    };
    let mut head = Head { method, target, length, body: Body::None, close: request.version == Some(0), waits: false };
    for line in &*request.headers {
        if line.name.eq_ignore_ascii_case("connection") {
            head.close = has_word(line.value, b"close") || (head.close && !has_word(line.value, b"keep-alive"));
        } else if line.name.eq_ignore_ascii_case("transfer-encoding") {
            if matches!(head.body, Body::Length(_)) {
                return Parsed::Malformed("a body of two lengths");
            }
            head.body = Body::Chunked;
        } else if line.name.eq_ignore_ascii_case("content-length") {
            let Some(bytes) = number(line.value) else { return Parsed::Malformed("a length that is no number") };
            if head.body != Body::None && head.body != Body::Length(bytes) {
                return Parsed::Malformed("a body of two lengths");
            }
            head.body = Body::Length(bytes);
        } else if line.name.eq_ignore_ascii_case("expect") {
            head.waits = has_word(line.value, b"100-continue");
        }
    }
    Parsed::Head(head)
}

/// A number of digits alone.
pub(crate) fn number<T: FromStr>(text: &[u8]) -> Option<T> {
    let digits = std::str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok()
}

/// Whether a list separated by commas has a word.
fn has_word(list: &[u8], word: &[u8]) -> bool {
    list.split(|byte| *byte == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Option<Head<'_>> {
        match parse(text.as_bytes()) {
            Parsed::Head(head) => Some(head),
            Parsed::Partial | Parsed::Malformed(_) => None,
        }
    }

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let text = "PUT /1/person/9.jpg HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-Continue\r\n\r\nabc";
        let (method, target, length) = ("PUT", "/1/person/9.jpg", text.len() - 3);
        let whole = Head { method, target, length, body: Body::Length(3), close: false, waits: true };
        assert_eq!(parse(text.as_bytes()), Parsed::Head(whole));
        for cut in 0..length {
            assert_eq!(parse(&text.as_bytes()[..cut]), Parsed::Partial, "{cut}");
        }
    }

    #[test]
    fn connections_are_kept_unless_the_client_says_otherwise() {
        let closes = |text| head(text).map(|head| head.close);
        assert_eq!(closes("GET /?a HTTP/1.1\r\nConnection: Upgrade, close\r\n\r\n"), Some(true));
        assert_eq!(closes("GET /?a HTTP/1.1\r\nConnection: keep-alive\r\n\r\n"), Some(false));
        assert_eq!(closes("GET /?a HTTP/1.0\r\n\r\n"), Some(true));
        assert_eq!(closes("GET /?a HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), Some(false));
    }

    #[test]
    fn a_body_has_one_length_or_is_chunked() {
        let body = |lines: &str| head(&format!("PUT / HTTP/1.1\r\n{lines}\r\n")).map(|head| head.body);
        assert_eq!(body(""), Some(Body::None));
        assert_eq!(body("Content-Length: 0\r\n"), Some(Body::Length(0)));
        assert_eq!(body("Content-Length: 7\r\nContent-Length: 7\r\n"), Some(Body::Length(7)));
        assert_eq!(body("Transfer-Encoding: chunked\r\n"), Some(Body::Chunked));
        for two in [
            "Content-Length: 7\r\nContent-Length: 8\r\n",
            "Content-Length: 7\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 7\r\n",
            "Content-Length: -1\r\n",
            "Content-Length: +1\r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Content-Length: \r\n",
        ] {
            assert_eq!(body(two), None, "{two}");
        }
    }
}
