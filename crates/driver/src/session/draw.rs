//! Chance: numbers at random in 8 bytes a user, and choices in constant time.

/// Increment and finaliser of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Maps all numbers of 64 bits one to one onto each other, so that neighbours look unlike.
pub(crate) const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Random numbers of one user: SplitMix64, whose whole state is one number. A generator with a longer period would be most of
/// what is kept of a user, of whom there are tens of thousands, and each draws some hundred numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Those of the user with this number in the run with this seed.
    pub const fn new(seed: u64, number: u64) -> Self {
        Self(mix(mix(seed).wrapping_add(number.wrapping_mul(GAMMA))))
    }

    #[inline]
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// From 0 to below `bound`, which is above 0; off by at most `bound` in 2^64.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u32
    }

    /// Above 0, at most 1, in steps of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.draw() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// True with the probability that [`threshold`] was given.
    #[inline]
    pub const fn happens(&mut self, threshold: u64) -> bool {
        self.draw() >> 32 < threshold
    }
}

/// A probability as [`Dice::happens`] wants it.
pub(crate) fn threshold(probability: f64) -> u64 {
    (probability * (1u64 << 32) as f64).round() as u64
}

/// One of many by their weights in constant time: the method of aliases (Walker 1977, tables by Vose 1991). Probabilities are held
/// to 2^-32.
#[derive(Debug, Clone, Default)]
pub(crate) struct Aliases(Box<[Cell]>);

#[derive(Debug, Clone, Copy)]
struct Cell {
    /// Of 2^32, how often this cell itself is chosen once it was hit.
    own: u32,
    /// The one chosen else.
    other: u32,
}

impl Aliases {
    /// Of weights that are not negative and not all 0.
    pub fn new(weights: &[f64]) -> Self {
        let sum: f64 = weights.iter().sum();
        let mut scaled: Vec<f64> = weights.iter().map(|weight| weight * weights.len() as f64 / sum).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..scaled.len()).partition(|&at| scaled[at] < 1.0);
        // Whatever rounding leaves over has itself as alias, so that its own share does not matter.
        let mut cells: Vec<Cell> = (0..scaled.len()).map(|at| Cell { own: u32::MAX, other: at as u32 }).collect();
        while let (Some(&from), Some(to)) = (large.last(), small.pop()) {
            let own = (scaled[to] * (1u64 << 32) as f64).round().min(f64::from(u32::MAX)) as u32;
            cells[to] = Cell { own, other: from as u32 };
            scaled[from] -= 1.0 - scaled[to];
            if scaled[from] < 1.0 {
                large.pop();
                small.push(from);
            }
        }
        Self(cells.into_boxed_slice())
    }

    /// The index of one of the weights.
    #[inline]
    pub fn choose(&self, dice: &mut Dice) -> usize {
        let drawn = dice.draw();
        let at = (((drawn >> 32) * self.0.len() as u64) >> 32) as usize;
        let cell = self.0[at];
        if (drawn as u32) < cell.own { at } else { cell.other as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_chosen_as_often_as_its_weight_says() {
        for weights in
            [vec![1.0], vec![0.32, 0.32, 0.08, 0.08, 0.2], vec![5.0, 0.0, 1.0], (1..=40).map(f64::from).collect()]
        {
            let aliases = Aliases::new(&weights);
            let mut dice = Dice::new(7, weights.len() as u64);
            let mut counts = vec![0u32; weights.len()];
            let draws = 400_000;
            for _ in 0..draws {
                counts[aliases.choose(&mut dice)] += 1;
            }
            let sum: f64 = weights.iter().sum();
            for (weight, count) in weights.iter().zip(&counts) {
                let (p, n) = (weight / sum, f64::from(draws));
                let off = (f64::from(*count) - p * n).abs();
                // Five standard deviations of a binomial count.
                assert!(off <= 5.0 * (n * p * (1.0 - p)).sqrt(), "{weights:?}: {counts:?}");
            }
        }
    }

    #[test]
    fn numbers_are_spread_evenly_and_users_draw_their_own() {
        let mut dice = Dice::new(1, 2);
        let mut tenths = [0u32; 10];
        let mut sum = 0.0;
        for _ in 0..100_000 {
            tenths[dice.below(10) as usize] += 1;
            let unit = dice.unit();
            assert!(unit > 0.0 && unit <= 1.0);
            sum += unit;
        }
        assert!(tenths.iter().all(|&n| n.abs_diff(10_000) < 500), "{tenths:?}");
        assert!((sum / 100_000.0 - 0.5).abs() < 0.005, "{sum}");
        let firsts: std::collections::BTreeSet<u64> =
            (0..1_000).flat_map(|n| [Dice::new(1, n).draw(), Dice::new(2, n).draw()]).collect();
        assert_eq!(firsts.len(), 2_000);
    }

    #[test]
    fn what_is_certain_happens_always_and_what_is_impossible_never() {
        let mut dice = Dice::new(3, 4);
        assert!((0..1_000).all(|_| dice.happens(threshold(1.0)) && !dice.happens(threshold(0.0))));
        let half = (0..10_000).filter(|_| dice.happens(threshold(0.5))).count();
        assert!(half.abs_diff(5_000) < 300, "{half}");
    }
}
