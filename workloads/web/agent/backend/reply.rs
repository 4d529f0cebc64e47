//! What the backend answers: a pure function of the salt and the query.

use crate::web::proof::proof;

use super::commands::{self, Command};
use super::fields::Check;
use crate::session::draw::Dice;
use crate::web::digits;

/// Place for the head before the body, whose length is known only once the body is there.
const ROOM: usize = 96;
const BEFORE: &[u8] = b"<html><head><title>backend</title></head><body><pre>\n";
const AFTER: &[u8] = b"\n</pre></body></html>\n";
/// Values that a reset carries; they are its fields as well.
const RESET: usize = 6;

/// Where replies are put together, one a connection.
#[derive(Debug)]
pub(super) struct Reply {
    text: Vec<u8>,
    from: usize,
    /// Whether the query had a command that there is.
    pub known: bool,
}

/// What a query asks for.
enum Asked<'a> {
    Reset(&'a [u8]),
    Command(&'static Command, Option<Check<'a>>),
}

impl Reply {
    pub fn new() -> Self {
        Self { text: Vec::with_capacity(4_096), from: 0, known: false }
    }

    /// Puts the answer to a query together.
    pub fn make(&mut self, salt: u64, query: &[u8]) {
        let text = &mut self.text;
        text.clear();
        text.resize(ROOM, 0);
        text.extend_from_slice(BEFORE);
        let asked = parse(query);
        self.known = asked.is_some();
        match asked {
            Some(asked) => {
                text.extend_from_slice(b"0\n");
                let proof = proof(salt, query);
                text.extend_from_slice(&proof);
                fields(&asked, proof, text);
            }
            // No proof either: a page must not pass with a command that there is not.
            None => text.extend_from_slice(b"1\n"),
        }
        text.extend_from_slice(AFTER);
        self.from = head(text);
    }

    /// The whole answer, head and body.
    pub fn bytes(&self) -> &[u8] {
        &self.text[self.from..]
    }
}

/// Writes the head before the body and returns where it begins.
fn head(text: &mut Vec<u8>) -> usize {
    let body = text.len() - ROOM;
    let end = text.len();
    text.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: ");
    digits(text, body as u64, 1);
    text.extend_from_slice(b"\r\n\r\n");
    let from = ROOM - (text.len() - end);
    text.copy_within(end.., from);
    text.truncate(end);
    from
}

fn parse(query: &[u8]) -> Option<Asked<'_>> {
    let mut parts = query.splitn(3, |byte| *byte == b'&');
    let site = commands::site(parts.next()?)?;
    let number = decimal(parts.next()?)?;
    let values = parts.next().unwrap_or_default();
    if number == 0 {
        let count = values.split(|byte| *byte == b'&').count();
        return (count == RESET).then_some(Asked::Reset(values));
    }
    let command = site.get(number)?;
    let mut values = values.split(|byte| *byte == b'&');
    let check = match (values.next(), values.next()) {
        (Some(user), Some(check)) if all_digits(user, 10) && all_digits(check, 6) => {
            Some(Check { site: site.site, user, check })
        }
        _ => None,
    };
    let needs = command.fields.iter().any(|group| group.1.iter().any(|kind| kind.needs_check()));
    (check.is_some() || !needs).then_some(Asked::Command(command, check))
}

fn all_digits(text: &[u8], count: usize) -> bool {
    text.len() == count && text.iter().all(u8::is_ascii_digit)
}

