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

/// Arms that can take turns with others.
fn joining<'s>(study: &'s Study, host: &HostFacts) -> Vec<&'s Arm> {
    study.arms.iter().filter(|arm| !host.emulated.contains(&arm.id)).collect()
}

/// For each set of a block of a case, the arms whose guests are alive at one time: all, or the baseline and one other.
pub(super) fn together<'s>(study: &'s Study, case: &Case, host: &HostFacts) -> Vec<Vec<&'s Arm>> {
    let all = joining(study, host);
    match case.schedule {
        CaseSchedule::Trials { .. } | CaseSchedule::Conditions(_) => Vec::new(),
        CaseSchedule::Turns(_) => vec![all],
        CaseSchedule::Pairs { .. } => {
            let (baseline, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|arm| arm.id == study.baseline);
            others.into_iter().flat_map(|other| baseline.iter().map(move |baseline| vec![*baseline, other])).collect()
        }
    }
}

/// How many arms of a case have guests on this host at one time.
pub(super) fn at_once(study: &Study, case: &Case, host: &HostFacts, catalog: &dyn Catalog) -> u64 {
    let here = |set: &Vec<&Arm>| set.iter().filter(|arm| !catalog.is_outside(&arm.platform)).count();
    let any_here = || usize::from(study.arms.iter().any(|arm| !catalog.is_outside(&arm.platform)));
    together(study, case, host).iter().map(here).max().unwrap_or_else(any_here) as u64
}

/// The study with the schedule that this host has room for, and how it differs from what was asked, a sentence for each reason.
pub(super) fn fitted(study: &Study, host: &HostFacts, catalog: &dyn Catalog) -> (Study, Vec<String>) {
    let mut fitted = study.clone();
    for case in &mut fitted.cases {
        if case.schedule.turns().is_some() && joining(study, host).len() < 2 {
            case.schedule = CaseSchedule::Trials { why: ONE_ARM.to_owned() };
        }
        while let Some(why) = no_room(study, case, host, catalog) {
            case.schedule = with_fewer(study, case, host, why);
        }
    }
    while let Some(n) = largest_without_disk(&fitted, host, catalog) {
        let case = &fitted.cases[n];
        let why = format!("this host has no room on disk for the guests of {}", whose(study, case, host, catalog));
        fitted.cases[n].schedule = with_fewer(study, case, host, why);
    }
    let differ = density::by_case(&fitted, |case| {
        let asked = study.cases.iter().find(|asked| asked.id == case.id)?;
        match &case.schedule {
            CaseSchedule::Trials { why } if asked.schedule != case.schedule && why != ONE_ARM => {
                Some(("run one after the other, not in turns", why.clone()))
            }
            CaseSchedule::Pairs { why, .. } => {
                Some(("take turns in pairs with the baseline, not all together", why.clone()))
            }
            _ => None,
        }
    });
    let sentence = |(cases, (how, why))| format!("the arms of {cases} {how}: {why}");
    let mut differences: Vec<String> = differ.into_iter().map(sentence).collect();
    if fitted.cases.iter().any(|case| case.schedule.turns().is_some()) {
        let emulated = study.arms.iter().filter(|arm| host.emulated.contains(&arm.id));
        differences.extend(emulated.map(|arm| {
            format!("`{}` is emulated here and takes no turns: its trials follow the turns of the others", arm.id)
        }));
    }
    (fitted, differences)
}

/// The schedule of a case for which there is no room: in pairs with the baseline where that is fewer arms at one time, else trials.
fn with_fewer(study: &Study, case: &Case, host: &HostFacts, why: String) -> CaseSchedule {
    let arms = joining(study, host);
    let with_baseline = arms.iter().any(|arm| arm.id == study.baseline);
    match case.schedule {
        CaseSchedule::Turns(turns) if with_baseline && arms.len() > 2 => {
            CaseSchedule::Pairs { turns, pairs: u32::try_from(arms.len() - 1).unwrap_or(u32::MAX), why }
        }
        _ => CaseSchedule::Trials { why },
    }
}

