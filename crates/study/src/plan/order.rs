//! The order of trials.
//!
//! In each block the cases come in random order, and in each case all arms one after another. Their order is random in every other
//! block, and backwards in the next ([`MirroredOrders`]): each arm precedes each other one as often as it follows it.
//! Arms of a case are neighbours in time because they are compared in pairs: what drifts slowly is then common to
//! both and cancels, and what a trial leaves behind hits every arm equally often over the blocks.
//!
//! The conditions of one victim count as one case here: an arm has all of them before the next arm comes, and takes them in turns.
//!
//! Cases that are offered a share of what other cases find come after all blocks of these, in blocks of their own: the load is a
//! median over the others' blocks.

use tare_model::plan::PlannedTrial;
use tare_model::random::{MirroredOrders, SplitMix64};
use tare_model::study::{Case, CaseLoad, Study};

/// Every trial, in order. Depends on the study alone.
pub(super) fn order(study: &Study) -> Vec<PlannedTrial> {
    let mut random = SplitMix64(study.seed);
    let mut trials = Vec::new();
    for waits in [false, true] {
        let cases = study.cases.iter().filter(|case| matches!(case.load, CaseLoad::ShareOf { .. }) == waits);
        let cases: Vec<&Case> = cases.collect();
        let families = cases.chunk_by(|one, other| one.family() == other.family());
        let mut families: Vec<_> =
            families.map(|family| (family, MirroredOrders::new(study.arms.len(), random.draw()))).collect();
        for block in 1..=study.most_blocks() {
            random.shuffle(&mut families);
            for (family, orders) in &mut families {
                for arm in orders.draw().iter().filter_map(|&place| study.arms.get(place)) {
                    for case in family.iter() {
                        // The plan refuses a million trials and more.
                        let index = u32::try_from(trials.len()).unwrap_or(u32::MAX);
                        trials.push(PlannedTrial { index, block, case: case.id.clone(), arm: arm.id.clone() });
                    }
                }
            }
        }
    }
    trials
}
