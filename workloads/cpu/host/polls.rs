//! How far a guest has come, looked at from outside.

use std::collections::BTreeMap;

use tare_model::sample::{Sample, Source};
use tare_model::trial::{Flag, Measurement};
use tare_model::turns::{TurnCount, TurnsDone};

use crate::Driven;

/// One look at the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Poll {
    /// When it was asked, CLOCK_MONOTONIC of the controller, nanoseconds.
    pub before_ns: u64,
    /// When the answer was there.
    pub after_ns: u64,
    /// Chunks that it had computed since its threads were started.
    pub chunks: u64,
}

impl Poll {
    const fn at_ns(self) -> u64 {
        self.before_ns + (self.after_ns - self.before_ns) / 2
    }

    const fn round_trip_ns(self) -> u64 {
        self.after_ns - self.before_ns
    }
}

/// What was done from one look to another.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    chunks: u64,
    /// Between the middles of the questions, nanoseconds.
    ns: u64,
    /// Half of a round trip at either end, in the same direction at worst, nanoseconds.
    uncertain_ns: u64,
}

impl Progress {
    fn between(from: Poll, to: Poll) -> Option<Self> {
        let ns = to.at_ns().checked_sub(from.at_ns()).filter(|ns| *ns > 0)?;
        let uncertain_ns = u64::midpoint(from.round_trip_ns(), to.round_trip_ns());
        Some(Self { chunks: to.chunks.checked_sub(from.chunks)?, ns, uncertain_ns })
    }

    /// Chunks a second.
    fn rate(self) -> f64 {
        self.chunks as f64 * 1e9 / self.ns as f64
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            chunks: self.chunks + other.chunks,
            ns: self.ns + other.ns,
            uncertain_ns: self.uncertain_ns + other.uncertain_ns,
        }
    }
}

/// A speed that is uncertain by more than this part of itself is flagged.
const UNCERTAIN: f64 = 0.01;

/// All looks of one trial: those over steady state, or over the measured part of each turn, the first and the last of them at its ends.
#[derive(Debug, Default)]
pub struct Polls {
    stretches: Vec<Vec<Poll>>,
    /// Turns in which the guest answered so late that it was the turn of others; `None` without turns.
    overran: Option<u32>,
}

impl Polls {
    /// Those of a trial in turns.
    pub fn in_turns() -> Self {
        Self { overran: Some(0), ..Self::default() }
    }

    /// A new stretch begins.
    pub fn begin(&mut self) {
        self.stretches.push(Vec::new());
    }

    pub fn push(&mut self, poll: Poll) {
        self.stretches.last_mut().into_iter().for_each(|stretch| stretch.push(poll));
    }

    /// A turn has ended, too late or not.
    pub fn ended(&mut self, late: bool) {
        self.overran = self.overran.map(|overran| overran + u32::from(late));
    }

    /// What was done in each stretch; an error where counts run backwards.
    fn progress(&self) -> Result<Vec<Progress>, String> {
        let of = |stretch: &Vec<Poll>| match (stretch.first(), stretch.last()) {
            (Some(&first), Some(&last)) => Progress::between(first, last)
                .ok_or_else(|| format!("it said {} chunks, then {}", first.chunks, last.chunks)),
            _ => Ok(Progress::default()),
        };
        self.stretches.iter().map(of).collect()
    }

    /// What the looks come to.
    pub fn driven(&self, threads: u32) -> Driven {
        let stretches = match self.progress() {
            Ok(stretches) => stretches,
            Err(reason) => return self.invalid(reason),
        };
        let all = stretches.iter().copied().fold(Progress::default(), Progress::plus);
        if all.ns == 0 {
            return self.invalid("the guest was never asked how far it had come".to_owned());
        }
        let mut driven = self.blank();
        driven.measurement.metrics.insert("chunks_per_s".to_owned(), all.rate());
        driven.measurement.counts.insert(tare_model::count::OPERATIONS.to_owned(), all.chunks);
        driven.work = all.chunks as f64;
        let share = all.uncertain_ns as f64 / all.ns as f64;
        if share > UNCERTAIN {
            let (percent, most) = (share * 100.0, UNCERTAIN * 100.0);
            let detail =
                format!("the speed is uncertain by {percent:.2} %, more than {most} %: the guest answered late");
            driven.flags.push(Flag { kind: "slow-polls".to_owned(), detail });
        }
        let uncertain_us = all.uncertain_ns as f64 / 1e3;
        driven.facts = BTreeMap::from([
            ("threads that compute".to_owned(), threads.to_string()),
            (
                "CPU speed, uncertain by the round trips at both ends".to_owned(),
                format!("{:.3} % ({uncertain_us:.0} us)", share * 100.0),
            ),
            (
                "CPU speed, step of the count".to_owned(),
                format!("{:.3} % (one chunk a thread)", f64::from(threads) / (all.chunks.max(1) as f64) * 100.0),
            ),
        ]);
        let counts = stretches.iter().map(|turn| TurnCount {
            operations: turn.chunks,
            measured_ns: turn.ns,
            ..TurnCount::default()
        });
        let turns =
            |overran| TurnsDone { measured_ns: all.ns, counts: counts.collect(), overran, began_ns: Vec::new() };
        driven.turns = self.overran.map(turns);
        driven
    }

