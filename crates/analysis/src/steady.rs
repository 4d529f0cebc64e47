//! Whether a series held still in its window.

use crate::rank::median;
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
/// normal approximation with correction for ties (Kendall 1975; no continuity correction).
pub(crate) fn trend(values: &[f64]) -> Option<(f64, f64)> {
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
    let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - ties) / 18.0;
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
/// (Pettitt, A non-parametric approach to the change-point problem, Applied Statistics 28, 1979).
pub(crate) fn shift(values: &[f64]) -> Option<(usize, f64)> {
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
    best.map(|(at, k)| (at, (2.0 * (-6.0 * k * k / (n.powi(3) + n.powi(2))).exp()).min(1.0)))
}

/// What is unsteady about a series in its window, in words; `None` when it held still or is too short to tell.
pub(crate) fn unsteady(points: &[(f64, f64)]) -> Option<String> {
    if points.len() < POINTS_MIN {
        return None;
    }
    let values: Vec<f64> = averaged(points, POINTS_MAX).into_iter().map(|p| p.1).collect();
    let centre = median(&values).filter(|c| *c > 0.0)?;
    let limit = format!("limit {:.0} %", CHANGE_MIN * 100.0);
    let (slope, p) = trend(&values)?;
    let drift = slope * (values.len() - 1) as f64 / centre;
    if p < UNSTEADY_ALPHA && drift.abs() > CHANGE_MIN {
        return Some(format!("drifted by {:+.1} % over the window (Mann-Kendall p = {p:.1e}; {limit})", drift * 100.0));
    }
    let (at, p) = shift(&values)?;
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
        let (at, p) = shift(&values).unwrap();
        // The statistic may pass the place by a point or two that happen to lie low.
        assert!(at.abs_diff(20) <= 3, "{at}");
        assert!(p < 1e-6);
        assert_eq!(shift(&[1.0]), None);
    }

    #[test]
    fn false_alarms_are_as_rare_as_said() {
        let alarms = (0..400u64)
            .filter(|run| {
                let values: Vec<f64> = (0..40).map(|i| noise(run * 1000 + i)).collect();
                trend(&values).unwrap().1 < 0.05
            })
            .count();
        assert!((4..=36).contains(&alarms), "{alarms} of 400 at 5 %");
    }
}
