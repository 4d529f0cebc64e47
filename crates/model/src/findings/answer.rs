//! What a run says, finding by finding.

use serde::{Deserialize, Serialize};

use super::{Comparison, Estimate, Verdict};

/// A finding: a verdict with its estimate and its words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// [`verdict_id`]: the same in every run of a study.
    pub id: String,
    /// Case id; `None` of what is the guest's own over all cases: its start time and its memory.
    pub case: Option<String>,
    /// Arm id.
    pub arm: String,
    /// Metric id; empty where no trial of the case says which is its primary one.
    pub metric: String,
    /// The arm's value over the baseline's, where there is one.
    pub ratio: Option<Estimate>,
    /// The verdict.
    pub verdict: Verdict,
    /// The verdict in words.
    pub sentence: String,
}

impl Answer {
    /// The finding of a comparison in a metric.
    pub fn of(case: Option<&str>, metric: &str, comparison: &Comparison) -> Self {
        Self {
            id: verdict_id(case, &comparison.arm, metric),
            case: case.map(str::to_owned),
            arm: comparison.arm.clone(),
            metric: metric.to_owned(),
            ratio: Some(&comparison.ratio).filter(|ratio| ratio.n > 0).cloned(),
            verdict: comparison.verdict,
            sentence: comparison.sentence.clone(),
        }
    }
}

/// The name of a verdict in every output: `case/arm/metric`, by their ids; `arm/metric` of what is the guest's own over all cases.
pub fn verdict_id(case: Option<&str>, arm: &str, metric: &str) -> String {
    case.map_or_else(|| format!("{arm}/{metric}"), |case| format!("{case}/{arm}/{metric}"))
}
