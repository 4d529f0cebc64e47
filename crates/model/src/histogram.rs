//! A histogram as it is stored and merged: sparse bins of known width.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Name of the response times of operations in a trial, nanoseconds from the intended start.
pub const RESPONSE: &str = "response";
/// Name of the times while they were served.
pub const SERVICE: &str = "service";
/// Name of the times from when they were due to their start.
pub const LATENESS: &str = "lateness";
/// Name of the response times of a probe beside the load, nanoseconds from the intended start.
pub const PROBE: &str = "latency probe response";

/// Operations that must lie beyond a percentile for it to be reported: with fewer, single operations decide it.
pub const BEYOND: f64 = 10.0;

/// Counts by value, in sparse bins, and operations that have no value because they did not complete.
///
/// A bin is named by the lowest value that falls into it. Bins are those of HdrHistogram with three
/// significant digits, so a value read back is off by at most 0.1 %. The form is plain enough to be
/// stored as rows, and merged by anyone with `GROUP BY value`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Histogram {
    /// (lowest value of the bin, highest value of the bin, count), ascending, counts above 0.
    pub bins: Vec<Bin>,
    /// Smallest value recorded, exact.
    pub min: u64,
    /// Largest value recorded, exact.
    pub max: u64,
    /// Sum of all values recorded, exact.
    pub sum: u128,
    /// Operations that failed: they have no value, and count as longer than any that has.
    pub failed: u64,
    /// Operations that were given up after some time (lost, timed out, unfinished). They count as longer than any value recorded, too.
    pub given_up: u64,
    /// For how long those were waited for, all together, nanoseconds.
    pub waited_ns: u64,
}

/// What is known of a percentile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Percentile {
    /// Its value.
    At(f64),
    /// It lies among the operations that did not complete: it is longer than any value recorded, and no number.
    NotReached,
    /// Fewer than [`BEYOND`] operations lie beyond it.
    TooFew,
}

impl Percentile {
    /// Its value, if it has one.
    pub const fn value(self) -> Option<f64> {
        match self {
            Self::At(value) => Some(value),
            Self::NotReached | Self::TooFew => None,
        }
    }
}

/// One bin of a [`Histogram`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bin {
    /// Lowest value that falls into the bin.
    pub low: u64,
    /// Highest value that falls into the bin.
    pub high: u64,
    /// Values recorded in the bin.
    pub count: u64,
}

impl Bin {
    /// The bin of a value, without a count: values up to 2,047 have one each, of larger ones the first eleven binary digits count.
    pub const fn of(value: u64) -> Self {
        let shift = (u64::BITS - value.leading_zeros()).saturating_sub(11);
        let low = value >> shift << shift;
        Self { low, high: low + ((1 << shift) - 1), count: 0 }
    }
}

impl Histogram {
    /// Of values that are at hand, and operations that failed.
    pub fn of_values(values: &[u64], failed: u64) -> Self {
        let mut counts: BTreeMap<u64, Bin> = BTreeMap::new();
        for &value in values {
            let bin = Bin::of(value);
            counts.entry(bin.low).or_insert(bin).count += 1;
        }
        Self {
            bins: counts.into_values().collect(),
            min: values.iter().copied().min().unwrap_or(0),
            max: values.iter().copied().max().unwrap_or(0),
            sum: values.iter().map(|&value| u128::from(value)).sum(),
            failed,
            ..Self::default()
        }
    }

    /// Values recorded: operations that completed.
    pub fn count(&self) -> u64 {
        self.bins.iter().map(|bin| bin.count).sum()
    }

    /// Operations that did not complete.
    pub const fn not_completed(&self) -> u64 {
        self.failed.saturating_add(self.given_up)
    }

    /// All operations that were due.
    pub fn operations(&self) -> u64 {
        self.count().saturating_add(self.not_completed())
    }

    /// Share of the operations that did not complete, 0 to 1; 0 when there was none.
    pub fn missing(&self) -> f64 {
        self.not_completed() as f64 / self.operations().max(1) as f64
    }

    /// Whether there was no operation at all.
    pub fn is_empty(&self) -> bool {
        self.bins.is_empty() && self.not_completed() == 0
    }

    /// The same without the operations that did not complete.
    pub fn completed(&self) -> Self {
        Self { failed: 0, given_up: 0, waited_ns: 0, ..self.clone() }
    }

