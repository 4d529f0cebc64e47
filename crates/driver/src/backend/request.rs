//! Requests as the backend reads them: HTTP/1.1, GET, no body.

/// Most lines of a head; Java's own client sends five.
const MOST_LINES: usize = 64;

/// What the bytes received so far are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed<'a> {
    /// Not yet a whole request.
    Partial,
    /// A request.
    Request {
        /// What follows the question mark; empty where there is none.
        query: &'a [u8],
        /// Bytes of the request.
        length: usize,
        /// Whether the connection ends after it.
        close: bool,
    },
    /// Something else.
    Malformed(&'static str),
}

/// Reads the first request of `bytes`.
pub(super) fn parse(bytes: &[u8]) -> Parsed<'_> {
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
    if request.method != Some("GET") {
        return Parsed::Malformed("not GET");
    }
    let query = match request.path.and_then(|path| path.strip_prefix('/')).map(str::as_bytes) {
        Some([]) => &[],
        Some([b'?', query @ ..]) => query,
        _ => return Parsed::Malformed("not of the address /?QUERY"),
    };
    let mut close = request.version == Some(0);
    for line in &*request.headers {
        if line.name.eq_ignore_ascii_case("connection") {
            close = has_word(line.value, b"close") || (close && !has_word(line.value, b"keep-alive"));
        } else if line.name.eq_ignore_ascii_case("transfer-encoding")
            || (line.name.eq_ignore_ascii_case("content-length") && line.value != b"0")
        {
            return Parsed::Malformed("a body");
        }
    }
    Parsed::Request { query, length, close }
}

/// Whether a list separated by commas has a word.
fn has_word(list: &[u8], word: &[u8]) -> bool {
    list.split(|byte| *byte == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_what_follows_the_question_mark() {
        let head = b"GET /?banking&1&0000000001&00 HTTP/1.1\r\nHost: x\r\n\r\nGET";
        let query: &[u8] = b"banking&1&0000000001&00";
        assert_eq!(parse(head), Parsed::Request { query, length: head.len() - 3, close: false });
        assert_eq!(parse(b"GET / HTTP/1.1\r\n\r\n"), Parsed::Request { query: b"", length: 18, close: false });
        for cut in 0..head.len() - 3 {
            assert_eq!(parse(&head[..cut]), Parsed::Partial, "{cut}");
        }
    }

    #[test]
    fn connections_are_kept_unless_the_client_says_otherwise() {
        let closes = |text: &[u8]| match parse(text) {
            Parsed::Request { close, .. } => Some(close),
            Parsed::Partial | Parsed::Malformed(_) => None,
        };
        assert_eq!(closes(b"GET /?a HTTP/1.1\r\nConnection: Upgrade, close\r\n\r\n"), Some(true));
        assert_eq!(closes(b"GET /?a HTTP/1.1\r\nConnection: keep-alive\r\n\r\n"), Some(false));
        assert_eq!(closes(b"GET /?a HTTP/1.0\r\n\r\n"), Some(true));
        assert_eq!(closes(b"GET /?a HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), Some(false));
    }

    #[test]
    fn what_is_no_request_for_a_query_is_malformed() {
        for wrong in [
            "POST /?a HTTP/1.1\r\n\r\n",
            "GET /x?a HTTP/1.1\r\n\r\n",
            "GET /?a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
            "GET /?a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "\u{1}\u{2}\r\n\r\n",
        ] {
            assert!(matches!(parse(wrong.as_bytes()), Parsed::Malformed(_)), "{wrong}");
        }
    }
}
