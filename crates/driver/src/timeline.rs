//! The phases of a run as moments on the clock, and the stage that a moment falls into.

use std::sync::Arc;

use tare_model::load::Phases;
use tare_model::turns::{Turns, Waiting};

use crate::usage::Usage;

/// The moments at which phases begin and end, nanoseconds of CLOCK_MONOTONIC.
///
/// In turns the phases pass only while it is the driver's turn: each of the moments lies in a turn, and between turns the
/// driver rests. Its own clock runs in its turns and, for what could not be done in them, again once all drivers have had theirs.
#[derive(Debug, Clone)]
pub(crate) struct Timeline {
    pub start: u64,
    pub warm_end: u64,
    pub steady_start: u64,
    pub steady_end: u64,
    pub load_end: u64,
    turns: Option<Arc<TurnWindows>>,
}

/// Where in its run a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// It is the turn of others.
    Rest,
    WarmUp,
    RampUp,
    /// The first part of a turn in steady state, which is not measured.
    TurnWarmUp,
    Steady,
    RampDown,
    Over,
}

impl Timeline {
    pub fn new(start: u64, phases: &Phases) -> Self {
        // Phases of centuries end with the clock rather than with an overflow.
        let warm_end = start.saturating_add(phases.warm_up.ns);
        let steady_start = warm_end.saturating_add(phases.ramp_up.ns);
        let steady_end = steady_start.saturating_add(phases.steady_state.ns);
        let load_end = steady_end.saturating_add(phases.ramp_down.ns);
        Self { start, warm_end, steady_start, steady_end, load_end, turns: None }
    }

    /// With phases that pass only in turns, of which the first round starts at `start`.
    pub fn in_turns(start: u64, phases: &Phases, turns: &Turns) -> Self {
        let plain = Self::new(0, phases);
        let windows = TurnWindows::new(turns, start, plain.load_end);
        Self {
            start: windows.real(0),
            warm_end: windows.real(plain.warm_end),
            steady_start: windows.real(plain.steady_start),
            steady_end: windows.end(plain.steady_end),
            load_end: windows.end(plain.load_end),
            turns: Some(Arc::new(TurnWindows { phases: plain.ends(), ..windows })),
        }
    }

    /// When the stages before the last end.
    const fn ends(&self) -> [u64; 4] {
        [self.warm_end, self.steady_start, self.steady_end, self.load_end]
    }

    /// The stage at a moment, and when it ends.
    pub fn stage_at(&self, now: u64) -> (Stage, u64) {
        match &self.turns {
            None => stage(self.ends(), now),
            Some(turns) => turns.stage_at(now),
        }
    }

    /// When client `index` of `clients` joins in the ramp-up.
    pub fn joins_at(&self, index: u32, clients: u32) -> u64 {
        let warm_end = self.driven(self.warm_end);
        let ramp = u128::from(self.driven(self.steady_start) - warm_end);
        let offset = (ramp * u128::from(index) / u128::from(clients.max(1))) as u64;
        self.moment(warm_end + offset)
    }

    /// Whether a moment lies in the measured window, or in the measured part of a turn.
    pub fn measures(&self, at: u64) -> bool {
        match &self.turns {
            None => self.steady_start <= at && at < self.steady_end,
            Some(turns) => turns.stage_at(at).0 == Stage::Steady,
        }
    }

    /// Whether an operation counts that began and ended in these stages. In turns what began in a measured part counts, whenever it ends:
    /// to leave out what reaches over its end would leave out long operations more often than short ones.
    pub fn counts(&self, began: Stage, ended: Stage) -> bool {
        (if self.turns.is_some() { began } else { ended }) == Stage::Steady
    }

    /// Whether what happens at a moment for an operation counts: in turns, where that was due in a measured part, whenever it happens.
    pub fn counts_at(&self, due: u64, at: u64) -> bool {
        self.measures(if self.turns.is_some() { due } else { at })
    }

    /// Whether it is driven in turns.
    pub const fn takes_turns(&self) -> bool {
        self.turns.is_some()
    }

