//! What goes to and comes from the kernel: connections, requests, answers.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with, sockopt,
};

use super::{Engine, Stage, Trip};
use crate::session::fault::Fault;
use crate::session::fault::fault_of;
use crate::session::fault::{BROKEN, CLOSED};
use crate::session::http::Step;
use crate::session::slab::NONE;

const IN: u32 = libc::EPOLLIN as u32;
const OUT: u32 = libc::EPOLLOUT as u32;
const FAILED: u32 = libc::EPOLLERR as u32;
const ENDS: u32 = (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;

/// Longest answer, head and all, bytes; the longest that is right is a picture of 0.7 MB.
const ANSWER_MAX: u64 = 16 << 20;
/// An answer goes on and on.
const ENDLESS: Fault = Fault::Kind("endless");

/// How far an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    More,
    All,
}

impl Engine<'_> {
    /// Opens the connection of a user; the request goes out once it is there.
    pub(super) fn open(&mut self, slot: u32) -> Result<(), Fault> {
        let session = &mut self.sessions[slot as usize];
        let target = &self.common.targets[usize::from(session.member.instance())];
        let family = if target.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = socket_with(family, SocketType::STREAM, flags, None).map_err(fault_of)?;
        // They were granted when the load was prepared.
        let options = &self.common.spec.socket;
        crate::sockopt::apply(fd.as_fd(), options, true, true).map_err(|_| Fault::Kind("socket option"))?;
        match connect(&fd, target) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
            Err(errno) => return Err(fault_of(errno)),
        }
        session.age = session.age.wrapping_add(1);
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let data = EventData::new_u64(u64::from(session.age) << 32 | u64::from(slot));
        epoll::add(&self.epoll, &fd, data, interest).map_err(|_| Fault::Kind("no room to watch a connection"))?;
        (session.fd, session.stage) = (Some(fd), Stage::Connecting);
        (session.served, session.hangs_up) = (false, false);
        Ok(())
    }

    pub(super) fn close(&mut self, slot: u32) {
        let session = &mut self.sessions[slot as usize];
        (session.fd, session.stage) = (None, Stage::Closed);
        (session.served, session.hangs_up) = (false, false);
    }

    /// The kernel said that something is up with a connection.
    pub(super) fn ready(&mut self, slot: u32, flags: u32, now: u64) {
        let session = &mut self.sessions[slot as usize];
        let Some(fd) = &session.fd else { return };
        if session.stage == Stage::Connecting {
            if flags & (OUT | FAILED) == 0 {
                return;
            }
            let failed = if flags & FAILED == 0 { Ok(Ok(())) } else { sockopt::socket_error(fd) };
            if let Ok(Err(errno)) | Err(errno) = failed {
                return self.lost(slot, fault_of(errno), now);
            }
            session.stage = Stage::Open;
            self.counts.connections += 1;
        }
        let age = session.age;
        if flags & OUT != 0 {
            self.send(slot, now);
        }
        let session = &mut self.sessions[slot as usize];
        if flags & (IN | ENDS) != 0 && session.age == age && session.fd.is_some() {
            session.hangs_up |= flags & ENDS != 0;
            self.readable(slot, age, now);
        }
    }

    /// Sends the request of the operation under way as far as the kernel takes it.
    pub(super) fn send(&mut self, slot: u32, now: u64) {
        let session = &mut self.sessions[slot as usize];
        let (Some(fd), Some(trip)) = (&session.fd, self.trips.get(session.trip)) else { return };
        let measures = self.common.timeline.measures(now);
        while trip.sent < trip.length {
            let piece = trip.out.piece(trip.sent, &mut self.template);
            let more = trip.sent + (piece.len() as u64) < trip.length;
            match send_some(fd, piece, more) {
                Ok(0) => return,
                Ok(count) => {
                    if trip.sent == 0 && !trip.resent && measures {
                        self.counts.operations.request(session.member.instance());
                    }
                    trip.sent += count as u64;
                    // Whoever takes what is sent is not silent.
                    trip.heard_at = now;
                    self.carried += count as u64;
                    let tally = &mut self.counts.tally;
                    tally.to_guest_total += count as u64;
                    tally.to_guest += if measures { count as u64 } else { 0 };
                }
                // An answer may lie there that says why: it is read before the end is seen.
                Err(Errno::PIPE | Errno::CONNRESET) if trip.sent > 0 => return session.hangs_up = true,
                Err(errno) => return self.lost(slot, fault_of(errno), now),
            }
        }
    }

    /// Reads what there is.
    fn readable(&mut self, slot: u32, age: u32, now: u64) {
        let mut buffer = std::mem::take(&mut self.read);
        loop {
            let session = &mut self.sessions[slot as usize];
            let Some(fd) = session.fd.as_ref().filter(|_| session.age == age) else { break };
            let (count, hangs_up) = match receive_some(fd, &mut buffer) {
                Ok(Some(count)) => (count, session.hangs_up),
                Ok(None) => break,
                Err(errno) => {
                    self.lost(slot, fault_of(errno), now);
                    break;
                }
            };
            if count == 0 {
                self.ended(slot, now);
                break;
            }
            match self.take(slot, &buffer[..count], now) {
                Ok(Came::More) => {}
                Ok(Came::All) => self.answered(slot, now),
                Err(fault) => {
                    self.lost(slot, fault, now);
                    break;
                }
            }
            if count < buffer.len() && !hangs_up {
                break;
            }
        }
        self.read = buffer;
    }

    /// The other end sends no more.
    fn ended(&mut self, slot: u32, now: u64) {
        let session = &self.sessions[slot as usize];
        let Some(trip) = self.trips.get(session.trip) else { return self.close(slot) };
        if !trip.answer.ends_with_connection() {
            return self.lost(slot, CLOSED, now);
        }
        trip.keeps = false;
        self.judge_end(slot);
        self.answered(slot, now);
    }

    /// Takes in what came of an answer.
    fn take(&mut self, slot: u32, bytes: &[u8], now: u64) -> Result<Came, Fault> {
        let session = &mut self.sessions[slot as usize];
        let count = bytes.len() as u64;
        self.carried += count;
        let measures = self.common.timeline.measures(now);
        let tally = &mut self.counts.tally;
        tally.from_guest_total += count;
        tally.from_guest += if measures { count } else { 0 };
        // Without a question there is no answer: what a server says before it closes is nobody's.
        let Some(trip) = self.trips.get(session.trip) else { return Err(BROKEN) };
        trip.heard_at = now;
        self.heard[usize::from(session.member.instance())] = now;
        trip.bytes += count;
        trip.came += count;
        if trip.came > ANSWER_MAX {
            return Err(ENDLESS);
        }
        let world = self.common.world;
        let Trip { visit, answer, fault, keeps, .. } = trip.as_mut();
        let mut input = bytes;
        loop {
            match answer.step(&mut input).map_err(|_| BROKEN)? {
                Step::More => return Ok(Came::More),
                Step::Head(head) => {
                    *keeps = head.keeps;
                    if fault.is_none() {
                        *fault = visit.head(&head).err();
                    }
                    if measures && visit.is_not_modified() {
                        self.counts.operations.not_modified(session.member.instance());
                    }
                    if let Some(cookie) = head.cookie.filter(|cookie| !cookie.is_empty()) {
                        session.cookie = Some(cookie);
                    }
                }
                Step::Body(piece) if fault.is_none() => {
                    *fault = visit.feed(world, &mut session.member, piece).err();
                }
                Step::Body(_) => {}
                Step::Done if !input.is_empty() => return Err(BROKEN),
                Step::Done => break,
            }
        }
        self.judge_end(slot);
        Ok(Came::All)
    }

    /// The answer has come in full: whether it was right.
    fn judge_end(&mut self, slot: u32) {
        let session = &mut self.sessions[slot as usize];
        debug_assert_ne!(session.trip, NONE);
        if let Some(trip) = self.trips.get(session.trip).filter(|trip| trip.fault.is_none()) {
            trip.fault = trip.visit.finish(self.common.world, &mut session.member).err();
        }
    }
}

/// Sends without waiting; how much the kernel took, which is nothing where it has no room.
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
