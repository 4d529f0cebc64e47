//! The open loop: operations start at times fixed in advance, whether or not earlier ones have ended.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use tare_model::drive::DriveSpec;
use tare_model::load::LoadModel;

use crate::backlog::Backlog;
use crate::clock::{now_ns, sleep_until};
use crate::course::GRACE_NS;
use crate::error::Failure;
use crate::operation::{Done, Operation, Worker};
use crate::schedule::{Dealer, Schedule};
use crate::tally::Tally;
use crate::timeline::{Stage, Timeline, Tracker};
use crate::turn_counts::TurnCounts;

/// What the threads of an open loop share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub dealer: Dealer,
    pub backlog: Backlog,
}

impl Shared {
    /// The arrivals of an open loop, dealt to so many threads; `None` of a closed one.
    pub fn of(spec: &DriveSpec, timeline: &Timeline, threads: u32) -> Option<Self> {
        let LoadModel::Open { rate, arrivals, .. } = spec.load else { return None };
        let schedule = Schedule::new(rate.0, arrivals, &spec.phases, timeline.start, spec.seed).by(timeline);
        let backlog = Backlog::new(timeline, timeline.load_end.saturating_add(GRACE_NS));
        Some(Self { dealer: Dealer::new(schedule, threads), backlog })
    }
}

/// The arrivals of one connection, in order.
struct Hand<'a> {
    dealer: &'a Dealer,
    connection: usize,
    arrivals: VecDeque<u64>,
}

impl<'a> Hand<'a> {
    const fn of(dealer: &'a Dealer, connection: usize) -> Self {
        Self { dealer, connection, arrivals: VecDeque::new() }
    }

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.arrivals.is_empty() {
            self.dealer.take(self.connection, &mut self.arrivals);
        }
        self.arrivals.pop_front()
    }
}

/// Runs one connection through all its arrivals.
///
/// After the end of the load only arrivals that were due in the measured window are still sent; they come
/// first, because a connection serves its arrivals in order. What is left when the supervisor stops
/// the run is unfinished.
pub(crate) fn run<O: Operation>(mut operation: O, worker: &Worker<'_>, shared: &Shared) -> Tally {
    let mut tally = worker.tally(true);
    let timeline = &worker.timeline;
    let stop = &worker.control.stop;
    let mut hand = Hand::of(&shared.dealer, worker.index as usize);
    let mut tracker = Tracker::new(timeline.clone());
    let mut turns = TurnCounts::of(timeline);
    let (mut ended, mut now) = (0, 0);
    while let Some(intended) = hand.next() {
        let due = timeline.measures(intended);
        let behind = intended <= now;
        if !behind {
            let in_time = sleep_until(intended, stop);
            now = now_ns();
            if !in_time {
                give_up(Some(intended), &mut hand, worker, shared, &mut tally);
                break;
            }
        }
        let late_and_unmeasured = now >= timeline.load_end && !due;
        if late_and_unmeasured || stop.load(Ordering::Relaxed) {
            give_up(Some(intended), &mut hand, worker, shared, &mut tally);
            break;
        }
        now = in_turn(now, &mut tracker, stop);
        if behind {
            shared.backlog.waited(intended, now);
        }
        let sent = now;
        let outcome = operation.perform();
        now = now_ns();
        let stage = tracker.at(now);
        let rested = operation.rested_ns() + timeline.frozen(sent, now);
        match outcome {
            Ok(Done::Answered) => {
                ended += 1;
                worker.meter.set_operations(ended);
                // In turns what was due in a turn may be answered after it.
                let counts = if timeline.takes_turns() { due } else { stage == Stage::Steady };
                if counts {
                    tally.operations += 1;
                    operation.counts();
                }
                if due {
                    let took = answered(&operation, (timeline.waited(intended, sent), sent, now), rested, &mut tally);
                    turns.iter_mut().for_each(|turns| turns.open(intended, took, (sent, now), rested));
                }
            }
            Ok(Done::Lost) => {
                lost(due, timeline.waited(intended, sent) + (now - sent).saturating_sub(rested), &mut tally);
            }
            Err(failure) => {
                if !goes_on(failure, intended, worker, &mut tally) {
                    give_up(None, &mut hand, worker, shared, &mut tally);
                    break;
                }
            }
        }
    }
    tally.answered = ended;
    tally.turns = turns.map(TurnCounts::finish);
    tally.cpu = tracker.finish();
    tally
}

/// Waits while it is the turn of others: what could not begin in its turn begins in the next. The moment after that.
#[inline]
fn in_turn(now: u64, tracker: &mut Tracker, stop: &AtomicBool) -> u64 {
    if tracker.at(now) != Stage::Rest {
        return now;
    }
    sleep_until(tracker.until(), stop);
    let now = now_ns();
    tracker.at(now);
    now
}

/// Records how long an arrival that was due in the window waited, when it was sent and when it was answered, and for how much of that it
/// stood still for the turns of others; returns its response time.
#[inline]
fn answered<O: Operation>(operation: &O, (waited, sent, now): (u64, u64, u64), rested: u64, tally: &mut Tally) -> u64 {
    // Never before it was sent: what is not timed was spent after that.
    let service = now.saturating_sub(operation.untimed_ns() + rested).saturating_sub(sent);
    tally.answered_after(waited, service);
    waited + service
}

/// Counts a failed operation by reason, or as unfinished where the run was cut; whether the connection goes on.
#[cold]
fn goes_on(failure: Failure, intended: u64, worker: &Worker<'_>, tally: &mut Tally) -> bool {
    let cut = worker.control.cut.load(Ordering::Relaxed);
    if cut {
        unfinished(intended, worker, tally);
    } else {
        tally.error(failure.reason);
    }
    !(failure.fatal || cut)
}

/// Counts an exchange without an answer. Its response time is censored: it took longer than was waited for.
#[cold]
fn lost(due: bool, waited: u64, tally: &mut Tally) {
    if due {
        tally.lost += 1;
        tally.response.record(waited);
    }
}

/// Counts an arrival that was due in the window and got no answer. Its response time is censored at the moment
/// until which a run waits at most, which is the same for every connection however early its own broke.
fn unfinished(intended: u64, worker: &Worker<'_>, tally: &mut Tally) {
    if worker.timeline.measures(intended) {
        tally.unfinished += 1;
        tally.response.record(worker.timeline.load_end.saturating_add(GRACE_NS) - intended);
    }
}

/// Counts what this connection will not send any more.
fn give_up(first: Option<u64>, hand: &mut Hand<'_>, worker: &Worker<'_>, shared: &Shared, tally: &mut Tally) {
    let mut next = first;
    while let Some(intended) = next.or_else(|| hand.next()) {
        next = None;
        unfinished(intended, worker, tally);
        shared.backlog.given_up(intended);
        if intended >= worker.timeline.load_end {
            break;
        }
    }
}
