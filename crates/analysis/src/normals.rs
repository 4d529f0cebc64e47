//! Standard normal numbers for simulations whose results are figures of a report.
//!
//! They are written out so that no update of a library changes a figure, and so that whoever recomputes a figure draws the same
//! (docs/reference/verify.md).

use std::f64::consts::TAU;

use tare_model::random::SplitMix64;

/// 2^-53: what lies between neighbouring numbers of [`Normals::draw`]'s uniform ones.
const ULP: f64 = 1.0 / (1_u64 << 53) as f64;

/// Standard normal numbers: of each two numbers of SplitMix64 the cosine of Box and Muller ("A note on the generation of random normal
/// deviates", 1958).
pub(crate) struct Normals(SplitMix64);

impl Normals {
    /// From a seed.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(SplitMix64(seed))
    }

    /// The next number.
    pub(crate) fn draw(&mut self) -> f64 {
        // The first 53 bits of each: from 0 to 1, of which the first number leaves out 0 and the second 1.
        let mut bits = || (self.0.draw() >> 11) as f64;
        let (radius, angle) = ((bits() + 1.0) * ULP, bits() * ULP);
        (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_normal_distribution() {
        const COUNT: usize = 200_000;
        let mut normals = Normals::new(7);
        let drawn: Vec<f64> = (0..COUNT).map(|_| normals.draw()).collect();
        let moment = |power: i32| drawn.iter().map(|x| x.powi(power)).sum::<f64>() / COUNT as f64;
        // Standard errors: 0.0022, 0.0032, 0.0087, 0.022.
        for (power, expected, within) in [(1, 0.0, 0.01), (2, 1.0, 0.015), (3, 0.0, 0.04), (4, 3.0, 0.1)] {
            assert!((moment(power) - expected).abs() < within, "moment {power}: {}", moment(power));
        }
    }

    #[test]
    fn the_first_numbers_are_those_that_another_program_draws() {
        // By the second path, crates/tare/recompute/tare_recompute/power.py: `normals(1234567, 2)`.
        const FIRST: [f64; 2] = [0.668_741_847_475_911_7, 0.007_002_816_605_280_716];
        let mut normals = Normals::new(1_234_567);
        let first = [normals.draw(), normals.draw()];
        assert!((first[0] - FIRST[0]).abs() < 1e-12 && (first[1] - FIRST[1]).abs() < 1e-12, "{first:?}");
    }
}
