//! Whole runs in folders.

use std::path::Path;

use tare_model::environment::Environment;
use tare_model::plan::Plan;
use tare_model::trial::TrialRecord;

use crate::{JournalEvent, RunWriter};

/// Writes a whole run of `plan` into `dir`, with this id and as it would be on this host.
pub fn write_run_as(dir: &Path, plan: &Plan, trials: &[TrialRecord], run_id: &str, environment: &Environment) {
    let mut writer = RunWriter::create(dir, "# a made-up study\n", plan, environment, run_id, "0.1.0").unwrap();
    for record in trials {
        writer.journal(&JournalEvent::TrialStarted { index: record.planned.index }).unwrap();
        writer.append(record).unwrap();
    }
    writer.journal(&JournalEvent::RunFinished).unwrap();
}
