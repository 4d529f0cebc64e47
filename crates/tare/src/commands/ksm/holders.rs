//! Who has changed the host's memory settings and has not put them back.

use std::path::PathBuf;
use std::time::Duration;

use tare_lab::{FoundRun, Resource, StateDir};

use crate::exit::{Exit, Failure};

/// A run, or a `tare ksm tune`, that has changed settings of the host.
pub struct Holder {
    /// It, as it was found.
    pub run: FoundRun,
    /// What is to be written back, each file with what it held.
    pub settings: Vec<(PathBuf, String)>,
}

/// How long a lock may be held by others after its owner is gone.
const LET_GO_WITHIN: Duration = Duration::from_secs(10);

impl Holder {
    /// Its process.
    pub fn pid(&self) -> String {
        self.run.info.as_ref().map_or_else(|| "unknown".to_owned(), |info| info.controller_pid.to_string())
    }

    /// Whether it still governs.
    pub fn is_alive(&self) -> bool {
        self.run.live && !self.run.is_orphan()
    }

    /// Whether it is dead, and nobody else is at it; waits for those who are about to let go.
    pub fn may_be_reaped(&self) -> Result<bool, Failure> {
        let free = !self.run.live || (self.run.is_orphan() && self.run.wait_for_lock(LET_GO_WITHIN).map_err(failed)?);
        Ok(free && self.run.path.exists())
    }
}

/// All that there are on this host, of this user.
pub fn all() -> Result<Vec<Holder>, Failure> {
    let mut holders = Vec::new();
    for run in StateDir::list().map_err(failed)? {
        // A ledger that others may have written is refused; `tare reap` says so.
        let planned = tare_lab::still_planned(&run.path).unwrap_or_default();
        let changed = planned.into_iter().filter_map(|resource| match resource {
            Resource::Settings { found } => Some(found),
            _ => None,
        });
        let settings: Vec<_> = changed.flatten().collect();
        if !settings.is_empty() {
            holders.push(Holder { run, settings });
        }
    }
    Ok(holders)
}

/// The one that governs now, if any.
pub fn governing() -> Result<Option<Holder>, Failure> {
    Ok(all()?.into_iter().find(Holder::is_alive))
}

fn failed(error: tare_lab::LabError) -> Failure {
    Failure::new(error, Exit::Failure)
}
