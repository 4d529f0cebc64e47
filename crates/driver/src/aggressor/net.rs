//! Sends as many datagrams as it can, and receives them.
//!
//! They are datagrams (UDP), since a stream would slow down as soon as its neighbours feel it: this one does not notice. 1,400 bytes pass
//! every tunnel that a platform may put around them in one piece.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::Aggressor;
use crate::DriverError;

/// Bytes of a datagram, without headers.
const DATAGRAM: usize = 1400;
/// Longest wait for room in a full queue; then the datagram was refused.
const SEND_WAIT: Duration = Duration::from_millis(50);
/// Longest wait for a datagram: the end of a stretch is seen so late at most.
const RECEIVE_WAIT: Duration = Duration::from_millis(20);
/// Queue that a receiver asks for; the system may grant less (net.core.rmem_max).
const QUEUE_BYTES: usize = 4 << 20;

/// Refuses what is not one host's.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check(to: SocketAddr) -> Result<(), DriverError> {
    let ip = to.ip();
    let many = ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST);
    if many || ip.is_unspecified() || to.port() == 0 {
        let what = format!("datagrams cannot be sent to {to}");
        return Err(DriverError::invalid(what, "name the address and port of one host"));
    }
    Ok(())
}

/// An address whose port nobody has now.
///
/// # Errors
/// When the guest has no such address.
pub(super) fn free_port(listen: IpAddr) -> Result<SocketAddr, DriverError> {
    let address = SocketAddr::new(listen, 0);
    let bound = UdpSocket::bind(address).and_then(|socket| socket.local_addr());
    bound.map_err(|source| DriverError::Listen { address, source })
}

/// A socket that sends. It is not connected, so that nobody's "not here" slows it down.
pub(super) struct NetSend {
    socket: UdpSocket,
    to: SocketAddr,
}

impl NetSend {
    pub fn begin(to: SocketAddr) -> io::Result<Self> {
        let any = if to.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        let socket = UdpSocket::bind((any, 0))?;
        socket.set_write_timeout(Some(SEND_WAIT))?;
        Ok(Self { socket, to })
    }
}

impl Aggressor for NetSend {
    fn piece(&mut self, _until_ns: u64) -> io::Result<u64> {
        self.socket.send_to(&[0x5a; DATAGRAM], self.to).map(|bytes| bytes as u64)
    }
}

/// A socket that receives.
pub(super) struct NetReceive {
    socket: UdpSocket,
}

impl NetReceive {
    pub fn begin(at: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(at)?;
        socket.set_read_timeout(Some(RECEIVE_WAIT))?;
        // Refused, it has the usual queue and loses more.
        let _ = set_socket_recv_buffer_size(&socket, QUEUE_BYTES);
        Ok(Self { socket })
    }
}

impl Aggressor for NetReceive {
    fn piece(&mut self, _until_ns: u64) -> io::Result<u64> {
        use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
        match self.socket.recv(&mut [0; 2 * DATAGRAM]) {
            Ok(bytes) => Ok(bytes as u64),
            // Nobody sends.
            Err(error) if matches!(error.kind(), WouldBlock | TimedOut | Interrupted) => Ok(0),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_to_one_host_arrives() {
        for localhost in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let Ok(address) = free_port(localhost) else {
                println!("SKIPPED: there is no {localhost} here");
                continue;
            };
            check(address).unwrap();
            let (mut receiver, mut sender) = (NetReceive::begin(address).unwrap(), NetSend::begin(address).unwrap());
            assert_eq!(receiver.piece(0).unwrap(), 0, "nobody has sent");
            assert_eq!(sender.piece(0).unwrap(), DATAGRAM as u64);
            assert_eq!(receiver.piece(0).unwrap(), DATAGRAM as u64);
            drop(receiver);
            assert_eq!((0..10).map(|_| sender.piece(0).unwrap()).sum::<u64>(), 10 * DATAGRAM as u64, "it goes on");
        }
    }

    #[test]
    fn many_hosts_and_none_are_refused() {
        for address in ["224.0.0.1:9", "255.255.255.255:9", "0.0.0.0:9", "127.0.0.1:0", "[ff02::1]:9", "[::]:9"] {
            let error = check(address.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(address), "{error}");
        }
        assert!(matches!(free_port("203.0.113.7".parse().unwrap()), Err(DriverError::Listen { .. })));
    }
}
