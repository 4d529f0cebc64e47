//! Serves connect, request, response: a few threads that each accept a connection, answer it and close it.

use std::os::fd::{AsFd, OwnedFd};

use crate::control::Breaker;
use crate::error::reason_of;
use crate::net;
use crate::payload::stamp_len;
use crate::protocol::{HELLO_LEN, Hello, Purpose};
use crate::serve_rr::Sizes;
use crate::server::Shared;
use rustix::net::SendFlags;

/// Threads that accept: enough that one waiting for a request does not leave a CPU idle, few enough that a
/// thread finds its caches warm.
pub(crate) fn acceptors() -> usize {
    std::thread::available_parallelism().map_or(2, |cpus| cpus.get() * 2).clamp(2, 64)
}

/// Serves connections one after another until the server stops.
pub(crate) fn accept_and_serve(shared: &Shared, listener: &OwnedFd, sizes: Sizes, index: usize) {
    let request = vec![0; (sizes.request as usize).max(HELLO_LEN)];
    let mut buffers = Buffers { request, response: vec![0; sizes.response as usize] };
    let (mut served, mut exchanges) = (0, 0);
    while let Some(fd) = shared.accept(listener) {
        served += 1;
        match serve_one(&fd, &shared.breakers[index], sizes, &mut buffers) {
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

/// Answers one connection; true when it was an exchange rather than a hello.
fn serve_one(fd: &OwnedFd, breaker: &Breaker, sizes: Sizes, buffers: &mut Buffers) -> Result<bool, String> {
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
                Hello::decode(&buffers.request[..wanted]).ok_or("something that is no driver connected")?;
                let reply = sizes.reply(Purpose::TcpCrr, 0).encode();
                net::send_full(fd, &reply, SendFlags::empty()).map_err(reason_of)?;
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
