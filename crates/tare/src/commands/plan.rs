//! `tare plan`.

use std::path::Path;

use tare_controller::{Found, May};
use tare_model::Refusal;
use tare_model::plan::Plan;
use tare_model::redact::Redactor;
use tare_study::{Directories, HostFacts, LoadedStudy};

use crate::args::{PlanArguments, StudyArguments};
use crate::catalog::Registries;
use crate::exit::{Exit, Failure};
use crate::{available, output, studies};

/// Shows what a run would do, and which of its arms and workloads this host cannot run.
pub fn command(arguments: &PlanArguments) -> Result<Exit, Failure> {
    let loaded = studies::load(&arguments.study)?;
    // Only what the study itself holds: a plan reads no secret.
    output::keep_out(Redactor::of(&loaded.study, false));
    let plan = planned(&loaded, Path::new("runs"), &arguments.study, Goal::Look)?;
    if arguments.json {
        let shown = Redactor::of(&loaded.study, true).plan(&plan);
        let json = serde_json::to_string_pretty(&shown).map_err(|error| Failure::new(error, Exit::Failure))?;
        output::print(&json)?;
    } else {
        output::print(&tare_study::human(&plan, &host(Path::new("runs"))?))?;
        output::print(NOT_TRIED)?;
    }
    let cannot = available::refused(&plan.study, May::Look);
    let arms = cannot.iter().map(|(arm, Refusal { reason, remedy })| {
        format!("arm `{arm}` cannot run here: {reason}\n  remedy: {remedy}, or `--without {arm}`")
    });
    let workloads = tare_controller::workloads_of(&plan.study.cases, May::Look).into_iter().filter_map(|report| {
        match report.found {
            Found::Unusable(Refusal { reason, remedy }) => {
                Some(format!("workload `{}` cannot run here: {reason}\n  remedy: {remedy}", report.name))
            }
            Found::Usable | Found::OnRequest => None,
        }
    });
    let reasons: Vec<String> = arms.chain(workloads).collect();
    if reasons.is_empty() { Ok(Exit::Success) } else { Err(Failure::new(reasons.join("\n"), Exit::HostUnfit)) }
}

/// What a plan does not find out, for it looks at a study that nobody may have read yet.
const NOT_TRIED: &str =
    "Not tried: a plan runs no program and connects to no machine; `tare doctor STUDY` and `tare run` do";

/// What a plan is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// To be looked at: nothing is run.
    Look,
    /// A new run.
    Run,
    /// Going on with a run.
    Resume,
}

/// Plans a study on this host; `out` is where its run folder will be (or is, to resume), `asked` what the
/// user asked for besides, such as arms to leave out. Those that the host cannot run are left out too if the study says so.
///
/// # Errors
/// When it does not fit, with the figures.
pub fn planned(loaded: &LoadedStudy, out: &Path, asked: &StudyArguments, goal: Goal) -> Result<Plan, Failure> {
    let host = host(out)?;
    let may = if goal == Goal::Look { May::Look } else { May::Run };
    let resumed = (goal == Goal::Resume).then_some(out);
    let (study, left_out) = available::reduced(&loaded.study, resumed, may, asked.emulated)?;
    let planned = tare_study::plan(&study, &host, &Registries);
    let mut plan = planned.map_err(|error| Failure::new(error, Exit::HostUnfit))?;
    plan.deviations.extend(left_out.iter().map(available::sentence));
    plan.left_out = left_out;
    plan.deviations.extend(loaded.reduced.iter().cloned());
    Ok(plan)
}

/// This host, as a run into `out` finds it.
fn host(out: &Path) -> Result<HostFacts, Failure> {
    let (cache, guests) = (tare_image::cache_directory(), tare_lab::disk_path(""));
    let directories = Directories { out, cache: &cache, gold: &tare_controller::gold_directory(), guests: &guests };
    HostFacts::read(directories).map_err(|error| Failure::new(error, Exit::Failure))
}
