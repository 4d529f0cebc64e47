//! What driver and server say to each other before load: who they are and what they are about to do.
//!
//! Both ends are the same program, so there are no versions; what is there tells a foreign program,
//! or a server of another load, from ours before anything is measured.
//!
//! A hello is [`HELLO_LEN`] bytes and its answer [`REPLY_LEN`], integers big-endian. On TCP both are the
//! first bytes of a connection (for connect-request-response of the first connection only), on UDP a
//! datagram each. The first byte of a hello has its high bit set, and that of a request never has.
//! The last bytes of a hello are the trial's token; a server that has one answers nobody who does not show it.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::net::SendFlags;
use tare_model::drive::Wait;
use tare_model::token::Token;

use crate::{DriverError, net};

/// Bytes of a [`Hello`] without the token.
const WORDS_LEN: usize = 24;
/// Bytes of a hello as it is sent, with a token or zeros in its place.
pub const HELLO_LEN: usize = WORDS_LEN + Token::LEN;
/// Bytes of a [`Reply`].
pub const REPLY_LEN: usize = WORDS_LEN;
/// What the datagram that ends a UDP exchange begins with; it is [`HELLO_LEN`] bytes long.
pub(crate) const GOODBYE: [u8; 8] = *b"\xA5tareBYE";
/// Tells a server that sends bulk data to start.
pub(crate) const GO: u8 = b'G';
/// Tells a server that sends bulk data to stop.
pub(crate) const STOP: u8 = b'X';
/// Bytes of a [`closing`] note.
pub(crate) const CLOSING_LEN: usize = 16;

const MAGIC: [u8; 8] = *b"\xA5tare\x00hi";
const CLOSING: [u8; 8] = *b"\xA5tareEND";
/// Longest wait for a server's answer to a hello.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// Request and response on one TCP connection.
    TcpRr = 1,
    /// Request and response in datagrams.
    UdpRr = 2,
    /// A TCP connection for each exchange.
    TcpCrr = 3,
    /// Bulk data from driver to guest.
    BulkToGuest = 4,
    /// Bulk data from guest to driver.
    BulkFromGuest = 5,
}

impl Purpose {
    const ALL: [Self; 5] = [Self::TcpRr, Self::UdpRr, Self::TcpCrr, Self::BulkToGuest, Self::BulkFromGuest];

    const fn words(self) -> &'static str {
        match self {
            Self::TcpRr => "TCP request/response",
            Self::UdpRr => "UDP request/response",
            Self::TcpCrr => "TCP connect/request/response",
            Self::BulkToGuest | Self::BulkFromGuest => "bulk transfer",
        }
    }
}

/// First words of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// What the connection is for.
    pub purpose: Purpose,
    /// Bytes of a request, 0 in bulk transfer.
    pub request_bytes: u32,
    /// Bytes of a response, 0 in bulk transfer.
    pub response_bytes: u32,
    /// Which of the driver's connections this is, from 0.
    pub connection: u32,
}

impl Hello {
    /// As sent, without the token.
    pub fn encode(&self) -> [u8; WORDS_LEN] {
        let mut out = [0; WORDS_LEN];
        out[..8].copy_from_slice(&MAGIC);
        out[8] = self.purpose as u8;
        out[12..16].copy_from_slice(&self.request_bytes.to_be_bytes());
        out[16..20].copy_from_slice(&self.response_bytes.to_be_bytes());
        out[20..24].copy_from_slice(&self.connection.to_be_bytes());
        out
    }

    /// As received; `None` when it is no hello.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; WORDS_LEN] = bytes.try_into().ok()?;
        if bytes[..8] != MAGIC {
            return None;
        }
        Some(Self {
            purpose: Purpose::ALL.into_iter().find(|p| *p as u8 == bytes[8])?,
            request_bytes: word(bytes, 12),
            response_bytes: word(bytes, 16),
            connection: word(bytes, 20),
        })
    }
}

/// The first words of a driver as they are sent, with its token.
pub(crate) fn first_words((hello, token): (&Hello, Option<Token>)) -> [u8; HELLO_LEN] {
    let mut out = [0; HELLO_LEN];
    out[..WORDS_LEN].copy_from_slice(&hello.encode());
    if let Some(token) = token {
        out[WORDS_LEN..].copy_from_slice(token.bits());
    }
    out
}

/// The first words of a driver as they are received, and what it shows for a token; `None` when they are none.
pub(crate) fn heard(bytes: &[u8]) -> Option<(Hello, [u8; Token::LEN])> {
    let (words, shown) = bytes.split_at_checked(WORDS_LEN)?;
    Some((Hello::decode(words)?, shown.try_into().ok()?))
}

/// A server's answer to a hello: what it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// What it serves ([`Purpose::BulkToGuest`] stands for bulk both ways).
    pub serves: Purpose,
    /// Bytes of a request.
    pub request_bytes: u32,
    /// Bytes of a response.
    pub response_bytes: u32,
    /// UDP: the port that serves this driver's connection.
    pub port: u16,
}

impl Reply {
    /// As sent.
    pub fn encode(&self) -> [u8; REPLY_LEN] {
        let hello = Hello {
            purpose: self.serves,
            request_bytes: self.request_bytes,
            response_bytes: self.response_bytes,
            connection: u32::from(self.port),
        };
        hello.encode()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let hello = Hello::decode(bytes)?;
        Some(Self {
            serves: hello.purpose,
            request_bytes: hello.request_bytes,
            response_bytes: hello.response_bytes,
            port: u16::try_from(hello.connection).ok()?,
        })
    }

