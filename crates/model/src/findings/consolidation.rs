//! What is found of several instances of an application in one guest: response time, throughput and CPU against their number.

use serde::{Deserialize, Serialize};

use super::Estimate;
use crate::guest::GuestSize;

/// Cases of one workload with the same parameters and guests that differ in load and number of instances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConsolidationFindings {
    /// The workload.
    pub workload: String,
    /// Size of each guest.
    pub guest: GuestSize,
    /// Ids of its cases, in the order of the study.
    pub cases: Vec<String>,
    /// Id and label of the metric that stands for response time: the workload's primary one where that is in seconds.
    pub response: Option<(String, String)>,
    /// One entry an arm, in the order of the study.
    pub arms: Vec<ArmConsolidation>,
}

/// One arm.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ArmConsolidation {
    /// Arm id.
    pub arm: String,
    /// Response time and CPU against load, one series for each number of clients an instance.
    pub by_load: Vec<LoadSeries>,
    /// Throughput lost for each instance added, while the guest's CPUs are held busy to a share; one series a share.
    pub lost: Vec<InstanceSeries>,
    /// CPU gained for each instance added, at a fixed load; one series a load.
    pub gained: Vec<InstanceSeries>,
    /// The instances of each case that has several, side by side, in the order of the study; empty where the workload does not tell them
    /// apart.
    pub side_by_side: Vec<CaseInstances>,
}

/// The instances of one guest: whether they were served alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseInstances {
    /// Case id.
    pub case: String,
    /// Instances.
    pub instances: u32,
    /// Clients of all instances together, mean over the blocks; 0 where it is not known.
    pub clients: f64,
    /// One entry an instance, by number.
    pub each: Vec<InstanceFindings>,
    /// Response time of a block's slowest instance over that of its fastest, 1 or more; over the blocks.
    pub response_apart: Option<Estimate>,
    /// Operations a second of a block's instance with the most over those of that with the fewest, 1 or more; over the blocks.
    pub throughput_apart: Option<Estimate>,
}

/// One instance of a guest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstanceFindings {
    /// Which, from 1.
    pub instance: u32,
    /// Its clients.
    pub clients: f64,
    /// Operations a second; over the blocks.
    pub throughput: Option<Estimate>,
    /// Response time, seconds; over the blocks.
    pub response: Option<Estimate>,
    /// Share of its operations that had a wrong answer or none, 0 to 1; over the blocks.
    pub failed: Option<Estimate>,
}

/// Cases with the same number of clients an instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSeries {
    /// Clients of each instance.
    pub clients_per_instance: f64,
    /// In order of load.
    pub points: Vec<LoadPoint>,
}

/// One case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadPoint {
    /// Case id.
    pub case: String,
    /// Instances.
    pub instances: u32,
    /// Clients of all instances together.
    pub clients: f64,
    /// Response time, seconds; over the blocks.
    pub response: Option<Estimate>,
    /// Share of the guest's CPUs, 0 to 1.
    pub cpu: Option<Estimate>,
    /// Operations a second.
    pub throughput: Option<Estimate>,
    /// Share of the blocks in which all objectives of the case were met; `None` without objectives.
    pub met: Option<f64>,
}

/// What each added instance costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstanceSeries {
    /// What is fixed: share of the guest's CPUs (0 to 1), or clients of all instances together.
    pub fixed: f64,
    /// In order of instances.
    pub points: Vec<InstancePoint>,
}

/// So many instances against the fewest of the series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstancePoint {
    /// Case id.
    pub case: String,
    /// Instances.
    pub instances: u32,
    /// Lost: the throughput, operations a second. Gained: the share of the guest's CPUs, 0 to 1.
    pub value: Estimate,
    /// Change for each instance beyond the fewest of the series, paired within blocks: lost: per cent of the throughput of the fewest, a loss
    /// above 0; gained: points of CPU. `None` for the fewest itself, and without a block that has both.
    pub per_instance: Option<Estimate>,
    /// Change from the point before, for each instance between, in the same units, paired within blocks.
    pub step: Option<Estimate>,
    /// Lost: the share of the guest's CPUs at which it was measured, 0 to 1: how well it was held.
    pub held: Option<Estimate>,
}
