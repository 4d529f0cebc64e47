//! `tare plan`.

use std::path::Path;

use tare_model::plan::Plan;
use tare_study::{HostFacts, LoadedStudy};

use crate::args::PlanArguments;
use crate::catalog::Registries;
use crate::exit::{Exit, Failure};
use crate::{output, studies};

/// Shows what a run would do.
pub fn command(arguments: &PlanArguments) -> Result<Exit, Failure> {
    let plan = planned(&studies::load(&arguments.study)?, Path::new("runs"))?;
    if arguments.json {
        let json = serde_json::to_string_pretty(&plan).map_err(|error| Failure::new(error, Exit::Failure))?;
        output::print(&json)?;
    } else {
        output::print(&tare_study::human(&plan))?;
    }
    Ok(Exit::Success)
}

/// Plans a study on this host; `out` is where its run folder will be.
///
/// # Errors
/// When it does not fit, with the figures.
pub fn planned(loaded: &LoadedStudy, out: &Path) -> Result<Plan, Failure> {
    let host = HostFacts::read(out).map_err(|error| Failure::new(error, Exit::Failure))?;
    tare_study::plan(&loaded.study, &host, &Registries).map_err(|error| Failure::new(error, Exit::HostUnfit))
}
