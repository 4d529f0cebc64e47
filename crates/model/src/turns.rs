//! Turns: slices of a block in which one arm is driven while the others rest.

use serde::{Deserialize, Serialize};

use crate::load::Phases;
use crate::units::Span;

/// Most rounds of turns that a trial may have: 44 minutes of own turns of 20 ms.
pub const ROUNDS_MAX: u32 = 1 << 17;

/// How the arms of a case take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnSpec {
    /// How long an arm is driven in a turn.
    pub turn: Span,
    /// The first part of each turn, which is driven and not measured.
    pub warm_up: Span,
    /// Rest between the end of a turn and the start of the next: what is under way ends in it.
    pub gap: Span,
    /// What an arm does while it is not its turn.
    pub waiting: Waiting,
    /// Where each turn is one command: how many an arm runs. A turn ends when its command does, so that `turn` and `warm_up` are nothing,
    /// and a trial's phases say only how long a command is expected to take.
    pub commands: Option<u32>,
}

/// What an arm does while it is not its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Waiting {
    /// It is offered no load; its own housekeeping goes on.
    #[default]
    Idle,
    /// Its processes are stopped.
    Frozen,
}

impl TurnSpec {
    /// Rounds that a steady state holds at least, where the study does not say how long turns are: what the host does in one of them is
    /// then a small part of a block.
    pub const FEWEST_ROUNDS: u64 = 10;
    /// The same where conditions of one guest take turns: they are as long as it takes a neighbour to have its effect.
    pub const FEWEST_OF_CONDITIONS: u64 = 2;
    /// The shortest turn.
    pub const SHORTEST: Span = Span::from_millis(1);

    /// Whole rounds of a steady state of this length.
    pub const fn rounds_in(&self, steady_state: Span) -> u64 {
        match steady_state.ns.checked_div(self.turn.ns) {
            Some(rounds) => rounds,
            None => 0,
        }
    }

    /// These turns, made shorter, to a quarter at most, where a steady state of this length would hold fewer than
    /// [`Self::FEWEST_ROUNDS`]; `None` where it holds fewer even then. Turns that are commands stay as they are.
    pub fn shortened(&self, steady_state: Span) -> Option<Self> {
        if self.commands.is_some() {
            return Some(*self);
        }
        let least = (self.turn.ns / 4).max(Self::SHORTEST.ns);
        let ns = self.turn.ns.min((steady_state.ns / Self::FEWEST_ROUNDS).max(least));
        let warm_up = u128::from(self.warm_up.ns) * u128::from(ns) / u128::from(self.turn.ns.max(1));
        let warm_up = Span { ns: u64::try_from(warm_up).unwrap_or(ns) };
        let shorter = Self { turn: Span { ns }, warm_up, ..*self };
        (shorter.rounds_in(steady_state) >= Self::FEWEST_ROUNDS).then_some(shorter)
    }

    /// These turns, made shorter where a steady state of this length would hold fewer than [`Self::FEWEST_OF_CONDITIONS`], with their warm-up
    /// and the gap between them.
    #[must_use]
    pub fn halved(&self, steady_state: Span) -> Self {
        let turn = self.turn.ns.min(steady_state.ns / Self::FEWEST_OF_CONDITIONS).max(1);
        let part = |span: Span| {
            let ns = u128::from(span.ns) * u128::from(turn) / u128::from(self.turn.ns.max(1));
            Span { ns: u64::try_from(ns).unwrap_or(span.ns) }
        };
        Self { turn: Span { ns: turn }, warm_up: part(self.warm_up), gap: part(self.gap), ..*self }
    }

    /// Rounds that it takes to drive each arm through all phases, or to run all of its commands.
    pub fn rounds(&self, phases: &Phases) -> u32 {
        if let Some(commands) = self.commands {
            return commands;
        }
        u32::try_from(phases.total().ns.div_ceil(self.turn.ns.max(1))).unwrap_or(u32::MAX)
    }

