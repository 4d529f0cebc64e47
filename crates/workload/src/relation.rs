//! The clocks of guests and machines that have a kernel of their own.
//!
//! Every agent stamps by CLOCK_MONOTONIC of the kernel that it runs on. In a container that is the controller's own; a
//! virtual machine and another host have one of theirs, which began at another moment and runs a little faster or
//! slower. The difference is asked for by round trips: an answer was given somewhere between question and
//! answer, so the shortest round trip tells it best, give or take half of its length. Asked before and after the load, it
//! also tells the drift.

use std::time::Duration;

use tare_model::sample::Sample;
use tare_wire::{Link, Reply, Request};

use crate::clock::monotonic_ns;

/// Round trips of one measurement. The best of so few is within a tenth of the best of many on a quiet link.
const ROUND_TRIPS: u32 = 12;

/// How another clock stands to ours at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// The moment, by our clock, nanoseconds.
    pub at_ns: u64,
    /// Theirs less ours, nanoseconds.
    pub ns: i64,
    /// The difference may be so much more or less, nanoseconds.
    pub uncertainty_ns: u64,
}

impl Offset {
    /// Asks an agent for its clock; each answer may take so long.
    ///
    /// # Errors
    /// When it does not answer, or its clock is none.
    pub fn ask(link: &Link, timeout: Duration) -> Result<Self, String> {
        Self::measure(monotonic_ns, || match link.call(Request::Clock, timeout) {
            Ok(Reply::Clock { monotonic_ns }) => Ok(monotonic_ns),
            Ok(_) => Err("it answered something else than its clock".to_owned()),
            Err(error) => Err(error.to_string()),
        })
    }

    /// The same between any two clocks.
    fn measure(ours: impl Fn() -> u64, mut theirs: impl FnMut() -> Result<u64, String>) -> Result<Self, String> {
        let mut best: Option<Self> = None;
        for _ in 0..ROUND_TRIPS {
            let asked = ours();
            let theirs_ns = theirs()?;
            let round_trip = ours().saturating_sub(asked);
            let at_ns = asked + round_trip / 2;
            let ns = i64::try_from(i128::from(theirs_ns) - i128::from(at_ns))
                .map_err(|_| format!("its clock, {theirs_ns} ns, is none that a kernel keeps"))?;
            let seen = Self { at_ns, ns, uncertainty_ns: round_trip.div_ceil(2) };
            if best.is_none_or(|best| seen.uncertainty_ns < best.uncertainty_ns) {
                best = Some(seen);
            }
        }
        best.ok_or_else(|| "its clock was not asked for".to_owned())
    }

    /// Whether the two may be one and the same clock.
    const fn may_be_ours(&self) -> bool {
        self.ns.unsigned_abs() <= self.uncertainty_ns
    }
}

/// A clock that was not where it had to be when it was measured again.
///
/// CLOCK_MONOTONIC is what agents stamp by. Setting the time of day does not move it. What does: a virtual machine that was stopped,
/// suspended, restored or moved to another host goes on where it was, or where its new host thinks it should; a kernel that takes another source of time
/// (or finds the old one unstable) may run at another rate; and a daemon that slews a wrong time of day away (NTP) makes it run faster or slower, by up to a
/// tenth. Two measurements cannot tell these apart, nor when in between it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// What more of theirs passed than of ours, nanoseconds.
    pub ns: i128,
    /// What [`Self::FREE_PPM`] and both uncertainties would explain, nanoseconds.
    pub allowed_ns: u64,
    /// What passed of ours between the measurements, nanoseconds.
    pub over_ns: u64,
}

impl Departure {
    /// By how many parts in a million two clocks that run freely may differ: crystals of computers keep to 100 of true time, one to the one
    /// side and one to the other.
    pub const FREE_PPM: u64 = 200;
}

/// The way between an agent's clock and ours, over a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relation {
    before: Offset,
    after: Option<Offset>,
}

impl Relation {
    /// As it was seen before the load, and after it where that could be seen.
    pub const fn new(before: Offset, after: Option<Offset>) -> Self {
        Self { before, after }
    }

    /// Whether it is our own clock, as far as can be seen: then nothing is translated.
    pub fn is_ours(&self) -> bool {
        self.before.may_be_ours() && self.after.is_none_or(|after| after.may_be_ours())
    }

    /// What passed of our clock between the measurements, and what more of theirs, nanoseconds; `None` where it was measured once.
    fn drift(&self) -> Option<(i128, i128)> {
        let after = self.after.filter(|after| after.at_ns > self.before.at_ns)?;
        Some((i128::from(after.at_ns - self.before.at_ns), i128::from(after.ns) - i128::from(self.before.ns)))
    }

    /// Theirs less ours at a moment of ours, by the line through both measurements.
    fn offset_at(&self, ours_ns: u64) -> i64 {
        let Some((span, drift)) = self.drift() else { return self.before.ns };
        let since = i128::from(ours_ns) - i128::from(self.before.at_ns);
        let offset = i128::from(self.before.ns) + drift * since / span;
        // Two offsets of 64 bits and a moment near them give one of 64 bits; another is none that can be used.
        i64::try_from(offset).unwrap_or(self.before.ns)
    }

