//! Recording of durations: every operation, 0.1 % at most off, about 10 ns an entry.

use std::sync::Arc;

use tare_model::Histogram;
use tare_model::histogram::Bin;

use crate::times::Times;

/// Durations of one thread. Merged at the end of a run, never shared during it, unless it was made so.
#[derive(Debug)]
pub(crate) struct Recorder {
    bins: Bins,
    min: u64,
    max: u64,
    sum: u128,
    /// Sum not yet carried into `sum`: adding 64 bits is cheaper an entry, and 2^64 ns is 584 years.
    sum_low: u64,
    /// What did not complete, without values.
    gone: Histogram,
}

/// Where durations go.
#[derive(Debug)]
enum Bins {
    /// Recording is switched off.
    Off,
    Own(hdrhistogram::Histogram<u64>),
    /// To where all threads record.
    Shared(Arc<Times>),
}

impl Recorder {
    /// Values that have a place from the start, nanoseconds; a larger one grows the histogram once.
    const ROOM_NS: u64 = 100_000_000;

    pub fn new(enabled: bool) -> Self {
        // Bounds and digits are constants that hdrhistogram accepts, which a test below holds.
        let bins = enabled.then(|| hdrhistogram::Histogram::new_with_bounds(1, Self::ROOM_NS, 3).ok()).flatten();
        let bins = bins.map(|mut bins| {
            bins.auto(true);
            bins
        });
        Self::of(bins.map_or(Bins::Off, Bins::Own))
    }

    /// One that records where others do too. It has no histogram of its own to be merged.
    pub fn shared(times: &Arc<Times>) -> Self {
        Self::of(Bins::Shared(Arc::clone(times)))
    }

    fn of(bins: Bins) -> Self {
        Self { bins, min: u64::MAX, max: 0, sum: 0, sum_low: 0, gone: Histogram::default() }
    }

    /// An operation that was due failed.
    #[cold]
    pub fn failed(&mut self) {
        match &self.bins {
            Bins::Off => {}
            Bins::Own(_) => self.gone.failed += 1,
            Bins::Shared(times) => times.failed(),
        }
    }

    /// An operation that was due was given up after so many nanoseconds.
    #[cold]
    pub fn given_up(&mut self, waited_ns: u64) {
        match &self.bins {
            Bins::Off => {}
            Bins::Own(_) => {
                self.gone.given_up += 1;
                self.gone.waited_ns = self.gone.waited_ns.saturating_add(waited_ns);
            }
            Bins::Shared(times) => times.given_up(waited_ns),
        }
    }

    #[cold]
    fn record_elsewhere(&self, ns: u64) {
        if let Bins::Shared(times) = &self.bins {
            times.record(ns);
        }
    }

    /// Records one duration in nanoseconds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let Bins::Own(bins) = &mut self.bins else { return self.record_elsewhere(ns) };
        // It grows by itself to any value there is, so this cannot be refused.
        let _ = bins.record(ns);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        match self.sum_low.checked_add(ns) {
            Some(sum) => self.sum_low = sum,
            None => {
                self.sum += u128::from(self.sum_low);
                self.sum_low = ns;
            }
        }
    }

    /// The same counts in the form that is stored.
    pub fn into_histogram(self) -> Histogram {
        let Bins::Own(bins) = self.bins else { return Histogram::default() };
        if bins.is_empty() {
            return self.gone;
        }
        let recorded = bins
            .iter_recorded()
            .map(|step| Bin {
                low: bins.lowest_equivalent(step.value_iterated_to()),
                high: bins.highest_equivalent(step.value_iterated_to()),
                count: step.count_at_value(),
            })
            .collect();
        let sum = self.sum + u128::from(self.sum_low);
        Histogram { bins: recorded, min: self.min, max: self.max, sum, ..self.gone }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_counted_within_a_thousandth() {
        let mut recorder = Recorder::new(true);
        let mut values: Vec<u64> = (0..60).flat_map(|p| [1u64 << p, (1 << p) + (1 << p) / 3]).collect();
        values.push(0);
        values.push(3_600_000_000_000);
        for &v in &values {
            recorder.record(v);
        }
        let h = recorder.into_histogram();
        assert_eq!(h, Histogram::of_values(&values, 0), "the same bins");
        assert_eq!(h.count(), values.len() as u64);
        assert_eq!(h.min, 0);
        assert_eq!(h.max, values.iter().copied().max().unwrap_or(0));
        assert_eq!(h.sum, values.iter().map(|&v| u128::from(v)).sum::<u128>());
        for &v in &values {
            let bin = h.bins.iter().find(|b| b.low <= v && v <= b.high);
            assert!(bin.is_some_and(|b| (b.high - b.low) as f64 <= (v as f64 / 1000.0).max(1.0)), "{v}: {bin:?}");
        }
        assert!(h.bins.is_sorted_by_key(|b| b.low));
    }

    #[test]
    fn threads_merge_as_if_one_had_recorded_all() {
        let (mut a, mut b, mut both) = (Recorder::new(true), Recorder::new(true), Recorder::new(true));
        // One beyond the room that histograms start with: they have grown apart, and still merge.
        for v in (0..5_000u64).map(|i| i * i * 97).chain([5_000_000_000]) {
            if v % 2 == 0 {
                a.record(v)
            } else {
                b.record(v)
            }
            both.record(v);
        }
        let mut merged = a.into_histogram();
        merged.merge(&b.into_histogram());
        assert_eq!(merged, both.into_histogram());
    }

    #[test]
    fn switched_off_it_holds_nothing() {
        let mut recorder = Recorder::new(false);
        recorder.record(5);
        recorder.failed();
        recorder.given_up(5);
        assert!(recorder.into_histogram().is_empty());
    }
}
