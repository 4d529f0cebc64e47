//! What a guest has computed, by the controller's clock.

use std::collections::BTreeMap;

use tare_model::drive::BusyDone;
use tare_model::sample::{Sample, Source};
use tare_model::trial::Flag;
use tare_model::turns::{TurnCount, TurnsDone};

use super::stretches::Stretch;
use crate::{Driven, Relation};

/// A stretch and what the guest did in it. Moments are CLOCK_MONOTONIC of the controller, nanoseconds.
#[derive(Debug, Default)]
pub struct Ran {
    pub stretch: Stretch,
    /// When the guest was asked.
    pub before_ns: u64,
    /// When its answer was there.
    pub after_ns: u64,
    /// What it answered, by its own clock; `None` where it was too late to ask.
    pub done: Option<BusyDone>,
}

/// What was done in a stretch; nothing where it was not measured.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    chunks: u64,
    /// From the start of the first chunk to the end of the last, nanoseconds; of several threads the mean.
    ns: u64,
    /// From the start of the measured part to the first chunk of it, nanoseconds.
    before_ns: u64,
    /// By how much longer the controller waited for the answer than the guest took by its own clock, as a part of that.
    way: f64,
}

impl Progress {
    /// Chunks a second.
    fn rate(self) -> f64 {
        self.chunks as f64 * 1e9 / self.ns as f64
    }
}

/// All that was done in a trial.
#[derive(Debug)]
pub struct Speed<'a> {
    all: &'a [Ran],
    progress: Vec<Progress>,
    clock: Relation,
}

/// A clock that differs from the controller's by more is flagged, parts in a million: those of kernels differ by some tens.
const DRIFT_PPM: f64 = 1_000.0;
/// A clock that may differ by so much more than was seen is flagged, parts in a million.
const UNKNOWN_PPM: f64 = 10_000.0;
/// Where the guest answers later than this, as a part of a stretch, its clock may have missed as much while it computed.
const WAY: f64 = 0.02;

impl Ran {
    fn progress(&self, clock: &Relation) -> Result<Progress, String> {
        let (Some(done), Some(measured_from_ns)) = (&self.done, self.stretch.measured_from_ns) else {
            return Ok(Progress::default());
        };
        let threads = done.loops.len() as u64;
        // Nothing was computed before it was asked.
        let began_ns = measured_from_ns.max(self.before_ns);
        let (mut chunks, mut ns, mut before_ns) = (0_u64, 0_u64, 0_u64);
        for one in &done.loops {
            let (from, to) = (clock.to_ours(one.from_ns), clock.to_ours(one.to_ns));
            let took = to.checked_sub(from).map(|took| took.saturating_sub(self.stretch.stood_ns(to)));
            let took = took.filter(|took| *took > 0 && one.iterations > 0);
            let wrong = || format!("it said {} chunks from {} to {} ns", one.iterations, one.from_ns, one.to_ns);
            ns = ns.saturating_add(took.ok_or_else(wrong)?);
            chunks = chunks.saturating_add(one.iterations);
            before_ns = before_ns.saturating_add(from.saturating_sub(began_ns));
        }
        let mean = |sum: u64| sum.checked_div(threads).ok_or("it said nothing of its threads");
        let by_guest_ns = clock.to_ours(done.ended_ns).saturating_sub(clock.to_ours(done.asked_ns));
        let way_ns = (self.after_ns - self.before_ns).saturating_sub(by_guest_ns);
        Ok(Progress {
            chunks,
            ns: mean(ns)?,
            before_ns: mean(before_ns)?,
            way: way_ns as f64 / by_guest_ns.max(1) as f64,
        })
    }

    /// Chunks a second: between the notes or, without any, of the stretch.
    fn samples(&self, progress: Progress, clock: &Relation) -> Vec<Sample> {
        let sample =
            |at_ns, value| Sample { at_ns, source: Source::Client, series: "operations_per_s".to_owned(), value };
        let notes = self.done.iter().flat_map(|done| done.notes.windows(2)).filter_map(|two| {
            let [(from, first), (to, last)] = [two[0], two[1]].map(|(at, chunks)| (clock.to_ours(at), chunks));
            let ns = to.checked_sub(from).filter(|ns| *ns > 0)?;
            Some(sample(to, last.saturating_sub(first) as f64 * 1e9 / ns as f64))
        });
        let whole = (self.stretch.turn.is_some() && progress.ns > 0).then(|| sample(self.after_ns, progress.rate()));
        notes.chain(whole).collect()
    }
}

