//! A run from its first line in the journal to its last.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use tare_lab::{Lab, LabConfig, Ledger, StateDir};
use tare_model::environment::Section;
use tare_model::field::FieldError;
use tare_model::plan::{Plan, PlannedTrial};
use tare_model::study::Wire;
use tare_model::trial::{Flag, Outcome, Phase, TrialRecord};
use tare_platform::{Comparable, Site};
use tare_record::{JournalEvent, RunFolder, RunWriter};
use tare_workload::{Calibration, Data};

use crate::bench::Bench;
use crate::blocks::{BlockRule, Blocks};
use crate::calibration;
use crate::cancel::Cancel;
use crate::cleanliness::left_behind;
use crate::error::ControllerError;
use crate::ledger::Book;
use crate::machines::{self, Machines};
use crate::made::Made;
use crate::observer::Observer;
use crate::offered_load;
use crate::other_runs::{others, pid_of};
use crate::reap::{is_elsewhere, left_in_words, reap_dead, reap_own};
use crate::reaper::Reaper;
use crate::redaction::redactor;
use crate::registry::Registry;
use crate::setup;
use crate::time_limits::{self, TIMEOUT};
use crate::trial::{self, Stop, Task};

/// Everything that a run is given.
pub struct RunOptions<'a> {
    /// What to run.
    pub plan: &'a Plan,
    /// The study file's text, kept in the run folder: without what `tare_study::redacted` takes out.
    pub source: &'a str,
    /// Run folder.
    pub out: &'a Path,
    /// Whether the folder holds a run to go on with.
    pub resume: bool,
    /// What the run is called on this host. A new run's results have the same id; those of a run that is continued keep theirs.
    pub run_id: String,
    /// Makes the command that becomes the reaper of the run with that id, and there calls [`attend`](crate::attend). Without one,
    /// what a killed run leaves stays until the next run or `tare reap`.
    pub reaper: Option<&'a dyn Fn(&str) -> Command>,
    /// The agent's program.
    pub agent: PathBuf,
    /// Version of tare.
    pub version: &'a str,
    /// Whether the disclosed environment is redacted.
    pub redact: bool,
    /// Whether to run although another run is alive on this host; every trial then says so.
    pub alongside: bool,
    /// Where platforms and workloads come from.
    pub registry: &'a dyn Registry,
    /// Decides when a case has blocks enough, where the study does not fix their number.
    pub rule: BlockRule,
    /// Who watches.
    pub observer: &'a dyn Observer,
    /// The wish to stop.
    pub cancel: &'a Cancel,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    /// Trials that completed, in this and earlier parts of the run.
    pub completed: u32,
    /// Trials that are invalid.
    pub invalid: u32,
    /// Trials that failed.
    pub failed: u32,
    /// Why it ended before its plan did.
    pub interrupted: Option<String>,
    /// Whether that is a failure which every further trial would repeat.
    pub hopeless: bool,
}

/// Runs a plan, or goes on with one. Dead runs are reaped first, so that this run's host is clean.
///
/// # Errors
/// When the run cannot begin, when the run folder cannot be written, and when a trial leaves the host
/// unclean. What was acknowledged is in the run folder; whatever was made has been taken down.
pub fn run(options: &RunOptions<'_>) -> Result<RunEnd, ControllerError> {
    if !options.agent.exists() {
        return Err(ControllerError::NoAgent { path: options.agent.clone() });
    }
    let made = Made::new(options.plan, options.registry, &options.agent)?;
    clean_up(options)?;
    crate::open_files::make_room(options.plan);
    let run_id = &options.run_id;
    // First: from the moment on at which there is something to take down, there is who does it.
    let reaper = options.reaper.map(|command| Reaper::start(command(run_id))).transpose()?;
    let state = StateDir::create(run_id, options.out)?;
    let mut book = None;
    let result = in_lab(options, &made, &state, &mut book);
    // Whatever the result, everything goes: by the same way as after a crash, under the lock held here.
    let report = reap_own(run_id, state.ledger().held(), &options.agent);
    drop(state);
    if !report.is_clean() {
        // The reaper is not dismissed: it tries again for a while.
        let left = left_in_words(&report);
        return Err(match result {
            Ok(_) => ControllerError::LeftBehind { left },
            Err(error) => ControllerError::LeftBehind { left: format!("{left}. The run had ended with: {error}") },
        });
    }
    if let Some(reaper) = reaper {
        reaper.dismiss();
    }
    let end = result?;
    let last = match &end.interrupted {
        Some(reason) => JournalEvent::RunInterrupted { reason: reason.clone() },
        None => JournalEvent::RunFinished,
    };
    if let Some(book) = book {
        book.write(&last)?;
    }
    Ok(end)
}

