//! What one client of a closed loop does in each of its turns, and for how long.

use tare_model::turns::{TurnCount, TurnsDone};

use crate::timeline::{Stage, Timeline};

/// Operations and time by turn.
///
/// An operation belongs to the turn in which it began, with all of its time. So a turn's time ends with the last of its operations and
/// begins after one that began before its measured part: operations over time is then unbiased, however long operations
/// are against a turn (Wald's equation).
#[derive(Debug)]
pub(crate) struct TurnCounts<'a> {
    timeline: &'a Timeline,
    counts: Vec<TurnCount>,
    /// What each turn is longer than its measured part, nanoseconds.
    longer: Vec<i64>,
    overran: Vec<bool>,
    /// Clients whose operations they are: time is their mean.
    clients: u32,
    /// The turn in which the present operation began.
    turn: usize,
}

impl<'a> TurnCounts<'a> {
    /// `None` of a driver that has all the time.
    pub fn of(timeline: &'a Timeline) -> Option<Self> {
        Self::of_clients(timeline, 1)
    }

    /// The same of several clients together.
    pub fn of_clients(timeline: &'a Timeline, clients: u32) -> Option<Self> {
        let turns = timeline.turns();
        let (counts, longer, overran) = (vec![TurnCount::default(); turns], vec![0; turns], vec![false; turns]);
        timeline.takes_turns().then_some(Self { timeline, counts, longer, overran, clients: clients.max(1), turn: 0 })
    }

    /// An operation begins after a rest, or in another stage than the one before.
    pub fn begins(&mut self, at: u64) {
        self.turn = self.timeline.turn_at(at).map_or(0, |(turn, ..)| turn);
    }

    /// One more operation that counts, with its response time.
    #[inline]
    pub fn add(&mut self, took: u64) {
        if let Some(count) = self.counts.get_mut(self.turn) {
            count.operations += 1;
            count.response_ns += took;
        }
    }

    /// One more arrival of an open loop, which was due at a moment in a measured part, with its response time and when it was sent and answered;
    /// for so long of that it paused until its next turn.
    pub fn open(&mut self, due: u64, took: u64, (sent, answered): (u64, u64), rested: u64) {
        self.begins(due);
        self.add(took);
        if rested == 0 {
            self.mind_others(sent, answered);
        }
    }

    /// Bytes that were carried for an operation that counts and was due at a moment.
    pub fn carried(&mut self, due: u64, bytes: u64) {
        self.begins(due);
        if let Some(count) = self.counts.get_mut(self.turn) {
            count.bytes += bytes;
        }
    }

    /// Something was under way from one moment to another.
    pub fn mind_others(&mut self, started: u64, ended: u64) {
        let turn = self.timeline.turn_at(started).and_then(|(turn, ..)| self.overran.get_mut(turn));
        if let (Some(overran), Some(from)) = (turn, self.timeline.others_from(started)) {
            *overran |= ended > from;
        }
    }

    /// An operation began in one stage and ended in another, or in another turn. `stood`: of its time it stood still for so long, while it
    /// was the turn of others.
    #[cold]
    pub fn crossed(&mut self, (started, began): (u64, Stage), stood: u64, now: u64) {
        let Some((first, ..)) = self.timeline.turn_at(started) else { return };
        let last = self.timeline.turn_at(now).map_or(first, |(turn, ..)| turn);
        for turn in first..=last {
            let Some((from, to)) = self.timeline.turn(turn).and_then(|turn| turn.measured) else { continue };
            if turn == first && began == Stage::Steady {
                self.lengthen(turn, now.saturating_sub(stood).saturating_sub(to) as i64);
            } else {
                // It belongs to another turn, or to none: its client did nothing else meanwhile.
                self.lengthen(turn, -(now.min(to).saturating_sub(started.max(from)) as i64));
            }
        }
    }

    fn lengthen(&mut self, turn: usize, by: i64) {
        if let Some(longer) = self.longer.get_mut(turn) {
            *longer += by;
        }
    }

