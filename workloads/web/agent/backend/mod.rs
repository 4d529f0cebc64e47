//! The backend of a web application, simulated: it stands for the database, and must never be the bottleneck.
//!
//! A blocking thread a connection: connections are tens, kept alive by the application, and a thread that waits for one socket has
//! the cheapest exchange there is (`bench/README.md`). A request costs one receive, one send and two looks at the clock; nothing is
//! allocated once the buffers have grown. What it delays, it delays on that connection alone.

mod commands;
mod fields;
mod reply;
mod request;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::web::spec::BackendSpec;
use rustix::io::Errno;
use rustix::net::SendFlags;
use tare_model::drive::{SocketOptions, Wait};

pub use commands::command_of;

use crate::door::Door;
use crate::error::reason_of;
use crate::server::{Server, Shared};
use crate::task::{Kind, Serves};
use crate::times::Times;
use crate::{DriverError, clock, net};
use reply::Reply;
use request::Parsed;

/// Longest head of a request; a query has some hundred bytes.
const MOST_HEAD: usize = 16 * 1024;

pub(crate) const KIND: Kind = Kind::serves::<BackendSpec>();

impl Serves for BackendSpec {
    fn serve(self, door: Door) -> Result<Server, DriverError> {
        Server::listen(door, &SocketOptions::default(), 0)?.accepting(move |shared, fd| serve(shared, fd, self))
    }
}

/// What one connection has done.
#[derive(Debug, Default, Clone, Copy)]
struct Served {
    requests: u64,
    bytes_in: u64,
    bytes_out: u64,
}

/// Serves one connection until the application closes it. What is no request of HTTP/1.1 is answered with 400 and ends the
/// connection.
fn serve(shared: &Shared, fd: &OwnedFd, settings: BackendSpec) -> Result<(), String> {
    let mut served = Served::default();
    let ended = exchange(shared, fd.as_fd(), settings, &mut served);
    shared.tally.served(1, served.bytes_in, served.bytes_out);
    shared.tally.answered(served.requests);
    // Counted while the connection is still open: the reason is in the report once the connection is closed.
    if let Err(reason) = ended
        && !shared.stopping()
    {
        shared.tally.error(reason);
    }
    Ok(())
}

fn exchange(shared: &Shared, fd: BorrowedFd<'_>, settings: BackendSpec, served: &mut Served) -> Result<(), String> {
    let times: &Times = shared.tally.service();
    let mut buffer = vec![0; MOST_HEAD];
    let mut filled = 0;
    let mut reply = Reply::new();
    loop {
        let got = match net::receive(fd, &mut buffer[filled..], Wait::Block) {
            Ok(0) if filled > 0 => return Err("a request was cut short".to_owned()),
            Ok(0) => return Ok(()),
            Ok(got) => got,
            // The application was ended while it asked nothing.
            Err(Errno::CONNRESET) if filled == 0 => return Ok(()),
            Err(errno) => return Err(reason_of(errno)),
        };
        served.bytes_in += got as u64;
        filled += got;
        let mut begin = 0;
        loop {
            match request::parse(&buffer[begin..filled]) {
                Parsed::Partial if begin == 0 && filled == buffer.len() => {
                    return refuse(fd, "a head is longer than 16 KiB");
                }
                Parsed::Partial => break,
                Parsed::Malformed(what) => return refuse(fd, what),
                Parsed::Request { query, length, close } => {
                    let read_ns = clock::now_ns();
                    reply.make(settings.salt, query);
                    if settings.delay_ns > 0 && !clock::sleep_until(read_ns + settings.delay_ns, &shared.stop) {
                        return Ok(());
                    }
                    net::send_full(fd, reply.bytes(), SendFlags::empty()).map_err(reason_of)?;
                    times.record(clock::now_ns().saturating_sub(read_ns));
                    served.requests += 1;
                    served.bytes_out += reply.bytes().len() as u64;
                    if !reply.known {
                        shared.tally.error("a query without a command that there is".to_owned());
                    }
                    if close {
                        return Ok(());
                    }
                    begin += length;
                }
            }
        }
        buffer.copy_within(begin..filled, 0);
        filled -= begin;
    }
}

/// Tells the application that it sent no request, and the run why.
fn refuse(fd: BorrowedFd<'_>, what: &str) -> Result<(), String> {
    let answer = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    // The reason is reported even if this fails.
    let _ = net::send_full(fd, answer, SendFlags::empty());
    Err(format!("malformed request: {what}"))
}
