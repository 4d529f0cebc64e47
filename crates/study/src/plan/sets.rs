//! Which trials run together, in turns: of the cases whose arms take turns, those that have room for it on this host.

use tare_model::plan::PlannedTrial;
use tare_model::study::{Arm, Case, CaseSchedule, Study};
use tare_model::units::ByteSize;

use super::{cost, density, disk, human};
use crate::catalog::Catalog;
use crate::host::HostFacts;

/// Most links of a lab's bridge (BR_MAX_PORTS of the kernel), without some for what is no guest.
const LINKS: u64 = 1000;

/// Why one arm takes no turns.
const ONE_ARM: &str = "there is no other arm to take turns with";

/// Arms of a case whose guests are alive at one time.
pub(super) fn together<'s>(study: &'s Study, case: &Case, host: &HostFacts) -> Vec<&'s Arm> {
    let joins = |arm: &&Arm| case.schedule.turns().is_some() && !host.emulated.contains(&arm.id);
    study.arms.iter().filter(joins).collect()
}

/// How many arms of a case have guests at one time.
pub(super) fn at_once(study: &Study, case: &Case, host: &HostFacts) -> u64 {
    (together(study, case, host).len() as u64).max(1)
}

/// The study with the schedule that this host has room for, and how it differs from what was asked, a sentence for each reason.
pub(super) fn fitted(study: &Study, host: &HostFacts, catalog: &dyn Catalog) -> (Study, Vec<String>) {
    let mut fitted = study.clone();
    for n in 0..fitted.cases.len() {
        let case = &fitted.cases[n];
        let why = match together(&fitted, case, host).len() {
            _ if case.schedule.turns().is_none() => None,
            0 | 1 => Some(ONE_ARM.to_owned()),
            _ => no_room(&fitted, case, host),
        };
        if let Some(why) = why {
            fitted.cases[n].schedule = CaseSchedule::Trials { why };
        }
    }
    while let Some(n) = largest_without_disk(&fitted, host, catalog) {
        let why = "this host has no room on disk for the guests of all its arms at one time".to_owned();
        fitted.cases[n].schedule = CaseSchedule::Trials { why };
    }
    let differ = density::by_case(&fitted, |case| {
        let asked = study.cases.iter().find(|asked| asked.id == case.id)?;
        match &case.schedule {
            CaseSchedule::Trials { why } if asked.schedule != case.schedule && why != ONE_ARM => Some(why.clone()),
            _ => None,
        }
    });
    let one_by_one = |(cases, why)| format!("the arms of {cases} run one after the other, not in turns: {why}");
    let mut deviations: Vec<String> = differ.into_iter().map(one_by_one).collect();
    if fitted.cases.iter().any(|case| case.schedule.turns().is_some()) {
        let emulated = study.arms.iter().filter(|arm| host.emulated.contains(&arm.id));
        deviations.extend(emulated.map(|arm| {
            format!("`{}` is emulated here and takes no turns: its trials follow the turns of the others", arm.id)
        }));
    }
    (fitted, deviations)
}

/// Why the guests of all arms cannot be alive at one time.
fn no_room(study: &Study, case: &Case, host: &HostFacts) -> Option<String> {
    let arms = at_once(study, case, host);
    let (need, guests) = (ByteSize(cost::promised(case, arms)), cost::guests(case, arms));
    if need > host.memory_available {
        let (need, there) = (human::asked(need), human::size(host.memory_available));
        return Some(format!(
            "the guests of its {arms} arms together are promised {need}, and this host has {there} available"
        ));
    }
    (guests > LINKS).then(|| format!("they are {guests} guests together, and a bridge of the host has {LINKS} links"))
}

/// The case in turns whose guests take most disk, if what the study takes is not there.
fn largest_without_disk(study: &Study, host: &HostFacts, catalog: &dyn Catalog) -> Option<usize> {
    if disk::refusals(study, host, catalog).is_empty() {
        return None;
    }
    let in_turns = study.cases.iter().enumerate().filter(|(_, case)| case.schedule.turns().is_some());
    let takes = |case: &Case| {
        let arms = at_once(study, case, host);
        disk::of_guests(case, catalog).saturating_mul(arms).saturating_add(cost::guests(case, arms) * cost::LAYER_BYTES)
    };
    in_turns.max_by_key(|(_, case)| takes(case)).map(|(n, _)| n)
}

/// The trials, in each block and case first those that run together, and which these are, by their index.
pub(super) fn sets(study: &Study, trials: Vec<PlannedTrial>, host: &HostFacts) -> (Vec<PlannedTrial>, Vec<Vec<u32>>) {
    let together = |one: &PlannedTrial, other: &PlannedTrial| (one.block, &one.case) == (other.block, &other.case);
    let (mut ordered, mut sets) = (Vec::with_capacity(trials.len()), Vec::new());
    for chunk in trials.chunk_by(together) {
        let case = study.cases.iter().find(|case| case.id == chunk[0].case);
        let joined: Vec<&str> = case.map_or_else(Vec::new, |case| {
            self::together(study, case, host).into_iter().map(|arm| arm.id.as_str()).collect()
        });
        let (members, others): (Vec<_>, Vec<_>) = chunk.iter().partition(|trial| joined.contains(&trial.arm.as_str()));
        let first = u32::try_from(ordered.len()).unwrap_or(u32::MAX);
        if !members.is_empty() {
            sets.push((first..).take(members.len()).collect());
        }
        ordered.extend(
            members
                .into_iter()
                .chain(others)
                .zip(first..)
                .map(|(trial, index)| PlannedTrial { index, ..trial.clone() }),
        );
    }
    (ordered, sets)
}
