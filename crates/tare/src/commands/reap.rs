//! `tare reap`.

use std::fmt::Write;

use tare_controller::ReapedRun;

use crate::exit::{Exit, Failure};
use crate::{output, place};

/// Takes away what dead runs left; of the one that is to be forgotten, also from its list what is on machines that do not answer.
pub fn command(forget: Option<&str>) -> Result<Exit, Failure> {
    let agent = place::agent();
    let reaped = match forget {
        Some(run_id) => tare_controller::forget_run(run_id, &agent).map(|run| vec![run]),
        None => tare_controller::reap_dead(&agent),
    };
    let reaped = reaped.map_err(|error| Failure::new(error, Exit::Failure))?;
    if reaped.is_empty() {
        output::print("nothing to reap: no dead run left anything on this host")?;
        return Ok(Exit::Success);
    }
    let mut clean = true;
    for run in &reaped {
        output::print(&summary(run))?;
        clean &= run.report.left.is_empty();
    }
    Ok(if clean { Exit::Success } else { Exit::Failure })
}

/// Is the reaper of a run, until its controller is gone.
pub fn attend(run_id: &str) -> Result<Exit, Failure> {
    tare_controller::attend(run_id, &place::agent()).map_err(|error| Failure::new(error, Exit::Failure))?;
    Ok(Exit::Success)
}

/// What was done about one run, in words.
pub fn summary(run: &ReapedRun) -> String {
    let mut text = format!("run {}", run.run_id);
    if let Some(folder) = run.folder.as_ref().filter(|folder| folder.is_dir()) {
        // Writing to a string cannot fail.
        let _ = write!(text, " (its results stay in {})", folder.display());
    }
    let report = &run.report;
    let _ = write!(text, ": {} processes killed, {} things removed", report.killed.len(), report.removed.len());
    for (resource, why) in &run.forgotten {
        let _ = write!(text, "\n  forgotten, and perhaps still there: {resource}: {why}");
    }
    for (resource, why) in &report.left {
        let _ = write!(text, "\n  still there: {resource}: {why}");
    }
    text
}