impl<'a> Speed<'a> {
    /// Of all stretches, where the guest's clock stood so to the controller's.
    ///
    /// # Errors
    /// What the guest said that cannot be, or that it was never asked.
    pub fn of(all: &'a [Ran], clock: Relation) -> Result<Self, String> {
        let progress = all.iter().map(|ran| ran.progress(&clock)).collect::<Result<Vec<_>, _>>()?;
        if progress.iter().all(|one| one.ns == 0) {
            return Err("the guest was never asked to compute while it was measured".to_owned());
        }
        Ok(Self { all, progress, clock })
    }

    fn measured(&self) -> impl Iterator<Item = &Progress> {
        self.progress.iter().filter(|one| one.ns > 0)
    }

    /// The share of a stretch that the guest's clock may have missed in it: the median over stretches, because the controller itself is
    /// late in some.
    fn way(&self) -> f64 {
        let mut ways: Vec<f64> = self.measured().map(|one| one.way).collect();
        ways.sort_by(f64::total_cmp);
        ways[ways.len() / 2]
    }

    /// What a reader must know of the guest's clock.
    fn flags(&self) -> Vec<Flag> {
        let flag = |detail| Flag { kind: "guest-clock".to_owned(), detail };
        let drift = self.clock.drift_ppm().filter(|_| !self.clock.is_ours());
        let drift = drift.filter(|(ppm, within)| ppm.abs() - within > DRIFT_PPM || *within > UNKNOWN_PPM);
        let drifts = drift.map(|(ppm, within)| {
            let (percent, within) = (ppm.abs() / 1e4, within / 1e4);
            let how = if ppm < 0.0 { "slower" } else { "faster" };
            flag(format!(
                "the guest's clock runs {percent:.2} % {how} than the controller's, give or take {within:.2} %; the speed is by the controller's"
            ))
        });
        let way = self.way();
        let late = (way > WAY).then(|| {
            let (percent, most) = (way * 100.0, WAY * 100.0);
            flag(format!("the guest answered late by {percent:.2} % of the time that it computed, more than {most} %: its clock may have missed as much"))
        });
        drifts.into_iter().chain(late).collect()
    }

    /// What it comes to.
    pub fn driven(&self, in_turns: bool) -> Driven {
        let sum = |of: fn(&Progress) -> u64| self.progress.iter().map(of).fold(0, u64::saturating_add);
        let (chunks, measured_ns) = (sum(|one| one.chunks), sum(|one| one.ns));
        let mut driven = Driven::default();
        driven.measurement.metrics.insert("chunks_per_s".to_owned(), chunks as f64 * 1e9 / measured_ns as f64);
        driven.measurement.counts.insert(tare_model::count::OPERATIONS.to_owned(), chunks);
        driven.work = chunks as f64;
        let stretches = || self.all.iter().map(|ran| &ran.stretch).filter(|own| own.measured_from_ns.is_some());
        let first = stretches().find_map(|own| own.measured_from_ns).unwrap_or_default();
        driven.window_ns = (first, stretches().next_back().map_or(first, |own| own.to_ns));
        driven.samples =
            self.all.iter().zip(&self.progress).flat_map(|(ran, &one)| ran.samples(one, &self.clock)).collect();
        driven.flags = self.flags();
        let threads = self.all.iter().find_map(|ran| ran.done.as_ref()).map_or(0, |done| done.loops.len());
        driven.facts = BTreeMap::from([
            ("threads that compute".to_owned(), threads.to_string()),
            (
                "CPU speed, way of question and answer".to_owned(),
                format!("{:.3} % of the time that it computed, median", self.way() * 100.0),
            ),
        ]);
        if in_turns {
            // CPU time is taken from the start of the measured part on, which is in the middle of a chunk: what was done until that one's
            // end is work of this turn, and counts as much as its time.
            driven.work =
                self.measured().map(|one| one.chunks as f64 * (1.0 + one.before_ns as f64 / one.ns as f64)).sum();
            let counts = self.progress.iter().map(|one| TurnCount {
                operations: one.chunks,
                measured_ns: one.ns,
                ..TurnCount::default()
            });
            let late = |ran: &&Ran| ran.stretch.turn.is_some_and(|turn| ran.after_ns > turn.others_from_ns);
            let overran = self.all.iter().filter(late).count() as u32;
            driven.turns = Some(TurnsDone { measured_ns, counts: counts.collect(), overran, began_ns: Vec::new() });
        }
        driven
    }
}

