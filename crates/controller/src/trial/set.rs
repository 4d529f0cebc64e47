//! A set: the trials of one block and case whose arms take turns. All their guests are alive at once. Or those of one block and arm that are
//! conditions of one guest.

use tare_model::flag;
use tare_model::trial::{Flag, Outcome, Phase, TrialRecord};
use tare_model::turns::TurnSpec;
use tare_workload::{DriverSite, WorkSite};

use super::aggressors::Aggressors;
use super::conditions;
use super::drive::Ready;
use super::driving::{Driving, together};
use super::maker::Maker;
use super::target::Target;
use super::{Running, Stop, Task};
use crate::bench::Bench;

/// The guests of each trial, and the neighbours of a guest that meets several conditions.
type Stood = (Vec<Vec<Target>>, Option<Aggressors>);

/// Runs the trials of a set to their end, whatever happens, and takes away all that they made. If one fails, all have: what the others
/// did was done in other turns than the plan says.
///
/// Their guests are started one arm after the other, in the order of the plan. Neighbours that keep the host busy are those of the
/// baseline, or of the first arm, and serve all.
pub fn run(bench: &Bench<'_>, tasks: &[Task<'_>], spec: TurnSpec) -> Vec<TrialRecord> {
    let mut all: Vec<Running<'_>> =
        tasks.iter().map(|task| Running::new(bench, *task, &bench.cancel.clone())).collect();
    let Some(first) = all.first() else { return Vec::new() };
    // All arms of a set treat the host's memory alike.
    let governed = first.trial.govern(&first.gathered.standing);
    let (governed, attempted) = match governed {
        Ok(governed) => (Some(governed), attempt(&mut all, spec)),
        Err(stop) => (None, Err((0, stop))),
    };
    let torn_down: Vec<Result<(), Stop>> =
        all.iter_mut().map(|running| running.trial.tear_down(&mut running.gathered)).collect();
    if let (Some(governed), Some(first)) = (governed, all.first_mut()) {
        first.trial.release(governed, &mut first.gathered);
    }
    let share = 1.0 / all.len() as f64;
    let failed = attempted.as_ref().err().map(|(failed, _)| *failed);
    let outcomes = outcomes(attempted, tasks);
    let records = all.into_iter().zip(outcomes).zip(torn_down);
    records
        .enumerate()
        .map(|(member, ((running, outcome), torn_down))| {
            let mut record = running.record(outcome, torn_down);
            // That a block is lost says nothing about the arms that did not fail.
            if failed.is_some_and(|failed| failed != member) {
                let detail = format!("{} failed", failed.map_or_else(String::new, |failed| name_of(tasks, failed)));
                record.flags.push(Flag { kind: flag::OTHER_ARM_FAILED.to_owned(), detail });
            }
            // The time of the set is that of all its trials together.
            TrialRecord { wall_s: record.wall_s * share, load_s: record.load_s * share, ..record }
        })
        .collect()
}

