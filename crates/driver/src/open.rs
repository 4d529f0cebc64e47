//! The open loop: operations start at times fixed in advance, whether or not earlier ones have ended.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use tare_model::drive::DriveSpec;
use tare_model::load::LoadModel;

use crate::backlog::Backlog;
use crate::clock::{now_ns, sleep_until};
use crate::control::Meter;
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
pub(crate) struct Hand<'a> {
    dealer: &'a Dealer,
    connection: usize,
    arrivals: VecDeque<u64>,
}

impl<'a> Hand<'a> {
    pub const fn of(dealer: &'a Dealer, connection: usize) -> Self {
        Self { dealer, connection, arrivals: VecDeque::new() }
    }

    #[inline]
    pub fn next(&mut self) -> Option<u64> {
        if self.arrivals.is_empty() {
            self.dealer.take(self.connection, &mut self.arrivals);
        }
        self.arrivals.pop_front()
    }
}

/// What one connection counts.
pub(crate) struct Counting<'a> {
    timeline: &'a Timeline,
    meter: &'a Meter,
    pub tally: Tally,
    pub tracker: Tracker,
    turns: Option<TurnCounts<'a>>,
    /// Arrivals that were answered in all phases.
    ended: u64,
}

impl<'a> Counting<'a> {
    pub fn of(worker: &'a Worker<'a>) -> Self {
        let (timeline, meter) = (&worker.timeline, worker.meter);
        let (tally, tracker) = (worker.tally(true), Tracker::new(timeline.clone()));
        Self { timeline, meter, tally, tracker, turns: TurnCounts::of(timeline), ended: 0 }
    }

    /// An arrival that was sent and answered at these moments was served for so long, and stood still for so much of the time between them. Whether
    /// it is an operation of the measured window.
    #[inline]
    pub fn answered(&mut self, arrival: &Arrival, (sent, now): (u64, u64), served: u64, rested: u64) -> bool {
        let &Arrival { intended, due } = arrival;
        let stage = self.tracker.at(now);
        self.ended += 1;
        // In turns what was due in a turn may be answered after it.
        let counts = if self.timeline.takes_turns() { due } else { stage == Stage::Steady };
        self.tally.operations += u64::from(counts);
        let waited = self.timeline.waited(intended, sent);
        let took = waited + served;
        self.meter.answered(took);
        if due {
            self.tally.answered_after(waited, served);
            self.turns.iter_mut().for_each(|turns| turns.open(intended, took, (sent, now), rested));
        }
        counts
    }

    pub fn finish(self) -> Tally {
        let (answered, turns, cpu) = (self.ended, self.turns.map(TurnCounts::finish), self.tracker.finish());
        Tally { answered, turns, cpu, ..self.tally }
    }
}

/// When an operation is to start, and whether it is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub intended: u64,
    pub due: bool,
}

/// Runs one connection through all its arrivals.
///
/// After the end of the load only arrivals that were due in the measured window are still sent, in turns when all drivers have had
/// theirs; they come first, because a connection serves its arrivals in order. What is left when the supervisor stops the run is
/// unfinished.
pub(crate) fn run<O: Operation>(mut operation: O, worker: &Worker<'_>, shared: &Shared) -> Tally {
    let timeline = &worker.timeline;
    let mut hand = Hand::of(&shared.dealer, worker.index as usize);
    let mut counting = Counting::of(worker);
    let mut now = 0;
    while let Some(intended) = hand.next() {
        let arrival = Arrival { intended, due: timeline.measures(intended) };
        let behind = intended <= now;
        // A turn may begin with arrivals that do not count: behind those of its warm-up there are others that do.
        if !arrival.due && (intended..=now).contains(&timeline.load_end) {
            shared.backlog.given_up(intended);
            continue;
        }
        let Some(sent) = begin(&arrival, now, worker, &mut counting.tracker) else {
            give_up(Some(intended), &mut hand, worker, shared, &mut counting.tally);
            break;
        };
        if behind {
            shared.backlog.waited(intended, sent);
        }
        let outcome = operation.perform();
        now = now_ns();
        counting.tracker.at(now);
        let rested = operation.rested_ns() + timeline.frozen(sent, now);
        match outcome {
            Ok(Done::Answered) => {
                let served = served(&operation, sent, now, rested);
                if counting.answered(&arrival, (sent, now), served, rested) {
                    operation.counts();
                }
            }
            Ok(Done::Lost) => {
                let waited = timeline.waited(intended, sent) + (now - sent).saturating_sub(rested);
                lost(arrival.due, waited, &mut counting.tally);
            }
            Err(failure) => {
                if !goes_on(failure, &arrival, worker, &mut counting.tally) {
                    give_up(None, &mut hand, worker, shared, &mut counting.tally);
                    break;
                }
            }
        }
    }
    counting.finish()
}