    /// Turns, 0 where there are none.
    pub fn turns(&self) -> usize {
        self.turns.as_ref().map_or(0, |turns| turns.windows.len())
    }

    /// One of the turns, from 0.
    pub fn turn(&self, index: usize) -> Option<Turn> {
        let turns = self.turns.as_ref()?;
        let &(from, to) = turns.windows.get(index)?;
        Some(Turn { from, to: to.min(self.load_end), gap: turns.gap, measured: turns.measured(index) })
    }

    /// The turn at a moment or, between turns, the last one before it, and when its measured part begins and it ends.
    pub fn turn_at(&self, at: u64) -> Option<(usize, u64, u64)> {
        let turns = self.turns.as_ref()?;
        let (index, (from, to)) = turns.last_before(at)?;
        Some((index, from + turns.warm_up, to))
    }

    /// When the next arm's turn begins, seen from a moment in a turn or between turns.
    pub fn others_from(&self, at: u64) -> Option<u64> {
        let turns = self.turns.as_ref().filter(|turns| at < turns.end)?;
        let (_, (_, to)) = turns.last_before(at)?;
        Some(to + turns.gap)
    }

    /// How much of the time between two moments the guest was stopped, so that others could have their turns. It is stopped and goes on
    /// in the middle of a gap.
    pub fn frozen(&self, from: u64, to: u64) -> u64 {
        let Some(turns) = self.turns.as_ref().filter(|turns| turns.frozen) else { return 0 };
        let first = turns.windows.partition_point(|&(_, end)| end + turns.gap <= from);
        let stretch = |turn: usize| {
            let stops = turns.windows[turn].1 + turns.gap / 2;
            let goes_on = turns.windows.get(turn + 1).map_or(turns.end, |&(next, _)| next - turns.gap / 2);
            (stops, goes_on)
        };
        let stretches =
            (first.saturating_sub(1)..turns.windows.len()).map(stretch).take_while(|&(stops, _)| stops < to);
        stretches.map(|(stops, goes_on)| goes_on.min(to).saturating_sub(stops.max(from))).sum()
    }

    /// Whether it is the turn of others.
    pub fn rests(&self, at: u64) -> bool {
        self.after(at, 0) > at
    }

    /// When all drivers have had their turns; without turns the end of the load.
    pub fn all_over(&self) -> u64 {
        self.turns.as_ref().map_or(self.load_end, |turns| turns.end)
    }

    /// How long the driver has had its turn at a moment; without turns all of the time.
    pub fn driven(&self, at: u64) -> u64 {
        self.turns.as_ref().map_or_else(|| at.saturating_sub(self.start), |turns| turns.driven(at))
    }

    /// The moment at which the driver will have had its turn for so long.
    pub fn moment(&self, driven: u64) -> u64 {
        self.turns.as_ref().map_or_else(|| self.start.saturating_add(driven), |turns| turns.real(driven))
    }

    /// The moment at which so much of the driver's own time has passed since another. Between turns no time passes.
    pub fn after(&self, at: u64, wait: u64) -> u64 {
        match &self.turns {
            None => at.saturating_add(wait),
            Some(turns) => turns.real(turns.driven(at).saturating_add(wait)),
        }
    }

    /// From when something was due until it began, in the driver's own time.
    pub fn waited(&self, due: u64, began: u64) -> u64 {
        if self.turns.is_some() {
            self.driven(began).saturating_sub(self.driven(due))
        } else {
            began.saturating_sub(due)
        }
    }

    /// Time that is measured: the window's length, or all measured parts of turns.
    pub fn measured_ns(&self) -> u64 {
        let Some(turns) = &self.turns else { return self.steady_end - self.steady_start };
        (0..turns.windows.len()).map(|turn| turns.measured_ns(turn)).sum()
    }

    /// The measured time of one turn.
    pub fn turn_measured_ns(&self, turn: usize) -> u64 {
        self.turns.as_ref().map_or(0, |turns| turns.measured_ns(turn))
    }
}

