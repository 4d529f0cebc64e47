//! Takes away what dead runs left, from a fresh process.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tare_lab::{FoundRun, ReapReport, Resource, StateDir};
use tare_platform::ReapSite;

use crate::ControllerError;

/// A run whose controller is gone, and what was done about it.
#[derive(Debug)]
pub struct ReapedRun {
    /// Run id.
    pub run_id: String,
    /// Its run folder, if that is known; shown to people, and never read.
    pub folder: Option<PathBuf>,
    /// What was found and taken away, and what could not be.
    pub report: ReapReport,
    /// What was struck from its list, and why it could not be taken away.
    pub forgotten: Vec<(Resource, String)>,
}

/// What could not be taken away, and why.
pub fn left_in_words(report: &ReapReport) -> String {
    let left: Vec<String> = report.left.iter().map(|(what, why)| format!("{what}: {why}")).collect();
    left.join("; ")
}

/// Reaps every run of this user whose controller is gone. Running it again finds nothing.
///
/// # Errors
/// When the state directories cannot be listed.
pub fn reap_dead(agent: &Path) -> Result<Vec<ReapedRun>, ControllerError> {
    let mut reaped = Vec::new();
    for found in StateDir::list()? {
        reaped.extend(reap_found(found, agent));
    }
    Ok(reaped)
}

/// Reaps a run unless it is alive. `None` also where another process was at it and left nothing for us.
pub fn reap_found(found: FoundRun, agent: &Path) -> Option<ReapedRun> {
    if found.live && !found.is_orphan() {
        return None;
    }
    let reaped = reap_run(&found, agent);
    let ours = !found.live || reaped.report != ReapReport::default();
    ours.then_some(reaped)
}

/// Takes away what is left of a run by its own controller, which holds the run's lock. `held` is what its ledger holds.
pub fn reap_own(run_id: &str, mut held: Vec<Resource>, agent: &Path) -> ReapReport {
    held.reverse();
    let state = tare_lab::state_path(run_id);
    let site = ReapSite { run_id, state: &state, agent };
    tare_lab::reap(run_id, &held, &mut |platform, token| reap_held(&site, platform, token))
}

/// Reaps one run, by its ledger and its id alone: nothing in its run folder is looked at. A ledger that is refused is no reason
/// to leave behind what is found by the run's id; the report says why, and the ledger stays.
pub fn reap_run(found: &FoundRun, agent: &Path) -> ReapedRun {
    reap_one(found, agent, false)
}

/// Reaps one run for the last time: what it left on other machines that do not answer is struck from its list, since nobody else will ever
/// take it away.
///
/// # Errors
/// When there is no such run, or it is alive.
pub fn forget_run(run_id: &str, agent: &Path) -> Result<ReapedRun, ControllerError> {
    let no_such_run = || ControllerError::NoDeadRun { run: run_id.to_owned() };
    let found = StateDir::list()?.into_iter().find(|found| found.run_id == run_id && !found.live);
    Ok(reap_one(&found.ok_or_else(no_such_run)?, agent, true))
}

fn reap_one(found: &FoundRun, agent: &Path, forgets: bool) -> ReapedRun {
    let folder = found.info.as_ref().map(|info| info.run_folder.clone());
    let resources = tare_lab::still_planned(&found.path).unwrap_or_default();
    let site = ReapSite { run_id: &found.run_id, state: &found.path, agent };
    let mut forgotten = Vec::new();
    let mut report = tare_lab::reap(&found.run_id, &resources, &mut |platform, token| {
        reap_held(&site, platform, token).or_else(|why| {
            let resource = Resource::Held { platform: platform.to_owned(), token: token.clone() };
            if !forgets || !is_elsewhere(&resource) {
                return Err(why);
            }
            forgotten.push((resource, why));
            Ok(())
        })
    });
    report.removed.retain(|resource| forgotten.iter().all(|(other, _)| other != resource));
    ReapedRun { run_id: found.run_id.clone(), folder, report, forgotten }
}

/// Whether something is on another machine, and no part of this host.
pub fn is_elsewhere(resource: &Resource) -> bool {
    matches!(resource, Resource::Held { platform, .. } if tare_platform::registry::is_outside(platform))
}

/// Has a platform take away what it holds.
fn reap_held(site: &ReapSite<'_>, platform: &str, token: &Value) -> Result<(), String> {
    let entry = tare_platform::registry::find(platform)
        .ok_or_else(|| format!("this tare has no platform `{platform}`; use the one that made it"))?;
    (entry.reap)(site, token).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_that_this_tare_does_not_know_is_named() {
        let (run_id, state) = ("r", Path::new("/nonexistent"));
        let site = ReapSite { run_id, state, agent: state };
        let why = reap_held(&site, "no-such-platform", &Value::Null).unwrap_err();
        assert!(why.contains("no-such-platform"), "{why}");
    }
}