    /// Figures that must not be used, and why.
    pub fn invalid(&self, reason: String) -> Driven {
        Driven { invalid: Some(format!("the guest's computing: {reason}")), ..self.blank() }
    }

    fn blank(&self) -> Driven {
        let mut all = self.stretches.iter().flatten().map(|poll| poll.at_ns());
        let first = all.next().unwrap_or(0);
        let samples = self.stretches.iter().flat_map(|stretch| stretch.windows(2)).filter_map(|pair| {
            let value = Progress::between(pair[0], pair[1])?.rate();
            let series = "operations_per_s".to_owned();
            Some(Sample { at_ns: pair[1].at_ns(), source: Source::Client, series, value })
        });
        Driven {
            measurement: Measurement::default(),
            window_ns: (first, all.next_back().unwrap_or(first)),
            turns: None,
            work: 0.0,
            samples: samples.collect(),
            facts: BTreeMap::new(),
            flags: Vec::new(),
            invalid: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polls(looks: &[(u64, u64, u64)]) -> Polls {
        let poll = |&(before_ns, after_ns, chunks)| Poll { before_ns, after_ns, chunks };
        Polls { stretches: vec![looks.iter().map(poll).collect()], overran: None }
    }

    #[test]
    fn speed_is_chunks_between_the_ends_over_the_time_between_the_middles_of_the_questions() {
        let looks = [
            (1_000_000_000, 1_000_200_000, 7),
            (1_500_000_000, 1_500_200_000, 57),
            (2_000_100_000, 2_000_100_000, 107),
        ];
        let driven = polls(&looks).driven(1);
        assert!((driven.measurement.metrics["chunks_per_s"] - 100.0).abs() < 1e-9, "{driven:?}");
        assert_eq!(driven.window_ns, (1_000_100_000, 2_000_100_000));
        assert_eq!((driven.measurement.counts["operations"], driven.work), (100, 100.0));
        assert_eq!(driven.facts["CPU speed, uncertain by the round trips at both ends"], "0.010 % (100 us)");
        assert!(driven.flags.is_empty());
        let rates: Vec<f64> = driven.samples.iter().map(|sample| sample.value.round()).collect();
        assert_eq!(rates, [100.0, 100.0]);
    }

    #[test]
    fn in_turns_the_time_is_that_of_their_measured_parts() {
        let mut polls = Polls::in_turns();
        // The second is one of the warm-up, in which nobody asked.
        for looks in [
            &[(1_000_000, 1_200_000, 7), (101_000_000, 101_200_000, 17)][..],
            &[],
            &[(400_000_000, 400_200_000, 20), (500_000_000, 500_400_000, 25)],
        ] {
            polls.begin();
            for &(before_ns, after_ns, chunks) in looks {
                polls.push(Poll { before_ns, after_ns, chunks });
            }
            polls.ended(looks.is_empty());
        }
        let driven = polls.driven(1);
        let turns = driven.turns.clone().unwrap();
        let of = |turn: usize| (turns.counts[turn].operations, turns.counts[turn].measured_ns);
        assert_eq!([of(0), of(1), of(2)], [(10, 100_000_000), (0, 0), (5, 100_100_000)]);
        assert_eq!((turns.overran, driven.work, driven.samples.len()), (1, 15.0, 2));
        assert!((driven.measurement.metrics["chunks_per_s"] - 15.0 / 0.2001).abs() < 1e-9, "{driven:?}");
        assert_eq!(driven.window_ns, (1_100_000, 500_200_000));
        assert!((driven.measured_s() - 0.2001).abs() < 1e-9);
    }

    #[test]
    fn a_guest_that_answers_late_is_flagged_with_how_uncertain_its_speed_is() {
        let driven = polls(&[(0, 20_000_000, 0), (1_000_000_000, 1_020_000_000, 100)]).driven(1);
        assert_eq!(driven.flags[0].kind, "slow-polls");
        assert!(driven.flags[0].detail.contains("2.00 %"), "{}", driven.flags[0].detail);
    }

    #[test]
    fn a_count_that_runs_backwards_and_a_guest_that_was_never_asked_are_invalid() {
        let backwards = polls(&[(0, 2, 10), (1_000, 1_002, 9)]).driven(1);
        assert!(backwards.invalid.is_some_and(|why| why.contains("10 chunks, then 9")));
        assert!(backwards.measurement.metrics.is_empty(), "no figure stands beside it");
        assert!(Polls::default().driven(1).invalid.is_some());
    }
}
