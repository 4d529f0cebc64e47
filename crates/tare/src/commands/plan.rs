//! `tare plan`.

use std::path::Path;

use tare_controller::Found;
use tare_model::plan::Plan;
use tare_study::{Directories, HostFacts, LoadedStudy};

use crate::args::PlanArguments;
use crate::catalog::Registries;
use crate::exit::{Exit, Failure};
use crate::{available, output, place, studies};

/// Shows what a run would do, and which of its arms and workloads this host cannot run.
pub fn command(arguments: &PlanArguments) -> Result<Exit, Failure> {
    let loaded = studies::load(&arguments.study)?;
    let plan = planned(&loaded, Path::new("runs"), &arguments.study.without, false)?;
    if arguments.json {
        let json = serde_json::to_string_pretty(&plan).map_err(|error| Failure::new(error, Exit::Failure))?;
        output::print(&json)?;
    } else {
        output::print(&tare_study::human(&plan))?;
    }
    let cannot = tare_controller::unavailable(&plan.study.arms, &place::agent());
    let arms = cannot.iter().map(|(arm, reason, remedy)| {
        format!("arm `{arm}` cannot run here: {reason}\n  remedy: {remedy}, or `--without {arm}`")
    });
    let lacking =
        tare_controller::workloads_of(&plan.study.cases).into_iter().filter_map(|report| match report.found {
            Found::Lacking { reason, remedy } => {
                Some(format!("workload `{}` cannot run here: {reason}\n  remedy: {remedy}", report.name))
            }
            Found::Usable | Found::OnRequest => None,
        });
    let told: Vec<String> = arms.chain(lacking).collect();
    if told.is_empty() { Ok(Exit::Success) } else { Err(Failure::new(told.join("\n"), Exit::HostUnfit)) }
}

/// Plans a study on this host; `out` is where its run folder will be (or is, when `resume`), `without` the arms that
/// were left out by the user. Those that the host cannot run are left out too if the study says so.
///
/// # Errors
/// When it does not fit, with the figures.
pub fn planned(loaded: &LoadedStudy, out: &Path, without: &[String], resume: bool) -> Result<Plan, Failure> {
    let (cache, guests) = (tare_image::cache_directory(), tare_lab::disk_path(""));
    let directories = Directories { out, cache: &cache, gold: &tare_controller::gold_directory(), guests: &guests };
    let host = HostFacts::read(directories).map_err(|error| Failure::new(error, Exit::Failure))?;
    let (study, left_out) = available::reduced(&loaded.study, resume.then_some(out))?;
    let planned = tare_study::plan(&study, &host, &Registries);
    let mut plan = planned.map_err(|error| Failure::new(error, Exit::HostUnfit))?;
    plan.deviations.extend(left_out.iter().map(available::sentence));
    plan.left_out = left_out;
    for arm in without {
        plan.deviations.push(format!("the study's arm `{arm}` was left out (--without)"));
    }
    Ok(plan)
}