/// Each trial's own outcome; a failure is that of all, in the words of each.
fn outcomes(attempted: Result<Vec<Outcome>, (usize, Stop)>, tasks: &[Task<'_>]) -> Vec<Result<Outcome, Stop>> {
    let (failed, Stop { phase, reason }) = match attempted {
        Ok(outcomes) => return outcomes.into_iter().map(Ok).collect(),
        Err(failure) => failure,
    };
    let one = name_of(tasks, failed);
    let of = |member: usize| {
        let other = format!("{one}, with which it took turns, failed: {reason}");
        Err(Stop { phase, reason: if member == failed { reason.clone() } else { other } })
    };
    (0..tasks.len()).map(of).collect()
}

fn is_condition(task: &Task<'_>) -> bool {
    task.case.schedule.condition().is_some()
}

/// What tells a member from those with which it takes turns.
fn name_of(tasks: &[Task<'_>], member: usize) -> String {
    let Some(task) = tasks.get(member) else { return String::new() };
    if is_condition(task) { format!("case `{}`", task.planned.case) } else { format!("arm `{}`", task.planned.arm) }
}

/// All phases of all trials up to their figures.
///
/// # Errors
/// The first failure, with whose it was.
fn attempt(all: &mut [Running<'_>], spec: TurnSpec) -> Result<Vec<Outcome>, (usize, Stop)> {
    let (targets, aggressors) = stand_up(all)?;
    let drivers: Vec<Vec<Vec<DriverSite<'_>>>> =
        targets.iter().map(|own| own.iter().map(Target::drivers).collect()).collect();
    let makers: Vec<Option<Maker<'_>>> = all.iter().map(|running| running.trial.maker()).collect();
    let parts = all.iter().zip(&makers).zip(targets.iter().zip(&drivers));
    let sites: Vec<Vec<WorkSite<'_>>> = parts
        .map(|((running, maker), (targets, drivers))| running.trial.sites(targets, drivers, maker.as_ref()))
        .collect();
    let mut prepared: Vec<Vec<Ready>> = Vec::new();
    for (arm, (running, sites)) in all.iter_mut().zip(&sites).enumerate() {
        let prepare = || {
            running.trial.enter(Phase::Prepare)?;
            running.trial.prepare(sites, &running.gathered)
        };
        prepared.push(prepare().map_err(|stop| (arm, stop))?);
    }
    for (arm, running) in all.iter().enumerate() {
        running.trial.enter(Phase::Drive).map_err(|stop| (arm, stop))?;
    }
    let driven = {
        let parts = all.iter_mut().zip(&sites).zip(&mut prepared);
        let mut driving: Vec<Driving<'_, '_>> = parts
            .map(|((running, sites), prepared)| Driving {
                trial: running.trial,
                sites,
                prepared,
                gathered: &mut running.gathered,
            })
            .collect();
        together(&mut driving, Some(spec), aggressors.as_ref())?
    };
    let mut outcomes = Vec::new();
    for (arm, driven) in driven.into_iter().enumerate() {
        if aggressors.is_some() {
            conditions::pass_on(all, arm);
        }
        let Some(Running { trial, gathered, .. }) = all.get_mut(arm) else { continue };
        let figures = trial.figures(&mut prepared[arm], &sites[arm], driven, gathered).map_err(|stop| (arm, stop))?;
        let (mut measurement, wrong) = figures;
        let gone = aggressors.as_ref().and_then(|own| own.put_in(arm, &mut measurement, &mut gathered.flags));
        outcomes.push(trial.outcome((measurement, wrong.or(gone)), gathered));
    }
    drop(prepared);
    drop(sites);
    drop(drivers);
    for (running, targets) in all.iter_mut().zip(targets) {
        running.trial.end_drivers(targets, &mut running.gathered);
    }
    Ok(outcomes)
}

/// Starts all guests and what stands beside them: the guests of each arm, or the one that meets all conditions, with the neighbours that work in
/// their turns.
fn stand_up(all: &mut [Running<'_>]) -> Result<Stood, (usize, Stop)> {
    if all.iter().all(|running| running.trial.case.schedule.condition().is_some()) {
        let targets = conditions::stand_up(all)?;
        return Ok((targets, Some(conditions::neighbours(all).map_err(|stop| (0, stop))?)));
    }
    let mut targets = Vec::new();
    for (arm, running) in all.iter_mut().enumerate() {
        targets.push(running.trial.stand_up(&mut running.gathered).map_err(|stop| (arm, stop))?);
    }
    make_busy(all)?;
    Ok((targets, None))
}

/// Starts what keeps the host and the guests busy: neighbours once for all.
fn make_busy(all: &mut [Running<'_>]) -> Result<(), (usize, Stop)> {
    let baseline = all.iter().position(|running| running.trial.planned.arm == running.trial.bench.plan.study.baseline);
    for (arm, running) in all.iter_mut().enumerate() {
        running.trial.enter(Phase::Neighbours).map_err(|stop| (arm, stop))?;
        let own = arm == baseline.unwrap_or(0);
        let busy = running.trial.make_busy(&mut running.gathered, own);
        busy.map_err(|reason| (arm, Stop { phase: Phase::Neighbours, reason }))?;
    }
    Ok(())
}
