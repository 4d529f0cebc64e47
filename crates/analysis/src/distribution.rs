//! Latency distributions: merged over blocks, with intervals from the blocks.

use std::collections::BTreeMap;

use tare_model::Histogram;
use tare_model::findings::{Distribution, Estimate};
use tare_model::histogram::{self, BEYOND, Percentile};
use tare_model::trial::{Incomplete, Measurement, Outcome, TrialRecord};

use crate::estimate;

/// Percentiles that are reported.
pub(crate) const QUANTILES: [f64; 6] = [0.50, 0.90, 0.95, 0.99, 0.999, 0.9999];
/// Points of a distribution's curve at most.
pub(crate) const CURVE_POINTS_MAX: usize = 300;

const SECONDS: f64 = 1e-9;

pub(crate) fn completed(record: &TrialRecord) -> Option<&Measurement> {
    match &record.outcome {
        Outcome::Completed(measurement) => Some(measurement),
        _ => None,
    }
}

/// The distributions of an arm's trials: response time, service time where it is another, and the response time of a probe where there was one.
pub(crate) fn of_arm(arm: &str, trials: &[&TrialRecord]) -> Vec<Distribution> {
    let named = |name: &str| -> Vec<&Histogram> {
        trials.iter().filter_map(|record| completed(record)?.histograms.get(name)).filter(|h| !h.is_empty()).collect()
    };
    let (response, service) = (named(histogram::RESPONSE), named(histogram::SERVICE));
    let same = response == service;
    let mut distributions = Vec::new();
    distributions.extend(distribution(arm, histogram::RESPONSE, &response));
    if !same {
        distributions.extend(distribution(arm, histogram::SERVICE, &service));
    }
    distributions.extend(distribution(arm, histogram::PROBE, &named(histogram::PROBE)));
    distributions
}

fn distribution(arm: &str, name: &str, blocks: &[&Histogram]) -> Option<Distribution> {
    let mixture = Mixture::of(blocks)?;
    let sum = |of: fn(&Histogram) -> u64| blocks.iter().map(|block| of(block)).sum::<u64>();
    let (quantiles, incomplete) = quantiles(blocks);
    Some(Distribution {
        arm: arm.to_owned(),
        name: name.to_owned(),
        operations: sum(Histogram::operations),
        not_completed: sum(Histogram::not_completed),
        quantiles,
        incomplete,
        ccdf: thinned(&mixture.ccdf()),
    })
}

/// Percentiles, seconds, and those in which operations are missing that did not complete.
type Quantiles = (Vec<(f64, Estimate)>, Vec<(f64, Incomplete)>);

/// The percentiles that `blocks` support, seconds, over all operations that were due; and those that this moves, or that are no number for it.
pub(crate) fn quantiles(blocks: &[&Histogram]) -> Quantiles {
    let completed: Vec<Histogram> = blocks.iter().map(|block| block.completed()).collect();
    let (Some(mixture), Some(done)) = (Mixture::of(blocks), Mixture::of(&completed.iter().collect::<Vec<_>>())) else {
        return Quantiles::default();
    };
    let operations: u64 = blocks.iter().map(|block| block.operations()).sum();
    let (mut estimates, mut incomplete) = Quantiles::default();
    for q in QUANTILES.into_iter().filter(|q| supports(operations, *q)) {
        let (all, alone) = (mixture.quantile(q), done.quantile(q));
        if all != alone {
            let completed_only = alone.map(|ns| ns * SECONDS);
            incomplete.push((q, Incomplete { missing: mixture.missing, completed_only }));
        }
        estimates.extend(all.map(|ns| (q, quantile(q, ns * SECONDS, blocks))));
    }
    (estimates, incomplete)
}

fn supports(operations: u64, q: f64) -> bool {
    operations as f64 * (1.0 - q) >= BEYOND * (1.0 - 1e-9)
}

/// The mixture's quantile, seconds, with the interval of the blocks' own quantiles.
fn quantile(q: f64, value: f64, blocks: &[&Histogram]) -> Estimate {
    let own: Vec<Percentile> = blocks.iter().map(|block| block.percentile(q)).collect();
    let values: Option<Vec<f64>> = own.iter().map(|one| one.value().map(|ns| ns * SECONDS)).collect();
    let n = blocks.len() as u32;
    match values.and_then(|own| estimate::of_values(&own)) {
        Some(e) => {
            let method = format!("blocks merged with equal weight; interval of the blocks' own: {}", e.method);
            Estimate { value, low: e.low, high: e.high, level: e.level, n, method }
        }
        None => {
            let why = if own.contains(&Percentile::NotReached) {
                "a block did not reach it, for too many operations did not complete".to_owned()
            } else {
                format!("a block has fewer than {BEYOND} operations beyond it")
            };
            let method = format!("blocks merged with equal weight; no interval: {why}");
            Estimate { value, low: None, high: None, level: 1.0 - estimate::ALPHA, n, method }
        }
    }
}

