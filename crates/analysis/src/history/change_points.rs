//! Change points of a series: E-divisive means (Matteson and James 2014, doi:10.1080/01621459.2013.849605), in windows and with Student's
//! t test in place of permutations, as Hunter does it (Fleming et al. 2023, doi:10.1145/3578244.3583719) and Apache Otava after it. The same
//! indices as Otava 0.8.0's: `oracle/change_points.py`.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::student::{mean, t_tail};

/// How change points are looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ChangeRule {
    /// Values that are looked at together; the windows overlap by half.
    pub window: usize,
    /// Two sets of values differ where equal ones would differ so much with at most this probability.
    pub p: f64,
}

impl ChangeRule {
    /// What Otava does unless asked otherwise.
    pub(crate) const OTAVA: Self = Self { window: 50, p: 0.001 };

    /// The probability for points that are only candidates: many of them fall once their neighbours are known.
    fn first_pass(self) -> f64 {
        match self.p {
            p if p < 0.05 => p * 10.0,
            p if p < 0.5 => p * 2.0,
            p => p,
        }
    }
}

/// A place where a series changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Change {
    /// Index of the first value after it.
    pub at: usize,
    /// The p-value of the t test of the values up to the changes on both sides.
    pub p: f64,
}

/// The change points, ascending. None in a series that holds anything else than finite numbers.
pub(crate) fn change_points(values: &[f64], rule: ChangeRule) -> Vec<Change> {
    if values.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    kept(candidates(values, rule), values, rule.p)
}

/// Candidates of all windows.
fn candidates(values: &[f64], rule: ChangeRule) -> Vec<usize> {
    let (mut found, mut start) = (BTreeSet::new(), 0);
    let window = rule.window.max(2);
    while start < values.len() {
        let end = (start + window).min(values.len());
        let cuts = divided(&values[start..end], rule.first_pass());
        let last = cuts.last().map_or(0, |at| start + at);
        found.extend(cuts.iter().map(|at| start + at));
        // A window begins at the last candidate of the one before, if that is further on.
        start = last.max(start + window / 2);
    }
    found.into_iter().collect()
}

/// Where values are divided, again and again, at the most conspicuous place, until that is no difference.
fn divided(values: &[f64], p: f64) -> Vec<usize> {
    let mut cuts = Vec::new();
    loop {
        let mut best: Option<(f64, usize, Range<usize>)> = None;
        for range in ranges(&cuts, values.len()).into_iter().filter(|range| range.len() > 1) {
            let (q, at) = most_conspicuous(&values[range.clone()]);
            if best.as_ref().is_none_or(|(most, ..)| q > *most) {
                best = Some((q, range.start + at, range));
            }
        }
        let Some((_, at, range)) = best else { return cuts };
        if p_equal(&values[range.start..at], &values[at..range.end]) > p {
            return cuts;
        }
        cuts.push(at);
        cuts.sort_unstable();
    }
}

/// The candidates that are left once the least significant one is taken away, again and again, while it is not significant: of each the
/// significance depends on its neighbours.
fn kept(mut cuts: Vec<usize>, values: &[f64], p: f64) -> Vec<Change> {
    loop {
        let ranges = ranges(&cuts, values.len());
        let tested = cuts
            .iter()
            .zip(ranges.windows(2))
            .map(|(&at, beside)| Change { at, p: p_equal(&values[beside[0].clone()], &values[beside[1].clone()]) });
        let tested: Vec<Change> = tested.collect();
        let weakest = tested.iter().map(|change| change.p).fold(f64::NEG_INFINITY, f64::max);
        if weakest < p {
            return tested;
        }
        let Some(at) = tested.iter().position(|change| change.p >= weakest) else { return tested };
        cuts.remove(at);
    }
}

/// What lies between the cuts.
fn ranges(cuts: &[usize], len: usize) -> Vec<Range<usize>> {
    let starts = std::iter::once(0).chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([len]);
    starts.zip(ends).map(|(start, end)| start..end).collect()
}

