//! Bytes to and from a server: one buffer each way, kept for the life of the connection.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, sockopt};

use super::error::PgError;
use crate::clock::now_ns;
use crate::error::reason_of;
use crate::net;

/// Room for answers at first: those of an order fit, so that each is one call. A longer message makes it grow.
const ROOM: usize = 8 * 1024;
/// Longest message that is taken. What is asked for is far shorter; a longer one is a peer gone mad.
const MESSAGE_MAX: u32 = 64 << 20;

/// A socket with its buffers.
#[derive(Debug)]
pub(crate) struct Wire {
    fd: Arc<OwnedFd>,
    input: Vec<u8>,
    /// What was received and not yet read lies in `input` from here.
    from: usize,
    /// To here.
    to: usize,
    /// What is to be sent next.
    pub output: Vec<u8>,
    /// Moment on the clock after which no call may block; `None`: as long as it takes.
    deadline: Option<u64>,
}

impl Wire {
    pub fn new(fd: OwnedFd) -> Self {
        Self {
            fd: Arc::new(fd),
            input: vec![0; ROOM],
            from: 0,
            to: 0,
            output: Vec::with_capacity(1024),
            deadline: None,
        }
    }

    /// The socket, for one who may have to cut it.
    pub fn socket(&self) -> &Arc<OwnedFd> {
        &self.fd
    }

    /// Bounds everything from now on: `None` takes the bound away.
    pub fn bound(&mut self, timeout: Option<Duration>) -> Result<(), PgError> {
        self.deadline = timeout.map(|t| now_ns().saturating_add(u64::try_from(t.as_nanos()).unwrap_or(u64::MAX)));
        if timeout.is_none() {
            self.wait_at_most(None)?;
        }
        Ok(())
    }

    fn wait_at_most(&self, timeout: Option<Duration>) -> Result<(), PgError> {
        [sockopt::Timeout::Recv, sockopt::Timeout::Send]
            .into_iter()
            .try_for_each(|way| sockopt::set_socket_timeout(&self.fd, way, timeout))
            .map_err(|errno| PgError::broken(format!("a bound of {timeout:?} was refused: {errno}")))
    }

    /// Has the kernel's calls end at the deadline, if there is one.
    #[inline]
    fn mind_the_deadline(&self) -> Result<(), PgError> {
        let Some(deadline) = self.deadline else { return Ok(()) };
        match deadline.saturating_sub(now_ns()) {
            0 => Err(failed(Errno::TIMEDOUT)),
            // The kernel takes microseconds, and 0 for no bound at all.
            left => self.wait_at_most(Some(Duration::from_nanos(left.max(1_000)))),
        }
    }

    /// Sends what is in `output` and empties it.
    #[inline]
    pub fn send(&mut self) -> Result<(), PgError> {
        self.mind_the_deadline()?;
        let sent = net::send_full(self.fd.as_fd(), &self.output, SendFlags::empty());
        self.output.clear();
        sent.or_else(|errno| self.last_words(errno))
    }

