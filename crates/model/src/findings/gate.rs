//! Comparisons held against a limit, as `tare gate --format json` prints it (`docs/adr/0039-gate.md`).

use serde::{Deserialize, Serialize};

use super::{Estimate, Verdict};
use crate::metric::{Better, Unit};

/// What a gate says of one comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateOutcome {
    /// Proven: the arm is worse than the baseline by more than the limit.
    Worse,
    /// There is no verdict, for a reason that is given.
    NoVerdict,
    /// There is a verdict, but a regression of more than the limit is neither proven nor ruled out.
    Unsure,
    /// A regression of more than the limit is ruled out: the interval ends before it.
    Within,
}

/// What a gate answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateAnswer {
    /// A regression of more than the limit is proven.
    Regression,
    /// None is proven, and one that may be there is reason enough to fail; or nothing has a verdict at all.
    CannotSay,
    /// None is proven.
    Pass,
}

/// Runs held against a limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// The relative difference up to which an arm may be worse: 0.02 is 2 %.
    pub limit: f64,
    /// The outcomes on which it fails.
    pub fails_on: Vec<GateOutcome>,
    /// Its answer.
    pub answer: GateAnswer,
    /// The answer in one sentence.
    pub sentence: String,
    /// The runs, as they were given.
    pub runs: Vec<GatedRun>,
}

/// What a gate says of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GatedRun {
    /// The folder, as it was given.
    pub folder: String,
    /// Name of its study.
    pub study: String,
    /// Run id.
    pub run: String,
    /// First trial's begin, UTC, RFC 3339; empty without a trial.
    pub started_at: String,
    /// Wall time of all its trials, seconds.
    pub wall_s: f64,
    /// The baseline for people.
    pub baseline: String,
    /// What must be read before any figure of it, a sentence each.
    pub warnings: Vec<String>,
    /// The comparisons that were chosen, in the order of the study.
    pub comparisons: Vec<GatedComparison>,
}

/// What a gate says of one comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GatedComparison {
    /// [`super::verdict_id`], as in the findings of the run; the id of the arm where the host could not run it.
    pub id: String,
    /// Case id; `None` of what is the guest's own over all cases, and of an arm that the host could not run.
    pub case: Option<String>,
    /// Arm id.
    pub arm: String,
    /// Metric id; empty where no trial says which it is.
    pub metric: String,
    /// What is compared, for people: case, arm and metric.
    pub label: String,
    /// Unit of the metric; `None` where no trial says which it is.
    pub unit: Option<Unit>,
    /// Which way the metric is better; `None` likewise.
    pub better: Option<Better>,
    /// The arm's value over the baseline's, where there is one.
    pub ratio: Option<Estimate>,
    /// Probability of a ratio so far beyond the limit if the arm were worse by just the limit, corrected for the number of comparisons
    /// that answer the study.
    pub p_worse: Option<f64>,
    /// The verdict of the study, which knows nothing of the limit.
    pub verdict: Verdict,
    /// What the gate says.
    pub outcome: GateOutcome,
    /// Why.
    pub reason: String,
}