    /// A moment of ours by their clock.
    pub fn to_theirs(self, ours_ns: u64) -> u64 {
        if self.is_ours() { ours_ns } else { ours_ns.saturating_add_signed(self.offset_at(ours_ns)) }
    }

    /// A moment of theirs by our clock.
    pub fn to_ours(self, theirs_ns: u64) -> u64 {
        if self.is_ours() {
            return theirs_ns;
        }
        let since = i128::from(theirs_ns) - i128::from(self.before.ns) - i128::from(self.before.at_ns);
        let by_line = self.drift().filter(|(span, drift)| span + drift > 0);
        let since = by_line.map_or(since, |(span, drift)| since * span / (span + drift));
        u64::try_from(i128::from(self.before.at_ns) + since).unwrap_or(if since < 0 { 0 } else { u64::MAX })
    }

    /// Stamps samples by our clock.
    pub fn translate(self, samples: &mut [Sample]) {
        if !self.is_ours() {
            for sample in samples {
                sample.at_ns = self.to_ours(sample.at_ns);
            }
        }
    }

    /// By how many parts in a million their clock is faster than ours, and by how many more or less it may be; `None` where it was
    /// measured once.
    pub fn drift_ppm(&self) -> Option<(f64, f64)> {
        let (span, drift) = self.drift()?;
        let uncertainty_ns = self.before.uncertainty_ns + self.after?.uncertainty_ns;
        let parts = |ns: f64| ns / span as f64 * 1e6;
        Some((parts(drift as f64), parts(uncertainty_ns as f64)))
    }

    /// Whether the clock departed from ours between the measurements by more than clocks that run freely do; `None` where it did not, and
    /// where it was measured once.
    pub fn departure(&self) -> Option<Departure> {
        let over_ns = self.after?.at_ns.checked_sub(self.before.at_ns)?;
        let ns = i128::from(self.after?.ns) - i128::from(self.before.ns);
        let uncertain_ns = self.before.uncertainty_ns.saturating_add(self.after?.uncertainty_ns);
        let allowed_ns = uncertain_ns.saturating_add((over_ns / 1_000_000).saturating_mul(Departure::FREE_PPM));
        (ns.unsigned_abs() > u128::from(allowed_ns)).then_some(Departure { ns, allowed_ns, over_ns })
    }

