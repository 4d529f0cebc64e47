//! How requests go to the kernel.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use super::conn::Stage;
use super::{Engine, Users};
use crate::clock::now_ns;
use crate::session::fault::{TLS, fault_of};

/// Sends without waiting; how much the kernel took, which is nothing where it has no room. `more` follows at once.
fn send_some(fd: &OwnedFd, bytes: &[u8], more: bool) -> Result<usize, Errno> {
    let more = if more { SendFlags::MORE } else { SendFlags::empty() };
    loop {
        match send(fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL | more) {
            Ok(count) => return Ok(count),
            Err(Errno::AGAIN) => return Ok(0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

impl<U: Users> Engine<'_, U> {
    /// Puts a request on a connection.
    pub(super) fn attach(&mut self, number: u32, flight: u32, now: u64) {
        if let Some(conn) = self.conns.get(number) {
            conn.flight = flight;
            self.send(number, now);
        }
    }

    /// Sends the request of a connection as far as it can be; nothing before the connection is open.
    pub(super) fn send(&mut self, number: u32, now: u64) {
        let Some(conn) = self.conns.get(number) else { return };
        if conn.stage != Stage::Open {
            return;
        }
        let (slot, age, secure) = (conn.session, conn.age, conn.tls.is_some());
        let begun = self.flights.peek(conn.flight).is_some_and(|flight| flight.sent > 0);
        // What ends a handshake takes its request along.
        if self.gathers && self.sealed.is_empty() || !begun && self.common.timeline.rests(now) {
            return self.outbox.push((number, age));
        }
        if !begun {
            self.stood(slot, now);
        }
        if secure {
            self.seal(number, now);
        } else if let Err(errno) = self.send_plain(number, now) {
            self.lost(number, fault_of(errno), now);
        }
    }

    fn send_plain(&mut self, number: u32, now: u64) -> Result<(), Errno> {
        let Some(conn) = self.conns.get(number) else { return Ok(()) };
        let Some(flight) = self.flights.get(conn.flight) else { return Ok(()) };
        let before = flight.sent;
        while flight.sent < flight.length {
            let piece = self.users.piece(&flight.request, flight.sent);
            let more = flight.sent + (piece.len() as u64) < flight.length;
            match send_some(&conn.fd, piece, more) {
                Ok(0) => break,
                Ok(count) => flight.sent += count as u64,
                Err(Errno::PIPE | Errno::CONNRESET) if flight.sent > 0 => {
                    // An answer may lie there that says why: it is read before the end is seen.
                    conn.hangs_up = true;
                    break;
                }
                Err(errno) => return Err(errno),
            }
        }
        let count = flight.sent - before;
        self.count_sent(number, count, now);
        Ok(())
    }

    /// Has TLS take a request, and sends what that makes.
    fn seal(&mut self, number: u32, now: u64) {
        let Some(conn) = self.conns.get(number) else { return };
        let (Some(secure), Some(flight)) = (&mut conn.tls, self.flights.get(conn.flight)) else { return };
        if flight.sent > 0 {
            return;
        }
        let mut sealed = Ok(());
        while flight.sent < flight.length && sealed.is_ok() {
            let piece = self.users.piece(&flight.request, flight.sent);
            flight.sent += piece.len() as u64;
            sealed = secure.seal(piece, &mut self.sealed);
        }
        let count = flight.sent;
        self.count_sent(number, count, now);
        match sealed {
            Ok(()) => self.flush_sealed(number, now),
            Err(_) => self.lost(number, TLS, now),
        }
    }

    /// So many bytes of a request have been sent.
    fn count_sent(&mut self, number: u32, count: u64, now: u64) {
        let Some(conn) = self.conns.get(number).filter(|_| count > 0) else { return };
        let Some(flight) = self.flights.get(conn.flight) else { return };
        // Whoever takes what is sent is not silent.
        flight.heard_at = now;
        let session = &mut self.sessions[conn.session as usize];
        if session.sent == 0 {
            session.sent = now;
        }
        let in_window = self.common.timeline.counts_at(session.due, now);
        let counted = if in_window { count } else { 0 };
        self.carried += count;
        let tally = &mut self.counts.tally;
        tally.to_guest_total += count;
        tally.to_guest += counted;
        if let Some(turns) = &mut self.turns {
            turns.carried(session.due, counted);
        }
        if flight.sent == flight.length {
            self.users.sent(&mut session.user, flight.resent, in_window);
        }
    }

    /// Sends what was gathered while answers were read, and what could not be sent in the turn of others.
    pub(super) fn send_gathered(&mut self) {
        let mut outbox = std::mem::take(&mut self.outbox);
        for (number, age) in outbox.drain(..) {
            match self.conns.get(number).filter(|conn| conn.age == age).map(|conn| conn.stage) {
                Some(Stage::Connecting) => self.connected(number, now_ns()),
                Some(_) => self.send(number, now_ns()),
                None => {}
            }
        }
        // What must wait for the driver's turn has come in anew.
        outbox.append(&mut self.outbox);
        self.outbox = outbox;
    }

    /// The kernel has room again.
    pub(super) fn flush(&mut self, number: u32, now: u64) {
        let Some(conn) = self.conns.get(number) else { return };
        let Some(secure) = &mut conn.tls else {
            let stuck = self.flights.get(conn.flight).is_some_and(|flight| flight.sent < flight.length);
            return if stuck {
                self.send(number, now)
            };
        };
        if secure.unsent.is_empty() {
            return;
        }
        let unsent = std::mem::take(&mut secure.unsent);
        match send_some(&conn.fd, &unsent, false) {
            Ok(count) => {
                if let Some(secure) = conn.tls.as_mut().filter(|_| count < unsent.len()) {
                    secure.unsent = unsent[count..].to_vec();
                }
            }
            Err(errno) => self.lost(number, fault_of(errno), now),
        }
    }

    /// Sends what TLS has sealed; what the kernel has no room for is kept.
    pub(super) fn flush_sealed(&mut self, number: u32, now: u64) {
        let mut sealed = std::mem::take(&mut self.sealed);
        if let Some(conn) = self.conns.get(number).filter(|_| !sealed.is_empty()) {
            let stuck = conn.tls.as_ref().is_some_and(|secure| !secure.unsent.is_empty());
            let sent = if stuck { Ok(0) } else { send_some(&conn.fd, &sealed, false) };
            match (sent, &mut conn.tls) {
                (Ok(count), Some(secure)) => secure.unsent.extend_from_slice(&sealed[count..]),
                (Ok(_), None) => {}
                (Err(errno), _) => self.lost(number, fault_of(errno), now),
            }
        }
        sealed.clear();
        self.sealed = sealed;
    }
}