/// The stage at a moment where they end at `ends`, and when it ends.
const fn stage([warm_end, steady_start, steady_end, load_end]: [u64; 4], now: u64) -> (Stage, u64) {
    if now < warm_end {
        (Stage::WarmUp, warm_end)
    } else if now < steady_start {
        (Stage::RampUp, steady_start)
    } else if now < steady_end {
        (Stage::Steady, steady_end)
    } else if now < load_end {
        (Stage::RampDown, load_end)
    } else {
        (Stage::Over, u64::MAX)
    }
}

/// A driver's turns, and the clock that runs only in them.
#[derive(Debug)]
struct TurnWindows {
    /// Start and end of each, in order, nanoseconds of CLOCK_MONOTONIC.
    windows: Vec<(u64, u64)>,
    turn: u64,
    warm_up: u64,
    gap: u64,
    /// Whether the guest is stopped while it is the turn of others.
    frozen: bool,
    /// When the last round ends, in which every driver has a turn.
    end: u64,
    /// When the stages end, on the clock that runs only in turns.
    phases: [u64; 4],
}

impl TurnWindows {
    /// Those that phases of `total` take.
    fn new(turns: &Turns, start: u64, total: u64) -> Self {
        let turn = turns.spec.turn.ns.max(1);
        let needed = usize::try_from(total.div_ceil(turn)).unwrap_or(usize::MAX);
        let windows: Vec<_> = turns.windows(start).take(needed).collect();
        let slots = (windows.len() as u64).saturating_mul(turns.arms.into());
        let end = start.saturating_add(turns.spec.slot().ns.saturating_mul(slots));
        // A warm-up as long as the turn would leave nothing to measure; the study refuses it.
        let warm_up = turns.spec.warm_up.ns.min(turn - 1);
        let frozen = turns.spec.waiting == Waiting::Frozen;
        Self { windows, turn, warm_up, gap: turns.spec.gap.ns, frozen, end, phases: [0; 4] }
    }

    fn last_before(&self, at: u64) -> Option<(usize, (u64, u64))> {
        let index = self.windows.partition_point(|&(from, _)| from <= at).checked_sub(1)?;
        Some((index, *self.windows.get(index)?))
    }

    /// How long the driver has had its turn at a moment.
    fn driven(&self, at: u64) -> u64 {
        let Some((index, (from, to))) = self.last_before(at) else { return 0 };
        index as u64 * self.turn + (at.min(to) - from) + at.saturating_sub(self.end)
    }

    /// The moment at which it will have had its turn for so long; what is left after the last one passes when all have had theirs.
    fn real(&self, driven: u64) -> u64 {
        match self.windows.get((driven / self.turn) as usize) {
            Some((from, _)) => from + driven % self.turn,
            None => self.end.saturating_add(driven - self.windows.len() as u64 * self.turn),
        }
    }

    /// The same of an end, which lies in the turn that it ends and not at the start of the next.
    fn end(&self, driven: u64) -> u64 {
        driven.checked_sub(1).map_or_else(|| self.real(0), |before| self.real(before) + 1)
    }

    fn stage_at(&self, now: u64) -> (Stage, u64) {
        let first = self.windows.first().map_or(u64::MAX, |&(from, _)| from);
        let Some((index, (from, to))) = self.last_before(now) else { return (Stage::Rest, first) };
        let driven = index as u64 * self.turn + (now.min(to) - from);
        let over = driven >= self.phases[3];
        if now >= to && !over {
            let next = self.windows.get(index + 1).map_or(u64::MAX, |&(from, _)| from);
            return if next == u64::MAX { (Stage::Over, next) } else { (Stage::Rest, next) };
        }
        match stage(self.phases, driven) {
            (Stage::Over, end) => (Stage::Over, end),
            (Stage::Steady, _) if now - from < self.warm_up => (Stage::TurnWarmUp, from + self.warm_up),
            (stage, end) => (stage, to.min(now + (end - driven))),
        }
    }

    /// How much of a turn is measured.
    fn measured_ns(&self, turn: usize) -> u64 {
        self.measured(turn).map_or(0, |(from, to)| to - from)
    }

