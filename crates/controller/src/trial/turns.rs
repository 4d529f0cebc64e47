//! Turns: who is driven when, and whose CPU time is whose.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tare_model::load::Phases;
use tare_model::random::MirroredOrders;
use tare_model::turns::{TurnSpec, Turns};
use tare_platform::Guest;

/// The turns of so many arms through all phases: in each round every arm has one, in an order drawn from the seed for every other round,
/// and backwards in the next.
pub(super) fn table(spec: TurnSpec, arms: usize, phases: &Phases, seed: u64) -> Vec<Arc<Turns>> {
    let mut orders = MirroredOrders::new(arms, seed);
    let mut places: Vec<Vec<u32>> = vec![Vec::new(); arms];
    for _ in 0..spec.rounds(phases) {
        for (own, &place) in places.iter_mut().zip(orders.draw()) {
            own.push(u32::try_from(place).unwrap_or(u32::MAX));
        }
    }
    let arms = u32::try_from(arms).unwrap_or(u32::MAX);
    places.into_iter().map(|places| Arc::new(Turns { spec, arms, places })).collect()
}

/// The turns of a trial (moments: CLOCK_MONOTONIC, nanoseconds).
#[derive(Debug, Clone)]
pub(super) struct OwnTurns {
    pub(super) turns: Arc<Turns>,
    /// Start of the first round.
    pub(super) start_ns: u64,
    /// End of the last round, without the gap that follows.
    end_ns: u64,
    /// Start and end of each turn.
    windows: Vec<(u64, u64)>,
}

impl OwnTurns {
    /// As the table says.
    pub(super) fn planned(turns: &Arc<Turns>, start_ns: u64) -> Self {
        let windows = turns.windows(start_ns).collect();
        let end_ns = (start_ns + turns.total().ns).saturating_sub(turns.spec.gap.ns);
        Self { turns: Arc::clone(turns), start_ns, end_ns, windows }
    }

    /// Commands, as they were run, and when the first and the last of all arms were.
    pub(super) fn taken(turns: Arc<Turns>, windows: Vec<(u64, u64)>, (start_ns, end_ns): (u64, u64)) -> Self {
        Self { turns, start_ns, end_ns, windows }
    }

    /// Start and end of each turn.
    pub(super) fn windows(&self) -> &[(u64, u64)] {
        &self.windows
    }

    /// All rounds, with half a gap before and after them.
    pub(super) fn whole(&self) -> (u64, u64) {
        let half = self.turns.spec.gap.ns / 2;
        (self.start_ns.saturating_sub(half), self.end_ns + half)
    }

    /// All of its turns, each from the middle of the gap before to the middle of the gap after it: what is read of a host's CPUs there
    /// falls into nobody's turn, and what ends in the gap belongs to the arm that began it.
    pub(super) fn slots(&self) -> Vec<(u64, u64)> {
        let half = self.turns.spec.gap.ns / 2;
        self.windows.iter().map(|&(from, to)| (from.saturating_sub(half), to + half)).collect()
    }

    /// The parts of its turns in which it is measured, with the gaps around them.
    pub(super) fn measured(&self, phases: &Phases) -> Vec<(u64, u64)> {
        let TurnSpec { turn, warm_up, commands, .. } = self.turns.spec;
        if commands.is_some() {
            return self.slots();
        }
        let steady = (phases.steady_offset_ns(), phases.steady_offset_ns() + phases.steady_state.ns);
        let of = |(driven, (from, to)): (u64, (u64, u64))| {
            // The first part of a turn is no part of what is measured, nor is the gap before it.
            let half = self.turns.spec.gap.ns / 2;
            let start = (steady.0.saturating_sub(driven)).max(warm_up.ns);
            let end = steady.1.saturating_sub(driven).min(turn.ns);
            let from = if start == 0 { from } else { from + half + start };
            let to = if end == turn.ns { to } else { to.saturating_sub(half + (turn.ns - end)) };
            (start < end).then_some((from, to))
        };
        (0_u64..).map(|round| round * turn.ns).zip(self.slots()).filter_map(of).collect()
    }
}

/// Nanoseconds in some stretches of time.
pub(super) fn length(stretches: &[(u64, u64)]) -> u64 {
    stretches.iter().map(|(from, to)| to.saturating_sub(*from)).sum()
}

/// Stops the guests of an arm while it is the turn of others.
pub(super) struct Freezer {
    /// For each arm, the files that stop its guests.
    files: Vec<Vec<PathBuf>>,
    /// When whose turn begins, in order of time.
    begins: Vec<(u64, usize)>,
    /// When the last turn ends.
    end: u64,
}

