//! How long a server takes over an answer on purpose.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Span;

/// How long a server takes over an answer, from the last byte of the request on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ServiceTime {
    /// Always as long.
    Constant(Span),
    /// One of two times, at random.
    #[serde(rename_all = "kebab-case")]
    Bimodal {
        /// The usual one.
        fast: Span,
        /// The other one.
        slow: Span,
        /// How often it is the other one, 0 to 1.
        slow_share: f64,
    },
    /// Pareto's distribution: few answers take very long.
    Pareto {
        /// The shortest.
        least: Span,
        /// Longer ones take this long.
        most: Span,
        /// Its shape: the smaller, the more answers are long.
        shape: f64,
    },
    /// As long as `usual`, but nothing is answered in the last `lasts` of every `every`, from the first request on.
    Stall {
        /// Outside of stalls.
        usual: Span,
        /// From one stall's end to the next one's.
        every: Span,
        /// How long one lasts.
        lasts: Span,
    },
}

impl ServiceTime {
    /// When an answer leaves whose request came at `received_ns`, to a server whose first one came at `first_ns`; `random` is from 0 up to 1.
    pub fn answers_at(self, received_ns: u64, first_ns: u64, random: f64) -> u64 {
        let takes = match self {
            Self::Constant(time) | Self::Stall { usual: time, .. } => time.ns,
            Self::Bimodal { fast, slow, slow_share } => {
                if random < slow_share {
                    slow.ns
                } else {
                    fast.ns
                }
            }
            Self::Pareto { least, most, shape } => {
                // Its quantile function.
                ((least.ns as f64 * (1.0 - random).powf(-1.0 / shape)) as u64).min(most.ns)
            }
        };
        let at = received_ns.saturating_add(takes);
        let Self::Stall { every, lasts, .. } = self else { return at };
        let since = at.saturating_sub(first_ns) % every.ns.max(1);
        if since >= every.ns.saturating_sub(lasts.ns) { at + (every.ns - since) } else { at }
    }

    /// What is wrong with it, if something is.
    pub fn mistake(self) -> Option<&'static str> {
        match self {
            Self::Bimodal { slow_share, .. } if !(0.0..=1.0).contains(&slow_share) => {
                Some("`slow-share` is from 0 to 1")
            }
            Self::Pareto { shape, .. } if !(0.1..=100.0).contains(&shape) => Some("`shape` is from 0.1 to 100"),
            Self::Stall { every, lasts, .. } if lasts.ns >= every.ns => Some("a stall lasts less than `every`"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn answers_leave_by_the_law() {
        let ms = Span::from_millis;
        let constant = ServiceTime::Constant(ms(2));
        assert_eq!(constant.answers_at(10, 0, 0.5), 10 + 2 * MS);
        let bimodal = ServiceTime::Bimodal { fast: ms(1), slow: ms(20), slow_share: 0.05 };
        assert_eq!([0.049, 0.051].map(|random| bimodal.answers_at(0, 0, random)), [20 * MS, MS]);
        let pareto = ServiceTime::Pareto { least: ms(1), most: ms(50), shape: 1.0 };
        assert_eq!([0.0, 0.5, 0.999].map(|random| pareto.answers_at(0, 0, random)), [MS, 2 * MS, 50 * MS]);
        let stall = ServiceTime::Stall { usual: ms(1), every: ms(100), lasts: ms(10) };
        // A stall lasts from 90 to 100 ms after the first request, which came at 1 s.
        let answered = |after: u64| stall.answers_at((1000 + after) * MS, 1000 * MS, 0.0) / MS - 1000;
        assert_eq!([answered(0), answered(88), answered(89), answered(95), answered(99)], [1, 89, 100, 100, 100]);
        assert_eq!([answered(100), answered(190)], [101, 200]);
    }

    #[test]
    fn what_can_be_no_law_is_named() {
        let ms = Span::from_millis;
        assert_eq!(ServiceTime::Constant(ms(1)).mistake(), None);
        for (wrong, what) in [
            (ServiceTime::Bimodal { fast: ms(1), slow: ms(2), slow_share: 1.5 }, "slow-share"),
            (ServiceTime::Pareto { least: ms(1), most: ms(2), shape: 0.0 }, "shape"),
            (ServiceTime::Stall { usual: ms(1), every: ms(5), lasts: ms(5) }, "stall"),
        ] {
            assert!(wrong.mistake().is_some_and(|said| said.contains(what)), "{wrong:?}");
        }
    }
}
