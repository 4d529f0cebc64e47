//! The driver's end of a bulk stream.
//!
//! At the end of every connection both ends compare their counts to the byte: towards the guest the server answers the end of the stream
//! with its count; from the guest the server's count follows the data.
//!
//! A driver that has all the time counts bytes where this end hands them to its kernel or takes them from it. A byte handed over is not
//! yet one received: at both edges of the measured window up to a socket buffer is under way, which cancels out in a steady flow.
//!
//! In turns every turn has a connection of its own, with new buffers, which is opened before the turn begins. Nothing is under way at its
//! start, and its time ends when the other end is known to have received everything. Where the guest is stopped before that, the time in
//! which it stood still is left out.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, shutdown};
use tare_model::drive::{ReceiveMethod, Wait};
use tare_model::turns::{TurnCount, TurnsDone};

use crate::DriverError;
use crate::bulk::{SendSettings, Sink, Source};
use crate::clock::{now_ns, sleep_until};
use crate::connections::DriverThread;
use crate::error::reason_of;
use crate::link::Bulk;
use crate::net;
use crate::operation::{CUT_OFF, Worker};
use crate::protocol::{CLOSING_LEN, GO, STOP, closing_count};
use crate::session::body::keep_last;
use crate::sys::unacknowledged;
use crate::tally::Tally;
use crate::timeline::{Stage, Timeline, Tracker, Turn};

/// One stream of a run.
pub(crate) struct Stream<'a> {
    pub thread: &'a DriverThread<'a>,
    pub send: SendSettings,
    pub receive: ReceiveMethod,
    /// Opens a connection like the first one.
    pub open: &'a dyn Fn() -> Result<Bulk, DriverError>,
}

/// Moves data through all phases and settles the count of every connection with the other end, the first of which is open.
pub(crate) fn run(stream: &Stream<'_>, first: &Bulk) -> Tally {
    let worker = &stream.thread.worker;
    let mut tally = Tally::bulk();
    let mut tracker = Tracker::new(worker.timeline.clone());
    let settled = if worker.timeline.takes_turns() {
        stream.in_turns(first, &mut tracker, &mut tally)
    } else {
        stream.throughout(first, &mut tracker, &mut tally)
    };
    match settled {
        Ok(()) => tally.verified = true,
        Err(reason) => {
            let cut = worker.control.cut.load(Ordering::Relaxed);
            tally.error(if cut { CUT_OFF.to_owned() } else { reason });
        }
    }
    tally.cpu = tracker.finish();
    tally
}

impl Stream<'_> {
    /// On one connection through all phases.
    fn throughout(&self, bulk: &Bulk, tracker: &mut Tracker, tally: &mut Tally) -> Result<(), String> {
        let worker = &self.thread.worker;
        let _armed = self.thread.breaker.guard(bulk.fd.as_fd()).ok_or(CUT_OFF)?;
        if !sleep_until(worker.begins_at(), &worker.control.stop) {
            return Err(CUT_OFF.to_owned());
        }
        let mut flow = Flow::new(bulk, self);
        let (measured, pumped) = flow.begin().map_or_else(|why| (0, Err(why)), |()| pump(&mut flow, worker, tracker));
        let settled = pumped.and_then(|()| flow.settle());
        flow.count(measured, tally);
        settled
    }

    /// On a connection of its own in each turn.
    fn in_turns(&self, first: &Bulk, tracker: &mut Tracker, tally: &mut Tally) -> Result<(), String> {
        let worker = &self.thread.worker;
        let mut done = TurnsDone::default();
        // What the last turn had stays until there is another, which so lies elsewhere in memory.
        let mut renewed = None;
        let mut turns = (0..).map_while(|index| worker.timeline.turn(index));
        let settled = turns.try_for_each(|turn| {
            // What the turn before left under way ends in the first half of the gap.
            if !sleep_until(turn.from.saturating_sub(turn.gap / 2), &worker.control.stop) {
                return Err(CUT_OFF.to_owned());
            }
            if !self.joins(&turn) {
                done.counts.push(TurnCount::default());
                return Ok(());
            }
            if !done.counts.is_empty() {
                renewed = Some((self.open)().map_err(|error| error.to_string())?);
            }
            let (count, overran) = self.turn(&turn, renewed.as_ref().unwrap_or(first), tracker, tally)?;
            done.overran += u32::from(overran);
            done.measured_ns += count.measured_ns;
            done.counts.push(count);
            Ok(())
        });
        tally.turns = Some(done);
        settled
    }

    /// Whether this stream flows in a turn: it joins in the ramp-up, or from the start where there is a warm-up.
    fn joins(&self, turn: &Turn) -> bool {
        let worker = &self.thread.worker;
        turn.from < worker.timeline.warm_end || worker.timeline.joins_at(worker.index, worker.of) < turn.to
    }

    /// Moves data in one turn and settles the count; what was measured, and whether that reached into the next arm's turn.
    fn turn(
        &self,
        turn: &Turn,
        bulk: &Bulk,
        tracker: &mut Tracker,
        tally: &mut Tally,
    ) -> Result<(TurnCount, bool), String> {
        let _armed = self.thread.breaker.guard(bulk.fd.as_fd()).ok_or(CUT_OFF)?;
        let mut flow = Flow::new(bulk, self);
        if !sleep_until(turn.from, &self.thread.worker.control.stop) {
            return Err(CUT_OFF.to_owned());
        }
        let before = tally.to_guest_total + tally.from_guest_total;
        let driven = flow_in(turn, &mut flow, &self.thread.worker, tracker, before);
        flow.count(driven.as_ref().map_or(0, |(count, _)| count.bytes), tally);
        driven
    }
}

