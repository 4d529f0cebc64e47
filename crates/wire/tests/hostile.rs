//! A controller's link against agents that do their worst: every call ends in time, with a reason, and what they send
//! costs no more than it may.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{TIMEOUT, link, open};
use tare_model::text::readable;
use tare_wire::{
    AgentFacts, CHUNK_BYTES, FromAgent, Greeting, Link, MAX_FRAME_BYTES, PROTOCOL, Reply, Request, ToAgent, WireError,
    copy_in, copy_out, read_frame, write_frame,
};

/// For what will not come.
const SHORT: Duration = Duration::from_millis(100);

/// A link to an agent that answers every request so.
fn answering(mut answer: impl FnMut(Request) -> Result<Reply, String> + Send + 'static) -> Link {
    link(move |mut stream| {
        while let Ok(Some(ToAgent { id, request })) = read_frame::<ToAgent>(&mut stream) {
            let result = answer(request);
            if write_frame(&mut stream, &FromAgent { id, result }).is_err() {
                return;
            }
        }
    })
}

/// A link to an agent that sends these bytes again and again from the first request on, until nobody takes them.
fn sending(bytes: Vec<u8>) -> Link {
    link(move |mut stream| {
        let _ = read_frame::<ToAgent>(&mut stream);
        while stream.write_all(&bytes).is_ok() {}
    })
}

fn framed(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_le_bytes(), bytes].concat()
}