    /// From the start of a turn to the start of the next one of any arm.
    pub const fn slot(&self) -> Span {
        Span { ns: self.turn.ns.saturating_add(self.gap.ns) }
    }

    /// How long so many arms take to go through all phases in turns; where these are commands, about how long.
    pub fn total(&self, phases: &Phases, arms: u32) -> Span {
        let slots = u64::from(self.rounds(phases)).saturating_mul(arms.into());
        let expected = if self.commands.is_some() { phases.total().ns } else { 0 };
        Span { ns: self.slot().ns.saturating_add(expected).saturating_mul(slots) }
    }
}

/// The turns of one arm: one in each round, at a place of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turns {
    /// How arms take turns.
    pub spec: TurnSpec,
    /// Arms that take turns.
    pub arms: u32,
    /// This arm's place in each round, from 0.
    pub places: Vec<u32>,
}

impl Turns {
    /// Start and end of each turn, nanoseconds, where the first round starts at `start_ns`.
    pub fn windows(&self, start_ns: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let slot = self.spec.slot().ns;
        self.places.iter().zip(0_u64..).map(move |(&place, round)| {
            let slots = round.saturating_mul(self.arms.into()).saturating_add(place.into());
            let from = start_ns.saturating_add(slot.saturating_mul(slots));
            (from, from.saturating_add(self.spec.turn.ns))
        })
    }

    /// From the start of the first round to the end of the last.
    pub const fn total(&self) -> Span {
        let slots = (self.places.len() as u64).saturating_mul(self.arms as u64);
        Span { ns: self.spec.slot().ns.saturating_mul(slots) }
    }
}

/// What an arm did in one turn, or in the measured part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TurnCount {
    /// Operations.
    pub operations: u64,
    /// Payload bytes, both ways.
    pub bytes: u64,
    /// Time in which they were done, nanoseconds; of several clients the mean.
    pub measured_ns: u64,
    /// Sum of the operations' response times, nanoseconds.
    pub response_ns: u64,
}

/// What an arm did in all its turns.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TurnsDone {
    /// Time in which it was measured, nanoseconds: the measured parts of its turns, and what took operations of a closed loop that
    /// began in them to end; of several clients the mean.
    pub measured_ns: u64,
    /// Turn by turn.
    pub counts: Vec<TurnCount>,
    /// Turns in which something was still under way when the next arm's turn began.
    pub overran: u32,
    /// Where turns are commands: when each began, CLOCK_MONOTONIC of the controller's host, nanoseconds. It took what its count says was measured.
    pub began_ns: Vec<u64>,
}

impl TurnsDone {
    /// What several drivers did side by side in the same turns, as of one.
    pub fn together(all: &[Self]) -> Option<Self> {
        let mean = |sum: u64| sum / (all.len() as u64).max(1);
        let turns = all.iter().map(|done| done.counts.len()).max()?;
        let counts = (0..turns).map(|turn| {
            let of = all.iter().filter_map(|done| done.counts.get(turn));
            let sum = of.fold(TurnCount::default(), |sum, one| sum.plus(*one));
            TurnCount { measured_ns: mean(sum.measured_ns), ..sum }
        });
        Some(Self {
            counts: counts.collect(),
            measured_ns: mean(all.iter().map(|done| done.measured_ns).sum()),
            overran: all.iter().map(|done| done.overran).max().unwrap_or_default(),
            began_ns: all.first().map(|done| done.began_ns.clone()).unwrap_or_default(),
        })
    }

    /// Start and end of each turn that was a command, nanoseconds.
    pub fn commands(&self) -> Vec<(u64, u64)> {
        let turns = self.began_ns.iter().zip(&self.counts);
        turns.map(|(&from, count)| (from, from.saturating_add(count.measured_ns))).collect()
    }
}

impl TurnCount {
    /// Both together, as if one had come after the other.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            operations: self.operations.saturating_add(other.operations),
            bytes: self.bytes.saturating_add(other.bytes),
            measured_ns: self.measured_ns.saturating_add(other.measured_ns),
            response_ns: self.response_ns.saturating_add(other.response_ns),
        }
    }
}

