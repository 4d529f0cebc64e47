//! An arm against the baseline, and what may be said of the two.

use serde::{Deserialize, Serialize};

use super::Estimate;

/// An arm against the baseline, paired within blocks, or runs against runs. It holds all that its verdict follows from, and its verdict.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Case id; `None` where the figure is one over all cases.
    pub case: Option<String>,
    /// Metric id.
    pub metric: String,
    /// Arm id.
    pub arm: String,
    /// Baseline arm id.
    pub baseline: String,
    /// The arm's value over the baseline's. Where blocks are missing, the interval holds whatever their values were.
    pub ratio: Estimate,
    /// (block, ratio).
    pub blocks: Vec<(u32, f64)>,
    /// Where runs were compared: the values of each side, which are not paired. Counts of blocks are then of runs, and there are no blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<RunValues>,
    /// Blocks that the case was to take.
    pub planned: u32,
    /// Blocks that ran and have no ratio, because a trial of either arm failed or does not have the metric. They count as the worst that
    /// they may have been.
    pub missing: u32,
    /// The smallest relative difference (0.015 is 1.5 %) that 80 of 100 studies of this many blocks of this spread detect by the rule of
    /// the verdict; never below the floor. `None` where no such difference exists.
    pub detectable: Option<f64>,
    /// The noise floor: the relative difference of the baseline's second run to its first, estimated over as many
    /// blocks as the arm's own; `None` without an A/A arm.
    pub floor: Option<f64>,
    /// Interval of the ratio of the baseline's second run to its first.
    pub floor_interval: Option<(f64, f64)>,
    /// Probability of a ratio so far from 1, either way, if the arms were equal.
    pub p_equal: Option<f64>,
    /// The same of a ratio so far within the margin, if the arms differed by the margin.
    pub p_margin: Option<f64>,
    /// The relative difference up to which the study calls arms equivalent.
    pub margin: Option<f64>,
    /// Blocks in which the driver was at its limit.
    pub driver_limited: DriverLimited,
    /// What it is to the study.
    pub standing: Standing,
    /// Why there is no verdict, where there is none.
    pub withheld: Option<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// The verdict in words.
    pub sentence: String,
}

impl Comparison {
    /// Both ends of the interval of the ratio; `None` without an interval.
    pub fn ends(&self) -> Option<(f64, f64)> {
        self.ratio.low.zip(self.ratio.high)
    }

    /// Whether the interval excludes equality.
    pub fn excludes_equality(&self) -> bool {
        self.ends().is_some_and(|(low, high)| low > 1.0 || high < 1.0)
    }
}

/// A value of each run, by side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunValues {
    /// Of the side that the ratio is against.
    pub baseline: Vec<f64>,
    /// Of the other side.
    pub arm: Vec<f64>,
}

/// Blocks in which the driver's CPUs were busy all the time, so that it may be what was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverLimited {
    /// With the arm.
    pub arm: u32,
    /// With the baseline.
    pub baseline: u32,
}

/// The blocks of an arm in the primary metric, where they fall into two groups with nothing in between: an estimate between them is the
/// figure of no block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmGroups {
    /// Arm id.
    pub arm: String,
    /// Blocks with the lower values, from 1, and the median of these.
    pub low: (Vec<u32>, f64),
    /// Blocks with the higher values, and the median of these.
    pub high: (Vec<u32>, f64),
}

/// A block that does not count, because a spare one replaces it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplacedBlock {
    /// Block of the study, from 1.
    pub block: u32,
    /// What disturbed it from outside the arms.
    pub why: String,
}

/// The ratio over all blocks, those that do not count included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OverAll {
    /// Arm id.
    pub arm: String,
    /// Of the primary metric, to the baseline.
    pub ratio: Estimate,
}

/// What a comparison is to its study.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It answers the study: an arm in the primary metric of a case.
    Primary {
        /// How many such comparisons the study has: probabilities are corrected for their number by Holm's method.
        of: u32,
        /// [`Comparison::p_equal`], corrected.
        p_equal: Option<f64>,
        /// [`Comparison::p_margin`], corrected.
        p_margin: Option<f64>,
    },
    /// It is of another metric. A difference in it is a lead for another study.
    #[default]
    Lead,
    /// It is the baseline against itself.
    Replica,
}

/// What may be said of a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The arm does better than the baseline, beyond the floor.
    Better,
    /// The arm does worse than the baseline, beyond the floor.
    Worse,
    /// The arm differs from the baseline by less than the study's margin, if at all.
    Equivalent,
    /// The interval excludes equality, but the comparison does not answer the study, or not after the correction for the number of those
    /// that do.
    Lead,
    /// The interval excludes equality, but the difference is within what the baseline shows against itself.
    WithinFloor,
    /// No difference was detected.
    NoDifferenceSeen,
    /// No difference was detected, and only a large one is detectable.
    TooNoisy,
    /// Nothing can be said, for a reason that is given.
    #[default]
    CannotSay,
    /// The arm is the baseline's replica: it measures the floor.
    NoiseFloor,
    /// The arm's figures are shown but must not be compared (emulation).
    NotComparable,
}
