//! From values to a figure with its interval.

use statrs::distribution::{Binomial, DiscreteCDF};
use tare_model::findings::Estimate;

use crate::located::Located;
pub(crate) use crate::located::{ALPHA, RANK_BLOCKS_MIN};
use crate::rank;
use crate::sequential;
use crate::student;

/// Power: the probability with which a "detectable" difference is detected.
pub(crate) const POWER: f64 = 0.80;
/// Orders of two samples, C(m + n, m), from which an exact Mann-Whitney interval of 95 % exists: 2/40 = 5 %.
const MANN_WHITNEY_ORDERS_MIN: f64 = 40.0;

/// How an estimate was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Procedure {
    SignedRank,
    Sequential,
    Student,
    MannWhitney,
    Welch,
    Single,
}

impl Procedure {
    /// In a few words, for a figure made on logarithms or on the values themselves.
    fn words(self, on: &str) -> String {
        match self {
            Self::SignedRank => format!("Hodges-Lehmann, exact Wilcoxon signed-rank interval on {on}"),
            Self::Sequential => format!(
                "Hodges-Lehmann, Wilcoxon signed-rank interval on {on}, widened for blocks that are alike and for a number of \
                 blocks that followed from its width"
            ),
            Self::Student => format!("mean of {on}, Student's t interval (assumes normal {on})"),
            Self::MannWhitney => format!("Hodges-Lehmann shift, exact Mann-Whitney interval on {on}"),
            Self::Welch => format!("difference of means of {on}, Welch's t interval (assumes normal {on})"),
            Self::Single => "a single value".to_owned(),
        }
    }
}

/// One sample, such as the log ratios of a comparison's blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample<'a> {
    pub values: &'a [f64],
    /// Further values that are not known, and may be anything.
    pub missing: usize,
    /// Whether the number of values followed from the width of their interval.
    pub by_width: bool,
}

impl Sample<'_> {
    /// Its location by the procedure that its size allows. `None` of nothing.
    pub(crate) fn location(&self) -> Option<(Located, Procedure)> {
        match self.values.len() {
            0 => None,
            1 => Some((Located { value: self.values[0], ends: None, level: 1.0 - ALPHA }, Procedure::Single)),
            _ if self.is_small() => {
                let located = student::one_sample(self.values, ALPHA)?;
                // A mean moves as far as one value does.
                let ends = located.ends.filter(|_| self.missing == 0);
                Some((Located { ends, ..located }, Procedure::Student))
            }
            _ if self.by_width => Some((sequential::signed_rank(self.values, self.missing)?, Procedure::Sequential)),
            _ => Some((rank::signed_rank(self.values, self.missing, ALPHA)?, Procedure::SignedRank)),
        }
    }

    /// Probability of a location so far from 0, either way, if the true one were 0. At most 5 % where the interval excludes 0. `None`
    /// without an interval.
    pub(crate) fn p_zero(&self) -> Option<f64> {
        self.tails(0.0).map(either_way)
    }

    /// Probability of a location so far within plus and minus `margin`, if the true one were at one of them (two one-sided tests,
    /// Schuirmann 1987). At most 5 % where the interval lies within: doubled, because that is the interval of 95 % and not of 90 %.
    pub(crate) fn p_beyond(&self, margin: f64) -> Option<f64> {
        self.tails(margin).map(both_ways)
    }

    /// Probability of a location so far above `line`, or so far below it if `down`, if the true one were there; doubled, because the
    /// interval has two ends. At most 5 % where the interval lies beyond the line. `None` without an interval.
    pub(crate) fn p_past(&self, line: f64, down: bool) -> Option<f64> {
        let sign = if down { -1.0 } else { 1.0 };
        let turned: Vec<f64> = self.values.iter().map(|value| sign * value).collect();
        let tail = Sample { values: &turned, ..*self }.above(sign * line)?;
        Some((2.0 * tail).min(1.0))
    }

    /// The one-sided p-values of the locations -`margin`, against higher ones, and `margin`, against lower ones.
    fn tails(&self, margin: f64) -> Option<[f64; 2]> {
        let negated: Vec<f64> = self.values.iter().map(|value| -value).collect();
        let mirrored = Sample { values: &negated, ..*self };
        Some([self.above(-margin)?, mirrored.above(-margin)?])
    }

    /// Probability of such values, or of higher ones, if the location were `shift`.
    fn above(&self, shift: f64) -> Option<f64> {
        if self.is_small() {
            return if self.missing == 0 { student::above(self.values, shift) } else { None };
        }
        if self.by_width {
            return sequential::signed_rank_above(self.values, self.missing, shift);
        }
        Some(rank::signed_rank_above(self.values, self.missing, shift))
    }

    fn is_small(&self) -> bool {
        self.values.len() + self.missing < RANK_BLOCKS_MIN
    }
}