/// Figures that must not be used, and why.
pub fn invalid(reason: &str) -> Driven {
    Driven { invalid: Some(format!("the guest's computing: {reason}")), ..Driven::default() }
}

#[cfg(test)]
mod tests {
    use tare_model::drive::BusyCount;

    use super::super::stretches::Turn;
    use super::*;
    use crate::Offset;

    const MS: u64 = 1_000_000;
    const S: u64 = 1_000_000_000;

    /// A guest's clock that shows 7 s less than the controller's at 1 s, and runs at so many percent of it.
    #[derive(Clone, Copy)]
    struct GuestClock {
        percent: u64,
    }

    impl GuestClock {
        fn at(self, ours_ns: u64) -> u64 {
            20 * S + (ours_ns - S) * self.percent / 100
        }

        fn seen(self) -> Relation {
            let at = |at_ns: u64| {
                let ns = i64::try_from(self.at(at_ns)).unwrap() - i64::try_from(at_ns).unwrap();
                Offset { at_ns, ns, uncertainty_ns: 50_000 }
            };
            Relation::new(at(S), Some(at(11 * S)))
        }

        /// A stretch whose request and answer take 100 us each; chunks of `chunk_ns` of the controller's time begin after `late_ns`.
        fn ran(self, stretch: Stretch, late_ns: u64, (chunks, chunk_ns): (u64, u64)) -> Ran {
            let (before_ns, first_ns) = (stretch.from_ns, stretch.measured_from_ns.unwrap() + late_ns);
            let end_ns = first_ns + chunks * chunk_ns;
            let one = BusyCount { iterations: chunks, from_ns: self.at(first_ns), to_ns: self.at(end_ns) };
            let (asked_ns, ended_ns) = (self.at(before_ns + MS / 10), self.at(end_ns));
            let done = BusyDone { asked_ns, ended_ns, loops: vec![one], ..BusyDone::default() };
            Ran { stretch, before_ns, after_ns: end_ns + MS / 10, done: Some(done) }
        }
    }

    fn turn(from_ns: u64) -> Stretch {
        let turn = Turn { others_from_ns: from_ns + 25 * MS, frozen: None };
        let (to_ns, measured_from_ns) = (from_ns + 20 * MS, Some(from_ns + 4 * MS));
        Stretch { from_ns, to_ns, measured_from_ns, turn: Some(turn), ..Stretch::default() }
    }

    #[test]
    fn a_guest_whose_clock_runs_slow_looks_no_faster_and_is_flagged() {
        for percent in [100, 95, 103] {
            let clock = GuestClock { percent };
            let all: Vec<_> = (0..100).map(|n| clock.ran(turn(S + n * 50 * MS), MS / 2, (16, MS + n * 100))).collect();
            let speed = Speed::of(&all, clock.seen()).unwrap();
            let driven = speed.driven(true);
            let time_s = (0..100).map(|n| 16.0 * (1e-3 + f64::from(n) * 1e-7)).sum::<f64>();
            let ratio = driven.measurement.metrics["chunks_per_s"] / (1600.0 / time_s);
            assert!((ratio - 1.0).abs() < 1e-4, "at {percent} %: {ratio}");
            let flags: Vec<_> = driven.flags.iter().map(|flag| (&*flag.kind, &*flag.detail)).collect();
            match percent {
                100 => assert_eq!(flags, []),
                _ => assert!(flags.len() == 1 && flags[0].0 == "guest-clock", "{flags:?}"),
            }
            assert_eq!(driven.measurement.counts["operations"], 1600);
        }
    }

