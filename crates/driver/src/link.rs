//! What the threads of a run have before they start: connections that are open, or whatever takes their place.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use tare_model::drive::{Direction, DriveSpec, Exchange, SocketDrive, SocketOptions};
use tare_model::token::Token;

use crate::bulk::{SendSettings, Window};
use crate::control::Breaker;
use crate::protocol::{Hello, Purpose};
use crate::{DriverError, sockopt, tcp, udp};

/// What a thread has before it starts.
#[derive(Debug)]
pub(crate) enum Link {
    Null,
    Tcp(OwnedFd),
    Udp(OwnedFd),
    Crr(SocketAddr),
    Bulk(Bulk),
}

/// A connection for bulk data.
#[derive(Debug)]
pub(crate) struct Bulk {
    pub fd: OwnedFd,
    pub to_guest: bool,
    /// What is sent from.
    pub window: Option<Window>,
}

impl Link {
    /// The socket, where it has one for all of the run.
    pub const fn fd(&self) -> Option<&OwnedFd> {
        match self {
            Self::Tcp(fd) | Self::Udp(fd) => Some(fd),
            Self::Null | Self::Crr(_) | Self::Bulk(_) => None,
        }
    }
}

/// Connects the `index`-th one. What the kernel granted is noted where no link stays that could be asked.
pub(crate) fn connect(
    (spec, kind): (&DriveSpec, SocketDrive),
    index: u32,
    target: Option<SocketAddr>,
    timeout: Duration,
    granted: &mut Vec<(String, String)>,
) -> Result<Link, DriverError> {
    let Some(target) = target else { return Ok(Link::Null) };
    let token = spec.token;
    match kind {
        SocketDrive::Rr { exchange, request_bytes, response_bytes, .. } => {
            let hello = |purpose| Hello { purpose, request_bytes, response_bytes, connection: index };
            match exchange {
                Exchange::TcpRr => {
                    let words = (&hello(Purpose::TcpRr), token);
                    tcp::connect(target, &spec.socket, true, words, (timeout, None)).map(Link::Tcp)
                }
                Exchange::UdpRr => {
                    let loss_timeout = Duration::from_nanos(spec.loss_timeout_ns);
                    udp::connect(target, &spec.socket, (&hello(Purpose::UdpRr), token), loss_timeout).map(Link::Udp)
                }
                // Its connections are made during the run; this one only asks whether the server fits.
                Exchange::TcpCrr => {
                    let words = (&hello(Purpose::TcpCrr), token);
                    let fd = tcp::connect(target, &spec.socket, true, words, (timeout, None))?;
                    if granted.is_empty() {
                        *granted = sockopt::granted(fd.as_fd(), true);
                    }
                    Ok(Link::Crr(target))
                }
            }
        }
        SocketDrive::Pipelined { request_bytes, response_bytes } => {
            let hello = Hello { purpose: Purpose::TcpRr, request_bytes, response_bytes, connection: index };
            tcp::connect(target, &spec.socket, true, (&hello, token), (timeout, None)).map(Link::Tcp)
        }
        SocketDrive::Stream { direction, method, chunk_bytes, window_bytes, .. } => {
            let send = SendSettings { method, chunk_bytes, window_bytes };
            Bulk::open(target, &spec.socket, (direction, &send), (index, token), (timeout, None)).map(Link::Bulk)
        }
        SocketDrive::Null => Ok(Link::Null),
    }
}

impl Bulk {
    /// Opens the `index`-th one; the supervisor of a run may cut that.
    pub fn open(
        target: SocketAddr,
        options: &SocketOptions,
        (direction, send): (Direction, &SendSettings),
        (index, token): (u32, Option<Token>),
        within: (Duration, Option<&Breaker>),
    ) -> Result<Self, DriverError> {
        let to_guest = match direction {
            Direction::Receive => true,
            Direction::Send => false,
            Direction::Both => index.is_multiple_of(2),
        };
        let purpose = if to_guest { Purpose::BulkToGuest } else { Purpose::BulkFromGuest };
        let hello = Hello { purpose, request_bytes: 0, response_bytes: 0, connection: index };
        let fd = tcp::connect(target, options, false, (&hello, token), within)?;
        let window = if to_guest { Window::new(send) } else { Ok(None) };
        let window = window.map_err(DriverError::resource("make the file to send"))?;
        Ok(Self { fd, to_guest, window })
    }
}
