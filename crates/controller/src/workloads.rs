//! Whether this host has what workloads need, found out before any run.

use std::collections::BTreeSet;

use serde_json::json;
use tare_model::Refusal;
use tare_model::load::LoadModel;
use tare_model::study::{Case, Study};
use tare_model::units::Span;
use tare_workload::Workload;

use crate::doctor::May;
use crate::registry::{Registry, Shipped};

/// What was found of one workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadReport {
    /// Its name.
    pub name: String,
    /// What was found.
    pub found: Found,
}

/// Whether a workload can be used here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing speaks against it.
    Usable,
    /// The host does not meet a requirement.
    Unusable(Refusal),
    /// Only a case of a study can say what there is to look at.
    OnRequest,
}

impl Found {
    fn by(refusal: Option<Refusal>) -> Self {
        refusal.map_or(Self::Usable, Self::Unusable)
    }
}

/// Every workload of this tare, with its default parameters.
pub fn every_workload() -> Vec<WorkloadReport> {
    let one_client = LoadModel::Closed { clients: 1, think_time: Span::ZERO };
    let report = |entry: &tare_workload::registry::Entry| {
        let made = (entry.make)(&json!({}), &one_client);
        let found = made.map_or(Found::OnRequest, |workload| Found::by(workload.refusal()));
        WorkloadReport { name: entry.name.to_owned(), found }
    };
    tare_workload::registry::ALL.iter().map(report).collect()
}

/// The workloads of a study's cases. A finding that several cases share is listed once.
pub fn workloads_of(cases: &[Case], may: May) -> Vec<WorkloadReport> {
    let refusal = |workload: &dyn Workload| match may {
        May::Look => workload.look(),
        May::Run => workload.refusal(),
    };
    let mut all: Vec<WorkloadReport> = Vec::new();
    for case in cases {
        let found = match Shipped.workload(&case.workload, &case.parameters, &case.load.largest()) {
            Ok(workload) => Found::by(refusal(&*workload)),
            Err(error) => Found::Unusable(Refusal::new(error.to_string(), "mend the case's parameters")),
        };
        let report = WorkloadReport { name: case.workload.clone(), found };
        if !all.contains(&report) {
            all.push(report);
        }
    }
    all
}

/// Programs of this host that a study names by path, each once: those that `tare doctor` and a run start.
pub fn named_programs(study: &Study) -> Vec<String> {
    let machines = study.hosts.iter().map(|host| (&host.platform, &host.options));
    let arms = study.arms.iter().map(|arm| (&arm.platform, &arm.options)).chain(machines);
    let platforms = arms.filter_map(|(name, options)| Some(Shipped.platform(name, options).ok()?.named_programs()));
    let workloads = study.cases.iter().filter_map(|case| {
        Some(Shipped.workload(&case.workload, &case.parameters, &case.load.largest()).ok()?.named_programs())
    });
    platforms.chain(workloads).flatten().collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_is_listed_once_and_one_that_needs_a_command_on_request() {
        let all = every_workload();
        assert_eq!(all.len(), tare_workload::registry::ALL.len());
        let of = |name: &str| all.iter().find(|report| report.name == name).map(|report| report.found.clone());
        assert_eq!((of("rr"), of("exec")), (Some(Found::Usable), Some(Found::OnRequest)));
    }
}
