//! `tare plan`.

use std::path::Path;

use tare_controller::{Found, May};
use tare_model::Refusal;
use tare_model::plan::Plan;
use tare_model::redact::Redactor;
use tare_model::study::{CaseSchedule, Study};
use tare_record::RunFolder;
use tare_report::Page;
use tare_study::{Directories, HostFacts, LoadedStudy};

use crate::args::{PlanArguments, StudyArguments};
use crate::catalog::Registries;
use crate::exit::{Exit, Failure};
use crate::power::{self, Noise};
use crate::{available, forms, output, place, studies};

/// Shows what a run would do, and which of its arms and workloads this host cannot run.
pub fn command(arguments: &PlanArguments) -> Result<Exit, Failure> {
    let loaded = studies::load(&arguments.study)?;
    // Only what the study itself holds: a plan reads no secret.
    output::keep_out(Redactor::of(&loaded.study, false));
    let plan = planned(&loaded, Path::new(place::RUNS), &arguments.study, Goal::Look)?;
    let noise = Noise::new(arguments.noise, arguments.noise_from.as_deref())?;
    let host = host(Path::new(place::RUNS))?;
    let page = |_| {
        let mut lines = vec![tare_study::human(&plan, &host).trim_end().to_owned()];
        lines.extend(power::words(&plan, &noise));
        let refused = available::without_subject(&plan).filter(|_| !arguments.study.what_can);
        lines.extend(refused.map(|why| format!("`tare run` will refuse this: {why}")));
        lines.push(NOT_TRIED.to_owned());
        lines.extend(loaded.draws_seed.then(|| DRAWS.to_owned()));
        Page::of_lines(format!("Plan of {}", plan.study.name), lines.join("\n"))
    };
    forms::print(arguments.shown.format, &Redactor::of(&loaded.study, true).plan(&plan), page)?;
    let reasons = refusals(&plan);
    if reasons.is_empty() { Ok(Exit::Success) } else { Err(Failure::new(reasons.join("\n"), Exit::HostUnfit)) }
}

/// Whether this host has room for a shipped study, and can run its arms and workloads.
pub fn fits(study: &str) -> bool {
    let asked = StudyArguments::of(study);
    let planned = studies::load(&asked).and_then(|loaded| planned(&loaded, Path::new(place::RUNS), &asked, Goal::Look));
    planned.is_ok_and(|plan| refusals(&plan).is_empty() && available::without_subject(&plan).is_none())
}

/// Why this host cannot run arms and workloads of a plan, with the remedies.
fn refusals(plan: &Plan) -> Vec<String> {
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
    arms.chain(workloads).collect()
}

/// What a plan does not find out, for it looks at a study that nobody may have read yet.
const NOT_TRIED: &str =
    "Not tried: a plan runs no program and connects to no machine; `tare doctor STUDY` and `tare run` do";

/// Said where neither study nor command line name a seed.
const DRAWS: &str = "The order is that of one seed: each run draws a seed of its own and records it; `--seed` fixes it";

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
    let mut host = host(out)?;
    let may = if goal == Goal::Look { May::Look } else { May::Run };
    let resumed = (goal == Goal::Resume).then_some(out);
    let (study, left_out) = available::reduced(&loaded.study, resumed, may, (asked.emulated, asked.what_can))?;
    host.emulated = emulated(&study, asked.emulated, may);
    let planned = tare_study::plan(&study, &host, &Registries);
    let mut plan = planned.map_err(|error| Failure::new(error, Exit::HostUnfit))?;
    if let Some(folder) = resumed {
        shared_as_before(&mut plan, folder)?;
    }
    plan.differences.extend(left_out.iter().map(available::sentence));
    plan.left_out = left_out;
    plan.differences.extend(loaded.reduced.iter().cloned());
    if plan.study.baseline != loaded.study.baseline {
        let (now, own) = (&plan.study.baseline, &loaded.study.baseline);
        plan.differences.push(format!("the baseline is `{now}`, because `{own}` cannot run here"));
    }
    let refused = available::without_subject(&plan).filter(|_| goal == Goal::Run && !asked.what_can);
    refused.map_or(Ok(plan), |why| Err(Failure::new(why, Exit::HostUnfit)))
}