/// How a trial took its turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialTurns {
    /// Start of the first round, CLOCK_MONOTONIC of the controller's host, nanoseconds.
    pub start_ns: u64,
    /// Its turns.
    pub turns: Turns,
    /// What it did in them.
    pub done: TurnsDone,
    /// CPUs (1.0: one whole CPU) that its guests used while other arms had their turns; `None` where guests have no control group.
    pub waiting_cpus: Option<f64>,
}

impl TrialTurns {
    /// Start and end of each turn, nanoseconds: as planned, or of each command as it was.
    pub fn windows(&self) -> Vec<(u64, u64)> {
        match self.turns.spec.commands {
            Some(_) => self.done.commands(),
            None => self.turns.windows(self.start_ns).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_shortened_to_ten_rounds_and_no_further_than_to_a_quarter() {
        let ms = Span::from_millis;
        let spec = TurnSpec { turn: ms(20), warm_up: ms(2), gap: ms(1), waiting: Waiting::Idle, commands: None };
        assert_eq!(spec.shortened(ms(2000)), Some(spec));
        assert_eq!(spec.shortened(ms(100)), Some(TurnSpec { turn: ms(10), warm_up: ms(1), ..spec }));
        assert_eq!(spec.shortened(ms(50)).map(|spec| spec.turn), Some(ms(5)));
        assert_eq!(spec.shortened(ms(49)), None);
        assert_eq!(TurnSpec { turn: ms(1), ..spec }.shortened(ms(9)), None, "the shortest");
        let commands = TurnSpec { turn: Span::ZERO, commands: Some(5), ..spec };
        assert_eq!(commands.shortened(ms(1)), Some(commands));
    }

    #[test]
    fn the_turns_of_all_arms_fill_their_rounds_and_do_not_overlap() {
        let ms = |ms: u64| Span { ns: ms * 1_000_000 };
        let spec = TurnSpec { turn: ms(20), warm_up: Span::ZERO, gap: ms(1), waiting: Waiting::Idle, commands: None };
        let phases = Phases::measuring(ms(50));
        assert_eq!(spec.rounds(&phases), 3);
        let of = |places: [u32; 3]| Turns { spec, arms: 2, places: places.to_vec() };
        let (one, other) = (of([0, 1, 1]), of([1, 0, 0]));
        let mut all: Vec<_> = one.windows(7).chain(other.windows(7)).collect();
        all.sort_unstable();
        assert_eq!(all[0], (7, 20_000_007));
        assert!(all.windows(2).all(|pair| pair[1].0 - pair[0].1 == ms(1).ns), "{all:?}");
        assert_eq!(one.total(), spec.total(&phases, 2));
        assert_eq!(all[5].1 + ms(1).ns - 7, one.total().ns);
    }

    #[test]
    fn a_turn_that_is_a_command_lies_where_the_command_was_and_is_expected_to_take_the_phases() {
        let ms = Span::from_millis;
        let waiting = Waiting::Idle;
        let spec = TurnSpec { turn: Span::ZERO, warm_up: Span::ZERO, gap: ms(10), waiting, commands: Some(2) };
        let phases = Phases { warm_up: ms(20), ..Phases::measuring(ms(70)) };
        assert_eq!((spec.rounds(&phases), spec.total(&phases, 3)), (2, ms(6 * 100)));
        let count = |measured_ns| TurnCount { operations: 1, measured_ns, response_ns: measured_ns, bytes: 0 };
        let done = TurnsDone { began_ns: vec![5, 40], counts: vec![count(7), count(9)], ..TurnsDone::default() };
        let turns = Turns { spec, arms: 3, places: vec![0, 2] };
        assert_eq!(TrialTurns { start_ns: 5, turns, done, waiting_cpus: None }.windows(), [(5, 12), (40, 49)]);
    }
}