/// Reaps dead runs, and says so. What cannot be reaped, or is alive, would be in the way of what is measured.
fn clean_up(options: &RunOptions<'_>) -> Result<(), ControllerError> {
    for reaped in reap_dead(&options.agent)? {
        if !reaped.report.is_clean() {
            let left = left_in_words(&reaped.report);
            // Another process that reaps the same run holds its lock; what it leaves is seen next time.
            if StateDir::list()?.iter().any(|found| found.run_id == reaped.run_id && !found.live) {
                // What is on other machines is not on this host, and is tried again by whoever comes next.
                if !reaped.report.left.iter().all(|(resource, _)| is_elsewhere(resource)) {
                    return Err(ControllerError::DeadRun { run: reaped.run_id, left });
                }
                options
                    .observer
                    .note(&format!("the dead run {} left something on another machine: {left}", reaped.run_id));
            }
            continue;
        }
        options.observer.note(&format!("cleaned up what the dead run {} had left", reaped.run_id));
    }
    if let Some(other) = others(&options.run_id)?.first()
        && !options.alongside
    {
        return Err(ControllerError::AnotherRun { run: other.run_id.clone(), pid: pid_of(other) });
    }
    crate::governors::none_beside(&options.run_id, &options.registry.host().kernel(), &options.plan.study)
}

/// A new run folder, or one to go on with.
fn open_book(options: &RunOptions<'_>, made: &Made, lab: &Lab, state: &StateDir) -> Result<Arc<Book>, ControllerError> {
    let ledger = Arc::clone(state.ledger());
    let redactor = redactor(&options.plan.study, options.redact);
    if options.resume {
        let folder = RunFolder::open(options.out)?;
        let (theirs, ours) = (folder.plan(), options.plan);
        if theirs.hash != ours.hash {
            let (theirs, ours) = (theirs.hash.clone(), ours.hash.clone());
            return Err(ControllerError::OtherPlan { path: options.out.to_owned(), theirs, ours });
        }
        if theirs.cpus != ours.cpus {
            let (theirs, ours) = (theirs.cpus.clone(), ours.cpus.clone());
            return Err(ControllerError::OtherCpus { theirs: Box::new(theirs), ours: Box::new(ours) });
        }
        if let Some((theirs, ours)) = known_study(&folder).zip(identity(options.plan))
            && theirs != ours
        {
            return Err(ControllerError::OtherStudy { path: options.out.to_owned() });
        }
        let writer = RunWriter::open_for_resume(options.out, options.version)?;
        for repair in writer.repairs() {
            options.observer.note(repair);
        }
        let book = Book::new(writer, ledger, redactor);
        book.write(&JournalEvent::NamedOnHost { run_id: options.run_id.clone() })?;
        return Ok(Arc::new(book));
    }
    let mut environment = machines::this_host(&options.run_id, options.out, options.redact);
    let lab = Section { title: "Lab, as granted".into(), facts: lab.facts() };
    environment.sections.extend([lab, made.disclosed(), made.software(options.version)]);
    let RunOptions { out, source, plan, run_id, version, .. } = options;
    let (source, plan, environment) = (redactor.text(source), redactor.plan(plan), redactor.environment(environment));
    let writer = RunWriter::create(out, &source, &plan, &environment, run_id, version)?;
    let book = Book::new(writer, ledger, redactor);
    if let Some(keyed_hash) = identity(options.plan) {
        book.write(&JournalEvent::StudyIdentity { keyed_hash })?;
    }
    Ok(Arc::new(book))
}

/// The study as it is written on this host, by a hash that says nothing to others; `None` where this host has no key for it.
fn identity(plan: &Plan) -> Option<String> {
    // Random, and of this installation alone; machine-id(5) says to publish no more of it than a keyed hash.
    let key = std::fs::read("/etc/machine-id").ok().filter(|key| key.len() >= 32)?;
    Some(tare_study::identity(&plan.study, &key))
}

/// The same, as the run of a folder noted it.
fn known_study(folder: &RunFolder) -> Option<String> {
    folder.journal().entries.iter().find_map(|entry| match &entry.event {
        JournalEvent::StudyIdentity { keyed_hash } => Some(keyed_hash.clone()),
        _ => None,
    })
}

/// The wire as the lab wants it. A plan that runs has its addresses.
fn wire(asked: &Wire) -> Option<tare_lab::Wire> {
    let Wire { interface, addresses, attach, cuts_off_host } = asked.clone();
    Some(tare_lab::Wire { interface, addresses: addresses?, attach, cuts_off_host })
}