/// The two-sided p-value of two one-sided ones, where either tail rejects.
fn either_way([above, below]: [f64; 2]) -> f64 {
    (2.0 * above.min(below)).min(1.0)
}

/// The same where both have to reject.
fn both_ways([above, below]: [f64; 2]) -> f64 {
    (2.0 * above.max(below)).min(1.0)
}

/// Location of values that are all known and whose number was fixed. `None` of nothing.
pub(crate) fn location(values: &[f64]) -> Option<(Located, Procedure)> {
    Sample { values, missing: 0, by_width: false }.location()
}

/// Two samples that are not paired, such as the values of runs before a change and after it, and how many comparisons share the error
/// probability.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TwoSamples<'a> {
    pub from: &'a [f64],
    pub to: &'a [f64],
    pub comparisons: u32,
}

impl TwoSamples<'_> {
    /// Whether there are orders enough for ranks to reach the corrected level. With fewer no difference, however large, would be one.
    fn by_ranks(&self) -> bool {
        let orders: f64 = (1..=self.from.len()).map(|i| (self.to.len() + i) as f64 / i as f64).product();
        orders >= MANN_WHITNEY_ORDERS_MIN * f64::from(self.comparisons.max(1)) * (1.0 - 1e-9)
    }

    /// Shift from the first to the second, with its interval at 1 - `alpha`. `None` when either is empty.
    pub(crate) fn shift(&self, alpha: f64) -> Option<(Located, Procedure)> {
        if self.by_ranks() {
            return Some((rank::mann_whitney(self.from, self.to, alpha)?, Procedure::MannWhitney));
        }
        let located = student::welch(self.from, self.to, alpha)?;
        Some((located, if located.ends.is_some() { Procedure::Welch } else { Procedure::Single }))
    }

    /// As [`Sample::p_zero`], of the shift.
    pub(crate) fn p_zero(&self) -> Option<f64> {
        self.tails(0.0).map(either_way)
    }

    /// As [`Sample::p_beyond`], of the shift.
    pub(crate) fn p_beyond(&self, margin: f64) -> Option<f64> {
        self.tails(margin).map(both_ways)
    }

    /// The one-sided p-values of the shifts -`margin`, against higher ones, and `margin`, against lower ones.
    fn tails(&self, margin: f64) -> Option<[f64; 2]> {
        let mirrored = Self { from: self.to, to: self.from, ..*self };
        Some([self.above(-margin)?, mirrored.above(-margin)?])
    }

    /// Probability of such a shift, or of a higher one, if the true one were `shift`.
    fn above(&self, shift: f64) -> Option<f64> {
        if self.by_ranks() {
            return Some(rank::mann_whitney_above(self.from, self.to, shift));
        }
        student::welch_above(self.from, self.to, shift)
    }
}

/// A figure found on logarithms, back on the scale of the values.
pub(crate) fn from_logs(located: Located, procedure: Procedure, n: usize, on: &str) -> Estimate {
    let ends = located.ends.map(|(low, high)| (low.exp(), high.exp()));
    described(Located { value: located.value.exp(), ends, level: located.level }, procedure, n, on)
}