    /// From when to when a turn is measured; `None` where nothing of it is.
    fn measured(&self, turn: usize) -> Option<(u64, u64)> {
        let &(began, _) = self.windows.get(turn)?;
        let start = turn as u64 * self.turn;
        let [_, steady_start, steady_end, _] = self.phases;
        let (from, to) = ((start + self.warm_up).max(steady_start), (start + self.turn).min(steady_end));
        (from < to).then(|| (began + (from - start), began + (to - start)))
    }
}

/// One of a driver's turns, in moments on the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    pub from: u64,
    pub to: u64,
    /// How long it is from its end to the start of the next one of any driver, nanoseconds.
    pub gap: u64,
    /// From when to when it is measured, if it is.
    pub measured: Option<(u64, u64)>,
}

/// Follows one thread through the stages, and takes its use of CPUs at both ends of the measured window.
#[derive(Debug)]
pub(crate) struct Tracker {
    timeline: Timeline,
    stage: Stage,
    until: u64,
    entered: Option<Usage>,
    spent: Usage,
}

impl Tracker {
    pub fn new(timeline: Timeline) -> Self {
        let start = timeline.start;
        let mut tracker = Self { timeline, stage: Stage::WarmUp, until: 0, entered: None, spent: Usage::default() };
        tracker.cross(start);
        tracker
    }

    /// The stage at `now`, which must not go backwards.
    #[inline]
    pub fn at(&mut self, now: u64) -> Stage {
        if now >= self.until {
            self.cross(now);
        }
        self.stage
    }

    /// When the present stage ends.
    pub const fn until(&self) -> u64 {
        self.until
    }

    #[cold]
    fn cross(&mut self, now: u64) {
        let (stage, until) = self.timeline.stage_at(now);
        if stage == Stage::Steady && self.stage != Stage::Steady {
            self.entered = Some(Usage::of_this_thread());
        }
        if stage != Stage::Steady {
            self.leave();
        }
        (self.stage, self.until) = (stage, until);
    }

    fn leave(&mut self) {
        if let Some(before) = self.entered.take() {
            self.spent.add(Usage::of_this_thread().since(before));
        }
    }

    /// What the thread used of CPUs in the measured window.
    pub fn finish(mut self) -> Usage {
        self.leave();
        self.spent
    }
}

