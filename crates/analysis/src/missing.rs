//! Which blocks have no figure, although their trials ran.

use tare_model::flag;
use tare_model::trial::TrialRecord;

use crate::distribution::completed;

/// The finite value of a metric of a completed trial.
pub(crate) fn value(record: &TrialRecord, metric: &str) -> Option<f64> {
    completed(record)?.metrics.get(metric).copied().filter(|value| value.is_finite())
}

/// Whether a trial has no value for a reason that may have to do with its arm: it failed, its work was wrong, or it has too few operations
/// for this figure. Not where the failure was that of an arm with which it took turns.
pub(crate) fn is_lost(record: &TrialRecord, metric: &str) -> bool {
    value(record, metric).is_none() && record.flags.iter().all(|flag| flag.kind != flag::OTHER_ARM_FAILED)
}

/// The blocks of an arm that have no ratio to the baseline because the trial of either is lost. Their number goes into the interval: a
/// comparison of the blocks that happened to survive is one of the easier ones.
pub(crate) fn blocks(arm: &[&TrialRecord], baseline: &[&TrialRecord], metric: &str) -> u32 {
    let beside = |own: &TrialRecord| baseline.iter().find(|record| record.planned.block == own.planned.block);
    let lost = |own: &&&TrialRecord| is_lost(own, metric) || beside(own).is_some_and(|record| is_lost(record, metric));
    arm.iter().filter(lost).count() as u32
}
