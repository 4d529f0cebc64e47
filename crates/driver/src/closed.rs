//! The closed loop: a client starts its next operation when the last one ended and it has thought.

use std::sync::atomic::Ordering;

use crate::clock::{now_ns, sleep_until};
use crate::error::Failure;
use crate::operation::{CUT_OFF, Done, Operation, PAUSE_NS, Worker};
use crate::tally::Tally;
use crate::timeline::{Stage, Tracker};
use crate::turn_counts::TurnCounts;

/// Runs one client through all phases. Without think time the end of an operation is the start of the
/// next, so each costs one clock read.
pub(crate) fn run<O: Operation>(mut operation: O, worker: &Worker<'_>, think_ns: u64) -> Tally {
    let mut tally = worker.tally(false);
    let stop = &worker.control.stop;
    if !sleep_until(worker.begins_at(), stop) {
        return tally;
    }
    let mut pace = Pace::new(worker);
    let mut answered = 0;
    while !stop.load(Ordering::Relaxed) && pace.begin() {
        let outcome = operation.perform();
        let (now, stage) = pace.end(operation.rested_ns());
        let took = (now - pace.started).saturating_sub(operation.untimed_ns() + pace.rested);
        match outcome {
            Ok(done) => {
                if done == Done::Answered {
                    answered += 1;
                    worker.meter.set_operations(answered);
                }
                if worker.timeline.counts(pace.began, stage) {
                    tally.operations += u64::from(done == Done::Answered);
                    tally.lost += u64::from(done == Done::Lost);
                    // Of a lost one it is censored: it took longer than was waited for.
                    tally.response.record(took);
                    operation.counts();
                    pace.count(took);
                }
            }
            Err(failure) => {
                if !goes_on(failure, worker, &mut tally, (pace.started, took)) {
                    break;
                }
            }
        }
        let think = (think_ns > 0).then(|| operation.think_ns(think_ns));
        if !pace.go_on((now, stage), think) {
            break;
        }
    }
    tally.answered = answered;
    tally.turns = pace.turns.map(TurnCounts::finish);
    tally.cpu = pace.tracker.finish();
    tally
}

/// When a client's operations begin, and in which stage.
struct Pace<'a> {
    worker: &'a Worker<'a>,
    tracker: Tracker,
    turns: Option<TurnCounts<'a>>,
    started: u64,
    began: Stage,
    /// When the stage ends in which the operation began.
    until: u64,
    /// Part of the operation's time in which it paused because it was the turn of others, nanoseconds.
    rested: u64,
    /// Whether the operation may begin in another turn than the last one.
    fresh: bool,
    warming: bool,
}

impl<'a> Pace<'a> {
    fn new(worker: &'a Worker<'a>) -> Self {
        let timeline = &worker.timeline;
        let mut tracker = Tracker::new(timeline.clone());
        let started = now_ns();
        let (began, warming) = (tracker.at(started), timeline.warm_end > timeline.start);
        let turns = TurnCounts::of(timeline);
        Self { worker, tracker, turns, started, began, until: 0, rested: 0, fresh: true, warming }
    }

    /// An operation begins, in the driver's turn; false if the run shall stop.
    #[inline]
    fn begin(&mut self) -> bool {
        if self.fresh && !self.begin_afresh() {
            return false;
        }
        self.until = self.tracker.until();
        true
    }

    #[cold]
    fn begin_afresh(&mut self) -> bool {
        if self.began == Stage::Rest {
            // The turn of others: what was under way has ended.
            if !sleep_until(self.tracker.until(), &self.worker.control.stop) {
                return false;
            }
            self.restart();
        }
        if let Some(turns) = &mut self.turns {
            turns.begins(self.started);
        }
        self.fresh = false;
        true
    }

    /// The operation has ended: when, and in which stage.
    #[inline]
    fn end(&mut self, rested: u64) -> (u64, Stage) {
        let now = now_ns();
        // Not the operation's time: its guest was stopped.
        let frozen = if now >= self.until { self.worker.timeline.frozen(self.started, now) } else { 0 };
        self.rested = rested + frozen;
        (now, self.tracker.at(now))
    }

    /// The operation counts.
    #[inline]
    fn count(&mut self, took: u64) {
        if let Some(turns) = &mut self.turns {
            turns.add(took);
        }
    }

    /// The client's next operation begins now or when it has thought; false if there is none.
    #[inline]
    fn go_on(&mut self, (now, stage): (u64, Stage), think: Option<u64>) -> bool {
        if now >= self.until {
            self.fresh = true;
            if let Some(turns) = &mut self.turns {
                turns.crossed((self.started, self.began), self.rested, now);
                if self.rested == 0 {
                    turns.mind_others(self.started, now);
                }
            }
        }
        if stage == Stage::Over {
            return false;
        }
        (self.started, self.began) = (now, stage);
        if self.warming && !matches!(stage, Stage::WarmUp | Stage::Rest) {
            self.warming = false;
            let (timeline, stop) = (&self.worker.timeline, &self.worker.control.stop);
            return sleep_until(timeline.joins_at(self.worker.index, self.worker.of), stop) && self.restart();
        }
        think.is_none_or(|think| {
            let timeline = &self.worker.timeline;
            let wake = timeline.after(now, think);
            // Nobody thinks past the end of the load.
            wake < timeline.load_end && self.worker.control.rest_until(wake) && self.restart()
        })
    }

    /// The next operation begins now, and not where the last one ended.
    fn restart(&mut self) -> bool {
        self.started = now_ns();
        self.began = self.tracker.at(self.started);
        self.fresh = true;
        true
    }
}

/// Counts a failed operation by reason; whether another may be tried, after a pause.
#[cold]
fn goes_on(failure: Failure, worker: &Worker<'_>, tally: &mut Tally, (started, took): (u64, u64)) -> bool {
    let cut = worker.control.cut.load(Ordering::Relaxed);
    if cut && worker.timeline.measures(started) {
        // Censored: nobody knows how long it would have taken.
        tally.response.record(took);
    }
    tally.error(if cut { CUT_OFF.to_owned() } else { failure.reason });
    !failure.fatal && !cut && sleep_until(now_ns() + PAUSE_NS, &worker.control.stop)
}
