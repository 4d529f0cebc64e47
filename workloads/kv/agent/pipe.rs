//! A connection to a server: requests that are sent together, and answers that are taken from it one by one.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use tare_model::drive::{SocketOptions, Wait};

use super::protocol::Fault;
use super::spec::Protocol;
use crate::clock::now_ns;
use crate::error::reason_of;
use crate::{DriverError, net};

/// Bytes that one receive takes at least room for.
const ROOM_BYTES: usize = 16 << 10;
/// How often somebody who waits looks whether it has taken too long.
const LOOK: Duration = Duration::from_millis(200);

/// Why nothing more comes of a connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    /// The kernel says so.
    #[error("{}", reason_of(*.0))]
    Socket(Errno),
    /// The server ended it.
    #[error("connection closed by the other end")]
    Closed,
    /// It took too long, or somebody wished to stop.
    #[error("no answer in time")]
    TooLong,
    /// More came than was asked for.
    #[error("it sent more than it was asked for")]
    TooMuch,
    /// What came is no answer.
    #[error("{0}")]
    Fault(#[from] Fault),
}

/// How long somebody waits who has no supervisor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit<'a> {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub until_ns: u64,
    /// Ends it early.
    pub cancel: &'a AtomicBool,
}

impl Limit<'_> {
    fn holds(&self) -> Result<(), Broken> {
        let over = now_ns() >= self.until_ns || self.cancel.load(Ordering::Relaxed);
        if over { Err(Broken::TooLong) } else { Ok(()) }
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Pipe {
    /// Its socket.
    pub socket: Arc<OwnedFd>,
    /// What is sent next.
    pub out: Vec<u8>,
    input: Vec<u8>,
    /// What of `input` has come and was not taken.
    from: usize,
    to: usize,
    /// Most bytes of answers that may wait to be taken.
    most: usize,
}

impl Pipe {
    /// Connects, and sees the server answer a greeting, which it does not count as a request for a key. At most so many bytes of answers
    /// can ever have been asked for and not taken.
    ///
    /// # Errors
    /// When nobody listens there, or who does speaks another protocol.
    pub fn open(
        target: SocketAddr,
        protocol: Protocol,
        options: &SocketOptions,
        most: usize,
        limit: Limit<'_>,
    ) -> Result<Self, DriverError> {
        let left = Duration::from_nanos(limit.until_ns.saturating_sub(now_ns()));
        let socket = net::connect_tcp(target, options, true, left)?;
        let mut pipe =
            Self { socket: socket.into(), out: Vec::new(), input: vec![0; ROOM_BYTES], from: 0, to: 0, most };
        let (greeting, answer): (&[u8], &[u8]) = match protocol {
            Protocol::Redis => (b"PING\r\n", b"+PONG\r\n"),
            Protocol::Memcached => (b"version\r\n", b"VERSION "),
        };
        pipe.out.extend_from_slice(greeting);
        let line =
            pipe.bounded(true).and_then(|()| pipe.line(limit)).and_then(|line| pipe.bounded(false).map(|()| line));
        let wrong = |what: String| {
            let remedy = "check which program listens there, and that `server` names it; one that asks for a password cannot be driven";
            Err(DriverError::invalid(
                format!("the server at {target} does not answer as {protocol:?} does: {what}"),
                remedy,
            ))
        };
        match line {
            Ok(line) if line.starts_with(answer) => Ok(pipe),
            Ok(line) => wrong(format!("\"{}\"", line.escape_ascii())),
            Err(broken) => wrong(broken.to_string()),
        }
    }

    /// Has receives look up from time to time, or wait for as long as it takes.
    pub fn bounded(&self, on: bool) -> Result<(), Broken> {
        net::receive_timeout(self.socket.as_fd(), on.then_some(LOOK)).map_err(Broken::Socket)
    }

    /// Sends what is to be sent and takes the first line of the answer.
    fn line(&mut self, limit: Limit<'_>) -> Result<Vec<u8>, Broken> {
        self.send(Some(limit))?;
        loop {
            let came = &self.input[self.from..self.to];
            if let Some(end) = came.iter().position(|byte| *byte == b'\n') {
                let line = came[..=end].to_vec();
                self.take(line.len());
                return Ok(line);
            }
            if came.len() >= ROOM_BYTES {
                return Err(Broken::Closed);
            }
            self.receive(Some(limit))?;
        }
    }

    /// Sends all of `out`. A server may not read on before its answers are taken, so what comes meanwhile is taken in.
    #[inline]
    pub fn send(&mut self, limit: Option<Limit<'_>>) -> Result<(), Broken> {
        let mut sent = 0;
        while sent < self.out.len() {
            match send(&self.socket, &self.out[sent..], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(n) => sent += n,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(limit)?,
                Err(errno) => return Err(Broken::Socket(errno)),
            }
        }
        Ok(())
    }

    /// Waits until something can be sent; takes in what comes.
    #[cold]
    fn wait(&mut self, limit: Option<Limit<'_>>) -> Result<(), Broken> {
        let look = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
        let events = {
            let mut waiting = [PollFd::new(&self.socket, PollFlags::IN | PollFlags::OUT)];
            match poll(&mut waiting, limit.map(|_| &look)) {
                Ok(_) | Err(Errno::INTR) => waiting[0].revents(),
                Err(errno) => return Err(Broken::Socket(errno)),
            }
        };
        if events.contains(PollFlags::IN) { self.receive(limit) } else { limit.map_or(Ok(()), |limit| limit.holds()) }
    }

    /// Receives once, waiting for it.
    #[inline]
    pub fn receive(&mut self, limit: Option<Limit<'_>>) -> Result<(), Broken> {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        } else if self.input.len() - self.to < ROOM_BYTES / 4 {
            self.make_room()?;
        }
        loop {
            match net::receive(self.socket.as_fd(), &mut self.input[self.to..], Wait::Block) {
                Ok(0) => return Err(Broken::Closed),
                Ok(n) => {
                    self.to += n;
                    return Ok(());
                }
                Err(Errno::AGAIN) => limit.ok_or(Broken::TooLong)?.holds()?,
                Err(errno) => return Err(Broken::Socket(errno)),
            }
        }
    }

    /// Moves what was not taken to the front, and doubles the room where most of it is full.
    #[cold]
    fn make_room(&mut self) -> Result<(), Broken> {
        self.input.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        if self.to > self.most {
            return Err(Broken::TooMuch);
        }
        if self.to > self.input.len() / 2 {
            self.input.resize(self.input.len() * 2, 0);
        }
        Ok(())
    }

    /// What has come and was not taken.
    #[inline]
    pub fn came(&self) -> &[u8] {
        &self.input[self.from..self.to]
    }

    /// Takes so many of the bytes that came.
    #[inline]
    pub const fn take(&mut self, bytes: usize) {
        self.from += bytes;
    }
}
