//! The host's probe, as a trial needs it.

use std::path::PathBuf;

use tare_model::plan::Plan;
use tare_model::sample::Source;
use tare_probe::{Group, HostConfig, HostProbe, ProbeError};

/// Starts to sample the host and the control groups of the guests, and sees to it that there is a sample
/// at both ends of the measured window. The probe runs on the driver's CPUs, away from what it measures.
pub fn start(plan: &Plan, groups: Vec<(Source, Vec<PathBuf>)>, window: (u64, u64)) -> Result<HostProbe, ProbeError> {
    HostProbe::start(HostConfig {
        interval: plan.study.lab.sample_interval,
        sut_cpus: plan.cpus.guests.clone(),
        probe_cpus: plan.cpus.client.clone(),
        at_ns: vec![window.0, window.1],
        groups: groups
            .into_iter()
            // A guest without limits has no group of its own, and is then part of what else was busy.
            .filter(|(_, directories)| !directories.is_empty())
            .map(|(source, directories)| Group { source, directories })
            .collect(),
        ..HostConfig::default()
    })
}