    #[test]
    fn turns_have_the_time_of_their_whole_chunks_and_work_is_also_what_came_before_the_first() {
        let clock = GuestClock { percent: 100 };
        let unmeasured = Stretch { measured_from_ns: None, ..turn(S) };
        let late = turn(S + 200 * MS);
        let all = [
            Ran { stretch: unmeasured, after_ns: S + 26 * MS, ..Ran::default() },
            clock.ran(turn(S + 100 * MS), 0, (16, MS)),
            clock.ran(late, MS, (5, 4 * MS)),
            Ran { stretch: turn(S + 300 * MS), ..Ran::default() },
        ];
        let driven = Speed::of(&all, clock.seen()).unwrap().driven(true);
        let turns = driven.turns.clone().unwrap();
        let of = |turn: usize| (turns.counts[turn].operations, turns.counts[turn].measured_ns);
        assert_eq!([of(0), of(1), of(2), of(3)], [(0, 0), (16, 16 * MS), (5, 20 * MS), (0, 0)]);
        assert_eq!((turns.overran, turns.measured_ns, driven.samples.len()), (2, 36 * MS, 2));
        assert!((driven.work - (16.0 + 5.25)).abs() < 1e-6, "a quarter of a chunk came before: {}", driven.work);
        assert_eq!(driven.window_ns, (S + 104 * MS, S + 320 * MS));
        assert!((driven.measured_s() - 0.036).abs() < 1e-9);
    }

    #[test]
    fn a_guest_that_was_stopped_in_a_chunk_is_not_charged_for_it() {
        let clock = GuestClock { percent: 100 };
        let frozen = Turn { frozen: Some((S + 22 * MS, S + 72 * MS)), ..Turn::default() };
        let stretch = Stretch { turn: Some(frozen), ..turn(S) };
        // 20 chunks of a ms from 4 ms on; the 19th is stopped in its course.
        let mut ran = clock.ran(stretch, 0, (20, MS));
        let done = ran.done.as_mut().unwrap();
        done.loops[0].to_ns += 50 * MS;
        let driven = Speed::of(&[ran], clock.seen()).unwrap().driven(true);
        assert!((driven.measurement.metrics["chunks_per_s"] - 1000.0).abs() < 0.1, "{:?}", driven.measurement);
    }

    #[test]
    fn a_guest_that_answers_late_in_most_turns_is_flagged_and_one_late_answer_is_not() {
        let clock = GuestClock { percent: 100 };
        let flags = |late: u64| {
            let ran = |n: u64| {
                let ran = clock.ran(turn(S + n * 50 * MS), 0, (16, MS));
                Ran { after_ns: ran.after_ns + if n < late { MS } else { 0 }, ..ran }
            };
            let all: Vec<_> = (0..9).map(ran).collect();
            Speed::of(&all, clock.seen()).unwrap().driven(true).flags
        };
        assert!(flags(1).is_empty());
        assert!(flags(5)[0].kind == "guest-clock" && flags(5)[0].detail.contains("answered late"), "{:?}", flags(5));
    }

    #[test]
    fn a_trial_has_the_rates_between_its_notes_and_answers_that_cannot_be_are_invalid() {
        let clock = GuestClock { percent: 100 };
        let stretch = Stretch { from_ns: S, to_ns: 3 * S, measured_from_ns: Some(2 * S), ..Stretch::default() };
        let mut ran = clock.ran(stretch, 0, (1000, MS));
        let done = ran.done.as_mut().unwrap();
        done.notes = vec![(clock.at(2 * S), 500), (clock.at(2 * S + 400 * MS), 900), (clock.at(3 * S), 1500)];
        let all = [ran];
        let driven = Speed::of(&all, clock.seen()).unwrap().driven(false);
        let rates: Vec<_> = driven.samples.iter().map(|sample| (sample.at_ns / MS, sample.value.round())).collect();
        assert_eq!(rates, [(2400, 1000.0), (3000, 1000.0)]);
        assert_eq!((driven.work, driven.turns.clone(), driven.window_ns), (1000.0, None, (2 * S, 3 * S)));
        let [mut ran] = all;
        let done = ran.done.as_mut().unwrap();
        done.loops[0].to_ns = done.loops[0].from_ns - 1;
        assert!(Speed::of(&[ran], clock.seen()).unwrap_err().contains("it said 1000 chunks"));
        assert!(Speed::of(&[], clock.seen()).is_err());
        assert!(invalid("it is so").invalid.is_some());
    }
}