/// How long the freezer sleeps at most until it looks whether it shall stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl Freezer {
    /// One for these arms.
    ///
    /// # Errors
    /// When a guest cannot be stopped: it has no control group of version 2 of its own.
    pub(super) fn new<'g>(
        arms: impl Iterator<Item = (&'g OwnTurns, &'g [Box<dyn Guest>])>,
    ) -> Result<Self, (usize, String)> {
        let (mut files, mut begins, mut end) = (Vec::new(), Vec::new(), 0);
        for (arm, (own, guests)) in arms.enumerate() {
            for (from, to) in own.slots() {
                begins.push((from, arm));
                end = end.max(to);
            }
            let file = |guest: &dyn Guest| {
                let mut groups = guest.groups().into_iter().map(|group| group.join("cgroup.freeze"));
                groups.find(|file| file.exists()).ok_or_else(|| {
                    let name = &guest.spec().name;
                    (arm, format!("guest {name} cannot be stopped between its turns: it has no control group of version 2. Write `waiting = \"idle\"` or `schedule = \"trials\"`"))
                })
            };
            files.push(guests.iter().map(|guest| file(&**guest)).collect::<Result<Vec<_>, _>>()?);
        }
        begins.sort_unstable();
        Ok(Self { files, begins, end })
    }

    fn write(&self, arm: usize, word: &str) {
        // A guest that is gone needs no freezing; that it is gone is seen where it is driven.
        self.files.iter().skip(arm).take(1).flatten().for_each(|file| drop(fs::write(file, word)));
    }

    /// Freezes all arms and thaws each for its turns, until all have had theirs or `done` is set; then all run again.
    pub(super) fn run(&self, done: &AtomicBool) {
        (0..self.files.len()).for_each(|arm| self.write(arm, "1"));
        let mut running = None;
        for &(begins, arm) in &self.begins {
            if !wait_until(begins, done) {
                break;
            }
            if running != Some(arm) {
                running.replace(arm).into_iter().for_each(|last| self.write(last, "1"));
                self.write(arm, "0");
            }
        }
        wait_until(self.end, done);
        (0..self.files.len()).for_each(|arm| self.write(arm, "0"));
    }
}

/// Sleeps until a moment; false, early, once `done` is set.
pub(super) fn wait_until(at_ns: u64, done: &AtomicBool) -> bool {
    while !done.load(Ordering::Relaxed) {
        let left = Duration::from_nanos(at_ns.saturating_sub(tare_probe::now_ns()));
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(LOOK_EVERY));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::Span;
    use tare_model::turns::Waiting;

    fn spec(turn: u64, warm_up: u64, gap: u64) -> TurnSpec {
        let span = |ns| Span { ns };
        TurnSpec { turn: span(turn), warm_up: span(warm_up), gap: span(gap), waiting: Waiting::Idle, commands: None }
    }

    #[test]
    fn every_arm_has_one_turn_a_round_in_an_order_that_the_seed_alone_decides() {
        let of = |seed| table(spec(20, 0, 2), 3, &Phases::measuring(Span { ns: 2000 }), seed);
        let arms = of(7);
        for round in 0..100 {
            let mut places: Vec<u32> = arms.iter().map(|arm| arm.places[round]).collect();
            places.sort_unstable();
            assert_eq!(places, [0, 1, 2]);
        }
        assert_eq!(arms, of(7));
        assert_ne!(arms, of(8));
        let first = |arm: usize| arms[arm].places.iter().filter(|&&place| place == 0).count();
        assert!((20..50).contains(&first(0)) && (20..50).contains(&first(1)), "{} {}", first(0), first(1));
    }

    #[test]
    fn slots_fill_all_of_the_time_and_what_is_measured_lies_in_steady_state() {
        let phases =
            Phases { warm_up: Span { ns: 30 }, ramp_down: Span { ns: 10 }, ..Phases::measuring(Span { ns: 40 }) };
        let arms = table(spec(20, 5, 4), 2, &phases, 1);
        let own: Vec<_> = arms.iter().map(|turns| OwnTurns::planned(turns, 1000)).collect();
        let mut all: Vec<_> = own.iter().flat_map(OwnTurns::slots).collect();
        all.sort_unstable();
        assert_eq!(all.first().map(|slot| slot.0), Some(998));
        assert!(all.windows(2).all(|pair| pair[0].1 == pair[1].0), "{all:?}");
        for arm in &own {
            // 20 to 40 of 30 to 70: the second half of the second turn, the third without its first part, half of the fourth.
            let slots = arm.slots();
            let at = |turn: usize| slots[turn].0 + 2;
            let expected = [(at(1) + 10, slots[1].1), (at(2) + 5, slots[2].1), (at(3) + 5, at(3) + 10)];
            assert_eq!(arm.measured(&phases), expected);
        }
        assert_eq!(own[0].whole(), (all[0].0, all[all.len() - 1].1));
        assert_eq!(length(&[(1, 3), (10, 20)]), 12);
    }
}
