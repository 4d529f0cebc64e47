//! What a run says: estimates, comparisons and verdicts, as `findings.json` holds them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::audit::AuditEntry;
use crate::cpu_target::CpuSearch;
use crate::density::{CoursePoint, metric};
use crate::deviation::Deviation;
use crate::environment::Environment;
use crate::guest::ParityRow;
use crate::merging::SavedFrom;
use crate::metric::MetricSpec;
use crate::plan::Plan;
use crate::precision::CaseBlocks;
use crate::sample::CpuAccount;
use crate::trial::Flag;

mod answer;
mod consolidation;
mod distribution;
mod gate;
mod isolation;
mod runs;
pub mod section;
mod serving;
mod sizing;
mod threshold;
mod turns;
mod verdict;

pub use answer::{Answer, verdict_id};
pub use consolidation::{
    ArmConsolidation, CaseInstances, ConsolidationFindings, InstanceFindings, InstancePoint, InstanceSeries, LoadPoint,
    LoadSeries,
};
pub use distribution::{ArmIncomplete, Distribution};
pub use gate::{Gate, GateAnswer, GateOutcome, GatedComparison, GatedRun};
pub use isolation::{ArmIsolation, IsolationCell, IsolationFindings, Survival};
pub use runs::{Compared, RunComparison, RunComparisonRow, RunSide};
pub use serving::{ArmCapacity, ArmRequests, ArmResources, RequestRow, RequestTable, ScoreFindings, SearchFindings};
pub use sizing::{
    ArmSizing, CpuModel, ResponseModel, SizeAdvice, SizeCheck, SizeModel, SizePoint, SizeQuestion, SizeRange,
    SizingFindings,
};
pub use threshold::{ThresholdRatio, Thresholds};
pub use turns::{Effort, PrecisionLimits, TurnFigure};
pub use verdict::{ArmGroups, Comparison, DriverLimited, OverAll, ReplacedBlock, RunValues, Standing, Verdict};

/// Newest schema of `findings.json` that this tare reads.
pub const FINDINGS_SCHEMA: u32 = 1;

/// Everything a report says, and nothing it would have to compute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// Schema number.
    pub schema: u32,
    /// The run.
    pub run: RunSummary,
    /// The answer, one entry a finding: effects first, the largest of them foremost, then what is equivalent, then what was not
    /// detected, then what cannot be said.
    pub answer: Vec<Answer>,
    /// One entry a case, in the order of the study.
    pub cases: Vec<CaseFindings>,
    /// Metrics of the guest and not of its work (start time, memory when idle), over the trials of all cases: a block's
    /// value is the mean over its cases.
    pub across: Vec<MetricFindings>,
    /// What must be read before any figure, such as settings under which a server may lose what it acknowledged; a
    /// sentence each, with the arms and cases that it concerns.
    pub warnings: Vec<String>,
    /// What was looked at before any verdict, the gravest first.
    pub audit: Vec<AuditEntry>,
    /// One figure over several cases, where the study asks for it.
    pub score: Option<ScoreFindings>,
    /// Several instances of an application in one guest: what each more of them costs. Empty where the study has no such cases.
    pub consolidation: Vec<ConsolidationFindings>,
    /// Models of CPU and response time, and what they say of cases that were held out. Empty where the study has too few loads.
    pub sizing: Vec<SizingFindings>,
    /// What neighbours do to each victim. Empty where the study has no conditions.
    pub isolation: Vec<IsolationFindings>,
    /// What is otherwise than in the published original: of the study first, then of its workloads, each with the cases and arms that it concerns.
    pub deviations: Vec<Deviation>,
    /// What differs from the study as written, a sentence each.
    pub differences: Vec<String>,
    /// Trials that did not complete, and why.
    pub not_completed: Vec<NotCompleted>,
    /// Trials that completed but carry a flag.
    pub flagged: Vec<FlaggedTrial>,
    /// Checks that could not be made, each in a sentence with how many trials it concerns.
    pub unchecked: Vec<String>,
    /// Asked and granted, by arm and case id, from the first trial of each; differences between
    /// trials of one arm are among the differences.
    pub parity: Vec<ArmParity>,
    /// The host.
    pub environment: Environment,
    /// The plan that was run.
    pub plan: Plan,
    /// How the figures were made, in paragraphs, with the constants in force.
    pub method: Vec<String>,
}

