//! When a guest computes without being asked anything.

use tare_model::drive::BusyStretch;
use tare_model::turns::{Turns, Waiting};

use crate::Schedule;

/// Between two notes of how far a guest has come at least so long, nanoseconds: a note wakes the guest.
const NOTE_EVERY_MIN_NS: u64 = 50_000_000;

/// A time in which a guest computes. Moments are CLOCK_MONOTONIC of the controller, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stretch {
    pub from_ns: u64,
    /// When the last chunk begins at the latest.
    pub to_ns: u64,
    /// From when it is measured, if it is.
    pub measured_from_ns: Option<u64>,
    /// What is not measured of it, however late it begins, nanoseconds.
    pub warm_up_ns: u64,
    /// How often it is noted how far the guest has come, nanoseconds; 0: never.
    pub note_every_ns: u64,
    /// Of a turn.
    pub turn: Option<Turn>,
}

/// What is particular to a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Turn {
    /// When the next arm's turn begins; never, if there is none.
    pub others_from_ns: u64,
    /// From when to when the guest is stopped after it.
    pub frozen: Option<(u64, u64)>,
}

impl Stretch {
    /// What the guest is asked at a moment; `None` when it is too late.
    pub fn request(&self, now_ns: u64) -> Option<BusyStretch> {
        let for_ns = self.to_ns.checked_sub(now_ns).filter(|left| *left > 0)?;
        let warm_up_ns = self.measured_from_ns.map_or(0, |from| from.saturating_sub(now_ns).max(self.warm_up_ns));
        let (renew_memory, note_every_ns) = (self.turn.is_some(), self.note_every_ns);
        Some(BusyStretch { warm_up_ns, for_ns, renew_memory, note_every_ns, slowed_permille: 0 })
    }

    /// How much of the time until a moment the guest was stopped, nanoseconds.
    pub fn stood_ns(&self, until_ns: u64) -> u64 {
        let frozen = self.turn.and_then(|turn| turn.frozen);
        frozen.map_or(0, |(stops, goes_on)| until_ns.min(goes_on).saturating_sub(stops))
    }
}

/// All stretches of a trial whose first phase, or first round of turns, starts at a moment.
pub fn of(schedule: &Schedule, start_ns: u64) -> Vec<Stretch> {
    let steady = schedule.stretches(start_ns);
    if let Some(turns) = &schedule.turns {
        return in_turns(turns, start_ns, &steady);
    }
    let note_every_ns = schedule.interval_ns.max(NOTE_EVERY_MIN_NS);
    let measured = steady.into_iter().map(|(begins, ends)| Stretch {
        from_ns: start_ns,
        to_ns: ends,
        measured_from_ns: Some(begins),
        note_every_ns,
        ..Stretch::default()
    });
    let mut all: Vec<_> = measured.collect();
    let end_ns = start_ns.saturating_add(schedule.phases.total().ns);
    let ramp_down = all.last().map(|last| Stretch { from_ns: last.to_ns, to_ns: end_ns, ..Stretch::default() });
    all.extend(ramp_down.filter(|own| own.from_ns < own.to_ns));
    all
}

