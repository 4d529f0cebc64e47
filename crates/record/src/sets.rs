//! Trials that run together in turns are a set: it is recorded whole or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use tare_model::plan::{Plan, PlannedTrial};

use crate::journal::{Journal, JournalEvent};

/// A set of which some trials are there and others are missing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Trials that are there, by their position in the plan.
    pub there: Vec<u32>,
    /// Trials that are missing.
    pub missing: Vec<u32>,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |trials: &[u32]| {
            let numbers: Vec<String> = trials.iter().map(u32::to_string).collect();
            format!("{} {}", if trials.len() == 1 { "trial" } else { "trials" }, numbers.join(", "))
        };
        let (there, missing) = (list(&self.there), list(&self.missing));
        write!(
            f,
            "{there} ran in turns with {missing}, of which there is no record; the set counts only whole and is measured anew"
        )
    }
}

/// Sets of which some trials are among these, and others are not.
pub(crate) fn unfinished(plan: &Plan, acknowledged: &BTreeSet<u32>) -> Vec<Part> {
    let parts = plan.sets.iter().map(|set| {
        let (there, missing) = set.iter().partition(|index| acknowledged.contains(index));
        Part { there, missing }
    });
    parts.filter(|part| !part.there.is_empty() && !part.missing.is_empty()).collect()
}

/// Whether the sets of a plan hold trials of one block each, and of one case or one arm, and no trial twice; what is wrong with them.
pub(crate) fn fit(plan: &Plan) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for (at, set) in plan.sets.iter().enumerate() {
        let trials: Option<Vec<_>> = set.iter().map(|&index| plan.trials.get(index as usize)).collect();
        let alike = |own: &PlannedTrial, first: &PlannedTrial| {
            own.block == first.block && (own.case == first.case || own.arm == first.arm)
        };
        let together = |trials: &Vec<&PlannedTrial>| {
            trials.first().is_some_and(|first| trials.iter().all(|own| alike(own, first)))
        };
        if !trials.as_ref().is_some_and(together) || !set.iter().all(|index| seen.insert(*index)) {
            return Err(format!("has a set in place {at} whose trials do not run together"));
        }
    }
    Ok(())
}

/// Lines of a journal, from 1, that withdraw other trials than those that stood of an unfinished set.
pub(crate) fn wrongly_withdrawn(plan: &Plan, journal: &Journal) -> Vec<u64> {
    let mut standing: BTreeSet<u32> = BTreeSet::new();
    let set_of: BTreeMap<u32, &Vec<u32>> =
        plan.sets.iter().flat_map(|set| set.iter().map(move |&index| (index, set))).collect();
    let mut wrong = Vec::new();
    for entry in &journal.entries {
        match &entry.event {
            JournalEvent::TrialAcknowledged { index, .. } => _ = standing.insert(*index),
            JournalEvent::TrialsWithdrawn { indices, .. } => {
                let set = indices.first().and_then(|first| set_of.get(first));
                let there = |set: &&Vec<u32>| set.iter().copied().filter(|index| standing.contains(index)).collect();
                let there: Vec<u32> = set.map(there).unwrap_or_default();
                if there.is_empty() || there != *indices || set.is_some_and(|set| set.len() == there.len()) {
                    wrong.push(entry.seq + 1);
                }
                indices.iter().for_each(|index| _ = standing.remove(index));
            }
            _ => {}
        }
    }
    wrong
}
