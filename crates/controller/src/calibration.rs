//! The load that each guest is offered, where it is found by trying: once a run, and never again when it is resumed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tare_model::plan::PlannedTrial;
use tare_model::study::Case;
use tare_platform::Platform;
use tare_record::{JournalEvent, RunFolder};
use tare_workload::{Calibration, Workload};

use crate::bench::Bench;
use crate::error::ControllerError;
use crate::setup::DataOf;
use crate::text::fit;
use crate::trial::{self, Task};

/// Load by case; cases without a calibration are not in it.
pub type LoadOf = BTreeMap<String, Calibration>;

/// Finds the load of every case that still has trials to come (`left`) and wants it found; equal cases share it, and what
/// the journal in `folder` knows already is not sought again. `None` when somebody wished to stop.
///
/// # Errors
/// When it could not be found, or the journal cannot be read or written.
pub fn all(
    bench: &Bench<'_>,
    folder: &Path,
    platforms: &BTreeMap<String, Box<dyn Platform>>,
    workloads: &BTreeMap<String, Box<dyn Workload>>,
    (left, data): (&BTreeSet<&str>, &DataOf),
) -> Result<Option<LoadOf>, ControllerError> {
    let study = &bench.plan.study;
    let mut known = known(folder)?;
    let Some(platform) = platforms.get(&study.baseline) else { return Ok(Some(known)) };
    for case in study.cases.iter().filter(|case| left.contains(case.id.as_str())) {
        if known.contains_key(&case.id) {
            continue;
        }
        let Some(workload) = workloads.get(&case.id).filter(|workload| workload.traits_in(case).calibrated) else {
            continue;
        };
        let same = study.cases.iter().find(|other| known.contains_key(&other.id) && alike(case, other));
        let found = match same.and_then(|other| known.get(&other.id)) {
            Some(found) => found.clone(),
            None => {
                bench.observer.note(&format!("case {}: the load of one guest is found by trying", case.id));
                let alone = alone(case);
                let planned = planned(bench, case);
                let (workload, data) = (&**workload, data.get(&case.id));
                let task = Task {
                    planned: &planned,
                    case: &alone,
                    platform: &**platform,
                    workload,
                    data,
                    load: None,
                    offered: None,
                };
                let found = trial::calibrate(bench, task);
                if bench.cancel.reason().is_some() {
                    return Ok(None);
                }
                let failed = |reason| ControllerError::Calibration { case: case.id.clone(), reason };
                found.map_err(failed)?
            }
        };
        let (rate, share) = (found.rate_per_s, found.cpu_share * 100.0);
        let summary =
            format!("case {}: {rate:.1} operations/s a guest; one alone takes {share:.1} % of its CPUs", case.id);
        bench.observer.note(&summary);
        write(bench, case, &found)?;
        known.insert(case.id.clone(), found);
    }
    Ok(Some(known))
}

/// What an earlier part of the run has found.
fn known(folder: &Path) -> Result<LoadOf, ControllerError> {
    let folder = RunFolder::open(folder)?;
    let found = folder.journal().entries.iter().filter_map(|entry| match &entry.event {
        JournalEvent::Calibrated { case, calibration } => {
            // What cannot be read is sought again.
            Some((case.clone(), serde_json::from_value(calibration.clone()).ok()?))
        }
        _ => None,
    });
    Ok(found.collect())
}

fn write(bench: &Bench<'_>, case: &Case, found: &Calibration) -> Result<(), ControllerError> {
    let calibration = serde_json::to_value(found).map_err(|error| ControllerError::Calibration {
        case: case.id.clone(),
        reason: format!("it cannot be written to the journal: {}", fit(&error.to_string())),
    })?;
    bench.book.write(&JournalEvent::Calibrated { case: case.id.clone(), calibration })?;
    Ok(())
}

/// Whether what was found for one case is good for another.
fn alike(one: &Case, other: &Case) -> bool {
    one.workload == other.workload
        && one.parameters == other.parameters
        && one.guest == other.guest
        && one.load.largest() == other.load.largest()
}

/// The case with one guest and nothing beside it.
fn alone(case: &Case) -> Case {
    Case { load: case.load.largest().into(), neighbours: None, busy_target: false, ..case.clone() }
}

/// A trial that is none of the plan's, for its names.
fn planned(bench: &Bench<'_>, case: &Case) -> PlannedTrial {
    let index = u32::try_from(bench.plan.trials.len()).unwrap_or(u32::MAX);
    PlannedTrial { index, block: 1, case: case.id.clone(), arm: bench.plan.study.baseline.clone() }
}
