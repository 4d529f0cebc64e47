//! Whether a series held still in its window.

use crate::rank::median;
use crate::sequential::autocorrelation;
use crate::student::normal_tail;

/// Change, relative to the median, from which an unsteady series is reported.
pub(crate) const CHANGE_MIN: f64 = 0.05;
/// Error probability of the two tests, each.
pub(crate) const UNSTEADY_ALPHA: f64 = 0.01;
/// Points below which nothing can be said.
pub(crate) const POINTS_MIN: usize = 10;
/// Points that the tests see at most; a longer series is averaged in groups. It bounds their cost (quadratic) and
/// takes out most of what neighbouring intervals have in common.
const POINTS_MAX: usize = 240;
/// Largest correlation of neighbours that is allowed for.
const CORRELATION_MAX: f64 = 0.98;

/// Means of consecutive groups, so that at most `most` points are left.
pub(crate) fn averaged(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    let group = points.len().div_ceil(most.max(1)).max(1);
    points
        .chunks(group)
        .map(|chunk| {
            let n = chunk.len() as f64;
            (chunk.iter().map(|p| p.0).sum::<f64>() / n, chunk.iter().map(|p| p.1).sum::<f64>() / n)
        })
        .collect()
}

/// A trend by Mann and Kendall: slope by Theil and Sen (change a point), and the two-sided p of Kendall's S by its
/// normal approximation with correction for ties (Kendall 1975; no continuity correction). `inflation`: how much larger the variance of S is than
/// that of independent values.
pub(crate) fn trend(values: &[f64], inflation: f64) -> Option<(f64, f64)> {
    let n = values.len();
    let mut slopes = Vec::with_capacity(n * n / 2);
    let mut s = 0.0;
    for (i, a) in values.iter().enumerate() {
        for (j, b) in values.iter().enumerate().skip(i + 1) {
            slopes.push((b - a) / (j - i) as f64);
            s += f64::from(i8::from(b > a) - i8::from(b < a));
        }
    }
    let slope = median(&slopes)?;
    let n = n as f64;
    let ties: f64 = tie_sizes(values).map(|t| t * (t - 1.0) * (2.0 * t + 5.0)).sum();
    let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - ties) / 18.0 * inflation;
    let p = if variance > 0.0 { normal_tail(s / variance.sqrt()) } else { 1.0 };
    Some((slope, p))
}

fn tie_sizes(values: &[f64]) -> impl Iterator<Item = f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let groups: Vec<f64> = sorted.chunk_by(|a, b| a == b).map(|group| group.len() as f64).collect();
    groups.into_iter()
}

/// One shift at an unknown place, by Pettitt: (points before it, p). p is his approximation 2 exp(-6 K^2 / (n^3 + n^2))
/// (Pettitt, A non-parametric approach to the change-point problem, Applied Statistics 28, 1979), with the variance of K inflated likewise.
pub(crate) fn shift(values: &[f64], inflation: f64) -> Option<(usize, f64)> {
    let n = values.len();
    let mut u = 0.0;
    let mut best: Option<(usize, f64)> = None;
    for (t, at) in values.iter().enumerate().take(n.saturating_sub(1)) {
        u += values.iter().map(|other| f64::from(i8::from(at > other) - i8::from(at < other))).sum::<f64>();
        if best.is_none_or(|(_, k)| u.abs() > k) {
            best = Some((t + 1, u.abs()));
        }
    }
    let n = n as f64;
    best.map(|(at, k)| (at, (2.0 * (-6.0 * k * k / (n.powi(3) + n.powi(2)) / inflation).exp()).min(1.0)))
}

/// How much larger the variance of a sum over the values is than if neighbours had nothing in common: (1 + r) / (1 - r) of a first-order
/// autoregression (Yue and Wang, The Mann-Kendall test modified by effective sample size, Water Resources Management 18, 2004). A backlog outlasts
/// an interval, so that response times drift for a while by chance. r is that of what a line through the values, or one shift, leaves of them.
fn inflation(values: &[f64], slope: f64, at: usize) -> Option<f64> {
    let line: Vec<f64> = values.iter().zip(0..).map(|(value, i)| value - slope * f64::from(i)).collect();
    let levels = (median(values.get(..at)?)?, median(values.get(at..)?)?);
    let step = values.iter().enumerate().map(|(i, value)| value - if i < at { levels.0 } else { levels.1 });
    let r = autocorrelation(&line).min(autocorrelation(&step.collect::<Vec<_>>())).clamp(0.0, CORRELATION_MAX);
    Some((1.0 + r) / (1.0 - r))
}