fn why_gone(link: &Link) -> String {
    match link.call(Request::Facts, TIMEOUT) {
        Err(WireError::Gone { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn frames_that_are_too_long_or_are_none_end_the_link_with_the_reason() {
    let announced = (MAX_FRAME_BYTES as u32 + 1).to_le_bytes().to_vec();
    for (bytes, reason) in [
        (announced, "67108865 bytes was announced"),
        (framed(&[0xff; 64]), "could not be decoded"),
        (framed(&[]), "could not be decoded"),
        // A hello with a byte too many.
        (framed(&[1, 0, 0, 0, 0, 0, 0]), "could not be decoded"),
        (b"Segmentation fault (core dumped)\n".to_vec(), "was announced"),
    ] {
        let link = sending(bytes);
        let error = why_gone(&link);
        assert!(error.contains(reason), "{error}");
        assert!(link.ended().is_some());
        assert!(matches!(link.call(Request::Clock, TIMEOUT), Err(WireError::Gone { .. })));
    }
}

#[test]
fn an_answer_that_nobody_asked_for_ends_the_link_and_a_flood_of_them_is_not_taken_in() {
    let (stopped, seen) = std::sync::mpsc::channel();
    let link = link(move |mut stream| {
        let _ = read_frame::<ToAgent>(&mut stream);
        let flood = FromAgent { id: 4711, result: Ok(Reply::Done) };
        while write_frame(&mut stream, &flood).is_ok() {}
        stopped.send(()).unwrap();
    });
    let error = why_gone(&link);
    assert!(error.contains("not made, number 4711"), "{error}");
    drop(link);
    seen.recv_timeout(TIMEOUT).expect("the flood meets a closed channel");

    let mut bytes = Vec::new();
    write_frame(&mut bytes, &FromAgent { id: 2, result: Ok(Reply::Done) }).unwrap();
    let link = sending(bytes);
    assert_eq!(link.call(Request::Facts, TIMEOUT).unwrap(), Reply::Done);
    let error = why_gone(&link);
    assert!(error.contains("not made, number 2"), "answered twice: {error}");
}

#[test]
fn a_late_answer_is_no_unasked_one() {
    let link = link(move |mut stream| {
        let late: ToAgent = read_frame(&mut stream).unwrap().unwrap();
        let next: ToAgent = read_frame(&mut stream).unwrap().unwrap();
        for id in [late.id, next.id] {
            write_frame(&mut stream, &FromAgent { id, result: Ok(Reply::Done) }).unwrap();
        }
        let _ = read_frame::<ToAgent>(&mut stream);
    });
    assert!(matches!(link.call(Request::Facts, SHORT), Err(WireError::Timeout { .. })));
    assert_eq!(link.call(Request::Facts, TIMEOUT).unwrap(), Reply::Done);
    assert_eq!(link.ended(), None);
}

#[test]
fn a_greeting_that_never_ends_is_given_up() {
    let began = Instant::now();
    let drip = |mut stream: UnixStream| {
        for byte in b"TARE".iter().chain(std::iter::repeat(&0)) {
            if stream.write_all(&[*byte]).is_err() {
                return;
            }
            std::thread::sleep(SHORT);
        }
    };
    let error = open(drip, 3 * SHORT).unwrap_err();
    assert!(matches!(error, WireError::Timeout { request: "greet", .. }), "{error}");
    assert!(began.elapsed() < TIMEOUT);
}

#[test]
fn a_greeting_of_escape_sequences_is_reported_without_them() {
    let agent = |mut stream: UnixStream| {
        let version = "\u{1b}[2J\u{7}".repeat(50);
        Greeting { protocol: PROTOCOL + 1, version }.write(&mut stream).unwrap();
        let _ = stream.read(&mut [0; 100]);
    };
    let error = open(agent, TIMEOUT).unwrap_err().to_string();
    assert!(error.contains(&format!("protocol {}", PROTOCOL + 1)) && error.len() < 2000, "{error}");
    assert_eq!(readable(&error), error);
}

#[test]
fn a_frame_that_would_swell_in_memory_is_refused() {
    // Facts with neither names nor values: two bytes each on the wire, 48 in memory.
    let count = 16 << 20;
    let mut head = Vec::new();
    let none = Reply::Facts(AgentFacts { facts: Vec::new() });
    write_frame(&mut head, &FromAgent { id: 2, result: Ok(none) }).unwrap();
    let mut bytes = head[4..head.len() - 1].to_vec();
    let mut left: u32 = count;
    while left >= 0x80 {
        bytes.push(left as u8 | 0x80);
        left >>= 7;
    }
    bytes.push(left as u8);
    bytes.resize(bytes.len() + 2 * count as usize, 0);
    assert!(bytes.len() < MAX_FRAME_BYTES);
    let error = why_gone(&sending(framed(&bytes)));
    assert!(error.contains("would take more than"), "{error}");
}

#[test]
fn an_agent_that_does_not_read_holds_nobody_up() {
    let link = link(|stream| {
        std::thread::sleep(TIMEOUT);
        drop(stream);
    });
    let began = Instant::now();
    let large = vec![7; 20 * CHUNK_BYTES];
    let error = copy_in(&link, &mut large.as_slice(), "/tmp/file", 0o600, SHORT).unwrap_err();
    assert!(matches!(error, WireError::Timeout { .. }), "{error}");
    // Requests are not kept for it without end.
    let refused = (0..200).find_map(|_| match link.call(Request::Clock, Duration::ZERO) {
        Err(WireError::Gone { reason }) => Some(reason),
        _ => None,
    });
    assert!(refused.is_some_and(|reason| reason.contains("stopped reading")));
    assert!(began.elapsed() < TIMEOUT);
}

#[test]
fn text_of_answers_and_refusals_can_be_shown() {
    const EVIL: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}fdp.exe\r";
    let link = answering(|request| match request {
        Request::Facts => Ok(Reply::Facts(AgentFacts { facts: vec![(EVIL.into(), EVIL.into())] })),
        _ => Err(EVIL.into()),
    });
    let Reply::Facts(facts) = link.call(Request::Facts, TIMEOUT).unwrap() else { panic!("other facts") };
    let (name, value) = &facts.facts[0];
    let refused = link.call(Request::Clock, TIMEOUT).unwrap_err().to_string();
    for text in [name, value, &refused] {
        assert!(text.contains("owned") && readable(text) == **text, "{text:?}");
    }
}

/// Copies out of a guest whose agent answers with such parts, over a file that is there already.
fn steal(part: impl Fn(u64, u64) -> Reply + Send + 'static) -> (Result<u64, WireError>, Vec<u8>) {
    let place = tempfile::tempdir().unwrap();
    let local = place.path().join("file");
    std::fs::write(&local, "before").unwrap();
    let link = answering(move |request| match request {
        Request::GetFile { offset, limit_bytes, .. } => Ok(part(offset, limit_bytes)),
        _ => Err("no".into()),
    });
    let result = copy_out(&link, "/etc/motd", &local, 1_000_000, TIMEOUT);
    let names: Vec<_> = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["file"], "something was left beside it");
    (result, std::fs::read(&local).unwrap())
}

#[test]
fn a_file_without_end_or_with_a_false_length_is_not_kept() {
    let file = |bytes: Vec<u8>, total_bytes| Reply::File { bytes, total_bytes };
    let (result, kept) = steal(move |_, limit| file(vec![1; limit as usize], 3));
    assert!(matches!(result, Err(WireError::TooLarge { limit_bytes: 1_000_000, .. })), "{result:?}");
    assert_eq!(kept, b"before");
    let (result, _) = steal(move |_, _| file(Vec::new(), u64::MAX));
    assert!(matches!(result, Err(WireError::TooLarge { .. })), "{result:?}");
    let (result, _) = steal(move |_, limit| file(vec![1; limit as usize + 1], 3));
    assert!(matches!(result, Err(WireError::Unexpected { .. })), "{result:?}");
    let (result, _) = steal(|_, _| Reply::Done);
    assert!(matches!(result, Err(WireError::Unexpected { .. })), "{result:?}");
    // An honest one, byte by byte, without a length: like the files of /proc.
    let text = b"hello";
    let (result, kept) = steal(move |offset, _| file(text[offset as usize..].iter().take(1).copied().collect(), 0));
    assert_eq!((result.unwrap(), kept), (5, text.to_vec()));
}

#[test]
fn a_link_in_place_of_the_local_file_is_replaced_and_not_followed() {
    let place = tempfile::tempdir().unwrap();
    let (local, victim) = (place.path().join("file"), place.path().join("victim"));
    std::fs::write(&victim, "untouched").unwrap();
    std::os::unix::fs::symlink(&victim, &local).unwrap();
    let link = answering(|request| match request {
        Request::GetFile { offset: 0, .. } => Ok(Reply::File { bytes: b"new".to_vec(), total_bytes: 3 }),
        _ => Ok(Reply::File { bytes: Vec::new(), total_bytes: 3 }),
    });
    copy_out(&link, "/file", &local, 100, TIMEOUT).unwrap();
    assert_eq!(std::fs::read(&victim).unwrap(), b"untouched");
    assert_eq!(std::fs::read(&local).unwrap(), b"new");
    let nowhere = copy_out(&link, "/file", Path::new("/"), 100, TIMEOUT).unwrap_err();
    assert!(nowhere.to_string().contains("names no file"), "{nowhere}");
}
