//! A run as it is analysed.

use tare_model::environment::Environment;
use tare_model::plan::{Plan, PlannedTrial};
use tare_model::precision::is_spared;
use tare_model::trial::TrialRecord;
use tare_record::RunFacts;

/// Everything that findings are made from.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Who ran it and how far it came.
    pub facts: &'a RunFacts,
    /// The plan.
    pub plan: &'a Plan,
    /// The host.
    pub environment: &'a Environment,
    /// The trials that are stored, in any order.
    pub trials: &'a [TrialRecord],
    /// What is wrong with the folder, each in a sentence.
    pub problems: &'a [String],
}

impl<'a> Run<'a> {
    /// The trials that the plan has, without those of blocks that their cases do not take.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = &'a PlannedTrial> {
        let (plan, ended) = (self.plan, &self.facts.ended);
        plan.trials.iter().filter(|planned| !is_spared(plan, ended, planned))
    }
}
