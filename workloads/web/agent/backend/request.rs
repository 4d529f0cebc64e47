//! Requests as the backend reads them: HTTP/1.1, GET, no body.

use crate::head::{self, Body, Head};

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
    let Head { method, target, length, body, close, .. } = match head::parse(bytes) {
        head::Parsed::Partial => return Parsed::Partial,
        head::Parsed::Malformed(what) => return Parsed::Malformed(what),
        head::Parsed::Head(head) => head,
    };
    if method != "GET" {
        return Parsed::Malformed("not GET");
    }
    if !matches!(body, Body::None | Body::Length(0)) {
        return Parsed::Malformed("a body");
    }
    match target.strip_prefix('/').map(str::as_bytes) {
        Some([]) => Parsed::Request { query: &[], length, close },
        Some([b'?', query @ ..]) => Parsed::Request { query, length, close },
        _ => Parsed::Malformed("not of the address /?QUERY"),
    }
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