/// Waits until an arrival can be sent: until it is due, and while it is the turn of others. What could not begin in its turn begins in the
/// next, or when all have had theirs. The moment after that; `None` if it is not sent any more.
#[inline]
fn begin(&Arrival { intended, due }: &Arrival, now: u64, worker: &Worker<'_>, tracker: &mut Tracker) -> Option<u64> {
    let (timeline, stop) = (&worker.timeline, &worker.control.stop);
    let mut now = now;
    if intended > now {
        if !sleep_until(intended, stop) {
            return None;
        }
        now = now_ns();
    }
    let late_and_unmeasured = now >= timeline.load_end && !due;
    if late_and_unmeasured || stop.load(Ordering::Relaxed) {
        return None;
    }
    if matches!(tracker.at(now), Stage::Rest | Stage::Over) && timeline.rests(now) {
        if !sleep_until(timeline.after(now, 0), stop) {
            return None;
        }
        now = now_ns();
        tracker.at(now);
    }
    Some(now)
}

/// How long the service of an operation took that was sent and answered at these moments, and that stood still for so much of that for the
/// turns of others.
#[inline]
fn served<O: Operation>(operation: &O, sent: u64, now: u64, rested: u64) -> u64 {
    // Never before it was sent: what is not timed was spent after that.
    now.saturating_sub(operation.untimed_ns() + rested).saturating_sub(sent)
}

/// Counts a failed operation by reason, or as unfinished where the run was cut; whether the connection goes on.
#[cold]
pub(crate) fn goes_on(failure: Failure, arrival: &Arrival, worker: &Worker<'_>, tally: &mut Tally) -> bool {
    let &Arrival { intended, due } = arrival;
    let cut = worker.control.cut.load(Ordering::Relaxed);
    if cut {
        unfinished(intended, worker, tally);
    } else {
        tally.error(failure.reason);
        if due {
            tally.failed();
        }
    }
    !(failure.fatal || cut)
}

/// Counts an exchange without an answer: it took longer than was waited for.
#[cold]
fn lost(due: bool, waited: u64, tally: &mut Tally) {
    if due {
        tally.lost += 1;
        tally.given_up(waited);
    }
}

/// Counts an arrival that was due in the window and got no answer. It took longer than until the moment to
/// which a run waits at most, which is the same for every connection however early its own broke.
pub(crate) fn unfinished(intended: u64, worker: &Worker<'_>, tally: &mut Tally) {
    if worker.timeline.measures(intended) {
        tally.unfinished += 1;
        let timeline = &worker.timeline;
        tally.given_up(timeline.waited(intended, timeline.load_end).saturating_add(GRACE_NS));
    }
}

