//! A count of failures out of many cases, and whether it keeps to a stated rate.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Beta, Binomial, ContinuousCDF, DiscreteCDF};

/// Level of the intervals.
const LEVEL: f64 = 0.95;
/// A count is too bad for a rate if one as bad comes up less often than this at that rate.
const TOO_BAD: f64 = 0.01;
/// A rate is excluded if a count as good comes up less often than this at that rate.
const EXCLUDED: f64 = 0.05;
/// No rate below this need be excluded.
const LEAST_EXCLUDED: f64 = 0.05;

/// Failures among cases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Cases that failed.
    pub failed: u64,
    /// All cases.
    pub of: u64,
}

/// Whether failures keep to a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// They are no more than that rate, and twice that rate, or 5 of 100 if that is more, is excluded.
    Met,
    /// A count as bad or worse comes up in less than 1 of 100 at that rate.
    NotMet,
    /// There were too few cases to say.
    Open,
}

impl Share {
    /// One case more.
    pub const fn add(&mut self, failed: bool) {
        self.of += 1;
        self.failed += failed as u64;
    }

    /// The exact interval of the rate, 0 to 1, at 95 % (Clopper and Pearson, Biometrika 1934).
    pub fn interval(self) -> (f64, f64) {
        let (failed, passed) = (self.failed as f64, self.of.saturating_sub(self.failed) as f64);
        let tail = (1.0 - LEVEL) / 2.0;
        let quantile = |a: f64, b: f64, p: f64| Beta::new(a, b).map_or(f64::NAN, |beta| beta.inverse_cdf(p));
        let low = if failed == 0.0 { 0.0 } else { quantile(failed, passed + 1.0, tail) };
        let high = if passed == 0.0 { 1.0 } else { quantile(failed + 1.0, passed, 1.0 - tail) };
        (low, high)
    }

    /// Whether the failures keep to a rate of `allowed`, 0 to 1.
    pub fn keeps(self, allowed: f64) -> Kept {
        let chance = |rate: f64| Binomial::new(rate, self.of).ok();
        // Of as many or more.
        let as_bad = match self.failed {
            0 => 1.0,
            failed => chance(allowed).map_or(0.0, |binomial| binomial.sf(failed - 1)),
        };
        if as_bad < TOO_BAD {
            return Kept::NotMet;
        }
        let excluded = (2.0 * allowed).clamp(LEAST_EXCLUDED, 1.0);
        let as_good = chance(excluded).map_or(1.0, |binomial| binomial.cdf(self.failed));
        let no_more = self.failed as f64 <= allowed * self.of as f64;
        if no_more && as_good < EXCLUDED { Kept::Met } else { Kept::Open }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_tables() {
        let close = |share: Share, low: f64, high: f64| {
            let seen = share.interval();
            assert!((seen.0 - low).abs() < 5e-5 && (seen.1 - high).abs() < 5e-5, "{share:?}: {seen:?}");
        };
        // R: binom.test(5, 100)$conf.int and so on.
        close(Share { failed: 5, of: 100 }, 0.0164, 0.1128);
        close(Share { failed: 0, of: 20 }, 0.0, 0.1684);
        close(Share { failed: 20, of: 20 }, 0.8316, 1.0);
        close(Share { failed: 17, of: 400 }, 0.02495, 0.06718);
    }

    #[test]
    fn few_cases_say_nothing_and_many_do() {
        let keeps = |failed, of, allowed| Share { failed, of }.keeps(allowed);
        assert_eq!(keeps(0, 0, 0.05), Kept::Open);
        assert_eq!(keeps(0, 28, 0.05), Kept::Open);
        assert_eq!(keeps(0, 29, 0.05), Kept::Met);
        assert_eq!(
            [keeps(17, 400, 0.05), keeps(20, 400, 0.05), keeps(40, 400, 0.05)],
            [Kept::Met, Kept::Met, Kept::NotMet]
        );
        assert_eq!(keeps(25, 400, 0.05), Kept::Open, "more than stated, and not too bad for it");
        assert_eq!([keeps(0, 58, 0.0), keeps(0, 59, 0.0), keeps(1, 1000, 0.0)], [Kept::Open, Kept::Met, Kept::NotMet]);
        assert_eq!([keeps(2, 10, 0.2), keeps(5, 100, 0.2), keeps(40, 100, 0.2)], [Kept::Open, Kept::Met, Kept::NotMet]);
    }

    #[test]
    fn a_case_is_counted_once() {
        let mut share = Share::default();
        [true, false, false].into_iter().for_each(|failed| share.add(failed));
        assert_eq!(share, Share { failed: 1, of: 3 });
    }
}
