//! TCP connect, one exchange, close.
//!
//! The server closes first: it sends its answer and the end of the stream together, as a server of HTTP/1.0
//! does. The client's close then completes the exchange of ends, and TIME_WAIT stays at the server, which
//! lets a new connection take over the same pair of ports. A client that closed first would run out of its
//! 28,000 ports within seconds on any link that is not loopback.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use rustix::net::connect;
use tare_model::drive::SocketOptions;

use crate::control::Breaker;
use crate::error::{Failure, reason_of};
use crate::operation::{Done, Operation};
use crate::payload::Payload;
use crate::{net, sockopt};

/// One client, with at most one connection at a time.
#[derive(Debug)]
pub(crate) struct TcpCrr<'a> {
    pub target: SocketAddr,
    pub options: &'a SocketOptions,
    pub payload: Payload,
    pub breaker: &'a Breaker,
}

impl Operation for TcpCrr<'_> {
    #[inline]
    fn perform(&mut self) -> Result<Done, Failure> {
        let passing = |errno| Failure::passing(reason_of(errno));
        let fd = net::tcp_socket(&self.target).map_err(passing)?;
        sockopt::apply(fd.as_fd(), self.options, true, true).map_err(|e| Failure::fatal(e.to_string()))?;
        let Some(armed) = self.breaker.guard(fd.as_fd()) else { return Err(Failure::closed()) };
        connect(&fd, &self.target).map_err(passing)?;
        self.payload.next();
        let wait = self.payload.wait;
        net::exchange(fd.as_fd(), &self.payload.request, &mut self.payload.answer, wait)
            .map_err(|failure| Failure::passing(failure.reason))?;
        drop(armed);
        drop(fd);
        if self.payload.answered() { Ok(Done::Answered) } else { Err(Failure::passing("wrong answer")) }
    }
}
