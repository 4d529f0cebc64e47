//! A trial that was run: what came of it and everything seen on the way.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Histogram;
use crate::capacity::CapacitySearch;
use crate::cpu_target::CpuSearch;
use crate::density::ScaleUp;
use crate::deviation::Deviation;
use crate::guest::ParityRow;
use crate::metric::MetricSpec;
use crate::plan::PlannedTrial;
use crate::sample::{CpuAccount, Sample};
use crate::turns::TrialTurns;

pub use crate::flag::Flag;
pub use crate::part::Part;
pub use crate::request_type::RequestType;

/// The phase of a trial in which something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The guest is made.
    Provision,
    /// Its agent answers.
    Connect,
    /// What was granted is read back and compared with what was asked.
    Parity,
    /// Neighbours are started and seen to be busy.
    Neighbours,
    /// The workload's own set-up in the guest.
    Prepare,
    /// Load is offered.
    Drive,
    /// What the workload did is checked.
    Verify,
    /// Samples and counters are fetched.
    Collect,
    /// Everything made is taken away.
    Teardown,
}

impl Phase {
    /// All phases in the order in which a trial goes through them.
    pub const ALL: [Self; 9] = [
        Self::Provision,
        Self::Connect,
        Self::Parity,
        Self::Neighbours,
        Self::Prepare,
        Self::Drive,
        Self::Verify,
        Self::Collect,
        Self::Teardown,
    ];
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Provision => "provision",
            Self::Connect => "connect",
            Self::Parity => "parity",
            Self::Neighbours => "neighbours",
            Self::Prepare => "prepare",
            Self::Drive => "drive",
            Self::Verify => "verify",
            Self::Collect => "collect",
            Self::Teardown => "teardown",
        })
    }
}

/// How a trial ended. A failure is never a zero: only `Completed` carries figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "most trials complete, and there is one outcome a trial")]
pub enum Outcome {
    /// It ran and its work was right.
    Completed(Measurement),
    /// It ran, but its figures must not be used.
    Invalid {
        /// Why, for people.
        reason: String,
    },
    /// It did not run to its end.
    Failed {
        /// Where it stopped.
        phase: Phase,
        /// What was tried, why it failed and the remedy.
        reason: String,
    },
}

/// What a completed trial measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Measurement {
    /// One value a metric, by metric id, in the metric's unit.
    pub metrics: BTreeMap<String, f64>,
    /// Histograms by name: `response`, `service`, `lateness`; nanoseconds.
    pub histograms: BTreeMap<String, Histogram>,
    /// Counts that qualify the figures: `operations`, `errors: REASON`, `server errors: REASON`, `lost`, `unfinished`,
    /// `backlog_max`, `driver_cpu_ns`, `driver_run_delay_ns` (ready but waiting for a CPU).
    pub counts: BTreeMap<String, u64>,
    /// The same metrics by measured guest and driver, where there are several; in order.
    pub parts: Vec<Part>,
    /// The parts of an operation, in the order in which they are done, where the workload times them.
    pub steps: Vec<Step>,
    /// What was seen while guests were added, where the case does that. The figures above are then those of the largest
    /// number that held.
    pub scale_up: Option<ScaleUp>,
    /// By request type, where the workload has them.
    pub requests: Vec<RequestType>,
    /// What was seen while the largest load was looked for, where the case does that. The figures above are then those of
    /// the last iteration at the load that held.
    pub search: Option<CapacitySearch>,
    /// How well the guests' CPUs were held busy to a share, where the case asks for one.
    pub cpu_search: Option<CpuSearch>,
    /// By metric id, figures of response time in which some operations that were due did not complete.
    pub incomplete: BTreeMap<String, Incomplete>,
}

/// What a figure of response time leaves out: operations that were due and did not complete.
///
/// A percentile counts them as longer than any that completed. Where it lies among them it is no number: [`Measurement::metrics`] does not
/// have it. A mean counts those that were given up with the time for which they were waited for, and leaves out those that failed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Incomplete {
    /// Share of the operations that were due, 0 to 1.
    pub missing: f64,
    /// The figure of the completed operations alone, in the metric's unit; `None` where none completed.
    pub completed_only: Option<f64>,
}

/// A part of an operation that is timed by itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Step {
    /// Name for people, unique in the workload, such as `browse by title`.
    pub name: String,
    /// Whether its time is part of the operation's response time.
    pub within: bool,
    /// How long it took each time, nanoseconds; one operation may have it several times, or not at all.
    pub times: Histogram,
}

/// One trial as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Which trial of the plan.
    pub planned: PlannedTrial,
    /// When it began, UTC, RFC 3339.
    pub started_at: String,
    /// Wall time from the first act of provisioning to the end of teardown, seconds.
    pub wall_s: f64,
    /// Of which the phases of load, seconds.
    pub load_s: f64,
    /// How it ended.
    pub outcome: Outcome,
    /// The metrics that the workload yields, in order, primary first.
    pub metrics: Vec<MetricSpec>,
    /// Asked and granted, the measured guest.
    pub parity: Vec<ParityRow>,
    /// CPU of the SUT in the measured window; `None` when the window was not reached.
    pub cpu: Option<CpuAccount>,
    /// Start and end of the measured window, CLOCK_MONOTONIC nanoseconds.
    pub window_ns: Option<(u64, u64)>,
    /// How it took turns with the other arms of its block; `None`: it had the window to itself.
    pub turns: Option<TrialTurns>,
    /// What the probes saw.
    pub samples: Vec<Sample>,
    /// What a reader must know.
    pub flags: Vec<Flag>,
    /// What its workload does otherwise than the published one, in this case and on this arm; the ids are empty.
    pub deviations: Vec<Deviation>,
    /// Facts about this instance that disclosure wants: kernel view of the guest, granted socket options ...
    pub facts: BTreeMap<String, String>,
}

impl TrialRecord {
    /// Time in which load was measured, seconds: the window, or its part that was this arm's turn; `None` when the window was not reached.
    pub fn measured_s(&self) -> Option<f64> {
        let (start, end) = self.window_ns?;
        let window = end.saturating_sub(start);
        Some(self.turns.as_ref().map_or(window, |turns| turns.done.measured_ns) as f64 / 1e9)
    }
}
