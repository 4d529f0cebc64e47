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
                    worker.meter.answered(took);
                }
                if worker.timeline.counts(pace.began, stage) {
                    if done == Done::Answered {
                        tally.operations += 1;
                        tally.response.record(took);
                    } else {
                        tally.lost += 1;
                        tally.given_up(took);
                    }
                    operation.counts();
                    pace.count(took);
                }
            }
            Err(failure) => {
                let due = worker.timeline.counts(pace.began, stage);
                if !goes_on(failure, worker, &mut tally, (pace.started, took, due)) {
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
fn goes_on(failure: Failure, worker: &Worker<'_>, tally: &mut Tally, (started, took, due): (u64, u64, bool)) -> bool {
    let cut = worker.control.cut.load(Ordering::Relaxed);
    if cut && worker.timeline.measures(started) {
        // Nobody knows how long it would have taken.
        tally.given_up(took);
    } else if due && !cut {
        tally.failed();
    }
    tally.error(if cut { CUT_OFF.to_owned() } else { failure.reason });
    !failure.fatal && !cut && sleep_until(now_ns() + PAUSE_NS, &worker.control.stop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Control, Meter};
    use crate::timeline::Timeline;
    use tare_model::Span;
    use tare_model::load::Phases;

    /// Takes 1 ms; every tenth fails, and every tenth is lost.
    struct Failing(u64);

    impl Operation for Failing {
        fn perform(&mut self) -> Result<Done, Failure> {
            self.0 += 1;
            std::thread::sleep(std::time::Duration::from_millis(1));
            match self.0 % 10 {
                0 => Ok(Done::Lost),
                5 => Err(Failure::passing("refused")),
                _ => Ok(Done::Answered),
            }
        }
    }

    #[test]
    fn what_fails_or_is_lost_is_longer_than_all_that_was_answered() {
        let timeline = Timeline::new(now_ns() + 10_000_000, &Phases::measuring(Span::from_millis(150)));
        let (control, meter) = (Control::default(), Meter::default());
        let (index, of, record, delay_ns) = (0, 1, true, 0);
        let worker = Worker { index, of, timeline, control: &control, meter: &meter, record, shared: None, delay_ns };
        let tally = run(Failing(0), &worker, 0);
        let response = tally.response.into_histogram();
        assert_eq!((response.count(), response.given_up), (tally.operations, tally.lost));
        assert!(response.failed > 2 && response.failed <= tally.errors["refused"], "{response:?}");
        assert!(response.waited_ns >= tally.lost * 1_000_000);
        assert!(response.quantile(0.5).is_some() && response.quantile(0.9).is_none(), "a fifth did not complete");
    }
}
