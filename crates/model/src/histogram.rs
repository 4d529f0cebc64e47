//! A histogram as it is stored and merged: sparse bins of known width.

use serde::{Deserialize, Serialize};

/// Name of the response times of operations in a trial, nanoseconds from the intended start.
pub const RESPONSE: &str = "response";
/// Name of the times while they were served.
pub const SERVICE: &str = "service";
/// Name of the times from when they were due to their start.
pub const LATENESS: &str = "lateness";

/// Counts by value, in sparse bins.
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

impl Histogram {
    /// Values recorded.
    pub fn count(&self) -> u64 {
        self.bins.iter().map(|bin| bin.count).sum()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }

    /// Arithmetic mean of the values; `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum as f64 / count as f64)
    }

    /// The value at quantile `q` (0 to 1): the smallest bin such that at least `q` of all values lie
    /// in it or below, given by its middle and held within the exact minimum and maximum.
    /// `None` when empty.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = ((q.clamp(0.0, 1.0) * count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for bin in &self.bins {
            seen += bin.count;
            if seen >= rank {
                let middle = bin.low as f64 / 2.0 + bin.high as f64 / 2.0;
                return Some(middle.clamp(self.min as f64, self.max as f64));
            }
        }
        Some(self.max as f64)
    }

    /// Adds the counts of another histogram. Bins that are the same are joined; both must be of the
    /// same resolution, which all of tare's are.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            *self = other.clone();
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
            h.merge(&Histogram { bins: vec![Bin { low: v, high: v, count: 1 }], min: v, max: v, sum: u128::from(v) });
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
}
