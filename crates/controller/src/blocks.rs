//! Which blocks of a case are still wanted, where their number follows from how narrow its intervals are or from what disturbed them.

use std::collections::BTreeMap;
use std::path::Path;

use tare_model::plan::{Plan, PlannedTrial};
use tare_model::precision::{CaseBlocks, Judged, is_spared};
use tare_model::trial::{Measurement, Outcome, TrialRecord};
use tare_record::{JournalEvent, RecordError, RunFolder};

use crate::bench::Bench;

/// The rule that decides: given the plan, a case, how many whole blocks of it are recorded, and the trials (their metrics and flags
/// alone). `None`: the study asks for a fixed number.
pub type BlockRule = fn(&Plan, &str, u32, &[TrialRecord]) -> Option<Judged>;

/// Blocks from which on it is foreseen how many a case will take.
const FORESEEN_FROM: u32 = 3;

/// What was decided, and what is decided by.
pub struct Blocks {
    rule: BlockRule,
    /// Trials that are recorded, as far as the rule looks at them.
    trials: Vec<TrialRecord>,
    ended: Vec<CaseBlocks>,
    /// By case, the block that was last found wanted.
    begun: BTreeMap<String, u32>,
}

impl Blocks {
    /// What the run folder holds of it: trials and decisions of a run that goes on, of which the observer hears.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn new(bench: &Bench<'_>, rule: BlockRule, folder: &Path) -> Result<Self, RecordError> {
        let mut blocks = Self { rule, trials: Vec::new(), ended: Vec::new(), begun: BTreeMap::new() };
        if bench.plan.study.is_open_ended() {
            let folder = RunFolder::open(folder)?;
            blocks.ended.clone_from(&folder.facts().ended);
            folder.each_trial(|record| {
                blocks.trials.push(bare(&record));
                Ok::<(), RecordError>(())
            })?;
        }
        for CaseBlocks { case, blocks, width, why } in &blocks.ended {
            let (blocks, width) = (*blocks, *width);
            bench.observer.judged(case, &Judged { blocks, width, ended: Some(*why), likely: blocks });
        }
        Ok(blocks)
    }

    /// Whether a trial is of a block that its case is known not to take.
    pub fn is_spared(&self, plan: &Plan, planned: &PlannedTrial) -> bool {
        is_spared(plan, &self.ended, planned)
    }

    /// Whether a trial is still to be run. Asked of the trials in the order of the plan: when a new block of a case begins, it is decided
    /// whether the case takes it, and written to the journal if not.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn wants(&mut self, bench: &Bench<'_>, planned: &PlannedTrial) -> Result<bool, RecordError> {
        let (plan, case) = (bench.plan, &planned.case);
        // So many blocks are whole when this one begins.
        let block = plan.study_block(planned).saturating_sub(1);
        if !self.is_spared(plan, planned) && self.begun.get(case) != Some(&block) {
            self.judge(bench, case, block)?;
            self.begun.insert(case.clone(), block);
        }
        Ok(!self.is_spared(plan, planned))
    }

    /// Takes note of a trial that is recorded.
    pub fn add(&mut self, plan: &Plan, record: &TrialRecord) {
        if plan.study.is_open_ended() {
            self.trials.push(bare(record));
        }
    }

    /// Ends the cases that took all their blocks.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn finish(&mut self, bench: &Bench<'_>) -> Result<(), RecordError> {
        let study = &bench.plan.study;
        for case in &study.cases {
            if self.ended.iter().all(|ended| ended.case != case.id) {
                self.judge(bench, &case.id, study.most_blocks())?;
            }
        }
        Ok(())
    }

    /// Judges a case after so many whole blocks.
    fn judge(&mut self, bench: &Bench<'_>, case: &str, blocks: u32) -> Result<(), RecordError> {
        let Some(judged) = (self.rule)(bench.plan, case, blocks, &self.trials) else { return Ok(()) };
        if blocks >= FORESEEN_FROM || judged.ended.is_some() {
            bench.observer.judged(case, &judged);
        }
        if let Some(why) = judged.ended {
            let ended = CaseBlocks { case: case.to_owned(), blocks, width: judged.width, why };
            bench.book.write(&JournalEvent::CaseEnded(ended.clone()))?;
            self.ended.push(ended);
        }
        Ok(())
    }
}

/// A record without all that the rule does not look at: samples and histograms of hundreds of trials would fill the memory.
fn bare(record: &TrialRecord) -> TrialRecord {
    let outcome = match &record.outcome {
        Outcome::Completed(measured) => {
            Outcome::Completed(Measurement { metrics: measured.metrics.clone(), ..Measurement::default() })
        }
        without_figures => without_figures.clone(),
    };
    TrialRecord {
        planned: record.planned.clone(),
        started_at: record.started_at.clone(),
        wall_s: record.wall_s,
        load_s: record.load_s,
        outcome,
        metrics: record.metrics.clone(),
        parity: Vec::new(),
        cpu: record.cpu,
        window_ns: None,
        turns: None,
        samples: Vec::new(),
        flags: record.flags.clone(),
        deviations: Vec::new(),
        facts: BTreeMap::new(),
    }
}