fn described(located: Located, procedure: Procedure, n: usize, on: &str) -> Estimate {
    Estimate {
        value: located.value,
        low: located.ends.map(|e| e.0).filter(|low| low.is_finite()),
        high: located.ends.map(|e| e.1).filter(|high| high.is_finite()),
        level: located.level,
        n: n as u32,
        method: procedure.words(on),
    }
}

/// Estimate of one arm's values, one a block: on logarithms where all are above zero, on the values themselves
/// otherwise. Values that are not finite numbers are left out. `None` when nothing is left.
pub(crate) fn of_values(values: &[f64]) -> Option<Estimate> {
    let values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    // A single value is itself, and not what is left of it after a logarithm and back.
    if values.len() > 1 && values.iter().all(|&v| v > 0.0) {
        let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
        let (located, procedure) = location(&logs)?;
        return Some(from_logs(located, procedure, logs.len(), "logarithms"));
    }
    let (located, procedure) = location(&values)?;
    Some(described(located, procedure, values.len(), "values"))
}

/// Estimate of differences paired within blocks, which may be of either sign: on the values themselves. Values that are not finite
/// numbers are left out. `None` when nothing is left.
pub(crate) fn of_differences(values: &[f64]) -> Option<Estimate> {
    let values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    let (located, procedure) = location(&values)?;
    Some(described(located, procedure, values.len(), "differences within blocks"))
}

/// Median of one arm's values, one a trial, as published tables give it. From [`RANK_BLOCKS_MIN`] values on with the
/// exact interval of order statistics (the sign test turned round), which assumes nothing about how values spread; with
/// fewer there is no such interval of 95 %. Values that are not finite numbers are left out. `None` when nothing is left.
pub(crate) fn median(values: &[f64]) -> Option<Estimate> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let value = f64::midpoint(*sorted.get(n.checked_sub(1)? / 2)?, *sorted.get(n / 2)?);
    let ends = order_statistics(n)
        .and_then(|(rank, level)| Some((Some(*sorted.get(rank - 1)?), Some(*sorted.get(n - rank)?), level)));
    let method = if ends.is_some() { "median, exact interval of order statistics" } else { "median" };
    let (low, high, level) = ends.unwrap_or((None, None, 1.0 - ALPHA));
    Some(Estimate { value, low, high, level, n: n as u32, method: method.to_owned() })
}

