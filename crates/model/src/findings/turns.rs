//! What limits the precision of a case whose arms take turns.

use serde::{Deserialize, Serialize};

/// What turns are compared by: they hold counts and sums of times, and no percentiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TurnFigure {
    /// Operations over time.
    Operations,
    /// Bytes over time.
    Bytes,
    /// The mean response time.
    MeanResponse,
}

/// Why the log ratio of one arm to the baseline spreads from block to block, and what would make it spread less.
///
/// Components and their use as in Kalibera and Jones, "Rigorous benchmarking in reasonable time" (ISMM 2013).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PrecisionLimits {
    /// Arm id.
    pub arm: String,
    /// What the components are of.
    pub figure: TurnFigure,
    /// Whether that is what the case's primary metric is.
    pub of_primary: bool,
    /// Rounds of turns that were measured in a block, mean.
    pub rounds: f64,
    /// Variance of a block's log ratio that its instances add: what stays however long a block is measured. 0 where turns alone explain
    /// all of it.
    pub instances: f64,
    /// Variance of a block's log ratio that changes from turn to turn leave in it.
    pub turns: f64,
    /// Whether the blocks spread more than turns explain (F test, 5 %).
    pub instances_seen: bool,
    /// The smallest detectable difference of this run, relative; that of the comparison.
    pub detectable: f64,
    /// What this run spent on the case.
    pub spent: Effort,
    /// Half of that difference by more blocks alone.
    pub by_blocks: Option<Effort>,
    /// Half of it by a longer steady state alone; `None` where no length does.
    pub by_length: Option<Effort>,
    /// Half of it in the least time, by blocks and steady state of whatever number and length.
    pub least: Option<Effort>,
    /// The smallest detectable difference of as many blocks where nothing changes from turn to turn.
    pub quiet_host: f64,
}

/// What measuring a case takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Blocks.
    pub blocks: u32,
    /// Steady state of each arm in each block, seconds.
    pub steady_s: f64,
    /// Wall time of the case, minutes.
    pub minutes: f64,
}