/// The arms that take turns together, for people.
fn whose(study: &Study, case: &Case, host: &HostFacts, catalog: &dyn Catalog) -> String {
    match case.schedule {
        CaseSchedule::Pairs { .. } => "even two of its arms together".to_owned(),
        _ => format!("its {} arms together", at_once(study, case, host, catalog)),
    }
}

/// Why the guests of the arms that take turns together cannot be alive at one time.
fn no_room(study: &Study, case: &Case, host: &HostFacts, catalog: &dyn Catalog) -> Option<String> {
    case.schedule.turns()?;
    let arms = at_once(study, case, host, catalog);
    let made = cost::made(study, case, host);
    let (need, guests) = (ByteSize(cost::promised(case, arms, made)), cost::guests(case, arms).saturating_add(made));
    let whose = whose(study, case, host, catalog);
    if need > host.memory_available {
        let (need, there) = (human::asked(need), human::size(host.memory_available));
        return Some(format!("the guests of {whose} are promised {need}, and this host has {there} available"));
    }
    (guests > LINKS).then(|| format!("the guests of {whose} are {guests}, and a bridge of the host has {LINKS} links"))
}

/// The case in turns whose guests take most disk, if what the study takes is not there.
fn largest_without_disk(study: &Study, host: &HostFacts, catalog: &dyn Catalog) -> Option<usize> {
    if disk::refusals(study, host, catalog).is_empty() {
        return None;
    }
    let in_turns = study.cases.iter().enumerate().filter(|(_, case)| case.schedule.turns().is_some());
    let takes = |case: &Case| {
        let arms = at_once(study, case, host, catalog);
        disk::of_guests(case, catalog).saturating_mul(arms).saturating_add(cost::guests(case, arms) * cost::LAYER_BYTES)
    };
    in_turns.max_by_key(|(_, case)| takes(case)).map(|(n, _)| n)
}

/// The trials, in each block and case first those that run together, and which these are, by their index.
pub(super) fn sets(study: &Study, trials: Vec<PlannedTrial>, host: &HostFacts) -> (Vec<PlannedTrial>, Vec<Vec<u32>>) {
    let alike = |one: &PlannedTrial, other: &PlannedTrial| (one.block, &one.case) == (other.block, &other.case);
    let (mut ordered, mut sets) = (Vec::with_capacity(trials.len()), Vec::<Vec<u32>>::new());
    for chunk in trials.chunk_by(alike) {
        let Some(case) = study.cases.iter().find(|case| case.id == chunk[0].case) else { continue };
        if let Some(condition) = case.schedule.condition() {
            // Each begins with what its neighbours do nothing in. The order has the conditions of an arm together.
            let index = u32::try_from(ordered.len()).unwrap_or(u32::MAX);
            match sets.last_mut().filter(|_| condition.work.is_some()) {
                Some(set) => set.push(index),
                None => sets.push(vec![index]),
            }
            ordered.push(PlannedTrial { index, ..chunk[0].clone() });
            continue;
        }
        let of = |arms: &Vec<&Arm>| -> Vec<&PlannedTrial> {
            chunk.iter().filter(|trial| arms.iter().any(|arm| arm.id == trial.arm)).collect()
        };
        let mut own: Vec<_> = together(study, case, host).iter().map(of).collect();
        // Pairs come in the random order of their arms beside the baseline.
        own.sort_by_key(|set| set.iter().find(|trial| trial.arm != study.baseline).map(|trial| trial.index));
        let alone = chunk.iter().filter(|trial| own.iter().flatten().all(|member| member.index != trial.index));
        let alone: Vec<_> = alone.collect();
        let pairs = case.schedule.pairs();
        let mut add = |trial: &PlannedTrial, pair: u32| {
            let index = u32::try_from(ordered.len()).unwrap_or(u32::MAX);
            ordered.push(PlannedTrial { index, block: (trial.block - 1) * pairs + pair + 1, ..trial.clone() });
            index
        };
        for (set, pair) in own.iter().zip(0..) {
            sets.push(set.iter().map(|trial| add(trial, pair)).collect());
        }
        alone.into_iter().for_each(|trial| _ = add(trial, pairs - 1));
    }
    (ordered, sets)
}