    /// All of it.
    pub fn finish(self) -> TurnsDone {
        let measured = |turn: usize| {
            self.timeline.turn_measured_ns(turn).saturating_add_signed(self.longer[turn] / i64::from(self.clients))
        };
        let counts = self.counts.iter().enumerate();
        let counts: Vec<_> = counts.map(|(turn, one)| TurnCount { measured_ns: measured(turn), ..*one }).collect();
        let measured_ns = counts.iter().map(|count| count.measured_ns).sum();
        let overran = self.overran.iter().filter(|&&overran| overran).count() as u32;
        TurnsDone { measured_ns, counts, overran, began_ns: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::Span;
    use tare_model::load::Phases;
    use tare_model::turns::{TurnSpec, Turns, Waiting};

    /// When an operation does what it has left at the end of a turn.
    #[derive(Clone, Copy, PartialEq)]
    enum Left {
        AtOnce,
        InTheNextTurn,
        /// At once until its guest is stopped, and from when that goes on.
        WhileTheGuestRuns,
    }

    /// When an operation ends for which its guest runs so long.
    fn ends(timeline: &Timeline, started: u64, takes: u64) -> u64 {
        let (mut end, mut stood) = (started + takes, 0);
        while stood < timeline.frozen(started, end) {
            stood = timeline.frozen(started, end);
            end = started + takes + stood;
        }
        end
    }

    /// Operations of one length after another, as a closed loop performs them: (operations, time in which they were done, overran).
    fn counted(takes: u64, left: Left) -> (u64, u64, u32) {
        let span = |ns| Span { ns };
        let waiting = if left == Left::WhileTheGuestRuns { Waiting::Frozen } else { Waiting::Idle };
        let spec = TurnSpec { turn: span(1_000), warm_up: span(100), gap: span(50), waiting, commands: None };
        let turns = Turns { spec, arms: 2, places: (0..40).map(|round| round % 2).collect() };
        let timeline = Timeline::in_turns(1, &Phases::measuring(span(40_000)), &turns);
        let mut counts = TurnCounts::of(&timeline).unwrap();
        let mut started = timeline.start;
        loop {
            let (began, until) = timeline.stage_at(started);
            if began == Stage::Over {
                break;
            }
            if began == Stage::Rest {
                started = until;
                continue;
            }
            counts.begins(started);
            let now = match left {
                Left::AtOnce | Left::WhileTheGuestRuns => ends(&timeline, started, takes),
                Left::InTheNextTurn => timeline.after(started, takes),
            };
            let rested = (now - started).saturating_sub(takes);
            if timeline.counts(began, timeline.stage_at(now).0) {
                counts.add(takes);
            }
            if now >= until {
                counts.crossed((started, began), rested, now);
                if rested == 0 {
                    counts.mind_others(started, now);
                }
            }
            started = now;
        }
        let done = counts.finish();
        (done.counts.iter().map(|count| count.operations).sum(), done.measured_ns, done.overran)
    }

    #[test]
    fn operations_over_time_is_the_time_of_one_however_long_it_is_against_a_turn() {
        for takes in [1, 7, 30, 99, 333, 640, 905, 1_333, 2_718, 4_001] {
            let (operations, measured_ns, _) = counted(takes, Left::AtOnce);
            assert_eq!(operations * takes, measured_ns, "{takes} ns each");
            let (operations, measured_ns, _) = counted(takes, Left::WhileTheGuestRuns);
            assert_eq!(operations * takes, measured_ns, "{takes} ns each, in a guest that is stopped");
            let (operations, measured_ns, overran) = counted(takes, Left::InTheNextTurn);
            // The last of them is cut off.
            assert!((operations * takes).abs_diff(measured_ns) < takes, "{takes} ns each, in turns alone");
            assert_eq!(overran, 0);
        }
        assert_eq!(counted(30, Left::AtOnce).2, 0, "the gap is long enough for them");
        assert!(counted(333, Left::AtOnce).2 > 0, "and is not for these");
    }
}
