//! Which request comes next: GET or SET, and of which key.

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, Zipf};

use super::protocol::Verb;
use super::spec::Popularity;
use crate::DriverError;
use crate::session::draw::{Dice, threshold};

/// What the connections of a driver have in common.
#[derive(Debug, Clone)]
pub(super) struct Mix {
    keys: u64,
    /// For [`Dice::happens`].
    gets: u64,
    ranks: Option<Zipf<f64>>,
    /// From one rank's key to the next one's. It has no divisor in common with the number of keys.
    step: u64,
}

impl Mix {
    /// So many keys, such a share of GETs, such a popularity.
    ///
    /// # Errors
    /// When share or exponent are none.
    pub fn new(keys: u64, get_share: f64, popularity: Popularity) -> Result<Self, DriverError> {
        let wrong = |what: String| DriverError::invalid(what, "use the agent that came with this tare");
        if !(0.0..=1.0).contains(&get_share) {
            return Err(wrong(format!("GETs have a share of {get_share}")));
        }
        let ranks = match popularity {
            Popularity::Uniform => None,
            Popularity::Zipf { exponent } => {
                let ranks = Zipf::new(keys as f64, exponent).ok().filter(|_| exponent.is_finite() && exponent > 0.0);
                Some(ranks.ok_or_else(|| wrong(format!("keys are popular by an exponent of {exponent}")))?)
            }
        };
        Ok(Self { keys, gets: threshold(get_share), ranks, step: step(keys) })
    }
}

/// A step that visits all keys: about the golden section of their number, so that neighbours in rank are far apart.
fn step(keys: u64) -> u64 {
    let golden = (keys as f64 * 0.618_033_988_749_895) as u64;
    (golden.max(1)..).find(|step| divisor(*step, keys) == 1).unwrap_or(1)
}

const fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The choices of one connection.
#[derive(Debug, Clone)]
pub(super) struct Chooser {
    mix: Mix,
    dice: Dice,
    ranked: Xoshiro256PlusPlus,
}

impl Chooser {
    /// Those of a connection in a drive with this seed.
    pub fn new(mix: &Mix, seed: u64, connection: u32) -> Self {
        let mut dice = Dice::new(seed, connection.into());
        let ranked = Xoshiro256PlusPlus::seed_from_u64(dice.draw());
        Self { mix: mix.clone(), dice, ranked }
    }

    /// The next request, with the number of its key.
    #[inline]
    pub fn next(&mut self) -> (Verb, u64) {
        let Self { mix, dice, ranked } = self;
        let verb = if dice.happens(mix.gets) { Verb::Get } else { Verb::Set };
        let number = match &mix.ranks {
            None => ((u128::from(dice.draw()) * u128::from(mix.keys)) >> 64) as u64,
            Some(ranks) => {
                let rank = (ranks.sample(ranked) as u64).clamp(1, mix.keys) - 1;
                (u128::from(rank) * u128::from(mix.step) % u128::from(mix.keys)) as u64
            }
        };
        (verb, number)
    }
}

#[cfg(test)]
#[path = "../tests/choice.rs"]
mod tests;