/// The run in figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Run id.
    pub id: String,
    /// Version of tare that ran it.
    pub tare_version: String,
    /// The hash of the last line of the run's journal, by which a copy of the run folder is known (`tare verify --root`): 64
    /// hexadecimal digits.
    pub root_hash: String,
    /// First trial's begin, UTC, RFC 3339.
    pub started_at: String,
    /// Last trial's end, UTC, RFC 3339; `None` if the run was cut short.
    pub finished_at: Option<String>,
    /// Trials planned.
    pub planned: u32,
    /// Trials completed.
    pub completed: u32,
    /// Wall time of all trials, seconds.
    pub wall_s: f64,
    /// Of which load, seconds.
    pub load_s: f64,
}

/// What was found in one case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseFindings {
    /// Case id.
    pub id: String,
    /// Name for people.
    pub label: String,
    /// The blocks that it took and why no more, where that followed from its intervals and is decided.
    pub blocks: Option<CaseBlocks>,
    /// One entry a metric, primary first.
    pub metrics: Vec<MetricFindings>,
    /// Blocks that spare ones replace.
    pub replaced: Vec<ReplacedBlock>,
    /// Where there are such, the ratios with them.
    pub over_all: Vec<OverAll>,
    /// Arms whose blocks fall into two groups.
    pub groups: Vec<ArmGroups>,
    /// Latency distribution an arm, where the workload has operations.
    pub distributions: Vec<Distribution>,
    /// CPU account of the completed trials an arm, and what one unit of work is.
    pub cpu: Vec<ArmCpu>,
    /// One representative trial an arm (the block whose primary value is the median).
    pub timelines: Vec<Timeline>,
    /// What qualifies the figures of each arm: counts, lateness, rates, facts.
    pub accounts: Vec<ArmAccount>,
    /// The objectives of the case, judged on each arm.
    pub objectives: Vec<ArmObjective>,
    /// Metrics that completed trials withheld, each in a sentence.
    pub not_measured: Vec<String>,
    /// By guest and driver on each arm, where a trial has several: the primary metric, or the first that adds up over them.
    pub parts: Vec<ArmParts>,
    /// Where the time of an operation goes on each arm, where the workload times its parts.
    pub steps: Vec<ArmSteps>,
    /// How many guests each arm carries, where the case adds them.
    pub density: Option<DensityFindings>,
    /// The largest load on each arm, where the case looks for it; in the order of the study.
    pub capacity: Vec<ArmCapacity>,
    /// By request type on each arm, where the workload has them; in the order of the study.
    pub requests: Vec<ArmRequests>,
    /// What was used of host and guest at the load that the figures are of, where the workload has request types.
    pub resources: Vec<ArmResources>,
    /// What limits its precision, by arm, where arms took turns in enough blocks to tell.
    pub limits: Vec<PrecisionLimits>,
    /// What one operation is called.
    pub operation: String,
    /// What the workload's own view says of the case.
    pub sections: Vec<section::Section>,
    /// How well the guests' CPUs were held busy to a share, where the case asks for one: arm, and (block, what was seen).
    pub cpu_searches: Vec<(String, Vec<(u32, CpuSearch)>)>,
}

/// How many guests the host carries, by arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DensityFindings {
    /// Memory promised to each guest, bytes; where guests make tiles, the mean of a tile's guests.
    pub guest_memory_bytes: u64,
    /// Memory of the host, bytes, as the trials reported it.
    pub host_memory_bytes: u64,
    /// The rate that each guest was offered on every arm, operations a second; `None` where load was not throttled.
    pub offered_per_guest_per_s: Option<f64>,
    /// One entry an arm, in the order of the study.
    pub arms: Vec<ArmDensity>,
}

