//! Which trials run together, in turns.

use tare_model::plan::PlannedTrial;
use tare_model::study::Study;

/// The trials of each block and case whose arms take turns, by index. They stand one after another in the order of a plan.
pub(super) fn sets(study: &Study, trials: &[PlannedTrial]) -> Vec<Vec<u32>> {
    let in_turns = |id: &str| study.cases.iter().any(|case| case.id == id && case.schedule.turns().is_some());
    let together = |one: &PlannedTrial, other: &PlannedTrial| (one.block, &one.case) == (other.block, &other.case);
    let chunks = trials.chunk_by(together).filter(|chunk| chunk.len() > 1 && in_turns(&chunk[0].case));
    chunks.map(|chunk| chunk.iter().map(|trial| trial.index).collect()).collect()
}
