//! The connection to the application: a line is asked, a line is answered, and nothing that comes is trusted.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tare_model::drive::SocketOptions;

use super::fault::{JavaError, JavaFault, quoted};
use crate::clock::{now_ns, sleep_until};
use crate::{DriverError, net};

/// Longest line that is read, bytes.
const LINE_MAX: usize = 4 << 10;
/// How often a thread that waits for an answer looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(20);
/// Longest wait for a connection to open, before another is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// First and longest pause before a refused connection is tried again.
const PAUSE_NS: (u64, u64) = (1_000_000, 50_000_000);
/// How long an application that is left in the midst of its work is listened to, so that it hears of it.
const FAREWELL: Duration = Duration::from_millis(50);

/// A connection to an application.
#[derive(Debug)]
pub(super) struct Client {
    target: SocketAddr,
    stream: TcpStream,
    timeout: Duration,
    /// What was asked last.
    asked: String,
    /// Received and not yet read.
    held: Vec<u8>,
    /// How much of it was looked at for the end of a line.
    searched: usize,
}

/// An answer, and when it came about.
#[derive(Debug)]
pub(super) struct Answer {
    /// The line without its end.
    pub line: Vec<u8>,
    /// Just before it was asked, CLOCK_MONOTONIC nanoseconds.
    pub asked_ns: u64,
    /// When it was there.
    pub answered_ns: u64,
}

impl Answer {
    /// The moment in the middle, which is at most half the round trip off the one that the application answered at.
    pub const fn at_ns(&self) -> u64 {
        self.asked_ns + self.round_trip_ns() / 2
    }

    /// How long it took.
    pub const fn round_trip_ns(&self) -> u64 {
        self.answered_ns.saturating_sub(self.asked_ns)
    }
}

impl Client {
    /// Connects, trying again within `timeout` while nobody listens yet.
    pub fn connect(
        target: SocketAddr,
        options: &SocketOptions,
        timeout: Duration,
        cancel: &AtomicBool,
    ) -> Result<Self, DriverError> {
        let deadline = now_ns().saturating_add(nanos(timeout));
        let mut pause = PAUSE_NS.0;
        let fd = loop {
            if cancel.load(Ordering::Relaxed) {
                return Err(DriverError::Cancelled);
            }
            let left = Duration::from_nanos(deadline.saturating_sub(now_ns()));
            match net::connect_tcp(target, options, true, left.min(CONNECT_TIMEOUT)) {
                Ok(fd) => break fd,
                Err(DriverError::Connect { source, .. })
                    if may_pass(&source) && now_ns().saturating_add(pause) < deadline =>
                {
                    sleep_until(now_ns() + pause, cancel);
                    pause = (2 * pause).min(PAUSE_NS.1);
                }
                Err(error) => return Err(error),
            }
        };
        let stream = TcpStream::from(fd);
        let asked = "nothing yet".to_owned();
        let client = Self { target, stream, timeout, asked, held: Vec::new(), searched: 0 };
        // A zero would mean no limit.
        let limit = timeout.max(LOOK);
        client.stream.set_read_timeout(Some(LOOK)).map_err(|e| client.fault(JavaFault::Broken(e)))?;
        client.stream.set_write_timeout(Some(limit)).map_err(|e| client.fault(JavaFault::Broken(e)))?;
        Ok(client)
    }

    /// The socket.
    pub const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// An error with what was asked last.
    pub fn fault(&self, fault: JavaFault) -> DriverError {
        DriverError::application(JavaError { target: self.target, asked: self.asked.clone(), fault })
    }

    /// The error of an answer that does not fit.
    pub fn unfit(&self, got: &[u8], due: &'static str) -> DriverError {
        let refused = got.strip_prefix(b"error ");
        self.fault(refused.map_or_else(|| JavaFault::unfit(got, due), |reason| JavaFault::Refused(quoted(reason))))
    }

    /// Asks, and waits for the answer of one line.
    pub fn ask(&mut self, question: &str, cancel: &AtomicBool) -> Result<Answer, DriverError> {
        let asked_ns = self.send(question)?;
        let line = self.line(asked_ns.saturating_add(nanos(self.timeout)), cancel)?;
        Ok(Answer { line, asked_ns, answered_ns: now_ns() })
    }