/// A number of a few digits.
fn decimal(text: &[u8]) -> Option<u16> {
    let plain = !text.is_empty() && text.len() <= 4 && text.iter().all(u8::is_ascii_digit);
    plain.then(|| text.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0')))
}

/// Appends the fields after the proof, from which they are made up.
fn fields(asked: &Asked<'_>, proof: [u8; 16], out: &mut Vec<u8>) {
    match asked {
        Asked::Reset(values) => {
            out.push(b'&');
            out.extend_from_slice(values);
        }
        Asked::Command(command, check) => {
            let seed = proof.iter().fold(0, |seed, digit| seed << 4 | u64::from((digit & 15) + (digit >> 6) * 9));
            let mut dice = Dice::new(seed, 0);
            for group in command.fields {
                for kind in (0..group.0).flat_map(|_| group.1) {
                    out.push(b'&');
                    kind.write(&mut dice, *check, out);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(salt: u64, query: &str) -> String {
        let mut reply = Reply::new();
        reply.make(salt, query.as_bytes());
        String::from_utf8(reply.bytes().to_vec()).unwrap()
    }

    /// Status and fields.
    fn lines(salt: u64, query: &str) -> (String, Vec<String>) {
        let text = answer(salt, query);
        let body = text.split_once("\r\n\r\n").unwrap().1;
        let inner = body.strip_prefix("<html><head><title>backend</title></head><body><pre>\n").unwrap();
        let inner = inner.strip_suffix("\n</pre></body></html>\n").unwrap();
        let (status, fields) = inner.split_once('\n').unwrap();
        (status.to_owned(), fields.split('&').map(str::to_owned).collect())
    }

    #[test]
    fn the_stated_length_is_that_of_the_body() {
        for query in ["banking&2&0000000001&00", "banking&99", "", "support&5&0&0&00"] {
            let text = answer(1, query);
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"), "{head}");
            let length = head.split_once("Content-Length: ").unwrap().1;
            assert_eq!(length.parse::<usize>().unwrap(), body.len());
        }
    }

    #[test]
    fn a_reply_begins_with_the_proof_of_its_query_and_has_every_field() {
        for commands in commands::SITES {
            for command in commands.commands {
                let query = format!("{}&{}&0000012345&123450&00112233aabbccdd", commands.site, command.number);
                let (status, fields) = lines(77, &query);
                let expected: usize = command.fields.iter().map(|group| usize::from(group.0) * group.1.len()).sum();
                assert_eq!((status.as_str(), fields.len()), ("0", 1 + expected), "{query}");
                assert_eq!(fields[0].as_bytes(), proof(77, query.as_bytes()));
            }
        }
    }

    #[test]
    fn equal_queries_have_equal_replies_and_others_do_not() {
        let query = "banking&4&0000000001&000012&0123456789abcdef";
        assert_eq!(answer(5, query), answer(5, query));
        let fields = |salt, query: &str| lines(salt, query).1[1..].to_vec();
        assert_ne!(fields(5, query)[0], fields(6, query)[0], "the account, by salt");
        assert_ne!(fields(5, query)[0], fields(5, "banking&4&0000000001&000012&0123456789abcdee")[0]);
        assert_eq!(fields(5, query)[1], "/files/banking/checks/0000000001/000012-front.gif");
        assert_eq!(fields(5, query)[2], "/files/banking/checks/0000000001/000012-back.gif");
    }

    #[test]
    fn a_reset_is_answered_with_what_it_carries() {
        let (status, fields) = lines(1, "banking&0&1133000000&1&2000&100&checks&1");
        assert_eq!((status.as_str(), fields.len()), ("0", 7));
        assert_eq!(fields[1..], ["1133000000", "1", "2000", "100", "checks", "1"]);
    }

    #[test]
    fn what_is_no_command_has_status_1_and_no_proof() {
        let wrong = [
            "",
            "&",
            "banking",
            "banking&",
            "banking&16&1",
            "banking&x",
            "bank&1&0000000001",
            "banking&00001&1",
            "banking&0&1&2",
            "banking&4&0000000001",
            "banking&4&../../etc&000001&00",
            "support&7",
        ];
        for query in wrong {
            let (status, fields) = lines(1, query);
            assert_eq!((status.as_str(), fields), ("1", vec![String::new()]), "{query}");
        }
    }

    #[test]
    #[ignore = "measures; run with --release -- --ignored --nocapture"]
    fn cost_of_a_reply() {
        let mut reply = Reply::new();
        let began = std::time::Instant::now();
        let count = 200_000;
        for n in 0..count {
            let query = b"banking&2&0000000001&0123456789abcdef";
            reply.make(n, std::hint::black_box(query));
        }
        println!("a reply of {} bytes: {} ns", reply.bytes().len(), began.elapsed().as_nanos() / u128::from(count));
        assert!(reply.known);
    }
}