    /// Whether the server does what the driver is about to ask of it.
    pub fn fits(&self, hello: &Hello) -> bool {
        let bulk = |p| matches!(p, Purpose::BulkToGuest | Purpose::BulkFromGuest);
        if bulk(self.serves) {
            return bulk(hello.purpose);
        }
        self.serves == hello.purpose
            && self.request_bytes == hello.request_bytes
            && self.response_bytes == hello.response_bytes
    }
}

/// What a driver makes of a server's answer.
pub(crate) fn judge(target: SocketAddr, hello: &Hello, answer: &[u8]) -> Result<Reply, DriverError> {
    let Some(reply) = Reply::decode(answer) else {
        let got = if answer.is_empty() {
            "it closed the connection without an answer".to_owned()
        } else {
            format!("it answered {:?}", String::from_utf8_lossy(&answer[..answer.len().min(16)]))
        };
        return Err(DriverError::NotOurs { target, got });
    };
    if reply.fits(hello) {
        return Ok(reply);
    }
    let say = |p: Purpose, request: u32, response: u32| match p {
        Purpose::BulkToGuest | Purpose::BulkFromGuest => p.words().to_owned(),
        _ => format!("{} of {request} and {response} bytes", p.words()),
    };
    let reason = format!(
        "it serves {}, the driver wants {}",
        say(reply.serves, reply.request_bytes, reply.response_bytes),
        say(hello.purpose, hello.request_bytes, hello.response_bytes)
    );
    Err(DriverError::Refused { target, reason })
}

/// Says hello on a fresh TCP connection and sees the server answer that it fits.
pub(crate) fn introduce(
    fd: BorrowedFd<'_>,
    target: SocketAddr,
    words: (&Hello, Option<Token>),
) -> Result<(), DriverError> {
    let failed = |source: rustix::io::Errno| DriverError::Connect { target, source: source.into() };
    net::receive_timeout(fd, Some(ANSWER_TIMEOUT)).map_err(failed)?;
    let not_ours = |what: &str| DriverError::NotOurs { target, got: what.to_owned() };
    net::send_full(fd, &first_words(words), SendFlags::empty())
        .map_err(|_| not_ours("it closed the connection before the first request"))?;
    let mut answer = [0; REPLY_LEN];
    let got = net::receive_full(fd, &mut answer, Wait::Block).map_err(|errno| match errno {
        rustix::io::Errno::AGAIN => not_ours("it accepted the connection but did not answer within 5 s"),
        _ => not_ours("it reset the connection at the first request"),
    })?;
    judge(target, words.0, &answer[..got])?;
    net::receive_timeout(fd, None).map_err(failed)
}

/// The last word on a bulk connection: how many bytes the speaker sent or received.
pub(crate) fn closing(bytes: u64) -> [u8; CLOSING_LEN] {
    let mut out = [0; CLOSING_LEN];
    out[..8].copy_from_slice(&CLOSING);
    out[8..].copy_from_slice(&bytes.to_be_bytes());
    out
}

/// The count in a closing note; `None` when it is none.
pub(crate) fn closing_count(note: &[u8]) -> Option<u64> {
    let note: &[u8; CLOSING_LEN] = note.try_into().ok()?;
    let (magic, count) = note.split_first_chunk::<8>()?;
    (*magic == CLOSING).then(|| u64::from_be_bytes(count.try_into().unwrap_or_default()))
}

fn word(bytes: &[u8; WORDS_LEN], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: Hello = Hello { purpose: Purpose::UdpRr, request_bytes: 128, response_bytes: 1, connection: 70_000 };

    #[test]
    fn a_hello_survives_the_wire_and_noise_is_none() {
        assert_eq!(Hello::decode(&HELLO.encode()), Some(HELLO));
        assert_eq!(Hello::decode(b"HTTP/1.1 400 Bad Request"), None);
        assert_eq!(Hello::decode(&HELLO.encode()[1..]), None);
        assert!(HELLO.encode()[0] & 0x80 != 0);
        assert_eq!(closing_count(&closing(77)), Some(77));
        assert_eq!(closing_count(&[0; CLOSING_LEN]), None);
    }

    #[test]
    fn a_token_goes_with_a_hello_and_zeros_where_there_is_none() {
        let token = Token::new([7; Token::LEN]);
        let sent = first_words((&HELLO, Some(token)));
        assert!(heard(&sent).is_some_and(|(hello, shown)| hello == HELLO && token.is(&shown)));
        assert_eq!(heard(&first_words((&HELLO, None))), Some((HELLO, [0; Token::LEN])));
        assert!(heard(&HELLO.encode()).is_none() && heard(&sent[..HELLO_LEN - 1]).is_none());
    }

    #[test]
    fn a_server_of_another_load_is_refused_with_both_sides_named() {
        let reply = Reply { serves: Purpose::TcpRr, request_bytes: 128, response_bytes: 128, port: 0 };
        let target = SocketAddr::from(([127, 0, 0, 1], 9));
        let refusal = judge(target, &HELLO, &reply.encode()).map(|_| ()).map_err(|e| e.to_string());
        let text = refusal.err().unwrap_or_default();
        assert!(text.contains("TCP request/response of 128 and 128") && text.contains("UDP"), "{text}");
        assert!(matches!(judge(target, &HELLO, b""), Err(DriverError::NotOurs { .. })));
    }
}
