//! Right answers pass in all pieces, wrong ones in none.

use crate::session::fault::Fault;
use crate::web::proof::proof;
use tare_model::marker::{file_id, marked};

use super::*;

pub(super) const PATH: &str = "/files/shop/images/list/00.gif";

/// A site, a page that was asked for, and the right answer, made as a server does: with the proof from the query.
pub(super) fn page_and_answer() -> (Site, Asked, Vec<u8>) {
    let site = Site::compile(&drive(all_kinds())).unwrap();
    let mut out = Vec::new();
    let asked = user_in(&site, 0).ask(&site, b"", &mut Tokens::new(1, 0), &mut out);
    let text = String::from_utf8(out).unwrap();
    let values = text.split_once('?').unwrap().1.split_once(' ').unwrap().0;
    let values: Vec<&str> = values.split('&').map(|pair| pair.split_once('=').unwrap().1).collect();
    let proof = proof(SALT, format!("shop&4&{}", values.join("&")).as_bytes());
    let proof = std::str::from_utf8(&proof).unwrap();
    let mut body = format!(
        "<!DOCTYPE html><html><head><title>The list</title><meta name=\"proof\" content=\"{proof}\"></head><body>{}",
        "<p>padding</p>".repeat(400)
    );
    body.push_str("</body></html>\n");
    (site, asked, body.into_bytes())
}

fn file_and_answer() -> (Site, Asked, Vec<u8>) {
    let site = Site::compile(&drive(all_kinds())).unwrap();
    let asked = user_in(&site, 0).ask_embedded(&site, 0, &mut Vec::new());
    (site, asked, content(PATH, 9_000))
}

pub(super) fn content(path: &str, bytes: usize) -> Vec<u8> {
    marked(file_id(path.as_bytes()), bytes)
}

/// Feeds in pieces of these lengths, over and over.
fn judge(site: &Site, mut asked: Asked, body: &[u8], pieces: &[usize]) -> Result<(), Fault> {
    let (mut at, mut lengths) = (0, pieces.iter().cycle());
    while at < body.len() {
        let length = (*lengths.next().unwrap()).min(body.len() - at);
        asked.feed(site, &body[at..at + length])?;
        at += length;
    }
    asked.finish(site)
}

const PIECES: &[&[usize]] =
    &[&[1_000_000], &[1], &[3, 1, 0, 7], &[8], &[4_095], &[4_096], &[4_097], &[4_100, 4_090], &[31, 4_065], &[1_448]];

/// Whatever the pieces, the verdict is the same.
fn verdict(site: &Site, asked: Asked, body: &[u8]) -> Result<(), Fault> {
    let whole = judge(site, asked, body, PIECES[0]);
    for pieces in PIECES {
        assert_eq!(judge(site, asked, body, pieces), whole, "in pieces of {pieces:?}");
    }
    whole
}

/// The same body with one byte changed.
fn changed(body: &[u8], at: usize) -> Vec<u8> {
    let mut body = body.to_vec();
    body[at] ^= 1;
    body
}

#[test]
fn a_right_page_passes_and_a_wrong_byte_that_is_known_does_not() {
    let (site, asked, body) = page_and_answer();
    assert_eq!(verdict(&site, asked, &body), Ok(()));
    let text = String::from_utf8(body.clone()).unwrap();
    let (proof, head) = (text.find("content=\"").unwrap() + 9, text.find("</head>").unwrap());
    for at in (0..head).step_by(3) {
        let kind = if at < proof { "title" } else { "proof" };
        assert_eq!(judge(&site, asked, &changed(&body, at), &[700]), Err(Fault::Kind(kind)), "byte {at}");
    }
    for at in body.len() - 8..body.len() {
        assert_eq!(verdict(&site, asked, &changed(&body, at)), Err(Fault::Kind("end")), "byte {at}");
    }
    assert_eq!(verdict(&site, asked, &changed(&body, head + 20)), Ok(()), "what lies between is the server's");
}

#[test]
fn a_page_that_is_short_or_cut_off_or_of_another_request_fails() {
    let (site, asked, body) = page_and_answer();
    assert_eq!(verdict(&site, asked, &body[..body.len() - 1]), Err(Fault::Kind("end")));
    assert_eq!(verdict(&site, asked, b""), Err(Fault::Kind("length")));
    let short = [&body[..300], b"</html>\n"].concat();
    assert_eq!(verdict(&site, asked, &short), Err(Fault::Kind("length")), "less than the padding");
    let mut tokens = Tokens::new(2, 0);
    let other = user_in(&site, 0).ask(&site, b"", &mut tokens, &mut Vec::new());
    assert_eq!(verdict(&site, other, &body), Err(Fault::Kind("proof")), "a page that was kept from before");
}

#[test]
fn a_right_file_passes_and_a_wrong_marker_or_length_does_not() {
    let (site, asked, body) = file_and_answer();
    assert_eq!(verdict(&site, asked, &body), Ok(()));
    for block in 0..3 {
        for within in [0, 6, 21, 29, 31] {
            let wrong = changed(&body, block * 4_096 + within);
            assert_eq!(verdict(&site, asked, &wrong), Err(Fault::Kind("marker")), "block {block}, byte {within}");
        }
    }
    assert_eq!(verdict(&site, asked, &body[..8_999]), Err(Fault::Kind("length")));
    assert_eq!(verdict(&site, asked, &[&body[..], b"."].concat()), Err(Fault::Kind("length")));
    assert_eq!(verdict(&site, asked, &content("/files/shop/images/list/01.gif", 9_000)), Err(Fault::Kind("marker")));
    let shifted = [&body[..4_096], &body[..4_096], &body[8_192..]].concat();
    assert_eq!(verdict(&site, asked, &shifted), Err(Fault::Kind("marker")), "a block twice");
}

#[test]
fn files_shorter_than_a_marker_are_checked_as_far_as_they_go() {
    let site = Site::compile(&drive(all_kinds())).unwrap();
    let asked = user_in(&site, 0).ask_embedded(&site, 1, &mut Vec::new());
    let body = content("/files/shop/a.gif", 10);
    assert_eq!(verdict(&site, asked, &body), Ok(()));
    assert_eq!(verdict(&site, asked, &changed(&body, 9)), Err(Fault::Kind("marker")));
}

#[test]
fn only_what_was_asked_for_may_be_unmodified() {
    let (site, page, _) = page_and_answer();
    assert_eq!(page.status(200), Ok(Answer::Body));
    assert_eq!(page.status(304), Err(Fault::Status(304)));
    assert_eq!(page.status(503), Err(Fault::Status(503)));
    assert_eq!(Fault::Status(503).to_string(), "status 503");
    let mut user = user_in(&site, 0);
    let mut seen = [false; 2];
    for _ in 0..100 {
        let mut out = Vec::new();
        let file = user.ask_embedded(&site, 0, &mut out);
        let conditional = String::from_utf8(out).unwrap().contains("If-Modified-Since");
        let expected = if conditional { Ok(Answer::NotModified) } else { Err(Fault::Status(304)) };
        assert_eq!(file.status(304), expected);
        assert_eq!(file.status(200), Ok(Answer::Body));
        seen[usize::from(conditional)] = true;
    }
    assert_eq!(seen, [true; 2]);
}

#[test]
fn without_checks_every_body_passes() {
    let mut drive = drive(all_kinds());
    drive.check = false;
    let site = Site::compile(&drive).unwrap();
    let asked = user_in(&site, 0).ask_embedded(&site, 0, &mut Vec::new());
    assert_eq!(verdict(&site, asked, b"anything"), Ok(()));
}