/// Makes the lab, opens the run folder and runs all trials. The folder comes second, so that it can tell
/// what the kernel granted; the lab's namespaces need no list, as they end with this process.
fn in_lab(
    options: &RunOptions<'_>,
    made: &Made,
    state: &StateDir,
    opened: &mut Option<Arc<Book>>,
) -> Result<RunEnd, ControllerError> {
    let (spec, run_id) = (&options.plan.study.lab, options.run_id.as_str());
    // What each side receives is its own cost (ADR 0026), where they have CPUs of their own.
    let separate = Some(&options.plan.cpus).filter(|cpus| cpus.are_separate());
    let lab = Lab::create(LabConfig {
        run_id: run_id.to_owned(),
        mtu: spec.mtu,
        offloads: spec.offloads,
        link_rate: spec.link_rate,
        wire: spec.wire.as_ref().and_then(wire),
        congestion_control: spec.congestion_control.clone(),
        guest_cpus: separate.map_or_else(Vec::new, |cpus| cpus.guests.clone()),
        client_cpus: separate.map_or_else(Vec::new, |cpus| cpus.client.clone()),
    })?;
    let book = &*opened.insert(open_book(options, made, &lab, state)?);
    let ledger: Arc<dyn Ledger> = Arc::clone(book) as Arc<dyn Ledger>;
    let site = Site {
        run_id,
        agent: &options.agent,
        lab: &lab,
        mtu: spec.mtu,
        state: state.path(),
        ledger: &ledger,
        lifetime: time_limits::lifetime(options.plan, &made.workloads),
        timeout: TIMEOUT,
    };
    let (plan, observer, cancel) = (options.plan, options.observer, options.cancel);
    let bench = Bench {
        run_id,
        plan,
        book,
        site,
        observer,
        cancel,
        redact: options.redact,
        machines: Machines::default(),
        drivers: made.drivers(options.plan),
        services: made.services(options.plan),
        mixed: made.mixed(),
        host: options.registry.host(),
        hopeless: OnceLock::new(),
    };
    all_trials(options, made, &bench)
}

/// The trials that are wanted and not recorded yet, in the order of the plan.
fn all_trials(options: &RunOptions<'_>, made: &Made, bench: &Bench<'_>) -> Result<RunEnd, ControllerError> {
    let plan = options.plan;
    let recorded = bench.book.recorded();
    options.observer.run_began(plan, recorded.len() as u32);
    let mut blocks = Blocks::new(bench, options.rule, options.out)?;
    let is_left = |trial: &&PlannedTrial| !recorded.contains(&trial.index) && !blocks.is_spared(plan, trial);
    let left = plan.trials.iter().filter(is_left).map(|trial| trial.case.as_str()).collect();
    let Some(data) = setup::all(bench, made.in_lab(), &made.workloads, &left)? else {
        return count(options.out, options.cancel.reason());
    };
    let found = calibration::all(bench, options.out, &made.platforms, &made.workloads, (&left, &data))?;
    let Some(loads) = found else { return count(options.out, options.cancel.reason()) };
    let mut interrupted = None;
    for together in steps(plan, made, &recorded) {
        if let Some(reason) = options.cancel.reason() {
            interrupted = Some(reason);
            break;
        }
        let wanted = match together.first() {
            Some(first) => blocks.wants(bench, first)?,
            None => false,
        };
        if !wanted {
            continue;
        }
        let tasks =
            together.iter().map(|planned| task(plan, made, planned, &data, &loads)).collect::<Result<_, _>>()?;
        for planned in &together {
            options.observer.trial_began(planned);
            bench.book.write(&JournalEvent::TrialStarted { index: planned.index })?;
        }
        let records = offered(bench, tasks, options.out)?;
        if let Some(reason) = options.cancel.reason()
            && records.iter().any(|record| !matches!(record.outcome, Outcome::Completed(_)))
        {
            // What was cut short says nothing; it is run again when the run is resumed.
            interrupted = Some(reason);
            break;
        }
        keep(options, bench, records, &mut blocks)?;
        if let Some(why) = bench.hopeless.get() {
            let end = count(options.out, Some(format!("a failure that every further trial would repeat: {why}")))?;
            // Where a trial completed, the cause is that of one arm or of one moment.
            if end.completed == 0 {
                return Ok(RunEnd { hopeless: true, ..end });
            }
        }
    }
    if interrupted.is_none() {
        blocks.finish(bench)?;
    }
    count(options.out, interrupted)
}

