//! How many blocks a case takes where that follows from how narrow its intervals are, or from what disturbed them.

use serde::{Deserialize, Serialize};

use crate::plan::{Plan, PlannedTrial};

/// Why a case takes no further block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhyEnded {
    /// Every interval of its primary metric is as narrow as asked.
    Precise,
    /// It took the most blocks that the study allows.
    AtMost,
    /// No arm has a ratio to the baseline, and further blocks would give none.
    NothingCompared,
    /// As many blocks as planned were not disturbed from outside.
    Undisturbed,
    /// It took all spare blocks, and still has fewer undisturbed ones than planned.
    SparesUsed,
}

/// The blocks that a case took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseBlocks {
    /// Case id.
    pub case: String,
    /// Whole blocks of the study: its trials of later blocks are not run.
    pub blocks: u32,
    /// The share by which the widest interval of the primary metric reaches beyond its estimate; `None` where there was no interval.
    pub width: Option<f64>,
    /// Why it ended.
    pub why: WhyEnded,
}

impl CaseBlocks {
    /// Whether a plan allows that a case ends so.
    pub fn fits(&self, plan: &Plan) -> bool {
        let study = &plan.study;
        let (least, most) = study.block_range();
        let allowed = (least.min(most)..=most).contains(&self.blocks);
        study.is_open_ended() && allowed && study.cases.iter().any(|case| case.id == self.case)
    }
}

/// Whether a planned trial is of a block that its case does not take.
pub fn is_spared(plan: &Plan, ended: &[CaseBlocks], planned: &PlannedTrial) -> bool {
    ended.iter().any(|own| own.case == planned.case && plan.study_block(planned) > own.blocks)
}

/// What is known of a case after some whole blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// Those blocks.
    pub blocks: u32,
    /// The share by which the widest interval reaches beyond its estimate; `None` where some comparison has no interval.
    pub width: Option<f64>,
    /// Why the case takes no further block, if it takes none.
    pub ended: Option<WhyEnded>,
    /// Blocks that the case is likely to take in all.
    pub likely: u32,
}