/// Histograms merged so that each block counts the same, however many operations it held: a fast block must not speak
/// louder than a slow one.
struct Mixture {
    /// Lowest value of a bin: its highest value and its share of all.
    bins: BTreeMap<u64, (u64, f64)>,
    /// Share of the operations that did not complete: longer than all others.
    missing: f64,
    min: u64,
    max: u64,
}

impl Mixture {
    /// `None` when nothing completed.
    fn of(blocks: &[&Histogram]) -> Option<Self> {
        let blocks: Vec<_> = blocks.iter().filter(|block| !block.is_empty()).collect();
        let mut bins: BTreeMap<u64, (u64, f64)> = BTreeMap::new();
        for block in &blocks {
            let weight = 1.0 / (block.operations() as f64 * blocks.len() as f64);
            for bin in &block.bins {
                let known = bins.entry(bin.low).or_insert((bin.high, 0.0));
                *known = (known.0.max(bin.high), known.1 + bin.count as f64 * weight);
            }
        }
        let done = || blocks.iter().filter(|block| !block.bins.is_empty());
        let (min, max) = (done().map(|block| block.min).min()?, done().map(|block| block.max).max()?);
        let missing = blocks.iter().map(|block| block.missing()).sum::<f64>() / blocks.len() as f64;
        Some(Self { bins, missing, min, max })
    }

    /// The smallest bin such that a share of at least `q` of all operations lies in it or below, by its middle; nanoseconds. `None` where that
    /// share did not complete.
    fn quantile(&self, q: f64) -> Option<f64> {
        let mut seen = 0.0;
        self.bins.iter().find_map(|(low, (high, share))| {
            seen += share;
            // Shares are sums of fractions: a hair of rounding must not move the quantile by a bin.
            let middle = f64::midpoint(*low as f64, *high as f64);
            (seen >= q * (1.0 - 1e-12)).then(|| middle.clamp(self.min as f64, self.max as f64))
        })
    }

    /// (seconds, share of operations that took longer), falling; ends at the last bin with operations beyond it.
    fn ccdf(&self) -> Vec<(f64, f64)> {
        let mut points = Vec::with_capacity(self.bins.len() + 1);
        // From the largest down, so that the smallest shares are the most exact.
        let mut beyond = self.missing;
        for (high, share) in self.bins.values().rev() {
            if beyond > 0.0 {
                points.push((*high as f64 * SECONDS, beyond));
            }
            beyond += share;
        }
        points.push((self.min as f64 * SECONDS, 1.0));
        points.reverse();
        points
    }
}

