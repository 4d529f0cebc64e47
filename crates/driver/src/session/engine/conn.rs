//! Connections: how they are opened, and what is under way on them.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

use super::{Engine, SPARE_MAX, Users};
use crate::session::fault::{Fault, TLS, fault_of};
use crate::session::http;
use crate::session::secure::Secure;
use crate::session::slab::NONE;

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Connecting,
    /// In the handshake of TLS.
    Shaking,
    Open,
}

/// A connection of a session. Small, for there are tens of thousands of them that have nothing to do.
#[derive(Debug)]
pub(super) struct Conn {
    pub fd: OwnedFd,
    pub session: u32,
    /// The next connection of the same session.
    pub next: u32,
    /// Tells it from others that had the same number.
    pub age: u32,
    /// The request under way, if there is one.
    pub flight: u32,
    pub stage: Stage,
    /// It has answered a request before, so that its end between two may be the server's right.
    pub served: bool,
    /// A timer will have it read.
    pub timed: bool,
    /// The other end sends no more: it is read to its end.
    pub hangs_up: bool,
    /// When it may be read from again.
    pub allowed_at: u64,
    pub tls: Option<Box<Secure>>,
}

/// A request and its answer while they are under way.
#[derive(Debug)]
pub(super) struct Flight<R> {
    /// Whose it is.
    pub session: u32,
    /// It was sent before, on a connection that ended.
    pub resent: bool,
    /// The head said that the connection stays.
    pub keeps: bool,
    /// Kept until the answer has come, for a kept connection may end before that.
    pub request: R,
    /// How long it is, and how much of it the kernel or TLS has taken, bytes.
    pub length: u64,
    pub sent: u64,
    pub answer: http::Answer,
    /// Bytes that came of the answer.
    pub came: u64,
    /// When it was asked, a part of it was sent, or the last byte of the answer came.
    pub heard_at: u64,
}

impl<U: Users> Engine<'_, U> {
    /// Opens a connection for a session.
    pub(super) fn open(&mut self, slot: u32) -> Result<u32, Fault> {
        let session = &self.sessions[slot as usize];
        let (target, next) = (self.users.target(&session.user), session.first);
        let tls = match (&self.tls, target.secure) {
            (Some(tls), true) => Some(Box::new({
                tls.tickets.of(slot);
                Secure::new(tls).map_err(|_| TLS)?
            })),
            _ => None,
        };
        let fd = self.socket(target.address)?;
        self.age = self.age.wrapping_add(1);
        let age = self.age;
        let number = self.conns.insert(Conn {
            fd,
            session: slot,
            next,
            age,
            flight: NONE,
            stage: Stage::Connecting,
            served: false,
            timed: false,
            hangs_up: false,
            allowed_at: 0,
            tls,
        });
        self.sessions[slot as usize].first = number;
        self.counts.sessions.connections += 1;
        let interest =
            epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64(u64::from(age) << 32 | u64::from(number));
        let Some(conn) = self.conns.get(number) else { return Err(Fault::Kind("network")) };
        if epoll::add(&self.epoll, &conn.fd, data, interest).is_err() {
            self.close(number);
            return Err(Fault::Kind("no room to watch a connection"));
        }
        Ok(number)
    }

    /// A socket that is being connected.
    fn socket(&self, target: SocketAddr) -> Result<OwnedFd, Fault> {
        let family = if target.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(family, SocketType::STREAM, flags, None).map_err(fault_of)?;
        let options = &self.common.spec.socket;
        // They were granted when the load was prepared.
        crate::sockopt::apply(fd.as_fd(), options, true, true).map_err(|_| Fault::Kind("socket option"))?;
        if let Some(bytes) = self.common.settings.receive_buffer {
            let _ = sockopt::set_socket_recv_buffer_size(&fd, bytes);
        }
        match connect(&fd, &target) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(fd),
            Err(errno) => Err(fault_of(errno)),
        }
    }

    /// Closes a connection; what was under way on it is dropped.
    pub(super) fn close(&mut self, number: u32) {
        let Some(conn) = self.conns.remove(number) else { return };
        if conn.flight != NONE {
            self.land(conn.flight);
        }
        let session = &mut self.sessions[conn.session as usize];
        if session.first == number {
            session.first = conn.next;
            return;
        }
        let mut at = session.first;
        while let Some(before) = self.conns.get(at) {
            if before.next == number {
                before.next = conn.next;
                return;
            }
            at = before.next;
        }
    }

    /// Closes all connections of a session for which `which` holds.
    pub(super) fn close_all(&mut self, slot: u32, which: impl Fn(&Conn) -> bool) {
        let mut at = self.sessions[slot as usize].first;
        while let Some(conn) = self.conns.get(at) {
            let (number, next, closes) = (at, conn.next, which(conn));
            at = next;
            if closes {
                self.close(number);
            }
        }
    }

    /// Takes a flight away and keeps its memory for the next.
    pub(super) fn land(&mut self, flight: u32) {
        if let Some(flight) = self.flights.remove(flight) {
            self.keep(flight.request, flight.answer);
        }
    }

    /// Keeps the memory of a request and its answer for the next.
    pub(super) fn keep(&mut self, mut request: U::Request, mut answer: http::Answer) {
        if self.spare.len() < SPARE_MAX {
            U::clear(&mut request);
            answer.clear();
            self.spare.push((request, answer));
        }
    }

    /// A connection of the session that has nothing to do; one is opened where there is none.
    pub(super) fn idle(&mut self, slot: u32) -> Result<u32, Fault> {
        let mut at = self.sessions[slot as usize].first;
        while let Some(conn) = self.conns.get(at) {
            if conn.flight == NONE {
                return Ok(at);
            }
            at = conn.next;
        }
        self.open(slot)
    }
}
