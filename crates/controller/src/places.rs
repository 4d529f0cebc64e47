//! Whether the data of a study's guests have a place on the storage of each arm, found out before a run.

use tare_model::study::{Arm, Case, Study};
use tare_platform::{DataWanted, Platform};
use tare_workload::Footprint;

use crate::registry::{Registry, Shipped};

/// Arms on whose storage the guests of a case have no place for their data, each with the reason and the remedy. Wrong
/// names and options are reported elsewhere.
pub fn no_place_for_data(study: &Study) -> Vec<(String, String, String)> {
    let without_place = |arm: &Arm| {
        let platform = Shipped.platform(&arm.platform, &arm.options).ok()?;
        let (reason, remedy) = lack(&Shipped, &*platform, &study.cases)?;
        Some((arm.id.clone(), reason, remedy))
    };
    study.arms.iter().filter_map(without_place).collect()
}

/// The same of one platform: the first case that has no place.
pub(crate) fn lack(registry: &dyn Registry, platform: &dyn Platform, cases: &[Case]) -> Option<(String, String)> {
    cases.iter().find_map(|case| {
        let (reason, remedy) = platform.data_lack(wanted(registry, case))?;
        Some((format!("case `{}`: {reason}", case.id), remedy))
    })
}

/// What the guests of a case that stand at one time are given.
fn wanted(registry: &dyn Registry, case: &Case) -> DataWanted {
    let workload = registry.workload(&case.workload, &case.parameters, &case.load).ok();
    let footprint = |workload: &dyn tare_workload::Workload| workload.footprint_of(&case.guest, case.instances.max(1));
    let Footprint { guest: size, .. } = workload.as_deref().map(footprint).unwrap_or_default();
    let guests = case.density.as_ref().map_or(case.guests, |density| density.most_guests());
    DataWanted { guests, size }
}
