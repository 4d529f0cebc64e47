//! Latency distributions: merged over blocks, with intervals from the blocks.

use std::collections::BTreeMap;

use tare_model::Histogram;
use tare_model::findings::{Distribution, Estimate};
use tare_model::histogram;
use tare_model::trial::{Measurement, Outcome, TrialRecord};

use crate::estimate;

/// Percentiles that are reported.
pub(crate) const QUANTILES: [f64; 6] = [0.50, 0.90, 0.95, 0.99, 0.999, 0.9999];
/// Operations that must lie beyond a percentile for it to be reported.
pub(crate) const BEYOND_MIN: f64 = 10.0;
/// Points of a distribution's curve at most.
pub(crate) const CURVE_POINTS_MAX: usize = 300;

const SECONDS: f64 = 1e-9;

pub(crate) fn completed(record: &TrialRecord) -> Option<&Measurement> {
    match &record.outcome {
        Outcome::Completed(measurement) => Some(measurement),
        _ => None,
    }
}

/// The distributions of an arm's trials: response time, and service time where it is another.
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
    distributions
}

fn distribution(arm: &str, name: &str, blocks: &[&Histogram]) -> Option<Distribution> {
    let operations: u64 = blocks.iter().map(|block| block.count()).sum();
    let mixture = Mixture::of(blocks)?;
    let (arm, name) = (arm.to_owned(), name.to_owned());
    Some(Distribution { arm, name, operations, quantiles: quantiles(blocks), ccdf: thinned(&mixture.ccdf()) })
}

/// The percentiles that `blocks` support, seconds.
pub(crate) fn quantiles(blocks: &[&Histogram]) -> Vec<(f64, Estimate)> {
    let Some(mixture) = Mixture::of(blocks) else { return Vec::new() };
    let operations: u64 = blocks.iter().map(|block| block.count()).sum();
    let supported = QUANTILES.iter().filter(|q| supports(operations, **q));
    supported.map(|&q| (q, quantile(q, &mixture, blocks))).collect()
}

fn supports(operations: u64, q: f64) -> bool {
    operations as f64 * (1.0 - q) >= BEYOND_MIN * (1.0 - 1e-9)
}

/// The mixture's quantile, seconds, with the interval of the blocks' own quantiles.
fn quantile(q: f64, mixture: &Mixture, blocks: &[&Histogram]) -> Estimate {
    let value = mixture.quantile(q) * SECONDS;
    let own: Option<Vec<f64>> = blocks
        .iter()
        .map(|block| if supports(block.count(), q) { block.quantile(q).map(|ns| ns * SECONDS) } else { None })
        .collect();
    let n = blocks.len() as u32;
    match own.and_then(|own| estimate::of_values(&own)) {
        Some(e) => {
            let method = format!("blocks merged with equal weight; interval of the blocks' own: {}", e.method);
            Estimate { value, low: e.low, high: e.high, level: e.level, n, method }
        }
        None => {
            let method = format!(
                "blocks merged with equal weight; no interval: a block has fewer than {BEYOND_MIN} operations beyond it"
            );
            Estimate { value, low: None, high: None, level: 1.0 - estimate::ALPHA, n, method }
        }
    }
}

/// Histograms merged so that each block counts the same, however many operations it held: a fast block must not speak
/// louder than a slow one.
struct Mixture {
    /// Lowest value of a bin: its highest value and its share of all.
    bins: BTreeMap<u64, (u64, f64)>,
    min: u64,
    max: u64,
}

impl Mixture {
    /// `None` when nothing was recorded.
    fn of(blocks: &[&Histogram]) -> Option<Self> {
        let blocks: Vec<_> = blocks.iter().filter(|block| !block.is_empty()).collect();
        let mut bins: BTreeMap<u64, (u64, f64)> = BTreeMap::new();
        for block in &blocks {
            let weight = 1.0 / (block.count() as f64 * blocks.len() as f64);
            for bin in &block.bins {
                let known = bins.entry(bin.low).or_insert((bin.high, 0.0));
                *known = (known.0.max(bin.high), known.1 + bin.count as f64 * weight);
            }
        }
        let min = blocks.iter().map(|block| block.min).min()?;
        let max = blocks.iter().map(|block| block.max).max()?;
        Some(Self { bins, min, max })
    }

    /// The smallest bin such that a share of at least `q` lies in it or below, by its middle; nanoseconds.
    fn quantile(&self, q: f64) -> f64 {
        let mut seen = 0.0;
        for (low, (high, share)) in &self.bins {
            seen += share;
            // Shares are sums of fractions: a hair of rounding must not move the quantile by a bin.
            if seen >= q * (1.0 - 1e-12) {
                return f64::midpoint(*low as f64, *high as f64).clamp(self.min as f64, self.max as f64);
            }
        }
        self.max as f64
    }

    /// (seconds, share of operations that took longer), falling; ends at the last bin with operations beyond it.
    fn ccdf(&self) -> Vec<(f64, f64)> {
        let mut points = Vec::with_capacity(self.bins.len() + 1);
        // From the largest down, so that the smallest shares are the most exact.
        let mut beyond = 0.0;
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
        Histogram { min: bins[0].low, max: bins[bins.len() - 1].low, bins, sum }
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
    fn service_time_is_reported_where_it_differs() {
        let plan = tare_record::testing::plan(1);
        let mut record = tare_record::testing::trial(&plan, 0);
        assert_eq!(of_arm("native", &[&record]).len(), 1);
        if let Outcome::Completed(m) = &mut record.outcome {
            m.histograms.insert("service".to_owned(), of(1..=1000));
        }
        let names: Vec<_> = of_arm("native", &[&record]).into_iter().map(|d| d.name).collect();
        assert_eq!(names, ["response", "service"]);
    }
}