fn in_turns(turns: &Turns, start_ns: u64, steady: &[(u64, u64)]) -> Vec<Stretch> {
    let (spec, half) = (turns.spec, turns.spec.gap.ns / 2);
    let windows: Vec<_> = turns.windows(start_ns).collect();
    // The last gap follows the last turn of all.
    let all_over = start_ns.saturating_add(turns.total().ns).saturating_sub(spec.gap.ns);
    let of = |(index, &(from_ns, to_ns)): (usize, &(u64, u64))| {
        let goes_on = windows.get(index + 1).map_or(all_over + half, |next| next.0.saturating_sub(half));
        let turn = Turn {
            others_from_ns: if turns.arms > 1 { to_ns.saturating_add(spec.gap.ns) } else { u64::MAX },
            frozen: (spec.waiting == Waiting::Frozen).then_some((to_ns.saturating_add(half), goes_on)),
        };
        let own = steady.iter().find(|(begins, _)| (from_ns..to_ns).contains(begins));
        let measured = own.map(|&(begins, ends)| (begins.max(from_ns.saturating_add(spec.warm_up.ns)), ends));
        let measured = measured.filter(|(begins, ends)| begins < ends);
        Stretch {
            from_ns,
            to_ns: measured.map_or(to_ns, |(_, ends)| ends),
            measured_from_ns: measured.map(|(begins, _)| begins),
            warm_up_ns: spec.warm_up.ns,
            note_every_ns: 0,
            turn: Some(turn),
        }
    };
    windows.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tare_model::Span;
    use tare_model::load::Phases;
    use tare_model::turns::TurnSpec;

    use super::*;

    const MS: u64 = 1_000_000;

    fn schedule(phases: Phases, turns: Option<Turns>) -> Schedule {
        let turns = turns.map(Arc::new);
        Schedule { phases, start_at_ns: 0, seed: 1, interval_ns: 1, turns, baton: None }
    }

    fn phases(warm_up: u64, steady_state: u64, ramp_down: u64) -> Phases {
        let ms = Span::from_millis;
        Phases { warm_up: ms(warm_up), ramp_down: ms(ramp_down), ..Phases::measuring(ms(steady_state)) }
    }

    #[test]
    fn a_trial_is_one_stretch_with_its_warm_up_and_another_to_ramp_down() {
        let all = of(&schedule(phases(20, 300, 10), None), 1000 * MS);
        let ends: Vec<_> = all.iter().map(|own| (own.from_ns / MS, own.to_ns / MS)).collect();
        assert_eq!(ends, [(1000, 1320), (1320, 1330)]);
        let asked = |now_ms: u64| all[0].request(now_ms * MS);
        let expected = |warm_up: u64, left: u64| {
            let (warm_up_ns, for_ns, note_every_ns) = (warm_up * MS, left * MS, NOTE_EVERY_MIN_NS);
            Some(BusyStretch { warm_up_ns, for_ns, note_every_ns, ..BusyStretch::default() })
        };
        assert_eq!([asked(1000), asked(1005), asked(1030)], [expected(20, 320), expected(15, 315), expected(0, 290)]);
        assert_eq!(asked(1320), None, "it is too late");
        assert_eq!(all[1].measured_from_ns, None);
        assert_eq!(of(&schedule(phases(0, 300, 0), None), 0).len(), 1);
    }

    /// Turns of 20 ms that start at 0, 75, 100 and 175, with 5 between any two.
    fn turns(waiting: Waiting) -> Turns {
        let ms = Span::from_millis;
        let spec = TurnSpec { turn: ms(20), warm_up: ms(4), gap: ms(5), waiting, commands: None };
        Turns { spec, arms: 2, places: vec![0, 1, 0, 1] }
    }

    #[test]
    fn a_turn_is_a_stretch_whose_first_part_is_not_measured_however_late_it_begins() {
        let all = of(&schedule(phases(10, 46, 15), Some(turns(Waiting::Idle))), 0);
        let own: Vec<_> = all
            .iter()
            .map(|own| (own.from_ns / MS, own.to_ns / MS, own.measured_from_ns.map(|from| from / MS)))
            .collect();
        // The steady state passes from the middle of the first turn on and ends in the third.
        assert_eq!(own, [(0, 20, Some(10)), (75, 95, Some(79)), (100, 116, Some(104)), (175, 195, None)]);
        let asked = all[1].request(77 * MS).unwrap();
        assert_eq!((asked.warm_up_ns, asked.for_ns, asked.renew_memory), (4 * MS, 18 * MS, true));
        assert_eq!(all[3].request(175 * MS).unwrap().warm_up_ns, 0);
        assert_eq!(all[0].turn.unwrap().others_from_ns, 25 * MS);
        assert_eq!(all[0].stood_ns(70 * MS), 0, "it was alive");
    }

    #[test]
    fn a_guest_is_stopped_between_the_middles_of_gaps() {
        let all = of(&schedule(phases(0, 80, 0), Some(turns(Waiting::Frozen))), 0);
        let stood = |turn: usize, until: u64| all[turn].stood_ns(until * MS / 10) * 10 / MS;
        // Tenths of a ms: stopped from 22.5 to 72.5 ms.
        assert_eq!([stood(0, 220), stood(0, 300), stood(0, 740)], [0, 75, 500]);
        assert_eq!(stood(1, 1100), 0, "its next turn follows");
        // All are over at 195 ms.
        assert_eq!(stood(3, 2000), 0);
        assert_eq!(stood(2, 1800), 500);
    }
}