    /// Says good-bye, as far as the kernel takes it at once; what was not sent is not sent any more.
    pub fn farewell(&self) {
        const TERMINATE: [u8; 5] = [b'X', 0, 0, 0, 4];
        let _ = rustix::net::send(&self.fd, &TERMINATE, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }

    /// A server that ends a session says why before it closes, and this may still be there to be read: then the next
    /// read tells it, or else that the connection is closed.
    #[cold]
    fn last_words(&self, errno: Errno) -> Result<(), PgError> {
        match recv(&self.fd, &mut [0u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((1.., _)) => Ok(()),
            _ if self.from < self.to => Ok(()),
            _ => Err(failed(errno)),
        }
    }

    /// Whether the next read finds something, the end of the connection included, without waiting.
    pub fn has_input(&self) -> bool {
        let peeked = || recv(&self.fd, &mut [0u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        self.from < self.to || !matches!(peeked(), Err(Errno::AGAIN | Errno::INTR))
    }

    /// The next message: its kind and its body.
    #[inline]
    pub fn message(&mut self) -> Result<(u8, &[u8]), PgError> {
        loop {
            if let Some((&[kind, a, b, c, d], _)) = self.input[self.from..self.to].split_first_chunk::<5>() {
                let length = u32::from_be_bytes([a, b, c, d]);
                if !(4..=MESSAGE_MAX).contains(&length) {
                    return Err(PgError::protocol(&format!("a message of {length} bytes, kind {kind}")));
                }
                let (start, end) = (self.from + 5, self.from + 1 + length as usize);
                if end <= self.to {
                    self.from = end;
                    return Ok((kind, &self.input[start..end]));
                }
                if end > self.input.len() {
                    self.make_room(1 + length as usize);
                }
            }
            self.receive()?;
        }
    }

    /// Moves what is left to the front, so that a message of `bytes` fits. What is full grows, by no more than was received so
    /// far: a length that is only claimed costs nothing.
    #[cold]
    fn make_room(&mut self, bytes: usize) {
        if self.from > 0 {
            self.input.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        let room = self.input.len();
        if self.to == room && room < bytes {
            self.input.resize(bytes.min(2 * room).next_multiple_of(ROOM), 0);
        }
    }

    #[inline]
    fn receive(&mut self) -> Result<(), PgError> {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        } else if self.to == self.input.len() {
            self.make_room(0);
        }
        self.mind_the_deadline()?;
        loop {
            match recv(&self.fd, &mut self.input[self.to..], RecvFlags::empty()) {
                Ok((0, _)) => return Err(PgError::broken("connection closed by the other end")),
                Ok((n, _)) => {
                    self.to += n;
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
    }
}

/// What the kernel said of a connection.
#[cold]
fn failed(errno: Errno) -> PgError {
    PgError::broken(match errno {
        Errno::AGAIN | Errno::TIMEDOUT => "no answer in time".to_owned(),
        other => reason_of(other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    fn pair() -> (Wire, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Wire::new(ours.into()), theirs)
    }

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend((body.len() as u32 + 4).to_be_bytes());
        bytes.extend(body);
        bytes
    }

    #[test]
    fn messages_come_whole_however_the_bytes_do() {
        let long = vec![7u8; 3 * ROOM + 5];
        let mut bytes = message(b'A', b"");
        bytes.extend(message(b'B', &long));
        for _ in 0..2_000 {
            bytes.extend(message(b'C', b"abc"));
        }
        bytes.extend(message(b'Z', b"I"));
        for piece in [1, 7, 4096, ROOM, bytes.len()] {
            let (mut wire, mut peer) = pair();
            let sent = bytes.clone();
            let sender = std::thread::spawn(move || sent.chunks(piece).for_each(|part| peer.write_all(part).unwrap()));
            assert_eq!(wire.message().unwrap(), (b'A', &b""[..]));
            assert_eq!(wire.message().unwrap(), (b'B', &long[..]));
            for _ in 0..2_000 {
                assert_eq!(wire.message().unwrap(), (b'C', &b"abc"[..]));
            }
            assert_eq!(wire.message().unwrap(), (b'Z', &b"I"[..]));
            assert_eq!(wire.message().unwrap_err().message, "connection closed by the other end");
            sender.join().unwrap();
        }
    }

    #[test]
    fn lengths_that_cannot_be_are_refused_and_not_allocated() {
        for length in [0u32, 3, MESSAGE_MAX + 1, u32::MAX] {
            let (mut wire, mut peer) = pair();
            let mut bytes = vec![b'D'];
            bytes.extend(length.to_be_bytes());
            bytes.extend([0; 64]);
            peer.write_all(&bytes).unwrap();
            let error = wire.message().unwrap_err();
            assert!(error.broken && error.message.contains("protocol"), "{error}");
            assert!(wire.input.len() <= ROOM);
        }
    }

    /// A datagram of a pair of sockets is what one call receives: so the bytes come cut exactly there.
    #[test]
    fn messages_may_be_cut_anywhere() {
        let mut bytes = message(b'A', b"ab");
        bytes.extend(message(b'Z', b""));
        bytes.extend(message(b'D', &[3; 40]));
        for first in 1..bytes.len() {
            for second in first + 1..bytes.len() {
                let (ours, theirs) = std::os::unix::net::UnixDatagram::pair().unwrap();
                let mut wire = Wire::new(ours.into());
                for part in [&bytes[..first], &bytes[first..second], &bytes[second..]] {
                    theirs.send(part).unwrap();
                }
                assert_eq!(wire.message().unwrap(), (b'A', &b"ab"[..]), "{first} {second}");
                assert_eq!(wire.message().unwrap(), (b'Z', &b""[..]), "{first} {second}");
                assert_eq!(wire.message().unwrap(), (b'D', &[3; 40][..]), "{first} {second}");
            }
        }
    }

    #[test]
    fn room_grows_with_what_came_and_not_with_what_was_claimed() {
        let (mut wire, mut peer) = pair();
        let bytes = message(b'D', &vec![0; 8 * ROOM]);
        let claimed = MESSAGE_MAX.to_be_bytes();
        peer.write_all(&bytes[..5 + 3 * ROOM]).unwrap();
        wire.bound(Some(Duration::from_millis(20))).unwrap();
        assert!(wire.message().is_err());
        assert!(wire.input.len() <= 6 * ROOM, "{}", wire.input.len());
        wire.bound(None).unwrap();
        peer.write_all(&bytes[5 + 3 * ROOM..]).unwrap();
        assert_eq!(wire.message().unwrap().1.len(), 8 * ROOM);
        peer.write_all(&[&[b'D'][..], &claimed, &[0; 64]].concat()).unwrap();
        wire.bound(Some(Duration::from_millis(20))).unwrap();
        assert!(wire.message().is_err());
        assert!(wire.input.len() <= 10 * ROOM, "{}", wire.input.len());
    }

    #[test]
    fn a_peer_that_stops_in_a_message_is_waited_for_no_longer_than_asked() {
        let (mut wire, mut peer) = pair();
        peer.write_all(&message(b'D', b"abcdef")[..7]).unwrap();
        wire.bound(Some(Duration::from_millis(20))).unwrap();
        let before = now_ns();
        assert_eq!(wire.message().unwrap_err().message, "no answer in time");
        assert!(now_ns() - before >= 19_000_000);
        drop(peer);
        wire.bound(None).unwrap();
        assert_eq!(wire.message().unwrap_err().message, "connection closed by the other end");
    }

    #[test]
    fn the_last_words_of_a_server_are_read_though_sending_fails() {
        let (mut wire, mut peer) = pair();
        peer.write_all(&message(b'E', b"C57P01\0\0")).unwrap();
        drop(peer);
        wire.output.extend(b"SELECT");
        wire.send().unwrap();
        assert_eq!(wire.message().unwrap().0, b'E');
        wire.output.extend(b"SELECT");
        assert!(wire.send().unwrap_err().broken);
    }
}
