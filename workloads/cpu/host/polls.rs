//! How far a guest has come, looked at from outside.

use std::collections::BTreeMap;

use tare_model::sample::{Sample, Source};
use tare_model::trial::{Flag, Measurement};

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

/// Chunks a second between two looks.
fn rate(from: Poll, to: Poll) -> Option<f64> {
    let seconds = to.at_ns().checked_sub(from.at_ns()).filter(|ns| *ns > 0)? as f64 / 1e9;
    Some(to.chunks.checked_sub(from.chunks)? as f64 / seconds)
}

/// A speed that is uncertain by more than this part of itself is flagged.
const UNCERTAIN: f64 = 0.01;

/// All looks of one trial, the first and the last of them at the ends of steady state.
#[derive(Debug, Default)]
pub struct Polls(Vec<Poll>);

impl Polls {
    pub fn push(&mut self, poll: Poll) {
        self.0.push(poll);
    }

    /// What the looks come to.
    pub fn driven(&self, threads: u32) -> Driven {
        let (Some(&first), Some(&last)) = (self.0.first(), self.0.last()) else {
            return self.invalid("the guest was never asked how far it had come".to_owned());
        };
        let Some(speed) = rate(first, last) else {
            return self.invalid(format!("it said {} chunks, then {}", first.chunks, last.chunks));
        };
        let window = (last.at_ns() - first.at_ns()) as f64;
        // At either end half of a round trip, in the same direction at worst.
        let uncertainty = (first.round_trip_ns() + last.round_trip_ns()) as f64 / 2.0;
        let chunks = last.chunks - first.chunks;
        let mut driven = self.blank();
        driven.measurement.metrics.insert("chunks_per_s".to_owned(), speed);
        driven.measurement.counts.insert(tare_model::count::OPERATIONS.to_owned(), chunks);
        driven.work = chunks as f64;
        let share = uncertainty / window;
        if share > UNCERTAIN {
            let (percent, most) = (share * 100.0, UNCERTAIN * 100.0);
            let detail =
                format!("the speed is uncertain by {percent:.2} %, more than {most} %: the guest answered late");
            driven.flags.push(Flag { kind: "slow-polls".to_owned(), detail });
        }
        driven.facts = BTreeMap::from([
            ("threads that compute".to_owned(), threads.to_string()),
            (
                "CPU speed, uncertain by the round trips at both ends".to_owned(),
                format!("{:.3} % ({:.0} us)", share * 100.0, uncertainty / 1e3),
            ),
            (
                "CPU speed, step of the count".to_owned(),
                format!("{:.3} % (one chunk a thread)", f64::from(threads) / (chunks.max(1) as f64) * 100.0),
            ),
        ]);
        driven
    }

    /// Figures that must not be used, and why.
    pub fn invalid(&self, reason: String) -> Driven {
        Driven { invalid: Some(format!("the guest's computing: {reason}")), ..self.blank() }
    }

    fn blank(&self) -> Driven {
        let at = |poll: Option<&Poll>| poll.map_or(0, |poll| poll.at_ns());
        let samples = self.0.windows(2).filter_map(|pair| {
            let value = rate(pair[0], pair[1])?;
            let series = "operations_per_s".to_owned();
            Some(Sample { at_ns: pair[1].at_ns(), source: Source::Client, series, value })
        });
        Driven {
            measurement: Measurement::default(),
            window_ns: (at(self.0.first()), at(self.0.last())),
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
        Polls(looks.iter().map(poll).collect())
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