/// The trials that are not recorded yet, those that run together as one step, in the order of the plan. An arm that cannot be compared
/// with others runs by itself: an emulated guest would take their CPUs.
fn steps<'p>(plan: &'p Plan, made: &Made, recorded: &BTreeSet<u32>) -> Vec<Vec<&'p PlannedTrial>> {
    let comparable =
        |arm: &str| made.platforms.get(arm).is_none_or(|platform| platform.comparable() == Comparable::Yes);
    let sets =
        || plan.sets.iter().enumerate().flat_map(|(set, members)| members.iter().map(move |index| (*index, set)));
    let sets: BTreeMap<u32, usize> = sets().collect();
    let mut steps: Vec<(Option<usize>, Vec<&PlannedTrial>)> = Vec::new();
    for trial in plan.trials.iter().filter(|trial| !recorded.contains(&trial.index)) {
        // Conditions take turns on one arm, which is alone then.
        let alone =
            |case: &str| plan.study.cases.iter().any(|own| own.id == case && own.schedule.condition().is_some());
        let set = sets.get(&trial.index).copied().filter(|_| alone(&trial.case) || comparable(&trial.arm));
        match steps.iter_mut().rev().find(|(known, _)| set.is_some() && *known == set) {
            Some((_, members)) => members.push(trial),
            None => steps.push((set, vec![trial])),
        }
    }
    steps.into_iter().map(|(_, members)| members).collect()
}

/// A trial of the plan with all that it is given.
fn task<'a>(
    plan: &'a Plan,
    made: &'a Made,
    planned: &'a PlannedTrial,
    data: &'a BTreeMap<String, Data>,
    loads: &'a BTreeMap<String, Calibration>,
) -> Result<Task<'a>, ControllerError> {
    let case = plan.study.cases.iter().find(|case| case.id == planned.case);
    let (Some(case), Some(platform), Some(workload)) =
        (case, made.platforms.get(&planned.arm), made.workloads.get(&planned.case))
    else {
        let what = format!("trial {} (case `{}`, arm `{}`)", planned.index, planned.case, planned.arm);
        let source = FieldError::new(&["trials"], "the plan names a case or arm that its study does not have");
        return Err(ControllerError::Registry { what, source });
    };
    let (platform, workload) = (&**platform, &**workload);
    let (data, load) = (data.get(&case.id), loads.get(&case.id));
    Ok(Task { planned, case, platform, workload, data, load, offered: None })
}

/// Writes down what came of trials that ran together, and sees that they left nothing behind.
fn keep(
    options: &RunOptions<'_>,
    bench: &Bench<'_>,
    records: Vec<TrialRecord>,
    blocks: &mut Blocks,
) -> Result<(), ControllerError> {
    for mut record in records {
        if let Some(other) = others(bench.run_id)?.first() {
            let detail = format!("run {} was alive on this host at the end of the trial", other.run_id);
            record.flags.push(Flag { kind: "alongside".into(), detail });
        }
        bench.book.append(&record)?;
        blocks.add(bench.plan, &record);
        options.observer.trial_ended(&record);
        if let Some(left) = left_behind(bench.run_id, bench.book) {
            return Err(ControllerError::NotClean { trial: record.planned.index, left });
        }
    }
    Ok(())
}

/// Runs trials that run together with the load that they are to be offered, their case's own or a share of what was found before. Where
/// nothing was found, they fail before anything is made.
fn offered(bench: &Bench<'_>, tasks: Vec<Task<'_>>, folder: &Path) -> Result<Vec<TrialRecord>, ControllerError> {
    let Some(first) = tasks.first() else { return Ok(Vec::new()) };
    let share = match offered_load::of(first.case, &bench.plan.study, folder)? {
        Some(Err(reason)) => {
            let stop = || Stop { phase: Phase::Prepare, reason: reason.clone() };
            return Ok(tasks.iter().map(|task| trial::not_begun(task, stop())).collect());
        }
        Some(Ok(offered)) => Some(offered),
        None => None,
    };
    let tasks: Vec<Task<'_>> = tasks.into_iter().map(|task| Task { offered: share.as_ref(), ..task }).collect();
    Ok(match (tasks.as_slice(), tasks.first().and_then(|task| task.case.schedule.any_turns())) {
        ([], _) => Vec::new(),
        ([_, _, ..], Some(&spec)) => trial::run_in_turns(bench, &tasks, spec),
        _ => tasks.into_iter().map(|task| trial::run(bench, task)).collect(),
    })
}

/// How the trials in the run folder ended.
fn count(out: &Path, interrupted: Option<String>) -> Result<RunEnd, ControllerError> {
    let mut end = RunEnd { completed: 0, invalid: 0, failed: 0, interrupted, hopeless: false };
    for record in RunFolder::open(out)?.trials()? {
        match record.outcome {
            Outcome::Completed(_) => end.completed += 1,
            Outcome::Invalid { .. } => end.invalid += 1,
            Outcome::Failed { .. } => end.failed += 1,
        }
    }
    Ok(end)
}
