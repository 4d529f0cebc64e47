//! The driver's end of a bulk stream.
//!
//! Bytes are counted where this end hands them to its kernel or takes them from it. A byte handed over is not
//! yet one received: at both edges of the measured window up to a socket buffer is under way, which
//! cancels out in a steady flow. At the end of every stream both ends compare their counts to the byte:
//! towards the guest the server answers the end of the stream with its count; from the guest the server's
//! count follows the data.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, shutdown};
use tare_model::drive::{ReceiveMethod, Wait};

use crate::bulk::{SendSettings, Sink, Source, Window};
use crate::clock::{now_ns, sleep_until};
use crate::control::Armed;
use crate::error::reason_of;
use crate::net;
use crate::operation::{CUT_OFF, Worker};
use crate::protocol::{CLOSING_LEN, GO, STOP, closing_count};
use crate::session::body::keep_last;
use crate::tally::Tally;
use crate::timeline::{Stage, Tracker};

/// One stream of a run.
#[derive(Debug)]
pub(crate) struct Stream<'a> {
    pub fd: &'a OwnedFd,
    pub to_guest: bool,
    pub send: SendSettings,
    pub window: Option<&'a Window>,
    pub receive: ReceiveMethod,
    /// Lets the supervisor end a blocked call.
    pub _armed: Option<Armed<'a>>,
}

/// Moves data through all phases, then settles the count with the other end.
pub(crate) fn run(stream: Stream<'_>, worker: &Worker<'_>) -> Tally {
    let mut tally = Tally::bulk();
    let timeline = &worker.timeline;
    let begins =
        if timeline.warm_end > timeline.start { timeline.start } else { timeline.joins_at(worker.index, worker.of) };
    if sleep_until(begins, &worker.control.stop) {
        let mut tracker = Tracker::new(timeline.clone());
        let settled = if stream.to_guest {
            send_to_guest(&stream, worker, &mut tracker, &mut tally)
        } else {
            receive_from_guest(&stream, worker, &mut tracker, &mut tally)
        };
        match settled {
            Ok(()) => tally.verified = true,
            Err(reason) => {
                let cut = worker.control.cut.load(Ordering::Relaxed);
                tally.error(if cut { CUT_OFF.to_owned() } else { reason });
            }
        }
        tally.cpu = tracker.finish();
    }
    tally
}

/// Calls `step` until the load is over; each call moves and returns some bytes. Returns all bytes moved and
/// those in the measured window.
fn pump(
    worker: &Worker<'_>,
    tracker: &mut Tracker,
    mut step: impl FnMut() -> Result<u64, String>,
) -> (u64, u64, Result<(), String>) {
    let timeline = &worker.timeline;
    let stop = &worker.control.stop;
    let mut warming = timeline.warm_end > timeline.start;
    let (mut total, mut measured) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let moved = match step() {
            Ok(moved) => moved,
            Err(reason) => return (total, measured, Err(reason)),
        };
        total += moved;
        worker.meter.set_bytes(total);
        match tracker.at(now_ns()) {
            Stage::Steady => measured += moved,
            Stage::Over => break,
            Stage::WarmUp => continue,
            Stage::Rest | Stage::RampUp | Stage::TurnWarmUp | Stage::RampDown => {}
        }
        if warming {
            warming = false;
            sleep_until(timeline.joins_at(worker.index, worker.of), stop);
        }
    }
    (total, measured, Ok(()))
}

fn send_to_guest(
    stream: &Stream<'_>,
    worker: &Worker<'_>,
    tracker: &mut Tracker,
    tally: &mut Tally,
) -> Result<(), String> {
    let fd = stream.fd.as_fd();
    let mut source = Source::new(&stream.send, stream.window);
    let (sent, measured, ended) = pump(worker, tracker, || source.send(fd).map_err(reason_of));
    (tally.to_guest, tally.to_guest_total) = (measured, sent);
    ended?;
    shutdown(fd, Shutdown::Write).map_err(reason_of)?;
    let mut note = [0; CLOSING_LEN];
    let got = net::receive_full(fd, &mut note, Wait::Block).map_err(reason_of)?;
    match closing_count(&note[..got]) {
        Some(received) if received == sent => Ok(()),
        Some(_) => Err("bytes received differ from bytes sent".to_owned()),
        None => Err("stream closed without a count".to_owned()),
    }
}

fn receive_from_guest(
    stream: &Stream<'_>,
    worker: &Worker<'_>,
    tracker: &mut Tracker,
    tally: &mut Tally,
) -> Result<(), String> {
    let fd = stream.fd.as_fd();
    net::send_full(fd, &[GO], SendFlags::empty()).map_err(reason_of)?;
    let mut sink = Sink::new(stream.receive);
    let (mut received, measured, ended) = pump(worker, tracker, || match sink.receive(fd) {
        Ok(0) => Err("stream ended early".to_owned()),
        other => other.map_err(reason_of),
    });
    tally.from_guest = measured;
    ended?;
    // The count follows the data only after the server has seen STOP, so it is never among dropped bytes.
    sink.copy_from_now_on();
    net::send_full(fd, &[STOP], SendFlags::empty()).map_err(reason_of)?;
    let mut tail = [0; CLOSING_LEN];
    loop {
        match sink.receive(fd).map_err(reason_of)? {
            0 => break,
            n => {
                received += n;
                keep_last(&mut tail, sink.last(n));
            }
        }
    }
    tally.from_guest_total = received.saturating_sub(CLOSING_LEN as u64);
    match closing_count(&tail) {
        Some(sent) if sent + CLOSING_LEN as u64 == received => Ok(()),
        Some(_) => Err("bytes received differ from bytes sent".to_owned()),
        None => Err("stream closed without a count".to_owned()),
    }
}

/// Whether the driver has asked a server that sends to stop. An error where the driver is gone.
pub(crate) fn stop_requested(fd: std::os::fd::BorrowedFd<'_>) -> Result<bool, Errno> {
    let mut word = [0; 1];
    match rustix::net::recv(fd, &mut word, rustix::net::RecvFlags::DONTWAIT) {
        Ok((0, _)) => Err(Errno::PIPE),
        Ok(_) => Ok(word[0] == STOP),
        Err(Errno::AGAIN | Errno::INTR) => Ok(false),
        Err(errno) => Err(errno),
    }
}
