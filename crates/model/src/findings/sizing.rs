//! Sizing: models fitted to what was measured, what they predict, and how far they are to be trusted.

use serde::{Deserialize, Serialize};

use super::{Estimate, FittedModel};
use crate::guest::GuestSize;
use crate::metric::MetricSpec;

/// Models of the cases of one workload with the same parameters and guests that differ in load and number of instances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SizingFindings {
    /// The workload.
    pub workload: String,
    /// Size of each guest.
    pub guest: GuestSize,
    /// Unit of load: `clients` or `arrivals/s`.
    pub load_unit: String,
    /// The metric whose value is predicted beside the CPU; `None`: the workload has none in seconds.
    pub response: Option<MetricSpec>,
    /// One entry an arm with completed trials, in the order of the study.
    pub arms: Vec<ArmSizing>,
}

/// One arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmSizing {
    /// Arm id.
    pub arm: String,
    /// What the models are fitted to, and the cases that were held out, in order of load.
    pub points: Vec<SizePoint>,
    /// The models; `None`: `refused` says why.
    pub model: Option<SizeModel>,
    /// Why nothing is fitted, and what would help, in a sentence.
    pub refused: Option<String>,
    /// Held-out cases: predicted from the others, and measured.
    pub checks: Vec<SizeCheck>,
    /// Advice for the study's own objective on the response time, or 1 s where it has none, with 25 % of headroom.
    pub advice: Option<SizeAdvice>,
}

/// One case on one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SizePoint {
    /// Case id.
    pub case: String,
    /// Instances of the application in the guest.
    pub instances: u32,
    /// Load of all of them together.
    pub load: f64,
    /// Whether it was held out of the fit.
    pub held_out: bool,
    /// Whether the guest's CPUs were saturated, so that no queue is fitted to it.
    pub saturated: bool,
    /// Operations a second.
    pub throughput: Estimate,
    /// Share of the guest's CPUs, 0 to 1.
    pub cpu: Estimate,
    /// Response time, seconds.
    pub response: Option<Estimate>,
    /// Largest resident size of one instance, bytes, mean.
    pub instance_memory: Option<Estimate>,
    /// Memory of the guest when nothing was asked of it, bytes.
    pub idle_memory: Option<Estimate>,
}

/// Models of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SizeModel {
    /// What was measured: beyond it nothing is predicted.
    pub range: SizeRange,
    /// Throughput against load, operations a second for each unit of it.
    pub throughput: Estimate,
    /// CPU against throughput and instances.
    pub cpu: CpuModel,
    /// Response time against CPU.
    pub response: Option<ResponseModel>,
    /// Throughput against load as a capped line and by the universal scalability law, the better first; empty with fewer than six
    /// loads.
    pub scalability: Vec<FittedModel>,
}

/// Least and most of what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct SizeRange {
    /// Instances.
    pub instances: (u32, u32),
    /// Load of all together.
    pub load: (f64, f64),
    /// Share of the guest's CPUs, 0 to 1.
    pub cpu: (f64, f64),
}

/// `U c = idle n + X (demand + growth * min(n - 1, level))`: U share of c CPUs, n instances, X operations a second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuModel {
    /// CPUs that an instance takes without work.
    pub idle: Estimate,
    /// CPU seconds an operation with one instance.
    pub demand_s: Estimate,
    /// CPU seconds an operation more for each instance beyond the first, up to `level` of them.
    pub growth_s: Estimate,
    /// Instances beyond the first after which an operation costs no more.
    pub level: u32,
    /// The formula with its figures.
    pub formula: String,
    /// Points that it was fitted to.
    pub points: u32,
    /// Root of the mean squared residual, share of the guest's CPUs.
    pub rmse: f64,
    /// The same of points that were left out of the fit one at a time.
    pub rmse_left_out: f64,
}

/// `R = floor + scale * Q(U)`, Q the mean time in an M/M/c queue at utilisation U over its service time (Erlang C).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResponseModel {
    /// What is no queue of the guest's CPUs, seconds.
    pub floor_s: Estimate,
    /// Seconds of CPU that queue, of the percentile or mean that the metric is.
    pub scale_s: Estimate,
    /// CPUs.
    pub servers: u32,
    /// The formula with its figures.
    pub formula: String,
    /// Points that it was fitted to.
    pub points: u32,
    /// Root of the mean squared relative residual (0.1: 10 %).
    pub rmse: f64,
    /// The same of points that were left out of the fit one at a time.
    pub rmse_left_out: f64,
}

/// A held-out case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SizeCheck {
    /// Case id.
    pub case: String,
    /// Instances.
    pub instances: u32,
    /// Load of all together.
    pub load: f64,
    /// Share of the guest's CPUs: predicted with its interval, and measured.
    pub cpu: (Estimate, Estimate),
    /// Response time, seconds: predicted with its interval, and measured.
    pub response: Option<(Estimate, Estimate)>,
    /// Whether the CPU was predicted to 5 points.
    pub cpu_within: bool,
    /// Whether the response time was predicted to 15 %.
    pub response_within: Option<bool>,
    /// Why nothing could be predicted, if so: it lies outside what was measured.
    pub refused: Option<String>,
}

/// What is asked of a sizing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SizeQuestion {
    /// Metric and its largest value, in its unit.
    pub qos: Option<(String, f64)>,
    /// More load than is recommended must still meet the objective: 0.25 for a quarter.
    pub headroom: f64,
    /// Load of each instance; `None`: that of the case with the most instances.
    pub load_per_instance: Option<f64>,
    /// Load to be carried in all, for which guests are counted.
    pub total_load: Option<f64>,
}

/// What to build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SizeAdvice {
    /// What was asked.
    pub question: SizeQuestion,
    /// Instances in one guest of this size.
    pub instances: u32,
    /// Load of all of them together.
    pub load: f64,
    /// Share of the guest's CPUs at that load, 0 to 1: the target to be kept below.
    pub cpu: Estimate,
    /// Response time at that load with the headroom used up, seconds.
    pub response: Option<Estimate>,
    /// Memory for the guest, bytes: its own when idle and each instance's largest.
    pub memory_bytes: Option<f64>,
    /// Guests of this size for the load in all.
    pub guests: Option<u32>,
    /// What ends it: the objective, the CPU, the guest's memory, or the range that was measured.
    pub bound_by: String,
    /// By the published rule (at most 70 to 80 % CPU, 4 points an instance): instances at 70 % and at 80 %.
    pub published: Option<(u32, u32)>,
    /// What a reader must know, a sentence each.
    pub notes: Vec<String>,
}
