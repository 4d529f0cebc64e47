//! TCP request and response on a connection that stays open.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use tare_model::drive::SocketOptions;
use tare_model::token::Token;

use crate::control::{Armed, Breaker};
use crate::error::Failure;
use crate::operation::{Done, Operation};
use crate::payload::Payload;
use crate::protocol::{Hello, introduce};
use crate::{DriverError, net};

/// Opens a connection, with or without Nagle's delay, and sees a server of ours answer on it. The supervisor of a run may cut that.
pub(crate) fn connect(
    target: SocketAddr,
    options: &SocketOptions,
    no_delay: bool,
    words: (&Hello, Option<Token>),
    (timeout, breaker): (Duration, Option<&Breaker>),
) -> Result<OwnedFd, DriverError> {
    let fd = net::tcp_socket_for(&target, options, no_delay)?;
    let armed = match breaker {
        Some(breaker) => Some(breaker.guard(fd.as_fd()).ok_or(DriverError::Cancelled)?),
        None => None,
    };
    net::connect_within(fd.as_fd(), target, timeout)?;
    introduce(fd.as_fd(), target, words)?;
    drop(armed);
    Ok(fd)
}

/// One connection.
#[derive(Debug)]
pub(crate) struct TcpRr<'a> {
    pub fd: &'a OwnedFd,
    pub payload: Payload,
    /// Lets the supervisor end a blocked exchange.
    pub _armed: Option<Armed<'a>>,
}

impl Operation for TcpRr<'_> {
    #[inline]
    fn perform(&mut self) -> Result<Done, Failure> {
        self.payload.next();
        let wait = self.payload.wait;
        net::exchange(self.fd.as_fd(), &self.payload.request, &mut self.payload.answer, wait)?;
        if self.payload.answered() { Ok(Done::Answered) } else { Err(Failure::fatal("wrong answer")) }
    }
}
