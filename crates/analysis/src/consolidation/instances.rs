//! The instances of one guest side by side: whether they were served alike.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::findings::{CaseInstances, Estimate, InstanceFindings};
use tare_model::metric::common;
use tare_model::study::{Arm, Case};
use tare_model::trial::{Part, TrialRecord};

use super::Own;
use crate::distribution::completed;
use crate::estimate;

/// Figures of one metric: by block, and in it by instance.
type ByBlock = BTreeMap<u32, BTreeMap<u32, f64>>;

/// The instances of every case of these that has several, in the order of the study.
pub(super) fn of_arm(own: &Own<'_>, cases: &[&Case], trials: &[TrialRecord]) -> Vec<CaseInstances> {
    cases.iter().filter(|case| case.instances > 1).filter_map(|case| of_case(own, case, trials)).collect()
}

fn of_case(own: &Own<'_>, case: &Case, trials: &[TrialRecord]) -> Option<CaseInstances> {
    let rates = by_block(trials, case, own.arm, own.throughput);
    let times = own.response.map(|id| by_block(trials, case, own.arm, id)).unwrap_or_default();
    let failed = by_block(trials, case, own.arm, common::FAILED_SHARE);
    let seen = |figures: &ByBlock| figures.values().flat_map(|block| block.keys().copied()).collect::<BTreeSet<u32>>();
    let numbers: BTreeSet<u32> = seen(&rates).union(&seen(&times)).copied().collect();
    if numbers.len() < 2 {
        return None;
    }
    let blocks: Vec<u32> = rates.keys().chain(times.keys()).copied().collect();
    let loads = own.figures.loads(case, &own.arm.id, &blocks);
    let clients = if loads.is_empty() { 0.0 } else { loads.values().sum::<f64>() / loads.len() as f64 };
    let each = numbers.into_iter().map(|instance| InstanceFindings {
        instance,
        clients: dealt(clients, case.load.guests().drivers, case.instances, instance),
        throughput: of_instance(&rates, instance),
        response: of_instance(&times, instance),
        failed: of_instance(&failed, instance),
    });
    Some(CaseInstances {
        case: case.id.clone(),
        instances: case.instances,
        clients,
        each: each.collect(),
        response_apart: apart(&times, case.instances),
        throughput_apart: apart(&rates, case.instances),
    })
}

/// What the completed trials of a case on an arm tell of each instance of their guest.
fn by_block(trials: &[TrialRecord], case: &Case, arm: &Arm, id: &str) -> ByBlock {
    let own = |record: &&TrialRecord| record.planned.case == case.id && record.planned.arm == arm.id;
    let of = |part: &Part| {
        let value = part.metrics.get(id).copied().filter(|value| value.is_finite() && *value >= 0.0)?;
        Some((part.instance.filter(|_| part.driver.is_none())?, value))
    };
    let block = |record: &TrialRecord| {
        let parts: BTreeMap<u32, f64> = completed(record)?.parts.iter().filter_map(of).collect();
        (!parts.is_empty()).then_some((record.planned.block, parts))
    };
    trials.iter().filter(own).filter_map(block).collect()
}

fn of_instance(figures: &ByBlock, instance: u32) -> Option<Estimate> {
    estimate::of_values(&figures.values().filter_map(|block| block.get(&instance).copied()).collect::<Vec<f64>>())
}

/// The largest figure of a block over its smallest, over the blocks in which every instance has one.
fn apart(figures: &ByBlock, instances: u32) -> Option<Estimate> {
    let ratio = |block: &BTreeMap<u32, f64>| {
        let least = block.values().copied().fold(f64::INFINITY, f64::min);
        let most = block.values().copied().fold(0.0, f64::max);
        (block.len() == instances as usize && least > 0.0).then(|| most / least)
    };
    let found = estimate::of_values(&figures.values().filter_map(ratio).collect::<Vec<f64>>())?;
    // A ratio of the largest to the smallest is 1 at least.
    Some(Estimate { low: found.low.map(|low| low.max(1.0)), ..found })
}

/// Clients of one instance: each driver deals its clients to the instances in turn, so that the first have one more where they do not
/// divide. A load that is no number of whole clients a driver is that of several blocks, and is divided.
fn dealt(clients: f64, drivers: u32, instances: u32, instance: u32) -> f64 {
    let (drivers, n) = (f64::from(drivers.max(1)), f64::from(instances.max(1)));
    let of_driver = clients / drivers;
    if of_driver.fract() > 1e-9 {
        return clients / n;
    }
    let more = if f64::from(instance) <= of_driver % n { 1.0 } else { 0.0 };
    drivers * ((of_driver / n).floor() + more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_dealt_in_turn() {
        assert_eq!([1, 2, 3].map(|instance| dealt(10.0, 1, 3, instance)), [4.0, 3.0, 3.0]);
        assert_eq!([1, 2, 3].map(|instance| dealt(20.0, 2, 3, instance)), [8.0, 6.0, 6.0]);
        assert_eq!(dealt(100.5, 1, 2, 1), 50.25, "the mean of blocks that held other loads");
        assert_eq!((dealt(0.0, 1, 2, 1), dealt(8.0, 0, 4, 4)), (0.0, 2.0));
    }
}