/// One arm as guests were added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmDensity {
    /// Arm id.
    pub arm: String,
    /// Guests that half of the scale-ups hold: of `fit` or, without one, the median of `held_blocks`.
    pub held: u32,
    /// The distribution of what scale-ups hold; `None` of figures that others published.
    pub fit: Option<Thresholds>,
    /// (block, largest number that held).
    pub held_blocks: Vec<(u32, u32)>,
    /// Whether the scale-ups ended because the series did: the host may carry more.
    pub end_of_series: bool,
    /// (block, guests that stood, kind in words, what was seen).
    pub stopped: Vec<(u32, u32, String, String)>,
    /// One entry a number of guests, ascending.
    pub levels: Vec<LevelFindings>,
    /// The scale-up of the middle block: the host over time.
    pub course: Vec<CoursePoint>,
    /// The better of the fitted models of operations a second against guests, and the other; best first. Empty with fewer
    /// than four levels.
    pub models: Vec<FittedModel>,
    /// Names of the guests that make one tile, where they are added by tiles; numbers of guests are multiples of as many.
    pub tile: Vec<String>,
}

impl ArmDensity {
    /// Whether nothing was seen of the memory of the host under its guests, as they are machines elsewhere: numbers of guests that have figures have
    /// no overcommit ratio.
    pub fn is_elsewhere(&self) -> bool {
        let figures = |id: &str| self.levels.iter().any(|level| level.metrics.contains_key(id));
        figures(metric::OPERATIONS) && !figures(metric::OVERCOMMIT)
    }
}

/// One number of guests on one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelFindings {
    /// Guests.
    pub guests: u32,
    /// Repeats in which this number was tried, and in how many of them it held.
    pub tried: u32,
    /// See `tried`.
    pub held: u32,
    /// By metric id: over the repeats in which all guests worked.
    pub metrics: BTreeMap<String, Estimate>,
    /// Where the saving came from, mean over the repeats.
    pub saved_from: SavedFrom,
}

/// A model of operations a second against guests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FittedModel {
    /// `capped line` or `universal scalability law`.
    pub name: String,
    /// The formula with its figures, for people.
    pub formula: String,
    /// Parameters by name.
    pub parameters: BTreeMap<String, f64>,
    /// Root of the mean squared residual, operations a second.
    pub rmse: f64,
    /// Guests at the knee: where the line meets the cap, or where the law has its largest value; `None` without one.
    pub knee: Option<f64>,
    /// (guests, operations a second) for drawing.
    pub curve: Vec<(f64, f64)>,
}

/// A metric of one arm, by guest and driver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmParts {
    /// Arm id.
    pub arm: String,
    /// The metric, which adds up over guests and drivers.
    pub metric: String,
    /// By guest: one entry a driver, and after them one for the whole guest (`driver` is `None`).
    pub parts: Vec<PartEstimate>,
    /// Sum over the guests: the median over the trials of each trial's sum.
    pub total: Estimate,
}

/// What one guest or driver contributed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartEstimate {
    /// Which guest, from 1.
    pub guest: u32,
    /// Which of its drivers, from 1; `None`: the whole guest.
    pub driver: Option<u32>,
    /// Median over the completed trials, with the interval of order statistics where there are enough for one.
    pub estimate: Estimate,
}

/// Where the time of an operation goes on one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmSteps {
    /// Arm id.
    pub arm: String,
    /// The steps, in the order in which they are done.
    pub steps: Vec<StepFindings>,
    /// Seconds an operation takes as a whole, mean over the trials.
    pub operation_s: Option<Estimate>,
    /// Of which no step accounts for: the driver's own time between steps, seconds. `None` without the whole, or where the
    /// steps exceed it.
    pub rest_s: Option<f64>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepFindings {
    /// Name for people.
    pub name: String,
    /// Whether its time is part of the operation's response time.
    pub within: bool,
    /// How often an operation has it, on average.
    pub per_operation: f64,
    /// Seconds that it takes of an operation, on average, over the trials.
    pub of_operation_s: Estimate,
    /// (quantile, seconds of one such step with an interval made from the trials' own quantiles).
    pub quantiles: Vec<(f64, Estimate)>,
}

