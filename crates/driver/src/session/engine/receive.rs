//! How answers come from the kernel, and how fast they are read.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv, sockopt};

use super::conn::Stage;
use super::{Engine, Users};
use crate::session::fault::{BROKEN, CLOSED, ENDLESS, Fault, TLS, fault_of};
use crate::session::http::Step;
use crate::session::secure::{Passed, Secure};
use crate::session::slab::NONE;
use crate::session::timers::Due;

const IN: u32 = libc::EPOLLIN as u32;
const OUT: u32 = libc::EPOLLOUT as u32;
const FAILED: u32 = libc::EPOLLERR as u32;
const ENDS: u32 = (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;
/// Where reading is slowed down, it is done so often a second, and at least so many bytes at a time.
const READS_PER_S: u64 = 25;
const LEAST_READ: u64 = 2048;

/// How far an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    More,
    /// It is complete.
    All,
}

/// Receives without waiting; `None` where nothing is there, 0 at the end.
fn receive_some(fd: &OwnedFd, buffer: &mut [u8]) -> Result<Option<usize>, Errno> {
    loop {
        match recv(fd, &mut *buffer, RecvFlags::DONTWAIT) {
            Ok((count, _)) => return Ok(Some(count)),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

impl<U: Users> Engine<'_, U> {
    /// The kernel said that something is up with a connection.
    pub(super) fn ready(&mut self, number: u32, flags: u32, now: u64) {
        let Some(conn) = self.conns.get(number) else { return };
        let age = conn.age;
        if conn.stage == Stage::Connecting {
            if flags & (OUT | FAILED) == 0 {
                return;
            }
            let failed = if flags & FAILED == 0 { Ok(Ok(())) } else { sockopt::socket_error(&conn.fd) };
            if let Ok(Err(errno)) | Err(errno) = failed {
                return self.lost(number, fault_of(errno), now);
            }
            self.sessions[conn.session as usize].heard = now;
            self.connected(number, now);
        } else if flags & OUT != 0 {
            self.flush(number, now);
        }
        // Where it could not be sent to it is gone, and another may have its number.
        if flags & (IN | ENDS) != 0
            && let Some(conn) = self.conns.get(number).filter(|conn| conn.age == age)
        {
            conn.hangs_up |= flags & ENDS != 0;
            self.readable(number, now);
        }
    }

    /// A connection is there: TLS begins, or the request goes out.
    pub(super) fn connected(&mut self, number: u32, now: u64) {
        let Some(conn) = self.conns.get(number) else { return };
        let slot = conn.session;
        if conn.tls.is_some() && self.common.timeline.rests(now) {
            return self.outbox.push((number, conn.age));
        }
        self.stood(slot, now);
        let Some(conn) = self.conns.get(number) else { return };
        if let Some(mut secure) = conn.tls.take() {
            conn.stage = Stage::Shaking;
            self.sealed.clear();
            if let Some(tls) = &self.tls {
                tls.tickets.of(slot);
            }
            let passed = secure.pass(&mut [], &mut self.sealed, |_| ());
            if let Some(conn) = self.conns.get(number) {
                conn.tls = Some(secure);
            }
            match passed {
                Ok(_) => self.flush_sealed(number, now),
                Err(_) => self.lost(number, TLS, now),
            }
        } else {
            conn.stage = Stage::Open;
            self.send(number, now);
        }
    }

    /// A connection that was read from too fast may be read from again.
    pub(super) fn allowed(&mut self, number: u32, age: u32, now: u64) {
        let Some(conn) = self.conns.get(number).filter(|conn| conn.age == age) else { return };
        let (slot, flight) = (conn.session, conn.flight);
        self.stood(slot, now);
        if let Some(flight) = self.flights.get(flight).filter(|_| self.turns.is_some()) {
            // What it waited for was no answer.
            flight.heard_at = now;
        }
        if let Some(conn) = self.conns.get(number) {
            conn.timed = false;
        }
        self.readable(number, now);
    }

    /// Reads what there is, or as much as may be read now.
    fn readable(&mut self, number: u32, now: u64) {
        if let Some(conn) = self.conns.get(number) {
            self.sessions[conn.session as usize].heard = now;
        }
        let most = match self.common.settings.receive_bytes_per_s {
            None => usize::MAX,
            Some(rate) => {
                let Some(conn) = self.conns.get(number) else { return };
                if now < conn.allowed_at {
                    return self.later(number);
                }
                (rate / READS_PER_S).max(LEAST_READ) as usize
            }
        };
        let Some(age) = self.conns.get(number).map(|conn| conn.age) else { return };
        let mut buffer = std::mem::take(&mut self.read);
        let read = self.read((number, age), &mut buffer, most, now);
        self.read = buffer;
        if self.conns.get(number).is_none_or(|conn| conn.age != age) {
            // What was to be sent because of it could not be: it is gone, and another may have its number.
            return;
        }
        match read {
            Ok(Came::More) => {}
            Ok(Came::All) => self.answered(number, now),
            Err(fault) => self.lost(number, fault, now),
        }
    }

    /// Has a connection read when it may be.
    fn later(&mut self, number: u32) {
        if let Some(conn) = self.conns.get(number).filter(|conn| !conn.timed) {
            conn.timed = true;
            let (at, age) = (conn.allowed_at, conn.age);
            self.timers.at(at, Due::Read(number, age));
        }
    }

    fn read(&mut self, (number, age): (u32, u32), buffer: &mut [u8], most: usize, now: u64) -> Result<Came, Fault> {
        let mut came = Came::More;
        loop {
            let Some(conn) = self.conns.get(number).filter(|conn| conn.age == age) else { return Ok(Came::More) };
            let before = conn.tls.as_mut().map_or(0, |secure| take_held(secure, buffer));
            let room = most.min(buffer.len() - before);
            if room == 0 {
                return Err(TLS);
            }
            let Some(count) = receive_some(&conn.fd, &mut buffer[before..before + room]).map_err(fault_of)? else {
                return self.keep_held(number, &buffer[..before]).map(|()| came);
            };
            if count == 0 {
                return if came == Came::All { self.keeps_no_longer(number) } else { self.ended(number) };
            }
            let hangs_up = conn.hangs_up;
            let taken = if conn.tls.is_some() {
                self.records(number, buffer, before + count, now)?
            } else {
                self.take(number, &buffer[..count], now)?
            };
            if taken == Came::All {
                came = Came::All;
            }
            let drained = count < room && !hangs_up;
            if let Some(rate) = self.common.settings.receive_bytes_per_s {
                self.pace(number, count as u64, rate, room as u64, now);
                if !drained && came == Came::More {
                    self.later(number);
                }
                return Ok(came);
            }
            if drained {
                return Ok(came);
            }
        }
    }

    /// Says when a connection may be read from again. What a late timer has missed is made up for, but not a pause that the
    /// server made.
    fn pace(&mut self, number: u32, count: u64, rate: u64, room: u64, now: u64) {
        let ns = |bytes: u64| bytes.saturating_mul(1_000_000_000) / rate.max(1);
        let timeline = &self.common.timeline;
        if let Some(conn) = self.conns.get(number) {
            let from = if timeline.after(conn.allowed_at, ns(room)) > now { conn.allowed_at } else { now };
            conn.allowed_at = timeline.after(from, ns(count));
        }
    }

    /// The other end sends no more.
    fn ended(&mut self, number: u32) -> Result<Came, Fault> {
        let Some(conn) = self.conns.get(number) else { return Ok(Came::More) };
        let Some(flight) = self.flights.get(conn.flight) else {
            self.close(number);
            return Ok(Came::More);
        };
        if !flight.answer.ends_with_connection() {
            return Err(if conn.stage == Stage::Shaking { TLS } else { CLOSED });
        }
        flight.keeps = false;
        Ok(Came::All)
    }

    /// The answer is complete, and the connection has ended with it.
    fn keeps_no_longer(&mut self, number: u32) -> Result<Came, Fault> {
        let flight = self.conns.get(number).map_or(NONE, |conn| conn.flight);
        if let Some(flight) = self.flights.get(flight) {
            flight.keeps = false;
        }
        Ok(Came::All)
    }

    fn keep_held(&mut self, number: u32, bytes: &[u8]) -> Result<(), Fault> {
        if let Some(secure) = self.conns.get(number).and_then(|conn| conn.tls.as_mut()).filter(|_| !bytes.is_empty()) {
            secure.held = bytes.to_vec();
        }
        Ok(())
    }

    /// Takes records of TLS apart, of which there are `filled` bytes.
    fn records(&mut self, number: u32, buffer: &mut [u8], filled: usize, now: u64) -> Result<Came, Fault> {
        let Some(conn) = self.conns.get(number) else { return Ok(Came::More) };
        let slot = conn.session;
        let Some(mut secure) = conn.tls.take() else { return Ok(Came::More) };
        if let Some(tls) = &self.tls {
            tls.tickets.of(slot);
        }
        let mut sealed = std::mem::take(&mut self.sealed);
        sealed.clear();
        let mut came = Ok(Came::More);
        let passed = secure.pass(&mut buffer[..filled], &mut sealed, |plain| match self.take(number, plain, now) {
            Ok(Came::More) => {}
            other => {
                if came.is_ok() {
                    came = other;
                }
            }
        });
        self.sealed = sealed;
        let resumed = secure.resumed();
        if let Ok((_, used)) = passed
            && used < filled
        {
            secure.held = buffer[used..filled].to_vec();
        }
        let Some(conn) = self.conns.get(number) else { return Ok(Came::More) };
        conn.tls = Some(secure);
        let opens = conn.stage == Stage::Shaking && matches!(passed, Ok((Passed::Open, _)));
        if opens {
            conn.stage = Stage::Open;
            match resumed {
                Some(true) => self.counts.sessions.resumed += 1,
                _ => self.counts.sessions.full += 1,
            }
            // With what ends the handshake, in one go.
            self.send(number, now);
        }
        self.flush_sealed(number, now);
        match passed {
            Ok((Passed::Ended, _)) if came == Ok(Came::More) => self.ended(number),
            Ok(_) => came,
            Err(_) => Err(TLS),
        }
    }

    /// Takes in what came of an answer.
    fn take(&mut self, number: u32, bytes: &[u8], now: u64) -> Result<Came, Fault> {
        let Some(conn) = self.conns.get(number) else { return Ok(Came::More) };
        let slot = conn.session;
        let count = bytes.len() as u64;
        self.carried += count;
        let due = self.sessions[slot as usize].due;
        let in_window = self.common.timeline.counts_at(due, now);
        let tally = &mut self.counts.tally;
        tally.from_guest_total += count;
        tally.from_guest += if in_window { count } else { 0 };
        // Without a question there is no answer: what a server says before it closes is nobody's.
        let Some(flight) = self.flights.get(conn.flight) else { return Err(BROKEN) };
        if let Some(turns) = &mut self.turns {
            turns.mind_others(flight.heard_at, now);
            turns.carried(due, if in_window { count } else { 0 });
        }
        flight.heard_at = now;
        flight.came += count;
        if flight.came > U::ANSWER_MAX {
            return Err(ENDLESS);
        }
        let session = &mut self.sessions[slot as usize];
        session.bytes += count;
        let (users, user, request) = (&mut self.users, &mut session.user, &mut flight.request);
        users.heard(user, now);
        let mut input = bytes;
        loop {
            match flight.answer.step(&mut input).map_err(|_| BROKEN)? {
                Step::More => return Ok(Came::More),
                Step::Head(head) => {
                    flight.keeps = head.keeps;
                    users.head(user, request, head, in_window)?;
                }
                Step::Body(piece) => users.body(user, request, piece)?,
                Step::Done if !input.is_empty() => return Err(BROKEN),
                Step::Done => return Ok(Came::All),
            }
        }
    }
}

/// Puts what a connection holds to the front of the buffer; how much that is.
fn take_held(secure: &mut Secure, buffer: &mut [u8]) -> usize {
    let held = std::mem::take(&mut secure.held);
    let count = held.len().min(buffer.len());
    buffer[..count].copy_from_slice(&held[..count]);
    count
}
