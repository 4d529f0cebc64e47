//! What the threads of a run have before they start: connections that are open, or whatever takes their place.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use tare_model::drive::{Direction, DriveSpec, Exchange, SocketDrive};

use crate::bulk::{SendSettings, Window};
use crate::protocol::{Hello, Purpose};
use crate::{DriverError, sockopt, tcp, udp};

/// What a thread has before it starts.
#[derive(Debug)]
pub(crate) enum Link {
    Null,
    Tcp(OwnedFd),
    Udp(OwnedFd),
    Crr(SocketAddr),
    Bulk { fd: OwnedFd, to_guest: bool, window: Option<Window> },
}

impl Link {
    /// The socket, where it has one that the supervisor may cut.
    pub const fn fd(&self) -> Option<&OwnedFd> {
        match self {
            Self::Tcp(fd) | Self::Udp(fd) | Self::Bulk { fd, .. } => Some(fd),
            Self::Null | Self::Crr(_) => None,
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
    match kind {
        SocketDrive::Rr { exchange, request_bytes, response_bytes, .. } => {
            let hello = |purpose| Hello { purpose, request_bytes, response_bytes, connection: index };
            match exchange {
                Exchange::TcpRr => {
                    tcp::connect(target, &spec.socket, true, &hello(Purpose::TcpRr), timeout).map(Link::Tcp)
                }
                Exchange::UdpRr => {
                    let loss_timeout = Duration::from_nanos(spec.loss_timeout_ns);
                    udp::connect(target, &spec.socket, &hello(Purpose::UdpRr), loss_timeout).map(Link::Udp)
                }
                // Its connections are made during the run; this one only asks whether the server fits.
                Exchange::TcpCrr => {
                    let fd = tcp::connect(target, &spec.socket, true, &hello(Purpose::TcpCrr), timeout)?;
                    if granted.is_empty() {
                        *granted = sockopt::granted(fd.as_fd(), true);
                    }
                    Ok(Link::Crr(target))
                }
            }
        }
        SocketDrive::Stream { direction, method, chunk_bytes, window_bytes, .. } => {
            let to_guest = match direction {
                Direction::Receive => true,
                Direction::Send => false,
                Direction::Both => index.is_multiple_of(2),
            };
            let purpose = if to_guest { Purpose::BulkToGuest } else { Purpose::BulkFromGuest };
            let hello = Hello { purpose, request_bytes: 0, response_bytes: 0, connection: index };
            let fd = tcp::connect(target, &spec.socket, false, &hello, timeout)?;
            let settings = SendSettings { method, chunk_bytes, window_bytes };
            let window = if to_guest { Window::new(&settings) } else { Ok(None) };
            let window = window.map_err(DriverError::resource("make the file to send"))?;
            Ok(Link::Bulk { fd, to_guest, window })
        }
        SocketDrive::Null => Ok(Link::Null),
    }
}