/// Counts what this connection will not send any more.
pub(crate) fn give_up(
    first: Option<u64>,
    hand: &mut Hand<'_>,
    worker: &Worker<'_>,
    shared: &Shared,
    tally: &mut Tally,
) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Control;
    use tare_model::Span;
    use tare_model::load::{Arrivals, Phases};
    use tare_model::turns::{TurnSpec, Turns, Waiting};

    /// Takes 10 ms, and notes when it begins.
    struct Slow<'a>(&'a mut Vec<u64>);

    impl Operation for Slow<'_> {
        fn perform(&mut self) -> Result<Done, Failure> {
            self.0.push(now_ns());
            std::thread::sleep(std::time::Duration::from_millis(10));
            Ok(Done::Answered)
        }
    }

    /// The moments at which operations began of an arm whose rate is four times what it can do, and what it counted.
    fn overloaded(turns: &Turns, start: u64, control: &Control) -> (Vec<u64>, Tally) {
        let phases = Phases::measuring(Span::from_millis(80));
        let timeline = Timeline::in_turns(start, &phases, turns);
        let schedule = Schedule::new(400.0, Arrivals::Uniform, &phases, timeline.start, 1).by(&timeline);
        let backlog = Backlog::new(&timeline, timeline.all_over() + GRACE_NS);
        let shared = Shared { dealer: Dealer::new(schedule, 1), backlog };
        let meter = Meter::default();
        let (index, of, record, delay_ns) = (0, 1, true, 0);
        let worker = Worker { index, of, timeline, control, meter: &meter, record, shared: None, delay_ns };
        let mut began = Vec::new();
        let tally = run(Slow(&mut began), &worker, &shared);
        (began, tally)
    }

    /// Answers at once; every fiftieth fails, and every hundredth is lost.
    struct Failing(u64);

    impl Operation for Failing {
        fn perform(&mut self) -> Result<Done, Failure> {
            self.0 += 1;
            match self.0 % 100 {
                0 => Ok(Done::Lost),
                50 => Err(Failure::passing("refused".to_owned())),
                _ => Ok(Done::Answered),
            }
        }
    }

    #[test]
    fn what_fails_or_is_lost_is_longer_than_all_that_was_answered() {
        let phases = Phases::measuring(Span::from_millis(100));
        let timeline = Timeline::new(now_ns() + 20_000_000, &phases);
        let schedule = Schedule::new(10_000.0, Arrivals::Uniform, &phases, timeline.start, 1);
        let backlog = Backlog::new(&timeline, timeline.load_end + GRACE_NS);
        let shared = Shared { dealer: Dealer::new(schedule, 1), backlog };
        let (control, meter) = (Control::default(), Meter::default());
        let (index, of, record, delay_ns) = (0, 1, true, 0);
        let worker = Worker { index, of, timeline, control: &control, meter: &meter, record, shared: None, delay_ns };
        let tally = run(Failing(0), &worker, &shared);
        let seen = meter.read(0);
        let (response, service) = (tally.response.into_histogram(), tally.service.into_histogram());
        assert_eq!((response.count(), response.failed, response.given_up), (980, 10, 10));
        assert_eq!((service.count(), service.not_completed()), (980, 20));
        assert!(response.quantile(0.98).is_some() && response.quantile(0.981).is_none(), "2 % did not complete");
        assert_eq!((seen.operations, u128::from(seen.response_ns)), (980, response.sum), "its mean over time is known");
    }

    fn two_arms(warm_up: Span) -> [Turns; 2] {
        let (turn, gap) = (Span::from_millis(40), Span::from_millis(30));
        let spec = TurnSpec { turn, warm_up, gap, waiting: Waiting::Idle, commands: None };
        // The first one's last turn is over when the other's begins.
        [0, 1].map(|arm| Turns { spec, arms: 2, places: vec![arm, arm] })
    }

    #[test]
    fn what_could_not_be_sent_in_its_turns_waits_until_all_have_had_theirs() {
        let turns = two_arms(Span::ZERO);
        let (start, control) = (now_ns() + 50_000_000, Control::default());
        let done = std::thread::scope(|scope| {
            let arms = turns.each_ref().map(|turns| scope.spawn(|| overloaded(turns, start, &control)));
            arms.map(|arm| arm.join().unwrap())
        });
        for ((began, tally), own) in done.iter().zip(&turns) {
            assert_eq!((began.len(), tally.operations, tally.unfinished), (32, 32, 0), "all that were due");
            let all_over = start + own.total().ns;
            let (late, in_turns): (Vec<u64>, Vec<u64>) = began.iter().partition(|&&at| at >= all_over);
            assert!(late.len() >= 16, "of 32 it can do some 10 in its turns: {}", late.len());
            let slot = |at: &u64| own.windows(start).any(|(from, to)| from <= *at && *at < to + own.spec.gap.ns);
            assert!(in_turns.iter().all(slot), "nothing begins in the turn of the other");
            let done = tally.turns.as_ref().unwrap();
            assert_eq!(done.counts.iter().map(|count| count.operations).sum::<u64>(), 32);
        }
    }

    #[test]
    fn what_was_due_in_the_warm_up_of_a_turn_keeps_nothing_behind_it_from_being_sent() {
        let [_, last] = two_arms(Span::from_millis(10));
        let (_, tally) = overloaded(&last, now_ns() + 20_000_000, &Control::default());
        assert_eq!((tally.operations, tally.unfinished), (24, 0), "12 of the 16 of each turn count");
    }

    #[test]
    fn a_run_that_is_stopped_while_others_have_their_turns_sends_nothing_more() {
        let [first, _] = two_arms(Span::ZERO);
        let (start, control) = (now_ns() + 20_000_000, Control::default());
        let (began, tally) = std::thread::scope(|scope| {
            let arm = scope.spawn(|| overloaded(&first, start, &control));
            // The other's last turn.
            sleep_until(start + 3 * first.spec.slot().ns, &std::sync::atomic::AtomicBool::new(false));
            control.halt();
            arm.join().unwrap()
        });
        assert!(began.iter().all(|at| *at < start + first.total().ns));
        assert_eq!(tally.operations + tally.unfinished, 32, "what was due and not sent is unfinished");
        assert!(tally.unfinished > 0 && tally.errors.is_empty());
    }
}