#[cfg(test)]
impl Timeline {
    /// Of one of two arms: its turns of 20 start at 100, 175, 200 and 275, with 5 between any two.
    pub fn of_two_arms(waiting: Waiting) -> Self {
        let span = |ns| tare_model::Span { ns };
        let spec =
            tare_model::turns::TurnSpec { turn: span(20), warm_up: span(4), gap: span(5), waiting, commands: None };
        let phases = Phases { warm_up: span(10), ramp_up: span(0), steady_state: span(50), ramp_down: span(15) };
        Self::in_turns(100, &phases, &Turns { spec, arms: 2, places: vec![0, 1, 0, 1] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::Span;

    fn timeline() -> Timeline {
        let phases = Phases {
            warm_up: Span { ns: 10 },
            ramp_up: Span { ns: 20 },
            steady_state: Span { ns: 30 },
            ramp_down: Span { ns: 40 },
        };
        Timeline::new(100, &phases)
    }

    #[test]
    fn a_stage_includes_its_start_and_not_its_end() {
        let t = timeline();
        let stages = [100, 110, 130, 160, 200].map(|at| t.stage_at(at).0);
        assert_eq!(stages, [Stage::WarmUp, Stage::RampUp, Stage::Steady, Stage::RampDown, Stage::Over]);
        assert!(!t.measures(129) && t.measures(130) && t.measures(159) && !t.measures(160));
    }

    #[test]
    fn clients_join_evenly_and_all_before_steady_state() {
        let t = timeline();
        let joins: Vec<u64> = (0..4).map(|i| t.joins_at(i, 4)).collect();
        assert_eq!(joins, [110, 115, 120, 125]);
    }

    fn in_turns() -> Timeline {
        Timeline::of_two_arms(Waiting::Idle)
    }

    #[test]
    fn phases_pass_only_in_turns() {
        let t = in_turns();
        assert_eq!([t.start, t.warm_end, t.steady_start, t.steady_end, t.load_end], [100, 110, 110, 220, 290]);
        let (rest, steady, cold) = (Stage::Rest, Stage::Steady, Stage::TurnWarmUp);
        assert_eq!(t.stage_at(99), (rest, 100));
        assert_eq!(t.stage_at(105), (Stage::WarmUp, 110));
        assert_eq!(t.stage_at(110), (steady, 120), "the turn ends before the phase");
        assert_eq!(t.stage_at(120), (rest, 175));
        assert_eq!(t.stage_at(176), (cold, 179));
        assert_eq!(t.stage_at(179), (steady, 195));
        assert_eq!(t.stage_at(204), (steady, 220));
        assert_eq!(t.stage_at(274), (rest, 275), "the rest before its last turn is no end, however long it is");
        assert_eq!(t.stage_at(289), (Stage::RampDown, 290));
        assert_eq!(t.stage_at(290).0, Stage::Over, "its last turn ends with the load");
        assert_eq!(t.measured_ns(), 10 + 16 + 16);
        assert_eq!((t.turn_at(198), t.others_from(198)), (Some((1, 179, 195)), Some(200)));
        let turns: Vec<_> = (0..5).map(|turn| t.turn(turn).map(|turn| (turn.from, turn.to, turn.measured))).collect();
        let measured = [Some((110, 120)), Some((179, 195)), Some((204, 220)), None];
        let ends = [(100, 120), (175, 195), (200, 220), (275, 290)];
        let expected = ends.into_iter().zip(measured).map(|((from, to), measured)| Some((from, to, measured)));
        assert_eq!(turns, expected.chain([None]).collect::<Vec<_>>());
        assert!(t.counts(steady, rest) && !t.counts(cold, steady), "it counts where it began");
    }

    #[test]
    fn what_a_guest_was_stopped_for_is_between_the_middles_of_gaps() {
        let turns = [100, 175, 200, 275];
        let t = Timeline::of_two_arms(Waiting::Frozen);
        assert_eq!(t.turns(), turns.len());
        // Gaps of 5: stopped from 2 after a turn until 2 before the next.
        assert_eq!(t.frozen(110, 119), 0);
        assert_eq!(t.frozen(110, 180), 173 - 122);
        assert_eq!(t.frozen(130, 150), 20, "a part of it");
        assert_eq!(t.frozen(190, 210), 198 - 197, "two turns without another between");
        assert_eq!(t.frozen(110, 280), (173 - 122) + (198 - 197) + (273 - 222));
        assert_eq!(in_turns().frozen(110, 280), 0, "it was alive");
    }

    #[test]
    fn the_clock_of_the_driver_stands_still_between_turns() {
        let t = in_turns();
        assert_eq!([100, 115, 120, 150, 175, 180, 290].map(|at| t.driven(at)), [0, 15, 20, 20, 20, 25, 75]);
        assert_eq!([0, 15, 20, 25, 79, 80, 85].map(|driven| t.moment(driven)), [100, 115, 175, 180, 294, 300, 305]);
        assert_eq!(t.after(115, 10), 180);
        assert_eq!(t.after(150, 3), 178, "what ends between turns waits in the next");
        assert_eq!(t.waited(115, 180), 10);
        assert_eq!([99, 100, 119, 120, 174, 175, 294, 295, 299, 300].map(|at| t.rests(at)), {
            let (no, yes) = (false, true);
            [yes, no, no, yes, yes, no, no, yes, yes, no]
        });
        assert_eq!(
            (t.all_over(), t.after(297, 5), t.waited(290, 303)),
            (300, 305, 8),
            "it goes on when all have had their turns"
        );
    }

    #[test]
    fn a_tracker_may_skip_stages() {
        let mut tracker = Tracker::new(timeline());
        assert_eq!(tracker.at(105), Stage::WarmUp);
        assert_eq!(tracker.at(170), Stage::RampDown);
        assert_eq!(tracker.finish(), Usage::default(), "it never was in the window");
    }
}
