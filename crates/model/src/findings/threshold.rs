//! What the instances of an arm hold, as a distribution.

use serde::{Deserialize, Serialize};

use super::Estimate;

/// What the instances of one arm hold: a distribution that is fitted to every try of all blocks. An instance is one try of a search, or
/// one scale-up; it holds every load (every number of guests) up to a threshold of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Thresholds {
    /// The load that half of the instances hold; `n` is the number of blocks. Of guests it is a whole number.
    pub half: Estimate,
    /// The load that 95 of 100 instances hold, with its lower bound of 95 %.
    pub most: Estimate,
    /// Standard deviation of the logarithms of what instances hold: 0.05 is 5 %.
    pub spread: f64,
    /// Instances.
    pub tries: u32,
    /// Every load that was tried held: `half` is the largest of them, and a lower bound.
    pub all_held: bool,
    /// No load that was tried held: `half` is zero.
    pub none_held: bool,
    /// (load, the chance that an instance holds it), for drawing.
    pub curve: Vec<(f64, f64)>,
    /// Beside the baseline, of an arm that is not the baseline.
    pub against: Option<ThresholdRatio>,
}

/// What half of an arm's instances hold, over what half of the baseline's hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThresholdRatio {
    /// The ratio; an end that nothing bounds is absent.
    pub ratio: Estimate,
    /// Two-sided probability of what was seen where the ratio is one. 1 with fewer than two blocks.
    pub p: f64,
}
