//! Who else has changed settings of this host: of two that change the same, each would put back what the other had set.

use std::path::PathBuf;

use tare_lab::Resource;
use tare_memory::Kernel;
use tare_model::merging::HostMemory;
use tare_model::study::Study;

use crate::error::ControllerError;
use crate::other_runs::{others, pid_of};

/// Sees that nobody else who is alive has changed what a study changes of the host's memory.
///
/// # Errors
/// Who has, or that the state directories cannot be listed.
pub fn none_beside(run_id: &str, kernel: &Kernel, study: &Study) -> Result<(), ControllerError> {
    study.arms.iter().try_for_each(|arm| none_beside_arm(run_id, kernel, &arm.host_memory, study.merges()))
}

/// The same for what one arm changes; `stop_merging`: other arms of its study merge.
///
/// # Errors
/// As above.
pub fn none_beside_arm(
    run_id: &str,
    kernel: &Kernel,
    wanted: &HostMemory,
    stop_merging: bool,
) -> Result<(), ControllerError> {
    if wanted.is_as_found() && !stop_merging {
        return Ok(());
    }
    // Whoever sets it reports what is missing on this host.
    let ours = kernel.found(wanted, stop_merging).unwrap_or_default();
    for other in others(run_id)? {
        // A ledger that another user may have written is no word of theirs.
        let planned = tare_lab::still_planned(&other.path).unwrap_or_default();
        if planned.iter().any(|resource| changes(resource, &ours)) {
            let (run, pid) = (other.run_id.clone(), pid_of(&other));
            return Err(ControllerError::Governed { run, pid });
        }
    }
    Ok(())
}

/// Whether somebody has changed one of these settings.
fn changes(resource: &Resource, ours: &[(PathBuf, String)]) -> bool {
    let Resource::Settings { found } = resource else { return false };
    found.iter().any(|(theirs, _)| ours.iter().any(|(path, _)| path == theirs))
}
