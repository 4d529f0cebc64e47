//! Serves bulk streams: takes or gives data as the driver's hello says, and settles the count at the end.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{SendFlags, Shutdown, shutdown};
use tare_model::drive::{ReceiveMethod, Wait};

use crate::bulk::{SendSettings, Sink, Source, Window};
use crate::clock::now_ns;
use crate::error::reason_of;
use crate::net;
use crate::protocol::{GO, Purpose, Reply, closing};
use crate::serve_rr::{answer, hear};
use crate::server::Shared;
use crate::stream::stop_requested;

/// How often a sending server looks whether it has been asked to stop; a look costs a system call.
const LOOK_NS: u64 = 1_000_000;

/// Serves one stream to its end.
pub(crate) fn serve(
    shared: &Shared,
    fd: &OwnedFd,
    settings: &SendSettings,
    receive: ReceiveMethod,
) -> Result<(), String> {
    let fd = fd.as_fd();
    let reply = Reply { serves: Purpose::BulkToGuest, request_bytes: 0, response_bytes: 0, port: 0 };
    let Some(hello) = hear(shared, fd)? else { return Ok(()) };
    if !reply.fits(&hello) {
        return answer(fd, &reply);
    }
    // What takes a while is done before the answer: after it the driver's turn may begin at once.
    if hello.purpose == Purpose::BulkToGuest {
        let sink = Sink::new(receive);
        answer(fd, &reply)?;
        return take(shared, fd, sink);
    }
    let window = Window::new(settings).map_err(|e| format!("cannot make the file to send: {e}"))?;
    if let Some(window) = &window {
        shared.tally.window(window.huge);
    }
    let source = Source::new(settings, window.as_ref());
    answer(fd, &reply)?;
    give(shared, fd, source)
}

/// Receives until the driver ends the stream, then tells it how much came.
fn take(shared: &Shared, fd: BorrowedFd<'_>, mut sink: Sink) -> Result<(), String> {
    let mut received = 0;
    let ended = loop {
        match sink.receive(fd) {
            Ok(0) => break net::send_full(fd, &closing(received), SendFlags::empty()).map_err(reason_of),
            Ok(n) => received += n,
            Err(errno) => break Err(reason_of(errno)),
        }
    };
    shared.tally.served(1, received, 0);
    ended
}

/// Sends from the driver's word to start until its word to stop, then tells it how much that was.
fn give(shared: &Shared, fd: BorrowedFd<'_>, mut source: Source<'_>) -> Result<(), String> {
    let mut word = [0; 1];
    match net::receive(fd, &mut word, Wait::Block).map_err(reason_of)? {
        0 => return Ok(()),
        _ if word[0] != GO => return Err("a driver that does not say when to start".to_owned()),
        _ => {}
    }
    let mut sent = 0;
    let mut look_at = now_ns() + LOOK_NS;
    let ended = loop {
        match source.send(fd) {
            Ok(n) => sent += n,
            Err(errno) => break Err(reason_of(errno)),
        }
        let now = now_ns();
        if now >= look_at {
            look_at = now + LOOK_NS;
            match stop_requested(fd) {
                Ok(false) => {}
                Ok(true) => {
                    break net::send_full(fd, &closing(sent), SendFlags::empty())
                        .and_then(|()| shutdown(fd, Shutdown::Write))
                        .map_err(reason_of);
                }
                Err(errno) => break Err(reason_of(errno)),
            }
        }
    };
    shared.tally.served(1, 0, sent);
    ended
}