/// The rank, from 1, of the order statistic from either end that bounds the median of `n` values at 95 %, and the level
/// that it attains; `None` where `n` is too small for one.
fn order_statistics(n: usize) -> Option<(usize, f64)> {
    let below = Binomial::new(0.5, n as u64).ok()?;
    // Both tails, exactly at the limit included.
    let error = |rank: usize| 2.0 * below.cdf(rank as u64 - 1);
    let rank = (1..=n / 2).take_while(|rank| error(*rank) <= ALPHA * (1.0 + 1e-9)).last()?;
    Some((rank, 1.0 - error(rank)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_values_never_break_an_estimate() {
        assert_eq!(of_values(&[]), None);
        assert_eq!(of_values(&[f64::NAN, f64::INFINITY]), None);
        assert_eq!(of_values(&[77.0]).unwrap().value.to_bits(), 77.0f64.to_bits(), "not through logarithms");
        let single = of_values(&[3.0, f64::NAN]).unwrap();
        assert!((single.value - 3.0).abs() < 1e-12 && single.low.is_none() && single.n == 1);
        let zeros = of_values(&[0.0; 7]).unwrap();
        assert_eq!((zeros.value, zeros.low, zeros.high), (0.0, Some(0.0), Some(0.0)));
        let mixed = of_values(&[-1.0, 0.0, 1.0, 2.0]).unwrap();
        assert!(mixed.low.unwrap() < mixed.value && mixed.value < mixed.high.unwrap());
        assert!(mixed.method.contains("values"));
        let tiny = of_values(&[1e-300, 1e300, 1.0]).unwrap();
        assert!(serde_json::to_string(&tiny).unwrap().parse::<f64>().is_err(), "it can be written");
        assert!(serde_json::from_str::<Estimate>(&serde_json::to_string(&tiny).unwrap()).is_ok(), "and read");
    }

    #[test]
    fn a_median_has_an_interval_from_six_values_on() {
        let of = |n: u32| median(&(1..=n).map(f64::from).collect::<Vec<_>>()).unwrap();
        assert_eq!((of(1).value, of(2).value, of(3).value, of(4).value), (1.0, 1.5, 2.0, 2.5));
        assert!((1..6).all(|n| of(n).low.is_none() && of(n).high.is_none()));
        // Tables of the sign test: 2/64 outside the extremes of 6; 20/512 outside the second of 9 from either end.
        let six = of(6);
        assert_eq!((six.low, six.high, six.n), (Some(1.0), Some(6.0), 6));
        assert!((six.level - (1.0 - 2.0 / 64.0)).abs() < 1e-12);
        let nine = of(9);
        assert_eq!((nine.value, nine.low, nine.high), (5.0, Some(2.0), Some(8.0)));
        assert!((nine.level - (1.0 - 20.0 / 512.0)).abs() < 1e-12);
        assert_eq!(of(1000).value, 500.5);
        assert_eq!(median(&[f64::NAN]), None);
        assert_eq!(median(&[3.0, f64::NAN, 1.0, 2.0]).unwrap().value, 2.0, "in whatever order");
    }

    #[test]
    fn the_size_of_the_samples_chooses_the_procedure() {
        let values: Vec<f64> = (1..=6).map(f64::from).collect();
        assert_eq!(location(&values[..5]).unwrap().1, Procedure::Student);
        assert_eq!(location(&values).unwrap().1, Procedure::SignedRank);
        // C(7, 3) = 35, C(8, 3) = 56.
        let shift = |m: usize, n: usize, comparisons| {
            TwoSamples { from: &values[..m], to: &values[..n], comparisons }.shift(ALPHA).unwrap()
        };
        assert_eq!(shift(3, 4, 1).1, Procedure::Welch);
        assert_eq!(shift(3, 5, 1).1, Procedure::MannWhitney);
        assert!(shift(3, 5, 1).0.ends.is_some());
        // C(10, 5) = 252 orders: the corrected level of 6 comparisons can be reached, that of 7 cannot.
        assert_eq!((shift(5, 5, 6).1, shift(5, 5, 7).1), (Procedure::MannWhitney, Procedure::Welch));
        assert_eq!((shift(1, 1, 1).1, shift(1, 1, 1).0.ends), (Procedure::Single, None));
    }

    #[test]
    fn p_values_of_a_shift_are_those_of_the_test_that_its_interval_inverts() {
        let (from, to) = ([0.1, 0.35, 0.2, 0.5, 0.27, 0.44], [0.4, 0.62, 0.75, 0.3, 0.9, 0.58]);
        for size in [2, 3, 4, 6] {
            let moved = |by: f64| to[..size].iter().map(|v| v - by).collect::<Vec<_>>();
            let two = |to: &[f64]| TwoSamples { from: &from[..size], to, comparisons: 1 }.p_zero().unwrap();
            let located = TwoSamples { from: &from[..size], to: &to[..size], comparisons: 1 }.shift(ALPHA).unwrap().0;
            let (low, high) = located.ends.unwrap();
            for (end, outwards) in [(low, -1.0), (high, 1.0)] {
                assert!(two(&moved(end + outwards * 1e-9)) <= ALPHA, "{size}: beyond {end}");
                assert!(two(&moved(end - outwards * 1e-9)) > ALPHA, "{size}: within {end}");
            }
            let breadth = low.abs().max(high.abs());
            let within = |margin| TwoSamples { from: &from[..size], to: &to[..size], comparisons: 1 }.p_beyond(margin);
            assert!(within(breadth + 1e-9).unwrap() <= ALPHA && within(breadth - 1e-9).unwrap() > ALPHA, "{size}");
        }
    }
}
