//! UDP request and response, one datagram each way, with a bounded wait for the answer.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use tare_model::drive::{SocketOptions, Wait};
use tare_model::token::Token;

use crate::clock::now_ns;
use crate::control::Armed;
use crate::error::{Failure, reason_of};
use crate::operation::{Done, Operation};
use crate::payload::Payload;
use crate::protocol::{GOODBYE, HELLO_LEN, Hello, REPLY_LEN, first_words, judge};
use crate::{DriverError, net};

/// Hellos sent before a server counts as absent, one second apart.
const HELLOS: u32 = 5;

/// Asks the server for a port of this connection's own and connects to it.
pub(crate) fn connect(
    target: SocketAddr,
    options: &SocketOptions,
    words: (&Hello, Option<Token>),
    loss_timeout: Duration,
) -> Result<OwnedFd, DriverError> {
    let failed = |source: Errno| DriverError::Connect { target, source: source.into() };
    let fd = net::connect_udp(target, options)?;
    net::receive_timeout(fd.as_fd(), Some(Duration::from_secs(1))).map_err(failed)?;
    // Longer than a reply, so that a longer datagram is not mistaken for one.
    let mut answer = [0; REPLY_LEN + 1];
    for _ in 0..HELLOS {
        send(&fd, &first_words(words), SendFlags::empty()).map_err(failed)?;
        match net::receive(fd.as_fd(), &mut answer, Wait::Block) {
            Ok(n) => {
                let reply = judge(target, words.0, &answer[..n])?;
                let own = SocketAddr::new(target.ip(), reply.port);
                rustix::net::connect(&fd, &own).map_err(failed)?;
                net::receive_timeout(fd.as_fd(), Some(loss_timeout)).map_err(failed)?;
                return Ok(fd);
            }
            Err(Errno::AGAIN) => {}
            Err(errno) => return Err(failed(errno)),
        }
    }
    Err(failed(Errno::TIMEDOUT))
}

/// One connection.
#[derive(Debug)]
pub(crate) struct UdpRr<'a> {
    pub fd: &'a OwnedFd,
    pub payload: Payload,
    pub loss_timeout_ns: u64,
    /// Lets the supervisor end a blocked exchange.
    pub _armed: Option<Armed<'a>>,
}

impl UdpRr<'_> {
    /// One receive; `None` when nothing came within the loss timeout.
    #[inline]
    fn receive(&mut self, give_up_at: &mut u64) -> Result<Option<usize>, Failure> {
        let flags = match self.payload.wait {
            Wait::Block => RecvFlags::TRUNC,
            Wait::Spin => RecvFlags::TRUNC | RecvFlags::DONTWAIT,
        };
        loop {
            match recv(self.fd, self.payload.answer.as_mut_slice(), flags) {
                Ok((_, length)) => return Ok(Some(length)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.payload.wait == Wait::Spin => {
                    let now = now_ns();
                    if *give_up_at == 0 {
                        *give_up_at = now + self.loss_timeout_ns;
                    } else if now >= *give_up_at {
                        return Ok(None);
                    }
                }
                Err(Errno::AGAIN) => return Ok(None),
                Err(errno) => return Err(Failure::passing(reason_of(errno))),
            }
        }
    }
}

impl Operation for UdpRr<'_> {
    #[inline]
    fn perform(&mut self) -> Result<Done, Failure> {
        self.payload.next();
        send(self.fd, &self.payload.request, SendFlags::NOSIGNAL)
            .map_err(|errno| Failure::passing(reason_of(errno)))?;
        let mut give_up_at = 0;
        loop {
            match self.receive(&mut give_up_at)? {
                None => return Ok(Done::Lost),
                Some(length) if length == self.payload.answer.len() && self.payload.answered() => {
                    return Ok(Done::Answered);
                }
                // A socket that was shut down reads as empty at once, for ever.
                Some(0) => return Err(Failure::closed()),
                // An answer to an earlier request that was given up. Those that follow each other may not
                // hold the wait open for ever.
                Some(_) => {
                    let now = now_ns();
                    if give_up_at == 0 {
                        give_up_at = now + self.loss_timeout_ns;
                    } else if now >= give_up_at {
                        return Ok(Done::Lost);
                    }
                }
            }
        }
    }
}

impl Drop for UdpRr<'_> {
    /// Says goodbye, so that the server's thread ends. Should the datagram be lost, it ends with the server.
    fn drop(&mut self) {
        let mut goodbye = [0; HELLO_LEN];
        goodbye[..GOODBYE.len()].copy_from_slice(&GOODBYE);
        let _ = send(self.fd, &goodbye, SendFlags::NOSIGNAL);
    }
}