    /// What is known of the clock, for disclosure.
    pub fn describe(&self) -> String {
        let uncertainty_ns = self.after.map_or(0, |after| after.uncertainty_ns).max(self.before.uncertainty_ns);
        let within = format!("give or take {:.1} us", uncertainty_ns as f64 / 1e3);
        if self.is_ours() {
            return format!("the controller's own, {within}");
        }
        let offset = format!("its own, {:+.9} s from the controller's, {within}", self.before.ns as f64 / 1e9);
        let drift = self.drift_ppm().map(|(ppm, within)| format!(", {ppm:+.1} ppm, give or take {within:.1} ppm"));
        offset + &drift.unwrap_or_default() + "; its stamps are translated"
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tare_model::sample::Source;

    use super::*;

    /// A clock that began at another moment and runs faster by some parts in a million.
    #[derive(Clone, Copy)]
    struct Skewed {
        began: i64,
        ppm: i64,
    }

    impl Skewed {
        fn at(self, ours: u64) -> u64 {
            let run = i128::from(ours) * i128::from(1_000_000 + self.ppm) / 1_000_000;
            u64::try_from(run + i128::from(self.began)).unwrap()
        }

        /// Measured over a line whose way there and back are what `ways` says in turn.
        fn measured(self, from: u64, ways: &[(u64, u64)]) -> Offset {
            let (now, turn) = (Cell::new(from), Cell::new(0));
            let theirs = || {
                let (there, back) = ways[turn.get() % ways.len()];
                turn.set(turn.get() + 1);
                now.set(now.get() + there);
                let answer = self.at(now.get());
                now.set(now.get() + back);
                Ok(answer)
            };
            Offset::measure(|| now.get(), theirs).unwrap()
        }
    }

    const WAYS: &[(u64, u64)] = &[(900_000, 100_000), (20_000, 30_000), (5_000_000, 5_000_000)];
    const S: u64 = 1_000_000_000;

    #[test]
    fn the_shortest_round_trip_tells_the_offset_within_half_of_it() {
        for began in [-3_000_000_000, -10_000, 0, 777, 86_400_000_000_000] {
            let offset = Skewed { began, ppm: 0 }.measured(5000 * S, WAYS);
            assert_eq!(offset.uncertainty_ns, 25_000);
            assert!((offset.ns - began).unsigned_abs() <= offset.uncertainty_ns, "{offset:?} {began}");
        }
    }

    #[test]
    fn our_own_clock_is_never_translated_however_slow_the_answers() {
        for ways in [WAYS, &[(1, 40_000_000)], &[(40_000_000, 1)]] {
            let ours = Skewed { began: 0, ppm: 0 };
            let relation = Relation::new(ours.measured(9 * S, ways), Some(ours.measured(19 * S, ways)));
            assert!(relation.is_ours());
            let mut samples = vec![sample(12 * S + 345)];
            relation.translate(&mut samples);
            assert_eq!(samples, [sample(12 * S + 345)]);
            assert_eq!((relation.to_ours(7), relation.to_theirs(7)), (7, 7));
            assert!(relation.describe().starts_with("the controller's own"), "{}", relation.describe());
        }
    }

    fn sample(at_ns: u64) -> Sample {
        Sample { at_ns, source: Source::InGuest("target".into()), series: "cpu_user_s".into(), value: 1.0 }
    }

    #[test]
    fn stamps_of_another_clock_come_back_by_ours_with_the_drift_taken_out() {
        // A guest that was started long after the host, and drifts by 200 parts in a million.
        let theirs = Skewed { began: -4_990 * S.cast_signed(), ppm: 200 };
        let relation =
            Relation::new(theirs.measured(5000 * S, WAYS), Some(theirs.measured(5120 * S, &[(15_000, 15_000)])));
        assert!(!relation.is_ours());
        for ours in [5000 * S, 5030 * S, 5060 * S + 1, 5120 * S] {
            let mut samples = vec![sample(theirs.at(ours))];
            relation.translate(&mut samples);
            assert!(samples[0].at_ns.abs_diff(ours) <= 25_000, "{} {ours}", samples[0].at_ns);
            assert!(relation.to_theirs(ours).abs_diff(theirs.at(ours)) <= 25_000);
            assert!(relation.to_ours(relation.to_theirs(ours)).abs_diff(ours) <= 1, "there and back");
        }
        assert!(relation.describe().contains("ppm") && relation.describe().contains("25.0 us"));
        // Without the second measurement two minutes of drift stay in: 24 ms.
        let alone = Relation::new(theirs.measured(5000 * S, WAYS), None);
        assert!(alone.to_ours(theirs.at(5120 * S)).abs_diff(5120 * S) > 20_000_000);
    }

    #[test]
    fn a_clock_that_jumps_or_runs_away_departs_and_one_that_runs_freely_does_not() {
        let at = |s: u64, ns: i64, uncertainty_ns| Offset { at_ns: s * S, ns, uncertainty_ns };
        let (far, ms) = (86_400 * S.cast_signed(), 1_000_000);
        let departed = |ns: i64, over_s: u64, uncertainty_ns: u64| {
            let relation =
                Relation::new(at(100, far, uncertainty_ns), Some(at(100 + over_s, far + ns, uncertainty_ns)));
            relation.departure().map(|found| found.ns)
        };
        // 10 s at 200 ppm are 2 ms, and each measurement is uncertain by 50 us.
        assert_eq!((departed(2 * ms + 100_000, 10, 50_000), departed(-2 * ms - 100_000, 10, 50_000)), (None, None));
        assert_eq!(departed(2 * ms + 100_001, 10, 50_000), Some(2_100_001));
        assert_eq!(departed(-2 * ms - 100_001, 10, 50_000), Some(-2_100_001), "it stood still");
        assert_eq!(departed(5 * ms, 10, 2_000_000), None, "over a way this long so much is not seen");
        assert_eq!(departed(5 * ms, 60, 50_000), None, "83 ppm");
        assert_eq!(departed(300 * ms, 60, 50_000), Some(300_000_000), "5000 ppm: it is slewed");
        let jumped = Relation::new(at(100, far, 50_000), Some(at(110, far - 30 * S.cast_signed(), 50_000)));
        let found = Departure { ns: -30_000_000_000, allowed_ns: 2_100_000, over_ns: 10 * S };
        assert_eq!(jumped.departure(), Some(found), "a machine that was suspended for 30 s");
        assert_eq!(Relation::new(at(100, far, 50_000), None).departure(), None, "nothing was seen of it");
        let wild = Relation::new(at(0, i64::MIN, u64::MAX), Some(at(9, i64::MAX, 1)));
        assert_eq!(wild.departure(), None, "nothing is known");
        let skewed = Skewed { began: far, ppm: 100 };
        let free = Relation::new(skewed.measured(5000 * S, WAYS), Some(skewed.measured(5120 * S, WAYS)));
        assert_eq!(free.departure(), None);
        let away = Skewed { ppm: 900, ..skewed };
        let away = Relation::new(away.measured(5000 * S, WAYS), Some(away.measured(5120 * S, WAYS)));
        assert!(away.departure().is_some_and(|found| found.ns > 107_000_000), "108 ms in two minutes");
    }

    #[test]
    fn a_clock_that_cannot_be_read_is_an_error() {
        assert!(Offset::measure(|| 5, || Err("gone".into())).is_err());
        assert!(Offset::measure(|| 5, || Ok(u64::MAX)).unwrap_err().contains("none that a kernel keeps"));
    }
}
