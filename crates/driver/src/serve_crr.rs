//! Serves connect, request, response: a few threads that each accept a connection, answer it and close it.
//!
//! A driver shows its token in its hello, on a connection before all exchanges. From then on its address is known, and the exchanges themselves,
//! which are measured, are what they would be without a token.

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use crate::control::Breaker;
use crate::error::reason_of;
use crate::net;
use crate::payload::stamp_len;
use crate::protocol::{HELLO_LEN, Purpose, heard};
use crate::serve_rr::{Sizes, answer, hear};
use crate::server::Shared;
use rustix::net::SendFlags;

/// Threads that accept: enough that one waiting for a request does not leave a CPU idle, few enough that a
/// thread finds its caches warm.
pub(crate) fn acceptors() -> usize {
    std::thread::available_parallelism().map_or(2, |cpus| cpus.get() * 2).clamp(2, 64)
}

/// Serves connections one after another until the server stops.
pub(crate) fn accept_and_serve(shared: &Arc<Shared>, listener: &OwnedFd, sizes: Sizes, index: usize) {
    let request = vec![0; (sizes.request as usize).max(HELLO_LEN)];
    let mut buffers = Buffers { request, response: vec![0; sizes.response as usize] };
    let (mut served, mut exchanges) = (0, 0);
    // The address that came last: mostly there is one, and this saves looking it up.
    let mut last = None;
    while let Some((fd, from)) = shared.accept(listener) {
        if last.is_none() || last != from {
            if !shared.knows(from) {
                // Not on this thread, which a stranger could keep waiting.
                shared.adopt(fd, move |shared, fd| welcome(shared, fd, sizes, from));
                continue;
            }
            last = from;
        }
        served += 1;
        match serve_one((shared, &fd), &shared.breakers[index], sizes, &mut buffers) {
            Ok(answered) => exchanges += u64::from(answered),
            Err(reason) if !shared.stopping() => shared.tally.error(reason),
            Err(_) => {}
        }
    }
    shared.tally.served(served, exchanges * u64::from(sizes.request), exchanges * u64::from(sizes.response));
}

struct Buffers {
    request: Vec<u8>,
    response: Vec<u8>,
}

/// Hears the hello of a driver whose address is not known yet.
fn welcome(shared: &Shared, fd: &OwnedFd, sizes: Sizes, from: Option<IpAddr>) -> Result<(), String> {
    if hear(shared, fd.as_fd())?.is_none() {
        return Ok(());
    }
    shared.remember(from);
    shared.tally.served(1, 0, 0);
    answer(fd.as_fd(), &sizes.reply(Purpose::TcpCrr, 0))
}

/// Answers one connection; true when it was an exchange rather than a hello.
fn serve_one(
    (shared, fd): (&Shared, &OwnedFd),
    breaker: &Breaker,
    sizes: Sizes,
    buffers: &mut Buffers,
) -> Result<bool, String> {
    let fd = fd.as_fd();
    let Some(_armed) = breaker.guard(fd) else { return Err("the server stops".to_owned()) };
    let size = sizes.request as usize;
    let stamp = stamp_len(size, buffers.response.len());
    let mut got = 0;
    loop {
        let is_hello = got > 0 && buffers.request[0] & 0x80 != 0;
        let wanted = if is_hello { HELLO_LEN } else { size };
        if got >= wanted {
            if is_hello {
                match heard(&buffers.request[..wanted]) {
                    Some((_, shown)) if shared.admits(&shown) => answer(fd, &sizes.reply(Purpose::TcpCrr, 0))?,
                    Some(_) => {}
                    None => shared.tally.stranger(),
                }
                return Ok(false);
            }
            break;
        }
        // The first bytes of a hello may fill a short request: room is for the longer of both.
        match net::receive(fd, &mut buffers.request[got..], sizes.wait).map_err(reason_of)? {
            0 => return Err("a request was cut short".to_owned()),
            n => got += n,
        }
    }
    buffers.response[..stamp].copy_from_slice(&buffers.request[..stamp]);
    // MORE holds the last segment back until the close that follows at once, so that it carries the end
    // of the stream as well: the client's close then finds ours there and needs no TIME_WAIT.
    net::send_full(fd, &buffers.response, SendFlags::MORE).map_err(reason_of)?;
    Ok(true)
}
