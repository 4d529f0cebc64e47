//! How much of the spread of a block's log ratio comes from its instances, and how much from what changes from turn to turn.

use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use crate::student;

/// What two arms did in one round of turns: of each a sum and what it is divided by, such as operations and seconds.
pub(crate) type Round = [(f64, f64); 2];

/// Blocks below which nothing is said.
pub(crate) const BLOCKS_MIN: usize = 6;
/// Rounds of a block below which nothing is said.
const ROUNDS_MIN: usize = 16;
/// Most batches that the rounds of a block are pooled into.
const BATCHES_MAX: usize = 32;
/// Error probability of seeing a spread of instances where there is none.
const SEEN_ALPHA: f64 = 0.05;

/// The components.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Components {
    /// Variance that a fresh instance adds to a block's log ratio, never below 0.
    pub instances: f64,
    /// Variance that turns leave in a block's log ratio: that of one round over the number of rounds, where rounds are independent.
    pub turns: f64,
    /// Whether blocks spread more than turns explain.
    pub seen: bool,
}

impl Components {
    /// Variance of a block's log ratio, its steady state made so many times as long.
    pub(crate) fn of_block(&self, longer: f64) -> f64 {
        self.instances + self.turns / longer
    }
}

/// The components of blocks; `None` of too few blocks or rounds, and where an arm did nothing in a batch of rounds.
///
/// Neighbouring rounds see the same host, so their log ratios are not independent. The rounds of a block are therefore pooled in batches,
/// as long as they are many (their number is the root of the rounds), and the variance of a block's mean is that of
/// its batches over their number (batch means; Law and Kelton). The variance between blocks less that is the instances'.
pub(crate) fn components(blocks: &[Vec<Round>]) -> Option<Components> {
    if blocks.len() < BLOCKS_MIN || blocks.iter().any(|rounds| rounds.len() < ROUNDS_MIN) {
        return None;
    }
    let logs: Option<Vec<f64>> = blocks.iter().map(|rounds| log_ratio(rounds)).collect();
    let within: Option<Vec<(f64, f64)>> = blocks.iter().map(|rounds| within(rounds)).collect();
    let (logs, within) = (logs?, within?);
    let between = student::deviation(&logs)?.powi(2);
    let turns = student::mean(&within.iter().map(|own| own.0).collect::<Vec<f64>>())?;
    let freedom: f64 = within.iter().map(|own| own.1).sum();
    let seen = if turns > 0.0 {
        let f = FisherSnedecor::new((logs.len() - 1) as f64, freedom).ok()?;
        f.sf(between / turns) < SEEN_ALPHA
    } else {
        between > 0.0
    };
    Some(Components { instances: (between - turns).max(0.0), turns, seen })
}

/// The log ratio of what both arms did in all these rounds.
pub(crate) fn log_ratio(rounds: &[Round]) -> Option<f64> {
    let of = |arm: usize| {
        let (sum, over) = rounds.iter().fold((0.0, 0.0), |all, own| (all.0 + own[arm].0, all.1 + own[arm].1));
        sum / over
    };
    let log = (of(0) / of(1)).ln();
    log.is_finite().then_some(log)
}

/// Variance of a block's log ratio from its own rounds, and its degrees of freedom.
fn within(rounds: &[Round]) -> Option<(f64, f64)> {
    let batches = (rounds.len() as f64).sqrt() as usize;
    let size = rounds.len().div_ceil(batches.clamp(1, BATCHES_MAX));
    // What is left over at the end would be a batch of less weight.
    let logs: Option<Vec<f64>> = rounds.chunks_exact(size).map(log_ratio).collect();
    let logs = logs?;
    // The rounds that were left over are part of the block's mean.
    let whole = logs.len() as f64 * size as f64 / rounds.len() as f64;
    Some((student::deviation(&logs)?.powi(2) / logs.len() as f64 * whole, logs.len() as f64 - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::random::SplitMix64;

    /// Blocks of two equal arms whose instances and rounds spread by so much; `kept` of a round's deviation passes on to the next.
    fn blocks(seed: u64, count: usize, rounds: usize, (instances, turns, kept): (f64, f64, f64)) -> Vec<Vec<Round>> {
        let mut random = SplitMix64(seed);
        // Twelve uniform numbers add up to a variance of 1.
        let mut normal = move || (0..12).map(|_| random.below(1 << 32) as f64 / (1u64 << 32) as f64).sum::<f64>() - 6.0;
        let block = |_| {
            let (of_instance, mut deviation) = (instances * normal(), turns * normal());
            let round = |_| {
                deviation = kept * deviation + (1.0 - kept * kept).sqrt() * turns * normal();
                // The host slows both alike, by far more than what is between them.
                let host = 1000.0 * (1.0 + 0.3 * normal()).abs().max(0.2);
                [(host * (of_instance + deviation).exp(), 0.02), (host, 0.02)]
            };
            (0..rounds).map(round).collect()
        };
        (0..count).map(block).collect()
    }

    /// Mean of what is found over many runs of known components.
    fn mean_of(count: usize, rounds: usize, known: (f64, f64, f64)) -> (f64, f64, f64) {
        let runs = 200;
        let found: Vec<_> =
            (0..runs).map(|seed| components(&blocks(seed, count, rounds, known)).expect("components")).collect();
        let mean = |of: &dyn Fn(&Components) -> f64| found.iter().map(of).sum::<f64>() / runs as f64;
        (mean(&|own| own.instances), mean(&|own| own.turns), mean(&|own| f64::from(u8::from(own.seen))))
    }

    #[test]
    fn known_components_are_found_again() {
        let (instances, turns, seen) = mean_of(12, 400, (0.03, 0.2, 0.0));
        assert!((instances / 0.03f64.powi(2) - 1.0).abs() < 0.1, "{instances}");
        assert!((turns / (0.2f64.powi(2) / 400.0) - 1.0).abs() < 0.25, "{turns}");
        assert!(seen > 0.99, "{seen}");
    }

    #[test]
    fn rounds_that_resemble_their_neighbours_do_not_count_as_independent() {
        // An autoregressive series leaves (1 + kept) / (1 - kept) = 4 times as much in its mean.
        let (_, turns, seen) = mean_of(8, 900, (0.0, 0.1, 0.6));
        let truth = 0.1f64.powi(2) / 900.0 * 4.0;
        assert!((0.75..1.25).contains(&(turns / truth)), "{}", turns / truth);
        assert!(seen < 0.12, "a spread of instances that is not there is seen in {seen}");
    }

    #[test]
    fn turns_alone_are_not_taken_for_instances() {
        let (instances, turns, seen) = mean_of(6, 100, (0.0, 0.1, 0.0));
        assert!(instances < 0.5 * turns, "{instances} of {turns}");
        assert!(seen < 0.12, "{seen}");
    }

    #[test]
    fn too_little_says_nothing() {
        assert_eq!(components(&blocks(1, 5, 400, (0.1, 0.1, 0.0))), None);
        assert_eq!(components(&blocks(1, 6, 15, (0.1, 0.1, 0.0))), None);
        let mut silent = blocks(1, 6, 16, (0.1, 0.1, 0.0));
        silent[3].iter_mut().for_each(|round| round[0].0 = 0.0);
        assert_eq!(components(&silent), None);
        let constant = vec![vec![[(2.0, 1.0), (1.0, 1.0)]; 16]; 6];
        assert_eq!(components(&constant), Some(Components { instances: 0.0, turns: 0.0, seen: false }));
    }
}