/// Moves the data of a turn, before which so many bytes were moved.
fn flow_in(
    turn: &Turn,
    flow: &mut Flow<'_>,
    worker: &Worker<'_>,
    tracker: &mut Tracker,
    before: u64,
) -> Result<(TurnCount, bool), String> {
    let (from, to) = turn.measured.unwrap_or((u64::MAX, turn.to));
    let mut measured_from = None;
    flow.begin()?;
    loop {
        let now = now_ns();
        if now >= to || worker.control.stop.load(Ordering::Relaxed) {
            break;
        }
        tracker.at(now);
        if now >= from && measured_from.is_none() {
            measured_from = Some((now, flow.arrived()?));
        }
        flow.step()?;
        worker.meter.set_bytes(before + flow.moved);
    }
    flow.settle()?;
    let now = now_ns();
    tracker.at(now);
    worker.meter.set_bytes(before + flow.moved);
    let began = measured_from.unwrap_or((now, flow.moved));
    Ok((measured(&worker.timeline, began, (now, flow.moved)), overran(&worker.timeline, turn, now)))
}

/// What arrived from one moment to another, and how long the guest ran for it.
fn measured(timeline: &Timeline, (from, arrived): (u64, u64), (to, moved): (u64, u64)) -> TurnCount {
    let measured_ns = (to - from).saturating_sub(timeline.frozen(from, to));
    TurnCount { bytes: moved - arrived, measured_ns, ..TurnCount::default() }
}

/// Whether a stream that was settled at a moment was under way in the next arm's turn. One whose guest was stopped disturbed nobody.
fn overran(timeline: &Timeline, turn: &Turn, settled: u64) -> bool {
    settled > turn.to + turn.gap && timeline.frozen(turn.from, settled) == 0
}

/// Moves data until the load is over. Returns the bytes in the measured window.
fn pump(flow: &mut Flow<'_>, worker: &Worker<'_>, tracker: &mut Tracker) -> (u64, Result<(), String>) {
    let timeline = &worker.timeline;
    let stop = &worker.control.stop;
    let mut warming = timeline.warm_end > timeline.start;
    let mut measured = 0;
    while !stop.load(Ordering::Relaxed) {
        let moved = match flow.step() {
            Ok(moved) => moved,
            Err(reason) => return (measured, Err(reason)),
        };
        worker.meter.set_bytes(flow.moved);
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
    (measured, Ok(()))
}

/// The data of one connection, from its first byte until both ends have counted the same.
struct Flow<'a> {
    fd: BorrowedFd<'a>,
    end: End<'a>,
    /// Bytes that this end has sent or received.
    moved: u64,
}

/// What the driver's end does.
enum End<'a> {
    Sends(Source<'a>),
    Receives(Sink),
}

impl<'a> Flow<'a> {
    fn new(bulk: &'a Bulk, stream: &Stream<'_>) -> Self {
        let end = if bulk.to_guest {
            End::Sends(Source::new(&stream.send, bulk.window.as_ref()))
        } else {
            End::Receives(Sink::new(stream.receive))
        };
        Self { fd: bulk.fd.as_fd(), end, moved: 0 }
    }

