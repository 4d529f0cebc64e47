//! Takes away what dead runs left, from a fresh process.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tare_lab::{FoundRun, ReapReport, Resource, StateDir};
use tare_platform::ReapSite;
use tare_record::{Journal, JournalEvent};

use crate::ControllerError;

/// A run whose controller is gone, and what was done about it.
#[derive(Debug)]
pub struct ReapedRun {
    /// Run id.
    pub run_id: String,
    /// Its run folder, if that is known.
    pub folder: Option<PathBuf>,
    /// What was found and taken away, and what could not be.
    pub report: ReapReport,
}

/// Reaps every run of this user whose controller is gone. Running it again finds nothing.
///
/// # Errors
/// When the state directories cannot be listed.
pub fn reap_dead(agent: &Path) -> Result<Vec<ReapedRun>, ControllerError> {
    let mut reaped = Vec::new();
    for found in StateDir::list()? {
        if !found.live {
            reaped.push(reap_run(&found, agent));
        }
    }
    Ok(reaped)
}

/// Takes away what is left of a run by its own controller, which holds the run's lock.
pub fn reap_own(run_id: &str, mut held: Vec<Resource>, agent: &Path) -> ReapReport {
    held.reverse();
    tare_lab::reap(run_id, &held, &mut |platform, token| reap_held(&ReapSite { agent }, platform, token))
}

/// Reaps one run.
pub fn reap_run(found: &FoundRun, agent: &Path) -> ReapedRun {
    let folder = found.info.as_ref().map(|info| info.run_folder.clone());
    let resources = folder.as_deref().map(still_planned).unwrap_or_default();
    let site = ReapSite { agent };
    let report = tare_lab::reap(&found.run_id, &resources, &mut |platform, token| reap_held(&site, platform, token));
    ReapedRun { run_id: found.run_id.clone(), folder, report }
}

/// What the journal of a run folder says was planned and not released. A folder that cannot be read any
/// more is no reason to leave things behind: what is found by run id goes all the same.
fn still_planned(folder: &Path) -> Vec<Resource> {
    let Ok(journal) = Journal::read(&folder.join("journal.jsonl")) else { return Vec::new() };
    let mut planned: Vec<Value> = Vec::new();
    for entry in journal.entries {
        match entry.event {
            JournalEvent::ResourcePlanned { resource } => planned.push(resource),
            JournalEvent::ResourceReleased { resource } => {
                if let Some(position) = planned.iter().position(|value| *value == resource) {
                    planned.remove(position);
                }
            }
            _ => {}
        }
    }
    // Last made, first taken away.
    planned.into_iter().rev().filter_map(|value| serde_json::from_value(value).ok()).collect()
}

/// Has a platform take away what it holds.
fn reap_held(site: &ReapSite<'_>, platform: &str, token: &Value) -> Result<(), String> {
    let entry = tare_platform::registry::find(platform)
        .ok_or_else(|| format!("this tare has no platform `{platform}`; use the one that made it"))?;
    (entry.reap)(site, token).map_err(|error| error.to_string())
}
