//! Durations that all threads of a driver record into one place.
//!
//! A histogram of its own for each of hundreds of clients and for each step of what they do would be a
//! quarter of a megabyte each. An operation that takes a thousand times as long as a contended addition shares.

use std::sync::atomic::{AtomicU64, Ordering};

use tare_model::Histogram;
use tare_model::histogram::Bin;

/// Values below this have a bin each. Above it each power of two has half as many: at most 0.1 % off, and the same bins as those of
/// a thread's own recorder.
const FINE: u64 = 2_048;
const HALF: usize = FINE as usize / 2;
/// Bins for all 64-bit values: the fine ones, and half as many for each of the 53 powers above them.
const BINS: usize = FINE as usize + 53 * HALF;

/// A histogram for many threads.
#[derive(Debug)]
pub(crate) struct Times {
    counts: Vec<AtomicU64>,
    min: AtomicU64,
    max: AtomicU64,
    /// 2^64 ns are 584 years, of all threads together.
    sum: AtomicU64,
    failed: AtomicU64,
    given_up: AtomicU64,
    waited_ns: AtomicU64,
}

const fn index(value: u64) -> usize {
    if value < FINE {
        return value as usize;
    }
    let shift = value.ilog2() - (FINE.ilog2() - 1);
    shift as usize * HALF + (value >> shift) as usize
}

/// Lowest and highest value of a bin.
const fn bounds(index: usize) -> (u64, u64) {
    if index < FINE as usize {
        return (index as u64, index as u64);
    }
    let shift = index / HALF - 1;
    let low = ((index - shift * HALF) as u64) << shift;
    (low, low + ((1 << shift) - 1))
}

impl Times {
    pub fn new() -> Self {
        Self {
            counts: (0..BINS).map(|_| AtomicU64::new(0)).collect(),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
            sum: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            given_up: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
        }
    }

    /// An operation that was due failed.
    #[cold]
    pub fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// An operation that was due was given up after so many nanoseconds.
    #[cold]
    pub fn given_up(&self, waited_ns: u64) {
        self.given_up.fetch_add(1, Ordering::Relaxed);
        self.waited_ns.fetch_add(waited_ns, Ordering::Relaxed);
    }

    /// Records one duration in nanoseconds.
    #[inline]
    pub fn record(&self, ns: u64) {
        self.counts[index(ns)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(ns, Ordering::Relaxed);
        // Reading is shared by all threads, writing is not, and is seldom needed.
        if ns < self.min.load(Ordering::Relaxed) {
            self.min.fetch_min(ns, Ordering::Relaxed);
        }
        if ns > self.max.load(Ordering::Relaxed) {
            self.max.fetch_max(ns, Ordering::Relaxed);
        }
    }

    /// The counts in the form that is stored. All threads must have ended.
    pub fn histogram(&self) -> Histogram {
        let bin = |(at, count): (usize, &AtomicU64)| {
            let (low, high) = bounds(at);
            let count = count.load(Ordering::Relaxed);
            (count > 0).then_some(Bin { low, high, count })
        };
        let bins: Vec<Bin> = self.counts.iter().enumerate().filter_map(bin).collect();
        let read = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let (failed, given_up, waited_ns) = (read(&self.failed), read(&self.given_up), read(&self.waited_ns));
        let gone = Histogram { failed, given_up, waited_ns, ..Histogram::default() };
        if bins.is_empty() {
            return gone;
        }
        Histogram { bins, min: read(&self.min), max: read(&self.max), sum: u128::from(read(&self.sum)), ..gone }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Recorder;
    use std::sync::Arc;

    #[test]
    fn what_threads_record_together_is_what_one_would_have_recorded_alone() {
        let times = Times::new();
        let values: Vec<u64> = (0..20_000u64).map(|i| i * i * 97).chain([0, 3_600_000_000_000, 1 << 50]).collect();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (times, values) = (&times, &values);
                scope.spawn(move || values.iter().skip(thread).step_by(4).for_each(|&v| times.record(v)));
            }
        });
        let times = Arc::new(times);
        let (mut alone, mut shared) = (Recorder::new(true), Recorder::shared(&times));
        values.iter().for_each(|&v| alone.record(v));
        for recorder in [&mut alone, &mut shared] {
            recorder.failed();
            recorder.given_up(7);
        }
        let (together, alone) = (times.histogram(), alone.into_histogram());
        assert_eq!((together.failed, together.given_up, together.waited_ns), (1, 1, 7));
        assert_eq!(together, alone);
        assert!(Times::new().histogram().is_empty());
    }

    #[test]
    fn every_value_lies_in_its_bin_and_bins_leave_no_gap() {
        let mut next = 0;
        for at in 0..BINS {
            let (low, high) = bounds(at);
            assert_eq!((low, index(low), index(high)), (next, at, at));
            assert!((high - low) as f64 <= low as f64 / 1_000.0);
            next = high.wrapping_add(1);
        }
        assert_eq!(next, 0, "the last bin ends with the last value");
    }
}
