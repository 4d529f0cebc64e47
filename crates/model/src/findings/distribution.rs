//! Response times of an arm, and what their figures leave out.

use serde::{Deserialize, Serialize};

use super::Estimate;
use crate::trial::Incomplete;

/// The latency distribution of one arm, merged over blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Arm id.
    pub arm: String,
    /// Histogram name: `response` or `service`.
    pub name: String,
    /// Operations in it: all that were due.
    pub operations: u64,
    /// Of which did not complete: they count as longer than all others.
    pub not_completed: u64,
    /// (quantile, seconds with an interval made from the blocks' own quantiles).
    pub quantiles: Vec<(f64, Estimate)>,
    /// (quantile, what it leaves out), where the completed operations alone have another one. One that is not in `quantiles` was not reached.
    pub incomplete: Vec<(f64, Incomplete)>,
    /// Complementary cumulative distribution: (seconds, share of operations that took longer). It ends above the share that did not complete.
    pub ccdf: Vec<(f64, f64)>,
}

/// What a figure of response time leaves out on one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmIncomplete {
    /// Arm id.
    pub arm: String,
    /// (block, what its trial leaves out). A block that [`ArmEstimate::blocks`] does not have was not reached.
    pub blocks: Vec<(u32, Incomplete)>,
    /// Of which were not reached: the percentile is longer than all that completed, and no number.
    pub not_reached: Vec<u32>,
    /// All of it in a few words.
    pub note: String,
}
