//! Exact rank procedures: the Hodges-Lehmann estimates with the intervals of Wilcoxon and of Mann and Whitney.

use crate::located::Located;
use crate::student::{normal_below, normal_quantile};

/// Largest sample whose null distribution is counted; beyond it the normal approximation is used.
const EXACT_MAX: usize = 50;

/// Median of a sorted, non-empty slice.
fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

/// Median; `None` of nothing.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| median_of_sorted(&sorted))
}

/// Number of ways to reach each value of the signed-rank statistic of `n` values, times 2^-n: the coefficients
/// of the product of (1 + x^i)/2 over i = 1..n.
fn signed_rank_pmf(n: usize) -> Vec<f64> {
    let mut pmf = vec![1.0];
    for rank in 1..=n {
        let mut next = vec![0.0; pmf.len() + rank];
        for (value, share) in pmf.iter().enumerate() {
            next[value] += share / 2.0;
            next[value + rank] += share / 2.0;
        }
        pmf = next;
    }
    pmf
}

/// Probability of each value of the Mann-Whitney statistic of `m` and `n` values, by the recursion of Mann and
/// Whitney (1947): the largest value is of the one sample or of the other.
fn mann_whitney_pmf(m: usize, n: usize) -> Vec<f64> {
    // of[j]: the distribution for (i, j), i growing.
    let mut of: Vec<Vec<f64>> = vec![vec![1.0]; n + 1];
    for i in 1..=m {
        let mut next: Vec<Vec<f64>> = vec![vec![1.0]];
        for j in 1..=n {
            let mut pmf = vec![0.0; i * j + 1];
            let (from_first, from_second) = (i as f64 / (i + j) as f64, j as f64 / (i + j) as f64);
            for (value, share) in of[j].iter().enumerate() {
                pmf[value + j] += share * from_first;
            }
            for (value, share) in next[j - 1].iter().enumerate() {
                pmf[value] += share * from_second;
            }
            next.push(pmf);
        }
        of = next;
    }
    of.pop().unwrap_or_default()
}

/// The rank k (from 1) of the ordered candidates at which the interval begins, and its attained level: the largest k with
/// 2 P(T <= k - 1) <= alpha. `None` when even k = 1 is too much.
fn exact_rank(pmf: &[f64], alpha: f64) -> Option<(usize, f64)> {
    let mut below = 0.0;
    let mut best = None;
    for (value, share) in pmf.iter().enumerate() {
        below += share;
        // A hair of rounding must not cost a rank that the exact count allows.
        if 2.0 * below > alpha * (1.0 + 1e-12) {
            break;
        }
        best = Some((value + 1, 1.0 - 2.0 * below));
    }
    best
}

fn approximate_rank(mean: f64, sd: f64, alpha: f64) -> (usize, f64) {
    let rank = (mean + normal_quantile(alpha / 2.0) * sd + 0.5).floor().max(1.0);
    (rank as usize, 1.0 - alpha)
}

fn from_candidates(mut candidates: Vec<f64>, rank: Option<(usize, f64)>, alpha: f64) -> Option<Located> {
    if candidates.is_empty() {
        return None;
    }
    candidates.sort_by(f64::total_cmp);
    let value = median_of_sorted(&candidates);
    let ends = rank.and_then(|(k, _)| {
        let low = candidates.get(k - 1)?;
        let high = candidates.get(candidates.len().checked_sub(k)?)?;
        Some((*low, *high))
    });
    Some(Located { value, ends, level: rank.map_or(1.0 - alpha, |(_, level)| level) })
}

/// The means of all pairs of values, each value with itself included (Walsh averages).
fn pairwise_means(values: &[f64]) -> Vec<f64> {
    let n = values.len();
    let pairs = (0..n).flat_map(|i| (i..n).map(move |j| (i, j)));
    pairs.map(|(i, j)| f64::midpoint(values[i], values[j])).collect()
}

/// Pairwise means in which a missing value has a part, beside `known` values.
const fn unknown_means(known: usize, missing: usize) -> usize {
    missing * known + missing * (missing + 1) / 2
}

