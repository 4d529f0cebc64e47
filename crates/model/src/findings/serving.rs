//! What is found of a workload that is served under objectives: capacity, request types, resources, score.

use serde::{Deserialize, Serialize};

use super::{Estimate, Thresholds};
use crate::trial::RequestType;

/// Searches for the largest load on one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmCapacity {
    /// Arm id.
    pub arm: String,
    /// One entry a completed trial, in order of blocks.
    pub searches: Vec<SearchFindings>,
    /// The distribution of what instances hold; `None` of figures that others published.
    pub fit: Option<Thresholds>,
}

/// One search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SearchFindings {
    /// Block, from 1.
    pub block: u32,
    /// The largest load that held in all its iterations.
    pub held: f64,
    /// The smallest load above it that did not.
    pub missed: Option<f64>,
    /// Iterations at the load that held.
    pub iterations: u32,
    /// Every load that was tried, in order: load, whether it held, why not.
    pub tried: Vec<(f64, Option<String>)>,
    /// How it ended.
    pub ended: String,
}

/// Request types on one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmRequests {
    /// Arm id.
    pub arm: String,
    /// One entry an iteration at the load that the figures are of, in order of blocks.
    pub iterations: Vec<RequestTable>,
}

/// The requests of one iteration. Its types' weighted byte rate is their bytes over the response time of all requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestTable {
    /// Block, from 1.
    pub block: u32,
    /// Iteration in the block, from 1.
    pub iteration: u32,
    /// Clients, or arrivals a second.
    pub load: f64,
    /// Length of the window, seconds; 0 where it is not known.
    pub window_s: f64,
    /// By type, without their histograms.
    pub rows: Vec<RequestRow>,
    /// All types together.
    pub total: RequestRow,
    /// Whether the objectives were met.
    pub met: bool,
}

/// One line of a [`RequestTable`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RequestRow {
    /// The counts; `times` is empty.
    pub counts: RequestType,
    /// Bytes of the type over the response time of all requests of the iteration, bytes a second.
    pub weighted_byte_rate: f64,
    /// Mean response time, seconds.
    pub response_s: f64,
    /// Mean bytes a request.
    pub bytes_per_request: f64,
    /// 99th percentile of the response time, seconds, where there are requests enough.
    pub p99_s: Option<f64>,
}

/// What one arm used, mean over completed trials.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ArmResources {
    /// Arm id.
    pub arm: String,
    /// Load, clients or arrivals a second, mean.
    pub load: f64,
    /// Mean response time, seconds.
    pub response_s: Option<f64>,
    /// CPUs of the host that the SUT used, in cores.
    pub host_cpu_cores: Option<f64>,
    /// Of which by the guest's control group: (user, system), cores.
    pub guest_cpu_cores: Option<(f64, f64)>,
    /// Shares of the host's CPUs, 0 to 1: user, system, idle, waiting for disks.
    pub host_cpu_shares: Option<[f64; 4]>,
    /// CPU as the guest's own system sees it, shares 0 to 1: user, system, idle, waiting.
    pub inside_cpu_shares: Option<[f64; 4]>,
    /// Sent by the guest, bits a second.
    pub network_bits_per_s: Option<f64>,
    /// Mean time of a disk request of the host, seconds.
    pub disk_s: Option<f64>,
    /// Memory of the guest in use as the host sees it, bytes, largest.
    pub memory_bytes: Option<f64>,
    /// Swapped by the host in the window, bytes: (in, out).
    pub swapped_bytes: Option<(f64, f64)>,
}

/// One figure over several cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoreFindings {
    /// (case, reference), in the order of the study.
    pub references: Vec<(String, f64)>,
    /// (arm, score over blocks in which every case has a capacity); arms without one are left out.
    pub arms: Vec<(String, Estimate)>,
    /// (arm, score over that of the baseline), the interval where there are blocks enough.
    pub ratios: Vec<(String, Estimate)>,
}