/// What qualifies the figures of one arm in one case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ArmAccount {
    /// Arm id.
    pub arm: String,
    /// Completed trials that it covers.
    pub trials: u32,
    /// Counts by name, added up over the trials; of a name that ends in `_max` the largest.
    pub counts: BTreeMap<String, u64>,
    /// Open loop: (quantile, how late operations started, seconds), made as the percentiles of a [`Distribution`].
    pub lateness: Vec<(f64, Estimate)>,
    /// Load of a given rate: operations a second that were to be started by all guests together; where guests are added, at
    /// the largest number that held, mean over the trials.
    pub offered_per_s: Option<f64>,
    /// Operations a second that completed in the window, over the trials; `None` in bulk transfer.
    pub achieved_per_s: Option<Estimate>,
    /// Facts of its first completed trial: granted socket options, the driver's CPU, the guest's own view.
    pub facts: BTreeMap<String, String>,
}

/// An objective of quality of service, judged on one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmObjective {
    /// Arm id.
    pub arm: String,
    /// The metric that it bounds.
    pub spec: MetricSpec,
    /// The bound, in the metric's unit: the largest value allowed where less is better, else the smallest.
    pub bound: f64,
    /// (block, value, whether it was met), completed trials that have the metric.
    pub blocks: Vec<(u32, f64, bool)>,
    /// Blocks planned: one without a figure has not met its objective.
    pub planned: u32,
    /// The judgement in words.
    pub sentence: String,
}

/// One metric over all arms of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricFindings {
    /// The metric.
    pub spec: MetricSpec,
    /// Its estimate on each arm.
    pub arms: Vec<ArmEstimate>,
    /// Each arm against the baseline.
    pub comparisons: Vec<Comparison>,
    /// Arms on which operations did not complete, and what that makes of the metric; figures of response time only.
    pub incomplete: Vec<ArmIncomplete>,
}

/// A metric on one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmEstimate {
    /// Case id; `None` where the figure is one over all cases.
    pub case: Option<String>,
    /// Metric id.
    pub metric: String,
    /// Arm id.
    pub arm: String,
    /// Over the completed blocks.
    pub estimate: Estimate,
    /// (block, value), every completed trial.
    pub blocks: Vec<(u32, f64)>,
}

/// A figure with its interval. `low` and `high` are `None` when there are too few blocks for one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// Level of the interval, such as 0.95.
    pub level: f64,
    /// Values it was made from.
    pub n: u32,
    /// How, in a few words.
    pub method: String,
}

/// Mean CPU account of an arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmCpu {
    /// Arm id.
    pub arm: String,
    /// Mean over completed trials.
    pub account: CpuAccount,
    /// Units of work in the window, mean (operations, or bytes in bulk transfer).
    pub work: f64,
    /// What a unit of work is: `operation` or `byte`.
    pub unit_of_work: String,
    /// CPU seconds a unit of work without neighbours, estimated over the trials as the metrics are; `None` where the
    /// account holds work that is not the workload's (a measured guest kept busy), or where no work was counted.
    pub per_work_s: Option<f64>,
}

/// One trial over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Arm id.
    pub arm: String,
    /// Block, from 1.
    pub block: u32,
    /// Start and end of steady state, seconds from the start of load.
    pub steady_s: (f64, f64),
    /// Series by name with its unit last: (seconds from the start of load, value).
    pub series: BTreeMap<String, Vec<(f64, f64)>>,
}

/// A trial without figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotCompleted {
    /// Block, from 1.
    pub block: u32,
    /// Case id.
    pub case: String,
    /// Arm id.
    pub arm: String,
    /// `invalid`, `failed in PHASE` or `not run`.
    pub how: String,
    /// Why.
    pub reason: String,
}

/// A trial with figures and flags.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlaggedTrial {
    /// Block, from 1.
    pub block: u32,
    /// Case id.
    pub case: String,
    /// Arm id.
    pub arm: String,
    /// Its flags.
    pub flags: Vec<Flag>,
}

/// Asked and granted on one arm in one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmParity {
    /// Arm id.
    pub arm: String,
    /// Case id.
    pub case: String,
    /// The rows.
    pub rows: Vec<ParityRow>,
}
