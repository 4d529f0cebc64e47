//! Takes away what dead runs left, from a fresh process.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use tare_lab::{FoundRun, ReapReport, Resource, StateDir};
use tare_platform::ReapSite;
use tare_record::{Journal, JournalEvent};

use crate::ControllerError;

/// How long the lock of a run may be held by others after its controller is gone.
const LET_GO_WITHIN: Duration = Duration::from_secs(10);

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
        reaped.extend(reap_found(found, agent)?);
    }
    Ok(reaped)
}

/// Reaps a run unless it is alive. Where another process is at it, or about to let go, what is still there after that
/// is ours to take away; `None` when there is nothing.
fn reap_found(mut found: FoundRun, agent: &Path) -> Result<Option<ReapedRun>, ControllerError> {
    let deadline = Instant::now() + LET_GO_WITHIN;
    loop {
        if found.live {
            let patience = deadline.saturating_duration_since(Instant::now());
            let ours = found.is_orphan() && found.wait_for_lock(patience)? && found.path.exists();
            if !ours {
                return Ok(None);
            }
        }
        let reaped = reap_run(&found, agent);
        // Another may have taken the lock between the look and the deed.
        found.live = !reaped.report.is_clean() && StateDir::is_live(&found.path)?;
        if !found.live || Instant::now() >= deadline {
            return Ok(Some(reaped));
        }
    }
}

/// Takes away what is left of a run by its own controller, which holds the run's lock.
pub fn reap_own(run_id: &str, mut held: Vec<Resource>, agent: &Path) -> ReapReport {
    held.reverse();
    let state = tare_lab::state_path(run_id);
    let site = ReapSite { run_id, state: &state, agent };
    tare_lab::reap(run_id, &held, &mut |platform, token| reap_held(&site, platform, token))
}

/// Reaps one run.
pub fn reap_run(found: &FoundRun, agent: &Path) -> ReapedRun {
    let folder = found.info.as_ref().map(|info| info.run_folder.clone());
    let planned = folder.as_deref().map(still_planned).unwrap_or_else(|| Ok(Vec::new()));
    let (resources, refused) = match planned {
        Ok(resources) => (resources, None),
        Err(why) => (Vec::new(), folder.clone().map(|path| (Resource::Directory { path }, why))),
    };
    let site = ReapSite { run_id: &found.run_id, state: &found.path, agent };
    let mut report =
        tare_lab::reap(&found.run_id, &resources, &mut |platform, token| reap_held(&site, platform, token));
    report.left.extend(refused);
    ReapedRun { run_id: found.run_id.clone(), folder, report }
}

/// What the journal of a run folder says was planned and not released. A folder that cannot be read any
/// more is no reason to leave things behind: what is found by run id goes all the same. One that another user
/// may have written is refused, for programs are run from this list; the error says so.
///
/// # Errors
/// What is wrong with the journal, when another user may have written it.
pub fn still_planned(folder: &Path) -> Result<Vec<Resource>, String> {
    let file = match tare_lab::open_trusted(&folder.join("journal.jsonl")) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(Vec::new()),
        Err(error) => return Err(error.to_string()),
    };
    // By its descriptor: what was looked at is what is read.
    let Ok(journal) = Journal::parse(file) else { return Ok(Vec::new()) };
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
    Ok(planned.into_iter().rev().filter_map(|value| serde_json::from_value(value).ok()).collect())
}

/// Has a platform take away what it holds.
fn reap_held(site: &ReapSite<'_>, platform: &str, token: &Value) -> Result<(), String> {
    let entry = tare_platform::registry::find(platform)
        .ok_or_else(|| format!("this tare has no platform `{platform}`; use the one that made it"))?;
    (entry.reap)(site, token).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_list_that_another_user_may_have_written_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(still_planned(folder.path()), Ok(Vec::new()), "no journal, no list");
        let journal = folder.path().join("journal.jsonl");
        fs::write(&journal, "").unwrap();
        fs::set_permissions(&journal, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(still_planned(folder.path()), Ok(Vec::new()));
        fs::set_permissions(&journal, Permissions::from_mode(0o666)).unwrap();
        let why = still_planned(folder.path()).unwrap_err();
        assert!(why.contains("journal.jsonl") && why.contains("owner"), "{why}");

        // The run is reaped all the same, and what was not acted upon is told.
        let run_id = format!("test-refused-{}", std::process::id());
        let info = tare_lab::RunInfo {
            run_id: run_id.clone(),
            run_folder: folder.path().to_owned(),
            controller_pid: 1,
            controller_started: 0,
            tare_version: "0".into(),
        };
        let found = FoundRun { path: tare_lab::state_path(&run_id), run_id, info: Some(info), live: false };
        let report = reap_run(&found, Path::new("/nonexistent")).report;
        assert_eq!(report.left, [(Resource::Directory { path: folder.path().to_owned() }, why)]);
    }
}