/// Keeps a point when the curve has moved by a step on either logarithmic axis, and the ends.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= CURVE_POINTS_MAX {
        return points.to_vec();
    }
    let place = |p: &(f64, f64)| (p.0.max(1e-12).ln(), p.1.ln());
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    let (from, to) = (place(first), place(last));
    // Each axis moves one way only, so a step of 1/148 of each keeps at most 148 points an axis, and the ends.
    let steps = (CURVE_POINTS_MAX / 2 - 2) as f64;
    let step = ((to.0 - from.0).abs() / steps, (to.1 - from.1).abs() / steps);
    let mut kept = vec![*first];
    let mut at = from;
    for point in &points[1..points.len() - 1] {
        let here = place(point);
        if (here.0 - at.0).abs() >= step.0 || (here.1 - at.1).abs() >= step.1 {
            kept.push(*point);
            at = here;
        }
    }
    kept.push(*last);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::histogram::Bin;

    fn of(values: impl Iterator<Item = u64>) -> Histogram {
        let mut bins = std::collections::BTreeMap::<u64, u64>::new();
        let mut sum = 0;
        for value in values {
            *bins.entry(value).or_default() += 1;
            sum += u128::from(value);
        }
        let bins: Vec<_> = bins.into_iter().map(|(low, count)| Bin { low, high: low, count }).collect();
        Histogram { min: bins[0].low, max: bins[bins.len() - 1].low, bins, sum, ..Histogram::default() }
    }

    #[test]
    fn percentiles_are_reported_only_where_operations_lie_beyond_them() {
        let small = of(1..=1000);
        let reported = |blocks: &[&Histogram]| -> Vec<f64> {
            distribution("a", "response", blocks).unwrap().quantiles.iter().map(|(q, _)| *q).collect()
        };
        assert_eq!(reported(&[&small]), vec![0.5, 0.9, 0.95, 0.99]);
        assert_eq!(reported(&[&small; 10]), vec![0.5, 0.9, 0.95, 0.99, 0.999]);
        let ten = distribution("a", "response", &[&small; 10]).unwrap();
        let (_, p999) = &ten.quantiles[4];
        assert!(p999.low.is_none() && p999.method.contains("fewer than 10"), "no block alone supports it");
        let (_, p99) = &ten.quantiles[3];
        assert!((p99.value - 990e-9).abs() < 1e-15 && p99.low.is_some());
    }

    #[test]
    fn a_fast_block_does_not_speak_louder_than_a_slow_one() {
        let (fast, slow) = (of((0..9000).map(|i| 1000 + i % 100)), of((0..1000).map(|i| 5000 + i % 100)));
        let both = distribution("a", "response", &[&fast, &slow]).unwrap();
        let at = |q: f64| both.quantiles.iter().find(|(own, _)| *own == q).unwrap().1.clone();
        assert!(at(0.9).value > 5000e-9, "a tenth of the operations, but half of the blocks: {:?}", at(0.9));
        assert_eq!(both.operations, 10_000);
        let beyond = both.ccdf.iter().find(|(x, _)| *x >= 1099e-9).unwrap().1;
        assert!((beyond - 0.5).abs() < 1e-9, "{beyond}");
    }

    #[test]
    fn the_curve_falls_and_is_thin_and_keeps_its_ends() {
        let wide = of((0..20_000u64).map(|i| 10_000 + i * i));
        let curve = distribution("a", "response", &[&wide]).unwrap().ccdf;
        assert!(curve.len() <= CURVE_POINTS_MAX && curve.len() > 100, "{}", curve.len());
        assert!(curve.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 >= w[1].1));
        assert_eq!(curve[0].1, 1.0);
        let last = curve[curve.len() - 1];
        assert!((last.1 - 1.0 / 20_000.0).abs() < 1e-12, "one operation took longer");
    }

    #[test]
    fn service_time_is_reported_where_it_differs_and_that_of_a_probe_where_there_was_one() {
        let plan = tare_record::testing::plan(1);
        let mut record = tare_record::testing::trial(&plan, 0);
        assert_eq!(of_arm("native", &[&record]).len(), 1);
        if let Outcome::Completed(m) = &mut record.outcome {
            m.histograms.insert("service".to_owned(), of(1..=1000));
        }
        let names: Vec<_> = of_arm("native", &[&record]).into_iter().map(|d| d.name).collect();
        assert_eq!(names, ["response", "service"]);
        if let Outcome::Completed(m) = &mut record.outcome {
            m.histograms = [(histogram::PROBE.to_owned(), of(1..=1000))].into();
        }
        let names: Vec<_> = of_arm("native", &[&record]).into_iter().map(|d| d.name).collect();
        assert_eq!(names, [histogram::PROBE], "bulk data alone has no response time");
    }

    #[test]
    fn what_did_not_complete_is_beyond_the_end_of_the_curve() {
        let whole = of(1..=1000);
        let gone = Histogram { failed: 15, given_up: 5, ..of(1..=980) };
        let found = distribution("a", "response", &[&gone, &whole]).unwrap();
        assert_eq!((found.operations, found.not_completed), (2000, 20));
        // Half of the weight has 2 % missing: 1 % of all.
        let end = found.ccdf[found.ccdf.len() - 1];
        assert!((end.1 - 0.01).abs() < 1e-12, "the curve ends at the share that completed: {end:?}");
        let at = |q: f64| found.quantiles.iter().find(|(own, _)| *own == q).map(|(_, e)| e.clone());
        assert!((at(0.99).unwrap().value - 1000e-9).abs() < 1e-15, "the longest that completed");
        assert!(at(0.99).unwrap().low.is_none() && at(0.99).unwrap().method.contains("did not reach it"));
        let (q, beside) = found.incomplete[found.incomplete.len() - 1];
        assert!(q == 0.99 && beside.completed_only.unwrap() < 1000e-9);
        let alone = distribution("a", "response", &[&gone]).unwrap();
        let reached: Vec<f64> = alone.quantiles.iter().map(|(q, _)| *q).collect();
        assert_eq!(reached, [0.5, 0.9, 0.95], "the 99th percentile is among those that did not complete");
        let (q, beside) = alone.incomplete[alone.incomplete.len() - 1];
        assert_eq!((q, beside.missing), (0.99, 0.02));
    }
}