    /// Asks what is answered by `due` alone.
    pub fn order(&mut self, question: &str, due: &'static str, cancel: &AtomicBool) -> Result<(), DriverError> {
        let answer = self.ask(question, cancel)?;
        if answer.line == due.trim_matches('`').as_bytes() { Ok(()) } else { Err(self.unfit(&answer.line, due)) }
    }

    /// Asks, and gives each line of the answer until one that is a dot alone; at most `most` of them.
    pub fn ask_lines(
        &mut self,
        question: &str,
        most: usize,
        cancel: &AtomicBool,
        mut take: impl FnMut(&[u8]) -> Result<(), JavaFault>,
    ) -> Result<(), DriverError> {
        let deadline = self.send(question)?.saturating_add(nanos(self.timeout));
        for _ in 0..=most {
            let line = self.line(deadline, cancel)?;
            if line == b"." {
                return Ok(());
            }
            if line.starts_with(b"error ") {
                return Err(self.unfit(&line, "the result"));
            }
            take(&line).map_err(|fault| self.fault(fault))?;
        }
        Err(self.fault(JavaFault::TooLong { limit: most, of: "lines" }))
    }

    fn send(&mut self, question: &str) -> Result<u64, DriverError> {
        question.clone_into(&mut self.asked);
        if let Some(extra) = self.held.first() {
            // It would be taken for the answer to this.
            return Err(self.unfit(&[*extra], "nothing"));
        }
        let asked_ns = now_ns();
        // In one piece: the other end is to be woken once.
        let sent = self.stream.write_all(format!("{question}\n").as_bytes());
        sent.map_err(|error| self.fault(broken(error)))?;
        Ok(asked_ns)
    }

    /// The next line, which must be there at `deadline`.
    fn line(&mut self, deadline: u64, cancel: &AtomicBool) -> Result<Vec<u8>, DriverError> {
        loop {
            if let Some(end) = self.held[self.searched..].iter().position(|&byte| byte == b'\n') {
                let end = self.searched + end;
                let mut line: Vec<u8> = self.held.drain(..=end).collect();
                self.searched = 0;
                line.pop();
                line.pop_if(|last| *last == b'\r');
                return if line.len() > LINE_MAX { Err(self.too_long()) } else { Ok(line) };
            }
            self.searched = self.held.len();
            if self.held.len() > LINE_MAX {
                return Err(self.too_long());
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(DriverError::Cancelled);
            }
            if now_ns() >= deadline {
                return Err(self.fault(JavaFault::Silent(self.timeout)));
            }
            let mut piece = [0; 16 << 10];
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(self.fault(JavaFault::Closed)),
                Ok(n) => self.held.extend_from_slice(&piece[..n]),
                Err(error) if is_no_news(&error) => {}
                Err(error) => return Err(self.fault(broken(error))),
            }
        }
    }

    fn too_long(&self) -> DriverError {
        self.fault(JavaFault::TooLong { limit: LINE_MAX, of: "bytes in a line" })
    }

    /// Tells an application that is at work to stop, as well as can be. Should it not hear it, it stops when the
    /// connection is gone.
    pub fn leave(mut self) {
        let sent = self.stream.set_write_timeout(Some(FAREWELL)).and_then(|()| self.stream.write_all(b"stop\n"));
        if sent.is_err() || self.stream.shutdown(Shutdown::Write).is_err() {
            return;
        }
        // Closed with answers unread, the connection would be reset, and the word be lost with it.
        let deadline = now_ns() + nanos(FAREWELL);
        let mut piece = [0; 4 << 10];
        while now_ns() < deadline {
            match self.stream.read(&mut piece) {
                Ok(1..) => {}
                Err(error) if is_no_news(&error) => {}
                Ok(0) | Err(_) => return,
            }
        }
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Whether the other end may yet come to be there: it starts, or its network does.
fn may_pass(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, HostUnreachable, TimedOut};
    matches!(error.kind(), ConnectionRefused | ConnectionReset | HostUnreachable | TimedOut)
}

/// Whether nothing has come in the time that a read waits.
fn is_no_news(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

fn broken(error: io::Error) -> JavaFault {
    match error.kind() {
        io::ErrorKind::BrokenPipe => JavaFault::Closed,
        _ => JavaFault::Broken(error),
    }
}
