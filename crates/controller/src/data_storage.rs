//! Whether the data of a study's guests have a place on the storage of each arm, found out before a run.

use tare_model::Refusal;
use tare_model::study::{Arm, Case, Study};
use tare_platform::{DataWanted, Platform};
use tare_workload::Footprint;

use crate::registry::{Registry, Shipped};

/// Arms on whose storage the guests of a case have no place for their data, each with the refusal. Wrong
/// names and options are reported elsewhere.
pub fn no_place_for_data(study: &Study) -> Vec<(String, Refusal)> {
    let without_place = |arm: &Arm| {
        let platform = Shipped.platform(&arm.platform, &arm.options).ok()?;
        Some((arm.id.clone(), refusal(&Shipped, &*platform, &study.cases)?))
    };
    study.arms.iter().filter_map(without_place).collect()
}

/// The same of one platform: the first case that has no place.
pub(crate) fn refusal(registry: &dyn Registry, platform: &dyn Platform, cases: &[Case]) -> Option<Refusal> {
    cases.iter().find_map(|case| {
        let Refusal { reason, remedy } = platform.data_refusal(wanted(registry, case))?;
        Some(Refusal::new(format!("case `{}`: {reason}", case.id), remedy))
    })
}

/// What the guests of a case that stand at one time are given.
fn wanted(registry: &dyn Registry, case: &Case) -> DataWanted {
    let workload = registry.workload(&case.workload, &case.parameters, &case.load.largest()).ok();
    let footprint = |workload: &dyn tare_workload::Workload| workload.footprint(&case.guest, case.instances.max(1));
    let Footprint { guest: size, log, .. } = workload.as_deref().map(footprint).unwrap_or_default();
    DataWanted { guests: case.load.most_guests(), size, log }
}
