//! Runs of other controllers on this host.

use tare_lab::{FoundRun, StateDir};

use crate::error::ControllerError;

/// Runs that are alive on this host beside this one.
pub fn others(run_id: &str) -> Result<Vec<FoundRun>, ControllerError> {
    Ok(StateDir::list()?.into_iter().filter(|found| found.live && found.run_id != run_id).collect())
}

/// The number of a run's controller, in words.
pub fn pid_of(run: &FoundRun) -> String {
    run.info.as_ref().map_or_else(|| "unknown".to_owned(), |info| info.controller_pid.to_string())
}
