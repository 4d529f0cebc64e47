//! Runs set against runs, as `tare compare --format json` prints it.

use serde::{Deserialize, Serialize};

use super::{Comparison, Estimate};
use crate::metric::Unit;

/// The runs of one side, of one plan but for the seed and the number of blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSide {
    /// Name for people.
    pub label: String,
    /// Ids of its runs.
    pub runs: Vec<String>,
}

/// Runs set against runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunComparison {
    /// The runs that ratios are against.
    pub before: RunSide,
    /// The runs that are judged.
    pub after: RunSide,
    /// Why no row has a verdict, where the number of runs allows none.
    pub withheld: Option<String>,
    /// What must be read before the figures of some run, a sentence each.
    pub warnings: Vec<String>,
    /// What differs between plans and hosts of the runs, a sentence each; a difference in figures may come from it.
    pub differences: Vec<String>,
    /// Values and effects, in the order of the study.
    pub rows: Vec<RunComparisonRow>,
}

/// What a row compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compared {
    /// The values of an arm themselves: they move with the host, the day and the arm.
    Value,
    /// The ratio of an arm to its own run's baseline: what moved the whole host cancels.
    Effect,
}

/// One figure of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunComparisonRow {
    /// [`super::verdict_id`] of the figure; that of an effect is the same as in the findings of each run.
    pub id: String,
    /// Case id; `None` of what is the guest's own over all cases.
    pub case: Option<String>,
    /// Arm id.
    pub arm: String,
    /// Metric id.
    pub metric: String,
    /// Whether it answers a study: the primary metric of its case, or what the guest itself weighs.
    pub primary: bool,
    /// What is compared.
    pub compared: Compared,
    /// The case for people.
    pub case_label: String,
    /// The arm for people: its id, or its name where that says that its figures must not be compared with other arms'.
    pub arm_label: String,
    /// What is compared, for people, such as `response time, median (over native)`.
    pub label: String,
    /// Unit of `before` and `after` (a bare number for effects).
    pub unit: Unit,
    /// Over the runs of the first side, of which each gives one value.
    pub before: Estimate,
    /// The same of the second side.
    pub after: Estimate,
    /// The second side against the first; its arm and baseline are the names of the sides.
    pub comparison: Comparison,
}