    /// Arithmetic mean of the values, and of the times for which operations that were given up were waited for: those took longer. Operations
    /// that failed are not in it. `None` without either.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count().saturating_add(self.given_up);
        (count > 0).then(|| (self.sum as f64 + self.waited_ns as f64) / count as f64)
    }

    /// The value at quantile `q` (0 to 1): the smallest bin such that at least `q` of all operations lie
    /// in it or below, given by its middle and held within the exact minimum and maximum. `None` when that is none, for too many
    /// operations did not complete or there were none.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = ((q.clamp(0.0, 1.0) * self.operations() as f64).ceil() as u64).max(1);
        let mut seen = 0;
        self.bins.iter().find_map(|bin| {
            seen += bin.count;
            let middle = bin.low as f64 / 2.0 + bin.high as f64 / 2.0;
            (seen >= rank).then(|| middle.clamp(self.min as f64, self.max as f64))
        })
    }

    /// The percentile `q` (0 to 1) where [`BEYOND`] operations lie beyond it, those that did not complete among them: the 99th takes 1,000
    /// operations, the 99.9th 10,000.
    pub fn percentile(&self, q: f64) -> Percentile {
        // 0.99 and 0.999 have no exact form, so that ten may come out as a little less.
        let beyond = self.operations() as f64 * (1.0 - q) + 1e-6;
        match self.quantile(q) {
            None if self.not_completed() as f64 >= BEYOND => Percentile::NotReached,
            Some(value) if beyond >= BEYOND => Percentile::At(value),
            _ => Percentile::TooFew,
        }
    }

    /// Adds the counts of another histogram. Bins that are the same are joined; both must be of the
    /// same resolution, which all of tare's are.
    pub fn merge(&mut self, other: &Self) {
        self.failed = self.failed.saturating_add(other.failed);
        self.given_up = self.given_up.saturating_add(other.given_up);
        self.waited_ns = self.waited_ns.saturating_add(other.waited_ns);
        if other.bins.is_empty() {
            return;
        }
        if self.bins.is_empty() {
            let (failed, given_up, waited_ns) = (self.failed, self.given_up, self.waited_ns);
            *self = Self { failed, given_up, waited_ns, ..other.clone() };
            return;
        }
        let mut merged = Vec::with_capacity(self.bins.len() + other.bins.len());
        let (mut a, mut b) = (self.bins.iter().peekable(), other.bins.iter().peekable());
        loop {
            let next = match (a.peek(), b.peek()) {
                (Some(x), Some(y)) if x.low == y.low => {
                    let joined = Bin { low: x.low, high: x.high.max(y.high), count: x.count + y.count };
                    a.next();
                    b.next();
                    joined
                }
                (Some(x), Some(y)) if x.low < y.low => {
                    let bin = **x;
                    a.next();
                    bin
                }
                (_, Some(y)) => {
                    let bin = **y;
                    b.next();
                    bin
                }
                (Some(x), None) => {
                    let bin = **x;
                    a.next();
                    bin
                }
                (None, None) => break,
            };
            merged.push(next);
        }
        self.bins = merged;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Histogram {
        let mut h = Histogram::default();
        for &v in values {
            let bins = vec![Bin { low: v, high: v, count: 1 }];
            h.merge(&Histogram { bins, min: v, max: v, sum: u128::from(v), ..Histogram::default() });
        }
        h
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_values() {
        let h = of(&[5, 1, 4, 2, 3]);
        assert_eq!(h.quantile(0.0), Some(1.0));
        assert_eq!(h.quantile(0.5), Some(3.0));
        assert_eq!(h.quantile(0.99), Some(5.0));
        assert_eq!(h.mean(), Some(3.0));
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn merging_is_the_same_as_recording_everything_in_one() {
        let mut left = of(&[1, 2, 2, 9]);
        left.merge(&of(&[2, 3, 10]));
        assert_eq!(left, of(&[1, 2, 2, 2, 3, 9, 10]));
    }

    #[test]
    fn operations_that_did_not_complete_are_longer_than_any_that_did() {
        let mut times = of(&(1..=985).collect::<Vec<_>>());
        assert_eq!((times.percentile(0.5), times.percentile(0.99)), (Percentile::At(493.0), Percentile::TooFew));
        times.failed = 5;
        assert_eq!(times.percentile(0.5), Percentile::At(495.0), "half of 990");
        times.given_up = 10;
        times.waited_ns = 10_000_000;
        // The 990th of 1,000 is the fifth of those that did not complete.
        assert_eq!((times.operations(), times.percentile(0.99)), (1_000, Percentile::NotReached));
        assert_eq!(times.percentile(0.985), Percentile::At(985.0), "the last that completed");
        assert_eq!(times.completed().quantile(0.99), Some(976.0));
        assert!((times.missing() - 0.015).abs() < 1e-12);
        let mean = (f64::from(985 * 986 / 2) + 1e7) / 995.0;
        assert!(
            (times.mean().unwrap() - mean).abs() < 1e-6,
            "those that were given up took as long as they were waited for"
        );
    }

    #[test]
    fn few_operations_tell_no_percentile_unless_ten_of_them_are_missing() {
        let mut times = of(&[7; 90]);
        times.failed = 9;
        assert_eq!(times.percentile(0.99), Percentile::TooFew, "nine may be chance");
        times.failed = 10;
        assert_eq!(times.percentile(0.99), Percentile::NotReached);
        let none = Histogram { failed: 10, ..Histogram::default() };
        assert_eq!((none.percentile(0.5), none.mean(), none.is_empty()), (Percentile::NotReached, None, false));
    }

    #[test]
    fn what_did_not_complete_is_added_whichever_side_has_values() {
        let gone = Histogram { failed: 2, given_up: 1, waited_ns: 9, ..Histogram::default() };
        let (mut left, mut right) = (of(&[4]), gone.clone());
        left.merge(&gone);
        right.merge(&of(&[4]));
        assert_eq!((left.operations(), left.min, left.max), (4, 4, 4));
        assert_eq!(left, right);
    }
}
