//! A trial that was run: what came of it and everything seen on the way.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Histogram;
use crate::capacity::CapacitySearch;
use crate::cpu_target::CpuSearch;
use crate::density::ScaleUp;
use crate::guest::ParityRow;
use crate::metric::MetricSpec;
use crate::plan::PlannedTrial;
use crate::sample::{CpuAccount, Sample};

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
}

/// Requests of one type in a measured window, and how they were served.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RequestType {
    /// Name, unique in the workload, such as `login`.
    pub name: String,
    /// Requests that were answered or failed. `good`, `tolerable` and `failed` add up to it.
    pub requests: u64,
    /// Of which met the bound for good.
    pub good: u64,
    /// Of which did not, but met that for tolerable.
    pub tolerable: u64,
    /// Of which met neither, or failed.
    pub failed: u64,
    /// Of which had a wrong answer or none: each is counted in `failed` as well.
    pub validation_errors: u64,
    /// Bytes that came, headers and embedded files counted.
    pub bytes: u64,
    /// Sum of the response times from the intended start, seconds. A request that failed without having been waited for, such as
    /// one that was answered with an error at once, has no time: it counts here with the mean of the others, so that fast errors
    /// flatter no mean.
    pub response_s: f64,
    /// Target share of the type in all requests, 0 to 1, where the workload has one.
    pub target: Option<f64>,
    /// Response times, nanoseconds; empty where only their sum is known.
    pub times: Histogram,
}

impl RequestType {
    /// Adds other requests to these, all but their response times by themselves.
    pub fn add_counts(&mut self, other: &Self) {
        self.requests += other.requests;
        self.good += other.good;
        self.tolerable += other.tolerable;
        self.failed += other.failed;
        self.validation_errors += other.validation_errors;
        self.bytes += other.bytes;
        self.response_s += other.response_s;
    }
}

/// What one guest, or one driver of it, contributed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Part {
    /// Which guest, from 1.
    pub guest: u32,
    /// Which of the guest's drivers, from 1; `None`: all of them, that is the whole guest.
    pub driver: Option<u32>,
    /// Which of the guest's instances of the application, from 1; `None`: all of them.
    pub instance: Option<u32>,
    /// Metric ids and values.
    pub metrics: BTreeMap<String, f64>,
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

/// Something about a trial that a reader must know when trusting it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flag {
    /// Short name: `steal`, `drops`, `lost-samples`, `not-steady`, `parity`, `driver-starved`, `server-errors`.
    pub kind: String,
    /// What was seen, with the figure and the limit.
    pub detail: String,
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
    /// What the probes saw.
    pub samples: Vec<Sample>,
    /// What a reader must know.
    pub flags: Vec<Flag>,
    /// Facts about this instance that disclosure wants: kernel view of the guest, granted socket options ...
    pub facts: BTreeMap<String, String>,
}