/// Arms of a study that is run whose machines are emulated here. Where those are left out that would be without being asked for, they are
/// no arms of it any more, and need not be looked for.
fn emulated(study: &Study, asked: bool, may: May) -> Vec<String> {
    let may = if study.skip_unavailable && !asked { May::Look } else { may };
    tare_controller::emulated(&study.arms, &place::agent(), may)
}

/// A run that is resumed goes on with the turns that it began with, and without those that it began without: the blocks of a case are
/// measured in one way. The run reports a folder that cannot be read: it reads it next.
///
/// # Errors
/// When the run took turns for which this host has no room any more.
fn shared_as_before(plan: &mut Plan, folder: &Path) -> Result<(), Failure> {
    let Ok(folder) = RunFolder::open(folder) else { return Ok(()) };
    let before = folder.plan();
    if before.hash != plan.hash {
        return Ok(());
    }
    for (case, began) in plan.study.cases.iter_mut().zip(&before.study.cases) {
        if let Some((how, why)) = missing(&began.schedule, &case.schedule) {
            let message = format!(
                "the arms of `{}` took turns {how} when this run began, and cannot here and now: {why}. Free what is missing, or begin a new \
                 run",
                case.id
            );
            return Err(Failure::new(message, Exit::HostUnfit));
        }
        case.schedule = began.schedule.clone();
    }
    (plan.trials, plan.sets) = (before.trials.clone(), before.sets.clone());
    Ok(())
}

/// How arms took turns when a run began, and why they cannot take them so now; `None` where they can, or took none.
fn missing<'a>(began: &CaseSchedule, now: &'a CaseSchedule) -> Option<(&'static str, &'a str)> {
    match (began, now) {
        (CaseSchedule::Turns(_), CaseSchedule::Pairs { why, .. } | CaseSchedule::Trials { why }) => {
            Some(("all together", why))
        }
        (CaseSchedule::Pairs { .. }, CaseSchedule::Trials { why }) => Some(("in pairs", why)),
        _ => None,
    }
}

/// This host, as a run into `out` finds it.
fn host(out: &Path) -> Result<HostFacts, Failure> {
    let (cache, guests) = (tare_image::cache_directory(), tare_lab::disk_path(""));
    let directories = Directories { out, cache: &cache, gold: &tare_controller::gold_directory(), guests: &guests };
    HostFacts::read(directories).map_err(|error| Failure::new(error, Exit::Failure))
}

#[cfg(test)]
mod tests {
    use tare_model::Span;
    use tare_model::turns::{TurnSpec, Waiting};

    use super::*;

    #[test]
    fn a_run_goes_on_as_it_began_where_there_is_room_for_that() {
        let (turn, warm_up, gap) = (Span::from_millis(20), Span::ZERO, Span::from_millis(1));
        let spec = TurnSpec { turn, warm_up, gap, waiting: Waiting::Idle, commands: None };
        let all = CaseSchedule::Turns(spec);
        let two = CaseSchedule::Pairs { turns: spec, pairs: 2, why: "of three".to_owned() };
        let one = CaseSchedule::Trials { why: "of two".to_owned() };
        assert_eq!(missing(&all, &two), Some(("all together", "of three")));
        assert_eq!(missing(&all, &one), Some(("all together", "of two")));
        assert_eq!(missing(&two, &one), Some(("in pairs", "of two")));
        for (began, now) in [(&all, &all), (&two, &all), (&two, &two), (&one, &all), (&one, &two), (&one, &one)] {
            assert_eq!(missing(began, now), None);
        }
    }
}