    /// Has a server start that sends.
    fn begin(&self) -> Result<(), String> {
        match self.end {
            End::Sends(_) => Ok(()),
            End::Receives(_) => net::send_full(self.fd, &[GO], SendFlags::empty()).map_err(reason_of),
        }
    }

    /// Moves some bytes; returns how many.
    #[inline]
    fn step(&mut self) -> Result<u64, String> {
        let moved = match &mut self.end {
            End::Sends(source) => source.send(self.fd),
            End::Receives(sink) => sink.receive(self.fd),
        };
        let moved = moved.map_err(reason_of)?;
        if moved == 0 {
            return Err("stream ended early".to_owned());
        }
        self.moved += moved;
        Ok(moved)
    }

    /// Bytes that have arrived at the receiving end, as far as this one knows.
    fn arrived(&self) -> Result<u64, String> {
        match self.end {
            End::Receives(_) => Ok(self.moved),
            End::Sends(_) if self.moved == 0 => Ok(0),
            End::Sends(_) => {
                let under_way = unacknowledged(self.fd).map_err(|error| format!("bytes under way: {error}"))?;
                Ok(self.moved.saturating_sub(under_way))
            }
        }
    }

    /// Ends the data, and sees that both ends have counted the same.
    fn settle(&mut self) -> Result<(), String> {
        let note = match &mut self.end {
            End::Sends(_) => {
                shutdown(self.fd, Shutdown::Write).map_err(reason_of)?;
                let mut note = [0; CLOSING_LEN];
                let got = net::receive_full(self.fd, &mut note, Wait::Block).map_err(reason_of)?;
                closing_count(&note[..got])
            }
            End::Receives(sink) => {
                // The count follows the data only after the server has seen STOP, so it is never among dropped bytes.
                sink.copy_from_now_on();
                net::send_full(self.fd, &[STOP], SendFlags::empty()).map_err(reason_of)?;
                let mut note = [0; CLOSING_LEN];
                loop {
                    match sink.receive(self.fd).map_err(reason_of)? {
                        0 => break,
                        n => {
                            self.moved += n;
                            keep_last(&mut note, sink.last(n));
                        }
                    }
                }
                self.moved = self.moved.saturating_sub(CLOSING_LEN as u64);
                closing_count(&note)
            }
        };
        match note {
            Some(count) if count == self.moved => Ok(()),
            Some(_) => Err("bytes received differ from bytes sent".to_owned()),
            None => Err("stream closed without a count".to_owned()),
        }
    }

    /// Adds its bytes to those of the stream.
    fn count(&self, measured: u64, tally: &mut Tally) {
        let (window, total) = match self.end {
            End::Sends(_) => (&mut tally.to_guest, &mut tally.to_guest_total),
            End::Receives(_) => (&mut tally.from_guest, &mut tally.from_guest_total),
        };
        *window += measured;
        *total += self.moved;
    }
}

/// Whether the driver has asked a server that sends to stop. An error where the driver is gone.
pub(crate) fn stop_requested(fd: BorrowedFd<'_>) -> Result<bool, Errno> {
    let mut word = [0; 1];
    match rustix::net::recv(fd, &mut word, rustix::net::RecvFlags::DONTWAIT) {
        Ok((0, _)) => Err(Errno::PIPE),
        Ok(_) => Ok(word[0] == STOP),
        Err(Errno::AGAIN | Errno::INTR) => Ok(false),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::turns::Waiting;

    #[test]
    fn what_is_under_way_when_the_guest_is_stopped_counts_the_time_in_which_it_ran() {
        // Turns of 100 to 120 and of 175 to 195; the guest is stopped from 122 to 173.
        let (idle, frozen) = (Timeline::of_two_arms(Waiting::Idle), Timeline::of_two_arms(Waiting::Frozen));
        let counted = |timeline: &Timeline, settled| {
            let count = measured(timeline, (110, 3), (settled, 10));
            assert_eq!(count.bytes, 7);
            (count.measured_ns, overran(timeline, &timeline.turn(0).unwrap(), settled))
        };
        let settled = [121, 125, 126, 180];
        assert_eq!(settled.map(|at| counted(&idle, at)), [(11, false), (15, false), (16, true), (70, true)]);
        let ran = 70 - (173 - 122);
        assert_eq!(settled.map(|at| counted(&frozen, at)), [(11, false), (12, false), (12, false), (ran, false)]);
    }
}
