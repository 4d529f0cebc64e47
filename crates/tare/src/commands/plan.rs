//! `tare plan`.

use std::path::Path;

use tare_model::plan::Plan;
use tare_study::{HostFacts, LoadedStudy};

use crate::args::PlanArguments;
use crate::catalog::Registries;
use crate::exit::{Exit, Failure};
use crate::{output, place, studies};

/// Shows what a run would do, and which of its arms this host cannot run.
pub fn command(arguments: &PlanArguments) -> Result<Exit, Failure> {
    let plan = planned(&studies::load(&arguments.study)?, Path::new("runs"), &arguments.study.without)?;
    if arguments.json {
        let json = serde_json::to_string_pretty(&plan).map_err(|error| Failure::new(error, Exit::Failure))?;
        output::print(&json)?;
    } else {
        output::print(&tare_study::human(&plan))?;
    }
    let cannot = tare_controller::unavailable(&plan.study.arms, &place::agent());
    if cannot.is_empty() {
        return Ok(Exit::Success);
    }
    let arms: Vec<String> = cannot
        .iter()
        .map(|(arm, reason, remedy)| {
            format!("arm `{arm}` cannot run here: {reason}\n  remedy: {remedy}, or `--without {arm}`")
        })
        .collect();
    Err(Failure::new(arms.join("\n"), Exit::HostUnfit))
}

/// Plans a study on this host; `out` is where its run folder will be, `without` the arms that were left out.
///
/// # Errors
/// When it does not fit, with the figures.
pub fn planned(loaded: &LoadedStudy, out: &Path, without: &[String]) -> Result<Plan, Failure> {
    let host = HostFacts::read(out).map_err(|error| Failure::new(error, Exit::Failure))?;
    let planned = tare_study::plan(&loaded.study, &host, &Registries);
    let mut plan = planned.map_err(|error| Failure::new(error, Exit::HostUnfit))?;
    for arm in without {
        plan.deviations.push(format!("the study's arm `{arm}` was left out (--without)"));
    }
    Ok(plan)
}
