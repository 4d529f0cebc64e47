//! Arrivals of an open loop, fixed by the seed before anything is sent.

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, Exp1};

use crate::load::{Arrivals, Phases};

/// The moments at which operations shall start, in order, from the start of the run to the end of its load: nanoseconds after its start.
///
/// The rate is the full one in all phases but the ramp-up, in which it grows linearly from nothing.
/// Arrivals are a process of rate one on an axis of expected counts, carried over to the clock by the
/// inverse of the cumulative rate (Cinlar's inversion method for non-stationary processes). The
/// generator is xoshiro256++, whose sequence is the same in every version and on every machine.
#[derive(Debug, Clone)]
pub struct ArrivalTimes {
    rng: Xoshiro256PlusPlus,
    arrivals: Arrivals,
    rate: f64,
    warm_s: f64,
    ramp_s: f64,
    total_ns: u64,
    /// Where on the axis of expected counts the last arrival was.
    position: f64,
}

impl ArrivalTimes {
    /// Arrivals at `rate` a second over `phases`.
    pub fn new(rate: f64, arrivals: Arrivals, phases: &Phases, seed: u64) -> Self {
        Self {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            arrivals,
            rate,
            warm_s: phases.warm_up.as_secs_f64(),
            ramp_s: phases.ramp_up.as_secs_f64(),
            total_ns: phases.total().ns,
            // Equal gaps start half a gap in, so that no arrival falls on a phase's first instant.
            position: match arrivals {
                Arrivals::Poisson => 0.0,
                Arrivals::Uniform => -0.5,
            },
        }
    }

    /// Seconds from the start at which `count` arrivals are expected.
    fn seconds_of(&self, count: f64) -> f64 {
        let full = count / self.rate;
        if full < self.warm_s || self.ramp_s == 0.0 {
            full
        } else if full < self.warm_s + self.ramp_s / 2.0 {
            self.warm_s + (2.0 * self.ramp_s * (full - self.warm_s)).sqrt()
        } else {
            full + self.ramp_s / 2.0
        }
    }
}

impl Iterator for ArrivalTimes {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.position += match self.arrivals {
            Arrivals::Poisson => Distribution::<f64>::sample(&Exp1, &mut self.rng),
            Arrivals::Uniform => 1.0,
        };
        let offset = self.seconds_of(self.position) * 1e9;
        (offset < self.total_ns as f64).then_some(offset as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;

    fn phases(warm_s: u64, ramp_s: u64, steady_s: u64) -> Phases {
        Phases {
            warm_up: Span::from_secs(warm_s),
            ramp_up: Span::from_secs(ramp_s),
            steady_state: Span::from_secs(steady_s),
            ramp_down: Span::ZERO,
        }
    }

    #[test]
    fn equal_gaps_are_equal() {
        let at: Vec<u64> = ArrivalTimes::new(1000.0, Arrivals::Uniform, &phases(0, 0, 2), 1).collect();
        assert_eq!(at.len(), 2000);
        assert_eq!(at[0], 500_000);
        assert!(at.windows(2).all(|w| (w[1] - w[0]).abs_diff(1_000_000) <= 1));
    }

    #[test]
    fn poisson_gaps_have_the_rate_and_spread_of_an_exponential() {
        let at: Vec<u64> = ArrivalTimes::new(1000.0, Arrivals::Poisson, &phases(0, 0, 100), 42).collect();
        let gaps: Vec<f64> = at.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e9).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // 100,000 gaps: the mean's standard error is 0.3 %, that of the spread about 0.5 %.
        assert!((mean * 1000.0 - 1.0).abs() < 0.015, "mean gap {mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "spread {}", variance.sqrt() / mean);
    }

    #[test]
    fn the_rate_grows_over_the_ramp() {
        let at: Vec<u64> = ArrivalTimes::new(1000.0, Arrivals::Uniform, &phases(1, 4, 1), 1).collect();
        let in_second = |s: u64| at.iter().filter(|&&t| t / 1_000_000_000 == s).count();
        // The integral of a line from 0 to 1000/s over 4 s: 125, 375, 625, 875.
        for (second, expected) in [(0, 1000), (1, 125), (2, 375), (3, 625), (4, 875), (5, 1000)] {
            assert!(in_second(second).abs_diff(expected) <= 1, "second {second}: {}", in_second(second));
        }
    }
}