/// Where, among two values or more, those before and those after up to some later place differ most, and how much: the divergence of
/// energy distances (Matteson and James 2014, eq. 5 and 6, with exponent 1).
fn most_conspicuous(values: &[f64]) -> (f64, usize) {
    let n = values.len();
    let distance = |i: usize, k: usize| (values[i] - values[k]).abs();
    // Sums of distances from `t` to what follows it below `end`, and from there on to `end`.
    let mut after = vec![vec![0.0; n + 1]; n];
    for (t, sums) in after.iter_mut().enumerate() {
        for end in t + 2..=n {
            sums[end] = sums[end - 1] + distance(t, end - 1);
        }
    }
    let mut within_after = vec![vec![0.0; n + 1]; n + 1];
    for t in (0..n).rev() {
        for end in t + 1..=n {
            within_after[t][end] = within_after[t + 1][end] + after[t][end];
        }
    }
    let mut up_to = vec![0.0; n + 1];
    let (mut within_before, mut best) = (0.0, (f64::NEG_INFINITY, 1));
    for at in 1..n {
        (0..=n).for_each(|end| up_to[end] += after[at - 1][end]);
        within_before += (0..at - 1).map(|i| distance(i, at - 1)).sum::<f64>();
        for end in at + 1..=n {
            let (x, y, both) = (at as f64, (end - at) as f64, end as f64);
            let between = 2.0 / both * (up_to[end] - within_before);
            let before = if at > 1 { 2.0 * y / (both * (x - 1.0)) * within_before } else { 0.0 };
            let later = if end > at + 1 { 2.0 * x / (both * (y - 1.0)) * within_after[at][end] } else { 0.0 };
            let q = between - before - later;
            if q > best.0 {
                best = (q, at);
            }
        }
    }
    best
}

/// Two-sided p-value of Student's t test of equal variances; 1 of fewer than three values. As in Otava, the variances are those of the
/// values themselves (divisor n) and not of what they are drawn from (n - 1), so that small sets differ more often than `p` says: the rates
/// in docs/reference/history.md are of this rule.
fn p_equal(x: &[f64], y: &[f64]) -> f64 {
    let (m, n) = (x.len() as f64, y.len() as f64);
    let (Some(from), Some(to)) = (mean(x), mean(y)) else { return 1.0 };
    let freedom = m + n - 2.0;
    if freedom < 1.0 {
        return 1.0;
    }
    let variance = |values: &[f64], centre: f64| {
        values.iter().map(|value| (value - centre).powi(2)).sum::<f64>() / values.len() as f64
    };
    let pooled = ((m - 1.0) * variance(x, from) + (n - 1.0) * variance(y, to)) / freedom;
    let error = (pooled * (1.0 / m + 1.0 / n)).sqrt();
    match (to - from).abs() {
        0.0 => 1.0,
        _ if error == 0.0 => 0.0,
        difference => t_tail(difference / error, freedom),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: ChangeRule = ChangeRule::OTAVA;

    fn indices(values: &[f64]) -> Vec<usize> {
        change_points(values, RULE).iter().map(|change| change.at).collect()
    }

    /// Noise of a hundredth around each level, as many values as asked, the same each time.
    fn levels(levels: &[(f64, usize)]) -> Vec<f64> {
        let all = levels.iter().flat_map(|(level, n)| std::iter::repeat_n(*level, *n));
        all.enumerate().map(|(at, level)| level + 0.01 * tare_record::testing::noise(at as u64)).collect()
    }

    #[test]
    fn one_level_has_no_change_and_each_step_is_found_where_it_is() {
        assert_eq!(indices(&levels(&[(0.0, 60)])), [0; 0]);
        assert_eq!(indices(&levels(&[(0.0, 12), (0.05, 12)])), [12]);
        assert_eq!(indices(&levels(&[(0.0, 15), (0.05, 20), (0.01, 15)])), [15, 35]);
        // Across windows.
        assert_eq!(indices(&levels(&[(0.0, 70), (-0.04, 60)])), [70]);
    }

    #[test]
    fn a_step_without_noise_is_certain() {
        let values = [[1.0; 5], [2.0; 5]].concat();
        assert_eq!(change_points(&values, RULE), [Change { at: 5, p: 0.0 }]);
        assert_eq!(indices(&[3.0; 20]), [0; 0]);
    }

    #[test]
    fn an_outlier_is_no_change() {
        let mut values = levels(&[(0.0, 40)]);
        values[20] = 0.3;
        assert_eq!(indices(&values), [0; 0]);
    }

    #[test]
    fn too_few_values_have_no_change_and_what_is_no_number_is_not_looked_at() {
        for few in [&[][..], &[1.0], &[1.0, 9.0]] {
            assert_eq!(indices(few), [0; 0]);
        }
        let mut values = levels(&[(0.0, 12), (0.05, 12)]);
        values[3] = f64::NAN;
        assert_eq!(indices(&values), [0; 0]);
    }

    #[test]
    fn the_place_and_the_size_of_the_values_do_not_matter() {
        let values = levels(&[(0.0, 12), (0.05, 12)]);
        for (shift, scale) in [(5.0, 1.0), (0.0, 1000.0), (-2.0, -0.1)] {
            assert_eq!(indices(&values.iter().map(|value| shift + scale * value).collect::<Vec<_>>()), [12]);
        }
    }
}