/// Mean and standard deviation of the signed-rank statistic of `n` values without a preferred sign.
fn signed_rank_moments(n: usize) -> (f64, f64) {
    let n = n as f64;
    (n * (n + 1.0) / 4.0, (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt())
}

/// Hodges-Lehmann estimate of the centre of symmetry (median of all pairwise means, each value with itself included)
/// with the interval of the Wilcoxon signed-rank test at 1 - `alpha` or a little more.
///
/// Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3rd ed., sections 3.2 and 3.3. `missing` further values are not
/// known: the interval is the union of those that any values of theirs would give. Where it has no bounds, there are no ends. `None` of
/// nothing.
pub(crate) fn signed_rank(values: &[f64], missing: usize, alpha: f64) -> Option<Located> {
    let n = values.len() + missing;
    let rank = if n <= EXACT_MAX {
        exact_rank(&signed_rank_pmf(n), alpha)
    } else {
        let (mean, sd) = signed_rank_moments(n);
        Some(approximate_rank(mean, sd, alpha))
    };
    // The worst that missing values can be is below all others for the low end, and above all others for the high one.
    let worst = unknown_means(values.len(), missing);
    let within = rank.and_then(|(k, level)| Some((k.checked_sub(worst).filter(|k| *k > 0)?, level)));
    from_candidates(pairwise_means(values), within, alpha)
}

/// Probability of such values, or of higher ones, if the centre of symmetry were at `shift`: the one-sided p-value of the test that
/// [`signed_rank`] inverts. Pairs whose mean is at `shift`, and the `missing` values, count against it.
pub(crate) fn signed_rank_above(values: &[f64], missing: usize, shift: f64) -> f64 {
    let n = values.len() + missing;
    let below = pairwise_means(values).into_iter().filter(|mean| *mean <= shift).count();
    let statistic = below + unknown_means(values.len(), missing);
    if n <= EXACT_MAX {
        return signed_rank_pmf(n).iter().take(statistic + 1).sum::<f64>().min(1.0);
    }
    let (mean, sd) = signed_rank_moments(n);
    normal_below((statistic as f64 + 0.5 - mean) / sd)
}

/// Hodges-Lehmann estimate of the shift from `x` to `y` (median of all differences) with the interval of the
/// Mann-Whitney test at 1 - `alpha` or a little more.
///
/// Hollander, Wolfe and Chicken, sections 4.2 and 4.3. `None` when either is empty.
pub(crate) fn mann_whitney(x: &[f64], y: &[f64], alpha: f64) -> Option<Located> {
    let differences = y.iter().flat_map(|b| x.iter().map(move |a| b - a)).collect();
    let rank = if x.len().max(y.len()) <= EXACT_MAX {
        exact_rank(&mann_whitney_pmf(x.len(), y.len()), alpha)
    } else {
        let (mean, sd) = mann_whitney_moments(x.len(), y.len());
        Some(approximate_rank(mean, sd, alpha))
    };
    from_candidates(differences, rank, alpha)
}

/// Mean and standard deviation of the Mann-Whitney statistic of `m` and `n` values of one distribution.
fn mann_whitney_moments(m: usize, n: usize) -> (f64, f64) {
    let (m, n) = (m as f64, n as f64);
    (m * n / 2.0, (m * n * (m + n + 1.0) / 12.0).sqrt())
}

/// Probability of such a shift from `x` to `y`, or of a higher one, if the true one were `shift`: the one-sided p-value of the test that
/// [`mann_whitney`] inverts. Differences at `shift` count against it.
pub(crate) fn mann_whitney_above(x: &[f64], y: &[f64], shift: f64) -> f64 {
    let below = y.iter().flat_map(|b| x.iter().map(move |a| b - a)).filter(|own| *own <= shift).count();
    if x.len().max(y.len()) <= EXACT_MAX {
        return mann_whitney_pmf(x.len(), y.len()).iter().take(below + 1).sum::<f64>().min(1.0);
    }
    let (mean, sd) = mann_whitney_moments(x.len(), y.len());
    normal_below((below as f64 + 0.5 - mean) / sd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_all_sign_patterns() {
        for n in 1..=10usize {
            let mut counted = vec![0.0; n * (n + 1) / 2 + 1];
            for pattern in 0..1u32 << n {
                let rank_sum: usize = (0..n).filter(|i| pattern >> i & 1 == 1).map(|i| i + 1).sum();
                counted[rank_sum] += 1.0 / f64::from(1u32 << n);
            }
            let pmf = signed_rank_pmf(n);
            assert!(pmf.iter().zip(&counted).all(|(a, b)| (a - b).abs() < 1e-15), "n = {n}");
        }
    }

    #[test]
    fn probabilities_sum_to_one_and_are_symmetric() {
        for (m, n) in [(1, 1), (4, 4), (3, 8), (20, 7)] {
            let pmf = mann_whitney_pmf(m, n);
            assert_eq!(pmf.len(), m * n + 1);
            assert!((pmf.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!(pmf.iter().zip(pmf.iter().rev()).all(|(a, b)| (a - b).abs() < 1e-15));
        }
        // All of one sample below all of the other: one way of 70.
        assert!((mann_whitney_pmf(4, 4)[0] - 1.0 / 70.0).abs() < 1e-15);
    }

    #[test]
    fn no_interval_of_95_percent_exists_below_six() {
        assert_eq!(signed_rank(&[1.0, 2.0, 3.0, 4.0, 5.0], 0, 0.05).unwrap().ends, None);
        let six = signed_rank(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0, 0.05).unwrap();
        assert_eq!((six.ends, six.level), (Some((1.0, 6.0)), 0.96875));
        assert_eq!(signed_rank(&[], 0, 0.05), None);
    }

    #[test]
    fn the_approximation_joins_the_exact_counts() {
        let values: Vec<f64> = (0..50).map(|i| f64::from(i * i % 37)).collect();
        let exact = exact_rank(&signed_rank_pmf(50), 0.05).unwrap().0;
        let (approximate, _) = approximate_rank(50.0 * 51.0 / 4.0, (50.0 * 51.0 * 101.0 / 24.0f64).sqrt(), 0.05);
        assert!(exact.abs_diff(approximate) <= 1, "{exact} and {approximate}");
        assert!(signed_rank(&values, 0, 0.05).unwrap().level >= 0.95);
    }

    #[test]
    fn the_interval_excludes_what_the_test_rejects_with_missing_values_and_without() {
        for n in [6, 12, 13, 60] {
            let values: Vec<f64> = (0..n).map(|i| f64::from(i * 7 % 11) + 0.01 * f64::from(i)).collect();
            for missing in 0..2 {
                let Some((low, high)) = signed_rank(&values, missing, 0.05).unwrap().ends else {
                    assert!(missing > 0 && n < 12, "{n} {missing}");
                    continue;
                };
                let negated: Vec<f64> = values.iter().map(|v| -v).collect();
                for shift in [low - 1e-9, low + 1e-9] {
                    assert_eq!(2.0 * signed_rank_above(&values, missing, shift) <= 0.05, shift < low, "{n} {missing}");
                }
                for shift in [high - 1e-9, high + 1e-9] {
                    assert_eq!(
                        2.0 * signed_rank_above(&negated, missing, -shift) <= 0.05,
                        shift > high,
                        "{n} {missing}"
                    );
                }
            }
        }
    }

    #[test]
    fn an_interval_with_a_missing_value_holds_those_of_any_value_it_may_have_had() {
        let known = [0.4, 1.1, 1.3, 1.7, 2.0, 2.2, 2.5, 2.6, 3.1, 3.3, 3.8];
        let (low, high) = signed_rank(&known, 1, 0.05).unwrap().ends.unwrap();
        for lost in [-1e9, -3.0, 0.0, 2.1, 7.0, 1e9] {
            let all = [&known[..], &[lost]].concat();
            let (own_low, own_high) = signed_rank(&all, 0, 0.05).unwrap().ends.unwrap();
            assert!(low <= own_low && own_high <= high, "{lost}: [{own_low}, {own_high}] in [{low}, {high}]");
        }
        assert_eq!(signed_rank(&known[..9], 3, 0.05).unwrap().ends, None, "three of twelve may be anything");
    }
}
