#![allow(clippy::unwrap_used)]
use super::*;

/// Goes through an answer that comes in pieces of `size` bytes; the heads, the body, and whether it was complete.
fn walk(bytes: &[u8], size: usize) -> Result<(Vec<Head>, Vec<u8>, bool), Broken> {
    let mut answer = Answer::default();
    let (mut heads, mut body) = (Vec::new(), Vec::new());
    for mut piece in bytes.chunks(size) {
        loop {
            match answer.step(&mut piece)? {
                Step::More => break,
                Step::Head(head) => heads.push(head),
                Step::Body(part) => body.extend_from_slice(part),
                Step::Done => return Ok((heads, body, piece.is_empty())),
            }
        }
    }
    Ok((heads, body, false))
}

#[test]
fn an_answer_is_the_same_in_pieces_of_any_size() {
    let fixed: &[u8] =
        b"HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 5\r\nSet-Cookie: SESSION=abc12; Path=/\r\n\r\nhello";
    let chunked: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nSet-Cookie: SESSION=abc12\r\n\r\n\
        2;a=b\r\nhe\r\n00003\r\nllo\r\n0\r\nX-Trailer: 1\r\n\r\n";
    let interim: &[u8] =
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 \r\nset-cookie: SESSION=abc12\r\ncontent-length: 5\r\n\r\nhello";
    for bytes in [fixed, chunked, interim] {
        for size in 1..=bytes.len() {
            let (heads, body, complete) = walk(bytes, size).unwrap();
            assert_eq!(heads, [Head { status: 200, keeps: true, cookie: Some((*b"abc12").into()), location: None }]);
            assert_eq!((body.as_slice(), complete), (&b"hello"[..], true), "in pieces of {size}");
        }
    }
}

#[test]
fn an_answer_without_a_body_ends_with_its_head() {
    for status in [204, 304] {
        let bytes = format!("HTTP/1.1 {status} X\r\nContent-Length: 100\r\nConnection: close\r\n\r\n");
        let (heads, body, complete) = walk(bytes.as_bytes(), 1000).unwrap();
        assert_eq!((heads[0].status, heads[0].keeps, body.len(), complete), (status, false, 0, true));
    }
    let (_, body, complete) = walk(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 1000).unwrap();
    assert_eq!((body.len(), complete), (0, true));
}

#[test]
fn what_has_no_length_ends_with_the_connection() {
    let mut answer = Answer::default();
    assert!(answer.untouched());
    let mut input: &[u8] = b"HTTP/1.1 200 OK\r\n\r\nabc";
    let Step::Head(head) = answer.step(&mut input).unwrap() else { unreachable!() };
    assert!(!head.keeps && !answer.untouched());
    assert_eq!(answer.step(&mut input), Ok(Step::Body(b"abc")));
    assert_eq!(answer.step(&mut input), Ok(Step::More));
    assert!(answer.ends_with_connection());
    let (heads, ..) = walk(b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 1000).unwrap();
    assert!(!heads[0].keeps, "1.0 closes unless it says otherwise");
}

#[test]
fn what_is_no_answer_is_refused() {
    for bytes in [
        &b"SSH-2.0-OpenSSH\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n0\r\n\r\n",
    ] {
        for size in [1, bytes.len()] {
            assert_eq!(walk(bytes, size), Err(Broken), "{}", bytes.escape_ascii());
        }
    }
    let endless =
        [&b"HTTP/1.1 200 OK\r\n"[..], &b"X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n".repeat(2000)].concat();
    assert_eq!(walk(&endless, 1400), Err(Broken));
    assert_eq!(walk(&endless, endless.len()), Err(Broken));
}
