//! The generator of everything that a plan draws.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014; constants of
/// Vigna's public-domain splitmix64.c). Written out so that no update of a library ever reorders a study.
#[derive(Debug, Clone)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// The next number.
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound` (not 0), each equally likely: numbers from the incomplete last run of `bound` are drawn again.
    pub const fn below(&mut self, bound: u64) -> u64 {
        let whole_runs = u64::MAX - u64::MAX % bound;
        loop {
            let drawn = self.draw();
            if drawn < whole_runs {
                return drawn % bound;
            }
        }
    }

    /// Fisher-Yates, from the last place down.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let chosen = self.below(last as u64 + 1);
            // `chosen` is at most `last`, so it fits.
            items.swap(last, usize::try_from(chosen).unwrap_or(last));
        }
    }
}

/// Orders of the numbers from 0, in pairs: one at random, then the same backwards. Over each pair every number stands before every
/// other one once, and the places of each add up to the same: who goes first, and what drifts steadily, favours nobody.
#[derive(Debug, Clone)]
pub struct MirroredOrders {
    random: SplitMix64,
    order: Vec<usize>,
    mirrors: bool,
}

impl MirroredOrders {
    /// Of `count` numbers, drawn from a seed.
    pub fn new(count: usize, seed: u64) -> Self {
        Self { random: SplitMix64(seed), order: (0..count).collect(), mirrors: false }
    }

    /// The next order.
    pub fn draw(&mut self) -> &[usize] {
        if self.mirrors {
            self.order.reverse();
        } else {
            self.random.shuffle(&mut self.order);
        }
        self.mirrors = !self.mirrors;
        &self.order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        // First outputs of splitmix64.c for the seed 1234567, as listed by Rosetta Code.
        let mut random = SplitMix64(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.draw()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn each_stands_before_each_other_one_as_often_as_behind_it() {
        let mut orders = MirroredOrders::new(4, 3);
        let drawn: Vec<Vec<usize>> = (0..20).map(|_| orders.draw().to_vec()).collect();
        let place = |order: &Vec<usize>, of: usize| order.iter().position(|&number| number == of).unwrap();
        for one in 0..4 {
            assert_eq!(drawn.iter().map(|order| place(order, one)).sum::<usize>(), 30);
            for other in (0..4).filter(|&other| other != one) {
                assert_eq!(drawn.iter().filter(|order| place(order, one) < place(order, other)).count(), 10);
            }
        }
        assert!(drawn.iter().collect::<std::collections::BTreeSet<_>>().len() > 6, "at random: {drawn:?}");
    }

    #[test]
    fn every_order_of_three_is_equally_likely() {
        let mut random = SplitMix64(7);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            let mut items = [0, 1, 2];
            random.shuffle(&mut items);
            *seen.entry(items).or_insert(0_u32) += 1;
        }
        assert_eq!(seen.len(), 6);
        // Six cells of 1000 expected; beyond 20.5 the chi-squared test with 5 degrees of freedom rejects at 0.1 %.
        let chi_squared: f64 = seen.values().map(|&n| (f64::from(n) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi_squared < 20.5, "{seen:?}");
    }
}
