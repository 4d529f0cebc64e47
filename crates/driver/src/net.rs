//! Sockets: connecting with a bound, listening, and moving exactly as many bytes as asked.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, getsockname, listen, recv, send,
    socket_with, sockopt,
};
use tare_model::drive::{SocketOptions, Wait};

use crate::error::{Failure, reason_of};
use crate::{DriverError, clock, sockopt as settings};

/// Connections that may wait to be accepted (the kernel clamps to net.core.somaxconn).
const LISTEN_QUEUE: i32 = 4_096;

const fn family(address: &SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}

/// A TCP socket, close-on-exec, not yet connected.
pub(crate) fn tcp_socket(peer: &SocketAddr) -> Result<OwnedFd, Errno> {
    socket_with(family(peer), SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

/// A TCP connection, settings applied before it is opened.
pub(crate) fn connect_tcp(
    target: SocketAddr,
    options: &SocketOptions,
    nodelay: bool,
    timeout: Duration,
) -> Result<OwnedFd, DriverError> {
    let fd = tcp_socket_for(&target, options, nodelay)?;
    connect_within(fd.as_fd(), target, timeout)?;
    Ok(fd)
}

/// A TCP socket with its settings, not yet connected.
pub(crate) fn tcp_socket_for(
    peer: &SocketAddr,
    options: &SocketOptions,
    nodelay: bool,
) -> Result<OwnedFd, DriverError> {
    let fd = tcp_socket(peer).map_err(DriverError::resource("open a socket"))?;
    settings::apply(fd.as_fd(), options, true, nodelay)?;
    Ok(fd)
}

/// Connects a socket, or gives up in time.
pub(crate) fn connect_within(fd: BorrowedFd<'_>, target: SocketAddr, timeout: Duration) -> Result<(), DriverError> {
    let failed = |source: Errno| DriverError::Connect { target, source: source.into() };
    rustix::io::ioctl_fionbio(fd, true).map_err(failed)?;
    match connect(fd, &target) {
        Ok(()) => {}
        Err(Errno::INPROGRESS | Errno::INTR) => finish_connect(fd, timeout).map_err(failed)?,
        Err(errno) => return Err(failed(errno)),
    }
    rustix::io::ioctl_fionbio(fd, false).map_err(failed)
}

fn finish_connect(fd: BorrowedFd<'_>, timeout: Duration) -> Result<(), Errno> {
    let deadline = clock::now_ns() + timeout.as_nanos() as u64;
    loop {
        let left = deadline.saturating_sub(clock::now_ns());
        let wait = Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 };
        match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::OUT)], Some(&wait)) {
            Ok(0) => return Err(Errno::TIMEDOUT),
            Ok(_) => return sockopt::socket_error(fd)?,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// A UDP socket connected to `target`.
pub(crate) fn connect_udp(target: SocketAddr, options: &SocketOptions) -> Result<OwnedFd, DriverError> {
    let fd = socket_with(family(&target), SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(DriverError::resource("open a socket"))?;
    settings::apply(fd.as_fd(), options, false, false)?;
    connect(&fd, &target).map_err(|source| DriverError::Connect { target, source: source.into() })?;
    Ok(fd)
}

/// A listening TCP socket on a port that the kernel chooses. What it accepts inherits its settings.
pub(crate) fn listen_tcp(
    at: SocketAddr,
    options: &SocketOptions,
    nodelay: bool,
) -> Result<(OwnedFd, SocketAddr), DriverError> {
    let failed = |source: Errno| DriverError::Listen { address: at, source: source.into() };
    let fd = tcp_socket(&at).map_err(failed)?;
    settings::apply(fd.as_fd(), options, true, nodelay)?;
    bind(&fd, &at).map_err(failed)?;
    listen(&fd, LISTEN_QUEUE).map_err(failed)?;
    let address = local_address(fd.as_fd()).map_err(failed)?;
    Ok((fd, address))
}

/// A UDP socket bound to a port that the kernel chooses.
pub(crate) fn bind_udp(at: SocketAddr, options: &SocketOptions) -> Result<(OwnedFd, SocketAddr), DriverError> {
    let failed = |source: Errno| DriverError::Listen { address: at, source: source.into() };
    let fd = socket_with(family(&at), SocketType::DGRAM, SocketFlags::CLOEXEC, None).map_err(failed)?;
    settings::apply(fd.as_fd(), options, false, false)?;
    bind(&fd, &at).map_err(failed)?;
    let address = local_address(fd.as_fd()).map_err(failed)?;
    Ok((fd, address))
}

fn local_address(fd: BorrowedFd<'_>) -> Result<SocketAddr, Errno> {
    SocketAddr::try_from(getsockname(fd)?)
}

/// Bounds how long a receive call may block; `None` takes the bound away.
pub(crate) fn receive_timeout(fd: BorrowedFd<'_>, timeout: Option<Duration>) -> Result<(), Errno> {
    sockopt::set_socket_timeout(fd, sockopt::Timeout::Recv, timeout)
}

/// Receives once, and waits as `wait` says; 0 is the end of the stream. Never returns INTR, nor AGAIN when it spins.
#[inline]
pub(crate) fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8], wait: Wait) -> Result<usize, Errno> {
    let flags = match wait {
        Wait::Block => RecvFlags::empty(),
        Wait::Spin => RecvFlags::DONTWAIT,
    };
    loop {
        match recv(fd, &mut *buffer, flags) {
            Ok((n, _)) => return Ok(n),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if wait == Wait::Spin => std::hint::spin_loop(),
            Err(errno) => return Err(errno),
        }
    }
}

/// Receives until `buffer` is full or the stream ends; returns the bytes received.
#[inline]
pub(crate) fn receive_full(fd: BorrowedFd<'_>, buffer: &mut [u8], wait: Wait) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < buffer.len() {
        match receive(fd, &mut buffer[filled..], wait)? {
            0 => break,
            n => filled += n,
        }
    }
    Ok(filled)
}

/// Sends all of `bytes`, blocking while the kernel's buffer is full.
#[inline]
pub(crate) fn send_full(fd: BorrowedFd<'_>, bytes: &[u8], flags: SendFlags) -> Result<(), Errno> {
    let mut sent = 0;
    while sent < bytes.len() {
        match send(fd, &bytes[sent..], flags | SendFlags::NOSIGNAL) {
            Ok(n) => sent += n,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Sends a request and receives the whole answer to it on a connection.
#[inline]
pub(crate) fn exchange(fd: BorrowedFd<'_>, request: &[u8], answer: &mut [u8], wait: Wait) -> Result<(), Failure> {
    send_full(fd, request, SendFlags::empty()).map_err(|errno| Failure::fatal(reason_of(errno)))?;
    match receive_full(fd, answer, wait) {
        Ok(n) if n == answer.len() => Ok(()),
        Ok(_) => Err(Failure::closed()),
        Err(errno) => Err(Failure::fatal(reason_of(errno))),
    }
}
