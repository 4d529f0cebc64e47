//! Spare blocks: they replace blocks that were disturbed from outside the arms.
//!
//! Which blocks count follows from flags of causes outside ([`flag::OUTSIDE`]) and from the order of the blocks, never from a figure. The
//! others are kept, and reported beside those that count.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::flag;
use tare_model::plan::Plan;
use tare_model::precision::{Judged, WhyEnded};
use tare_model::trial::{Flag, TrialRecord};

use crate::flags;

/// What disturbed a trial from outside its arm.
fn disturbance(record: &TrialRecord) -> Option<Flag> {
    let stored = record.flags.iter().find(|own| flag::OUTSIDE.contains(&own.kind.as_str())).cloned();
    stored.or_else(|| flags::steal(record))
}

/// The blocks of a case that ran, with what disturbed each.
#[derive(Debug, Default)]
pub(crate) struct Blocks(BTreeMap<u32, Option<Flag>>);

impl Blocks {
    /// Of the trials of a case.
    pub(crate) fn of<'a>(plan: &Plan, trials: impl Iterator<Item = &'a TrialRecord>) -> Self {
        let mut found = Self::default();
        for record in trials {
            let disturbed = found.0.entry(plan.study_block(&record.planned)).or_default();
            if disturbed.is_none() {
                *disturbed = disturbance(record);
            }
        }
        found
    }

    /// The blocks that do not count, where more ran than were planned: disturbed ones, the last of them first.
    pub(crate) fn replaced(&self, planned: u32) -> BTreeSet<u32> {
        let mut order: Vec<(bool, u32)> = self.0.iter().map(|(block, why)| (why.is_some(), *block)).collect();
        order.sort_unstable();
        order.into_iter().skip(planned as usize).map(|(_, block)| block).collect()
    }

    /// What disturbed a block.
    pub(crate) fn why(&self, block: u32) -> Option<&Flag> {
        self.0.get(&block)?.as_ref()
    }

    fn undisturbed(&self) -> u32 {
        self.0.values().filter(|why| why.is_none()).count() as u32
    }
}

/// Whether a case has enough after so many whole blocks: as many as planned that were not disturbed, or all spare ones. `None` without
/// spare blocks.
pub(crate) fn judge(plan: &Plan, case: &str, blocks: u32, trials: &[TrialRecord]) -> Option<Judged> {
    let (planned, most) = (plan.study.blocks, plan.study.most_blocks());
    if plan.study.spare_blocks == 0 {
        return None;
    }
    let first = |own: &&TrialRecord| own.planned.case == case && plan.study_block(&own.planned) <= blocks;
    let undisturbed = Blocks::of(plan, trials.iter().filter(first)).undisturbed();
    let ended = if undisturbed >= planned {
        Some(WhyEnded::Undisturbed)
    } else {
        (blocks >= most).then_some(WhyEnded::SparesUsed)
    };
    let likely =
        if ended.is_some() { blocks } else { (planned + blocks - undisturbed.min(blocks)).clamp(planned, most) };
    Some(Judged { blocks, width: None, ended, likely })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::findings::Findings;
    use tare_model::trial::Outcome;
    use tare_record::testing;

    const PLANNED: u32 = 12;

    /// A run of 12 blocks and 3 spare ones, in some of which other programs were busy: the arm seems ten times as slow there.
    fn run(disturbed: &[u32]) -> (Plan, Vec<TrialRecord>) {
        let mut plan = testing::plan(PLANNED + 3);
        (plan.study.blocks, plan.study.spare_blocks) = (PLANNED, 3);
        let mut trials: Vec<TrialRecord> =
            (0..plan.trials.len() as u32).map(|index| testing::trial(&plan, index)).collect();
        let worse =
            |record: &&mut TrialRecord| record.planned.arm == "container" && disturbed.contains(&record.planned.block);
        for record in trials.iter_mut().filter(worse) {
            record.flags.push(Flag { kind: "foreign-load".to_owned(), detail: "a build".to_owned() });
            if let Outcome::Completed(measured) = &mut record.outcome {
                measured.metrics.values_mut().for_each(|value| *value *= 10.0);
            }
        }
        (plan, trials)
    }

    fn judged(disturbed: &[u32], blocks: u32) -> Judged {
        let (plan, trials) = run(disturbed);
        let case = plan.study.cases[0].id.clone();
        judge(&plan, &case, blocks, &trials).unwrap()
    }

    #[test]
    fn a_case_goes_on_until_as_many_blocks_as_planned_were_not_disturbed() {
        assert_eq!(judged(&[], 11).ended, None);
        assert_eq!(judged(&[], 12).ended, Some(WhyEnded::Undisturbed));
        let two = judged(&[3, 7], 12);
        assert_eq!((two.ended, two.likely), (None, 14));
        assert_eq!(judged(&[3, 7], 14).ended, Some(WhyEnded::Undisturbed));
        assert_eq!(judged(&[3, 7, 12, 13], 14).ended, None);
        assert_eq!(judged(&[3, 7, 12, 13], 15).ended, Some(WhyEnded::SparesUsed));
        let (plan, trials) = run(&[]);
        let mut fixed = plan;
        fixed.study.spare_blocks = 0;
        assert_eq!(judge(&fixed, "idle", 12, &trials), None, "a fixed number needs no rule");
    }

    fn findings(disturbed: &[u32], ran: u32) -> Findings {
        let (plan, mut trials) = run(disturbed);
        trials.retain(|record| record.planned.block <= ran);
        crate::tests::of(&plan, &trials)
    }

    #[test]
    fn disturbed_blocks_are_replaced_and_reported_beside_those_that_count() {
        let clean = findings(&[], 12);
        let found = findings(&[3, 7], 14);
        let case = &found.cases[0];
        let replaced: Vec<u32> = case.replaced.iter().map(|own| own.block).collect();
        assert_eq!(replaced, [3, 7]);
        assert_eq!(case.replaced[0].why, "foreign-load: a build");
        let (own, without) = (&case.metrics[0].comparisons[0], &clean.cases[0].metrics[0].comparisons[0]);
        assert_eq!((own.ratio.n, own.planned, own.verdict), (12, 12, without.verdict));
        assert!(own.ratio.high.unwrap() < 1.1, "{:?}", own.ratio);
        assert_eq!(case.over_all[0].ratio.n, 14);
        assert!(case.over_all[0].ratio.high > own.ratio.high);
        // Too few spare ones: the first of the disturbed count.
        let many = findings(&[1, 2, 3, 12, 14], 15);
        let replaced: Vec<u32> = many.cases[0].replaced.iter().map(|own| own.block).collect();
        assert_eq!((replaced, many.cases[0].metrics[0].comparisons[0].ratio.n), (vec![3, 12, 14], 12));
    }
}
