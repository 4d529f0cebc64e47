//! What a run tells while it goes on.

use tare_model::plan::{Plan, PlannedTrial};
use tare_model::trial::{Phase, TrialRecord};

/// Sees a run as it happens. Calls come from the thread that runs trials and must not block it.
pub trait Observer {
    /// The run begins (or goes on): this many trials of the plan were done already.
    fn run_began(&self, _plan: &Plan, _done: u32) {}
    /// A trial begins.
    fn trial_began(&self, _trial: &PlannedTrial) {}
    /// A trial enters a phase.
    fn phase_entered(&self, _trial: &PlannedTrial, _phase: Phase) {}
    /// A trial is over and in the run folder.
    fn trial_ended(&self, _record: &TrialRecord) {}
    /// Something the user should know now, such as a dead run that was cleaned up.
    fn note(&self, _text: &str) {}
}

/// Sees and says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Observer for Quiet {}
