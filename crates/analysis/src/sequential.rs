//! The interval of a comparison whose number of blocks followed from its own width: ADR 0025.

use crate::located::{ALPHA, Located, RANK_BLOCKS_MIN};
use crate::rank;
use crate::student;

/// What is added to the autocorrelation that is seen, over the number of values. Its bias alone is (1 + 4 rho) / n (Marriott and
/// Pope 1954); the rest allows for the chance that a case ends because it looked small.
const UNSEEN: f64 = 4.8;
/// By what the sum is multiplied: so much, and so much more over the number of values.
const TILT: f64 = 1.2;
const TILT_FEW: f64 = 11.0;
/// The largest autocorrelation that is allowed for.
const RHO_MAX: f64 = 0.92;
/// By what the interval is stretched besides: so much, less so much over the number of values.
const STRETCH: f64 = 1.01;
const STRETCH_FEW: f64 = 2.65;

/// Hodges-Lehmann estimate with the signed-rank interval, each end stretched about the estimate so that the interval holds the centre
/// with 95 % although it decided when to end, and although neighbours in time may be alike. `missing`: as of the signed ranks. `None` of
/// nothing.
pub(crate) fn signed_rank(values: &[f64], missing: usize) -> Option<Located> {
    let located = rank::signed_rank(values, missing, ALPHA)?;
    let (by, value) = (stretch_of(values), located.value);
    let ends = located.ends.map(|(low, high)| (value - by * (value - low), value + by * (high - value)));
    Some(Located { value, ends, level: 1.0 - ALPHA })
}

/// The one-sided p-value of the test that [`signed_rank`] inverts: an end stretched about the estimate excludes `shift` where the end
/// itself excludes what is that much nearer to the estimate. `None` of nothing.
pub(crate) fn signed_rank_above(values: &[f64], missing: usize, shift: f64) -> Option<f64> {
    let value = rank::signed_rank(values, missing, ALPHA)?.value;
    Some(rank::signed_rank_above(values, missing, value - (value - shift) / stretch_of(values)))
}

fn stretch_of(values: &[f64]) -> f64 {
    stretch(values.len(), autocorrelation(values))
}

/// How many values there would have to be, of the spread and autocorrelation of these, for an interval that reaches no further than
/// `reach`; at most `most`.
pub(crate) fn foreseen(values: &[f64], reach: f64, most: u32) -> u32 {
    let Some(spread) = student::deviation(values) else { return most };
    let (z, seen) = (student::normal_quantile(1.0 - ALPHA / 2.0), autocorrelation(values).max(0.0));
    let narrow = |n: &u32| z * spread / f64::from(*n).sqrt() * stretch(*n as usize, seen) <= reach;
    // Fewer than six have no such interval.
    (RANK_BLOCKS_MIN as u32..most).find(narrow).unwrap_or(most)
}

/// Autocorrelation of neighbours, -1 to 1; 0 where all values are the same.
pub(crate) fn autocorrelation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let products: f64 = values.iter().zip(values.iter().skip(1)).map(|(a, b)| (a - mean) * (b - mean)).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

/// How much wider the interval of `n` values is than that of a fixed number of independent ones.
fn stretch(n: usize, seen: f64) -> f64 {
    let count = n as f64;
    let rho = ((TILT + TILT_FEW / count) * (seen + UNSEEN / count)).clamp(0.0, RHO_MAX);
    inflation(n, rho).sqrt() * (STRETCH - STRETCH_FEW / count)
}

/// The variance of the mean of `n` values of a first-order autoregression over what their spread suggests.
fn inflation(n: usize, rho: f64) -> f64 {
    let count = n as f64;
    let mut power = 1.0;
    let mut variance = 1.0;
    for lag in 1..n {
        power *= rho;
        variance += 2.0 * (1.0 - lag as f64 / count) * power;
    }
    // Values that are alike also spread less about their own mean.
    variance * (count - 1.0) / (count - variance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variance_of_a_mean_is_that_of_an_autoregression() {
        assert!((inflation(12, 0.0) - 1.0).abs() < 1e-12);
        // (1 + rho) / (1 - rho) of infinitely many.
        assert!((inflation(100_000, 0.5) - 3.0).abs() < 1e-3);
        // n = 3, rho = 0.5: 1 + 2 (2/3 0.5 + 1/3 0.25) = 11/6; times 2 over (3 - 11/6).
        assert!((inflation(3, 0.5) - 11.0 / 6.0 * 2.0 / (7.0 / 6.0)).abs() < 1e-12);
    }

    #[test]
    fn neighbours_that_are_alike_widen_the_interval_and_the_estimate_stays() {
        let drifting: Vec<f64> = (0..24).map(|i| f64::from(i / 6)).collect();
        let mixed: Vec<f64> = (0..24).map(|i| f64::from(i % 4)).collect();
        assert!(autocorrelation(&drifting) > 0.7 && autocorrelation(&mixed) < 0.1);
        let [wide, narrow] = [&drifting, &mixed].map(|values| signed_rank(values, 0).unwrap());
        let width = |located: Located| located.ends.map(|(low, high)| high - low).unwrap();
        assert_eq!((wide.value, narrow.value), (1.5, 1.5));
        assert!(width(wide) > 2.0 * width(narrow), "{wide:?} {narrow:?}");
        assert_eq!(signed_rank(&[4.0; 9], 0).unwrap().ends, Some((4.0, 4.0)), "nothing to stretch");
    }

    #[test]
    fn the_stretch_falls_with_the_number_of_values() {
        let at = |n| stretch(n, 0.0);
        assert!([12, 20, 40, 200].windows(2).all(|pair| at(pair[0]) > at(pair[1])));
        assert!(at(12) < 3.1 && (at(100_000) - 1.01).abs() < 1e-3, "{} {}", at(12), at(100_000));
    }
}