/// What is unsteady about a series in its window, in words; `None` when it held still or is too short to tell.
pub(crate) fn unsteady(points: &[(f64, f64)]) -> Option<String> {
    if points.len() < POINTS_MIN {
        return None;
    }
    let values: Vec<f64> = averaged(points, POINTS_MAX).into_iter().map(|p| p.1).collect();
    let centre = median(&values).filter(|c| *c > 0.0)?;
    let limit = format!("limit {:.0} %", CHANGE_MIN * 100.0);
    let ((slope, _), (at, _)) = (trend(&values, 1.0)?, shift(&values, 1.0)?);
    let inflation = inflation(&values, slope, at)?;
    let (slope, p) = trend(&values, inflation)?;
    let drift = slope * (values.len() - 1) as f64 / centre;
    if p < UNSTEADY_ALPHA && drift.abs() > CHANGE_MIN {
        return Some(format!("drifted by {:+.1} % over the window (Mann-Kendall p = {p:.1e}; {limit})", drift * 100.0));
    }
    let (at, p) = shift(&values, inflation)?;
    let change = (median(&values[at..])? - median(&values[..at])?) / centre;
    if p < UNSTEADY_ALPHA && change.abs() > CHANGE_MIN {
        let place = at as f64 / values.len() as f64 * 100.0;
        return Some(format!(
            "shifted by {:+.1} % at {place:.0} % of the window (Pettitt p = {p:.1e}; {limit})",
            change * 100.0
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_record::testing::noise;

    fn series(n: u64, of: impl Fn(u64) -> f64) -> Vec<(f64, f64)> {
        (0..n).map(|i| (i as f64, of(i) * (1.0 + 0.02 * noise(i)))).collect()
    }

    #[test]
    fn noise_alone_is_steady_and_drift_and_shift_are_reported() {
        assert_eq!(unsteady(&series(100, |_| 1000.0)), None);
        let drift = unsteady(&series(100, |i| 1000.0 - i as f64)).unwrap();
        assert!(drift.contains("drifted by -"), "{drift}");
        let dip = unsteady(&series(2000, |i| if i < 1400 { 1000.0 } else { 880.0 })).unwrap();
        assert!(dip.contains('-'), "{dip}");
        assert_eq!(unsteady(&series(100, |i| 1000.0 - 0.2 * i as f64)), None, "2 % is within what is allowed");
        assert_eq!(unsteady(&series(5, |i| i as f64)), None, "too short to tell");
        assert_eq!(unsteady(&series(50, |_| 0.0)), None);
    }

    #[test]
    fn a_shift_is_found_where_it_is() {
        let values: Vec<f64> = (0..60u64).map(|i| noise(i) + if i < 20 { 0.0 } else { 4.0 }).collect();
        let (at, p) = shift(&values, 1.0).unwrap();
        // The statistic may pass the place by a point or two that happen to lie low.
        assert!(at.abs_diff(20) <= 3, "{at}");
        assert!(p < 1e-6);
        assert_eq!(shift(&[1.0], 1.0), None);
    }

    #[test]
    fn false_alarms_are_as_rare_as_said() {
        let alarms = (0..400u64)
            .filter(|run| {
                let values: Vec<f64> = (0..40).map(|i| noise(run * 1000 + i)).collect();
                trend(&values, 1.0).unwrap().1 < 0.05
            })
            .count();
        assert!((4..=36).contains(&alarms), "{alarms} of 400 at 5 %");
    }

    /// Mean response times in 100 intervals of arrivals at random to one server that is busy for such a share of the time, 100 arrivals each.
    fn queue(seed: u64, busy: f64) -> Vec<(f64, f64)> {
        let mut waits = 0.0_f64;
        let exponential = |i: u64| -((noise(i) + 1.0) / 2.0).clamp(1e-12, 1.0).ln();
        let interval = |n: u64| {
            let sum: f64 = (0..100u64)
                .map(|i| {
                    let at = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add((n * 100 + i) * 2);
                    let serves = busy * exponential(at);
                    let response = waits + serves;
                    waits = (response - exponential(at + 1)).max(0.0);
                    response
                })
                .sum();
            (n as f64, sum / 100.0)
        };
        (0..120).map(interval).skip(20).collect()
    }

    #[test]
    fn a_backlog_that_outlasts_an_interval_is_no_drift() {
        // At 90 % busy the means of neighbouring intervals have much in common: taken as independent, 60 of 400 would alarm.
        for busy in [0.5, 0.9] {
            let alarms = (1..=200).filter(|&seed| unsteady(&queue(seed, busy)).is_some()).count();
            assert!(alarms <= 6, "{alarms} of 200 at {busy}: two tests at 1 %");
        }
        let slower =
            |seed: u64| queue(seed, 0.5).into_iter().map(|(at, mean)| (at, if at > 70.0 { 1.5 * mean } else { mean }));
        let found = (1..=50).filter(|&seed| unsteady(&slower(seed).collect::<Vec<_>>()).is_some()).count();
        assert!(found >= 48, "{found} of 50");
    }
}
