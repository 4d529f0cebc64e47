//! Answers that are right and wrong, whole and in pieces.
use super::*;

const BODY: &[u8] = b"order 7: accepted, thank you";

fn must(edit: impl FnOnce(&mut Expected)) -> Expected {
    let mut must = Expected::default();
    edit(&mut must);
    must
}

/// What is said of this answer whose body comes in pieces of so many bytes.
fn judged(must: &Expected, status: u16, step: usize) -> Result<(), Fault> {
    let mut judge = Judge::default();
    // What came before must not matter.
    judge.head(must, 418);
    judge.body(must, b"accepted? no");
    assert!(judge.end(must).is_err());
    judge.clear();
    judge.head(must, status);
    BODY.chunks(step).for_each(|piece| judge.body(must, piece));
    judge.end(must)
}

#[test]
fn an_answer_is_right_in_whatever_pieces_it_comes() {
    let digest: [u8; 32] = Sha256::digest(BODY).into();
    let sound = must(|must| {
        (must.status, must.bytes, must.sha256) = (Some(201), Some(BODY.len() as u64), Some(digest));
        must.contains = b"accepted".to_vec();
    });
    for step in 1..=BODY.len() {
        assert_eq!(judged(&sound, 201, step), Ok(()), "in pieces of {step}");
        let other = must(|must| must.contains = b"acceptable".to_vec());
        assert_eq!(judged(&other, 200, step), Err(TEXT), "in pieces of {step}");
        for text in [BODY, b"o", b"u", b"you", b"order 7"] {
            let found = must(|must| must.contains = text.to_vec());
            assert_eq!(judged(&found, 200, step), Ok(()), "{} in pieces of {step}", text.escape_ascii());
        }
    }
}

#[test]
fn each_thing_that_can_be_wrong_is_named() {
    assert_eq!(judged(&Expected::default(), 204, 9), Ok(()));
    assert_eq!(judged(&Expected::default(), 302, 9), Err(Fault::Status(302)));
    assert_eq!(judged(&must(|must| must.status = Some(404)), 404, 9), Ok(()));
    assert_eq!(judged(&must(|must| must.status = Some(201)), 200, 9), Err(Fault::Status(200)));
    assert_eq!(judged(&must(|must| must.bytes = Some(5)), 200, 9), Err(LENGTH));
    assert_eq!(judged(&must(|must| must.sha256 = Some([7; 32])), 200, 9), Err(DIGEST));
}

#[test]
fn what_is_wrong_is_shown_with_the_beginning_of_the_body() {
    let must = must(|must| must.status = Some(201));
    let mut judge = Judge::default();
    judge.head(&must, 500);
    judge.body(&must, b"no such table:\n");
    judge.body(&must, &[b'x'; 500]);
    let words = judge.words(&must);
    assert!(words.starts_with("status 500 in place of 201; it begins \"no such table:\\nx"), "{words}");
    assert!(words.len() < 250 && !judge.is_busy(), "{words}");
    judge.head(&must, 503);
    assert!(judge.is_busy());
}
