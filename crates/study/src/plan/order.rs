//! The order of trials.
//!
//! In each block the cases come in random order, and in each case all arms one after another in random order.
//! Arms of a case are neighbours in time because they are compared in pairs: what drifts slowly is then common to
//! both and cancels, and what a trial leaves behind hits every arm equally often over the blocks.
//!
//! Cases that are offered a share of what other cases find come after all blocks of these, in blocks of their own: the load is a
//! median over the others' blocks.

use tare_model::plan::PlannedTrial;
use tare_model::study::{CaseLoad, Study};

/// Every trial, in order. Depends on the study alone.
pub(super) fn order(study: &Study) -> Vec<PlannedTrial> {
    let mut random = SplitMix64(study.seed);
    let mut trials = Vec::new();
    let passes = [false, true].into_iter().flat_map(|waits| (0..study.blocks).map(move |block| (waits, block)));
    for (waits, block) in passes {
        let mut cases: Vec<_> =
            study.cases.iter().filter(|case| matches!(case.load, CaseLoad::ShareOf { .. }) == waits).collect();
        random.shuffle(&mut cases);
        for case in cases {
            let mut arms: Vec<_> = study.arms.iter().collect();
            random.shuffle(&mut arms);
            for arm in arms {
                // The plan refuses a million trials and more.
                let index = u32::try_from(trials.len()).unwrap_or(u32::MAX);
                trials.push(PlannedTrial { index, block, case: case.id.clone(), arm: arm.id.clone() });
            }
        }
    }
    trials
}

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014; constants of
/// Vigna's public-domain splitmix64.c). Written out so that no update of a library ever reorders a study.
struct SplitMix64(u64);

impl SplitMix64 {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound` (not 0), each equally likely: numbers from the incomplete last run of `bound` are drawn again.
    const fn below(&mut self, bound: u64) -> u64 {
        let whole_runs = u64::MAX - u64::MAX % bound;
        loop {
            let drawn = self.next();
            if drawn < whole_runs {
                return drawn % bound;
            }
        }
    }

    /// Fisher-Yates, from the last place down.
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let chosen = self.below(last as u64 + 1);
            // `chosen` is at most `last`, so it fits.
            items.swap(last, usize::try_from(chosen).unwrap_or(last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        // First outputs of splitmix64.c for the seed 1234567, as listed by Rosetta Code.
        let mut random = SplitMix64(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.next()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
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
