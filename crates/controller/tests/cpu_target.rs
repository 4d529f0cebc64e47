//! The load at which a guest's CPUs are busy to a share, looked for and measured in a real guest that really burns CPU: what a trial tells
//! of it, and what it says where the share cannot be held.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::common::{plan, ready, run_plan};
use tare_controller::{Cancel, CpuSearchNow, Observer, Quiet, RunEnd};
use tare_model::Span;
use tare_model::cpu_target::{CpuSearch, CpuTarget};
use tare_model::load::{LoadKind, Phases};
use tare_model::metric::common::GUEST_CPU;
use tare_model::plan::{Plan, PlannedTrial};
use tare_model::study::{CaseLoad, Guests};
use tare_model::trial::{Measurement, Outcome, TrialRecord};
use tare_record::{Folder, Journal, JournalEvent};
use tare_testkit::{BURNT, Burning, REASON, skipped};

/// Wide, for whatever else runs on the machine that the tests run on takes CPU from the guest.
const TARGET: CpuTarget =
    CpuTarget { kind: KIND, share: 0.3, tolerance: 0.12, from: 3.0, most: 400.0, step: Span::from_secs(2), steps: 12 };
const KIND: LoadKind = LoadKind::Closed { think_time: Span::ZERO };

/// One trial that looks for a load.
fn with_target(target: CpuTarget) -> Plan {
    let mut plan = plan();
    plan.study.arms.truncate(1);
    plan.trials.truncate(1);
    let case = &mut plan.study.cases[0];
    case.neighbours = None;
    case.load = CaseLoad::CpuTarget { target, guests: Guests::ONE };
    case.phases = Phases { warm_up: Span::from_millis(900), steady_state: Span::from_secs(4), ..case.phases };
    plan
}

/// The agent's program, where these tests can run.
fn ready_and_limited() -> Option<PathBuf> {
    let agent = ready()?;
    if let Some(why) = tare_lab::Cgroup::unavailable() {
        skipped(&format!("guests have no control group here: {why:?}"));
        return None;
    }
    Some(agent)
}

/// What the observer receives while loads are tried.
#[derive(Default)]
struct Watching {
    received: Mutex<Vec<CpuSearchNow>>,
    /// Wishes to stop once so many loads were begun.
    stops: Option<u32>,
    cancel: Cancel,
}

impl Observer for Watching {
    fn cpu_search(&self, _: &PlannedTrial, now: &CpuSearchNow) {
        self.received.lock().unwrap().push(now.clone());
        if self.stops == Some(now.number) {
            self.cancel.cancel("test");
        }
    }
}

/// Runs the plan with this workload; the journal's tries too.
fn run(
    name: &str,
    plan: &Plan,
    (agent, registry): (&Path, &Burning),
    observer: &dyn Observer,
    cancel: &Cancel,
) -> (RunEnd, Vec<TrialRecord>, Vec<(u32, f64)>) {
    let folder = tempfile::tempdir().unwrap();
    let run_id = format!("hold-{}-{name}", std::process::id());
    let out = folder.path().join("run");
    let (ended, records) = run_plan(plan, registry, (&out, agent, &run_id), observer, cancel);
    assert_eq!(tare_lab::leftovers(&run_id), Vec::<String>::new(), "{name}");
    let tries = Journal::read(&Folder::open(&out).unwrap()).unwrap().entries.into_iter();
    let tries = tries.filter_map(|entry| match entry.event {
        JournalEvent::TryStarted { index: 0, number, load } => Some((number, load)),
        _ => None,
    });
    (ended.unwrap(), records, tries.collect())
}

fn completed(record: &TrialRecord) -> (&Measurement, &CpuSearch) {
    match &record.outcome {
        Outcome::Completed(measured) => (measured, measured.cpu_search.as_ref().expect("what was held")),
        other => panic!("{other:?}: {:?}", record.facts),
    }
}

#[test]
fn a_load_is_found_that_takes_the_share_and_is_measured_in_the_same_guest() {
    let Some(agent) = ready_and_limited() else { return };
    let (registry, watching) = (Burning::default(), Watching::default());
    let plan = with_target(TARGET);
    let (ended, records, tries) = run("found", &plan, (&agent, &registry), &watching, &watching.cancel);
    assert_eq!(ended.completed, 1, "{:?} {:?}", records[0].outcome, records[0].facts);
    let (measured, held) = completed(&records[0]);
    println!("held: {held:?}");
    assert!((held.share - TARGET.share).abs() <= TARGET.tolerance && (held.target, held.tolerance) == (0.3, 0.12));
    assert_eq!(measured.metrics[GUEST_CPU], held.share, "the share is a metric");
    assert!(records[0].metrics.iter().any(|spec| spec.id == GUEST_CPU));
    assert!(held.course.len() >= 5 && held.spread.is_some(), "{:?}", held.course);
    let mean = held.course.iter().map(|(_, share)| share).sum::<f64>() / held.course.len() as f64;
    assert!((mean - held.share).abs() < 1e-6, "intervals of equal length make up the window: {mean} {}", held.share);
    let (last, tried) = held.steps.split_last().unwrap();
    assert_eq!((last.load, last.share), (held.load, held.share));
    assert!(!tried.is_empty() && tried[0].load == TARGET.from && held.steps.iter().all(|step| step.window_s > 0.0));
    assert!((last.operations_per_s - measured.metrics[BURNT]).abs() < 1e-6);
    let seen = registry.seen();
    assert_eq!(seen.prepared, 1, "one guest, set up once");
    assert_eq!(seen.stayed, (held.steps.len() as u32, 1), "kept at work from load to load, and ended once");
    let loads: Vec<f64> = seen.drives.iter().map(|(clients, ..)| f64::from(*clients)).collect();
    assert_eq!(loads, held.steps.iter().map(|step| step.load).collect::<Vec<_>>());
    let own = plan.study.cases[0].phases;
    let phases: Vec<Phases> = seen.drives.iter().map(|(_, phases, _)| *phases).collect();
    let expected: Vec<Phases> = (1..=tried.len() as u32).map(|number| TARGET.phases(&own, number)).collect();
    assert_eq!((phases.split_last().unwrap(), phases[0].warm_up), ((&own, expected.as_slice()), own.warm_up));
    let seeds: std::collections::BTreeSet<u64> = seen.drives.iter().map(|(.., seed)| *seed).collect();
    assert_eq!(seeds.len(), seen.drives.len(), "each load has a seed of its own");
    assert_eq!(tries, (1..).zip(loads).collect::<Vec<(u32, f64)>>());
    let received = watching.received.lock().unwrap();
    let took: Vec<f64> = received.iter().filter_map(|now| now.took).collect();
    assert_eq!(took, held.steps.iter().map(|step| step.share).collect::<Vec<_>>());
    assert!(received.len() == 2 * took.len() && received.last().is_some_and(|now| now.measured));
    assert_eq!(measured.counts["offered_load_max"], held.load as u64);
    assert!(records[0].facts["load"].contains("found for 30.0 %"));
    assert_eq!(records[0].facts["clients"], format!("{}", held.load), "facts are those of the measurement");
}

#[test]
fn a_share_that_the_largest_load_does_not_take_is_invalid_and_says_what_was_tried() {
    let Some(agent) = ready_and_limited() else { return };
    let registry = Burning::default();
    let target = CpuTarget { share: 0.9, tolerance: 0.05, most: 6.0, ..TARGET };
    let (ended, records, _) = run("capped", &with_target(target), (&agent, &registry), &Quiet, &Cancel::default());
    assert_eq!((ended.completed, ended.invalid), (0, 1), "{records:?}");
    let Outcome::Invalid { reason } = &records[0].outcome else { panic!("{:?}", records[0].outcome) };
    assert!(reason.contains("even 6 clients, the most that `cpu-target.most` allows"), "{reason}");
    assert!(records[0].facts["step 01"].starts_with("3 clients took "), "{:?}", records[0].facts);
    assert!(records[0].facts.contains_key("step 02") && records[0].load_s > 0.0);
}

#[test]
fn wrong_work_in_a_step_ends_the_trial_with_the_step() {
    let Some(agent) = ready_and_limited() else { return };
    let registry = Burning::wrong_at(2);
    // Never near enough after the first.
    let target = CpuTarget { share: 0.9, tolerance: 0.001, ..TARGET };
    let (ended, records, tries) = run("wrong", &with_target(target), (&agent, &registry), &Quiet, &Cancel::default());
    assert_eq!((ended.invalid, tries.len()), (1, 2));
    let Outcome::Invalid { reason } = &records[0].outcome else { panic!("{:?}", records[0].outcome) };
    assert!(reason.contains("the work of step 2, at 6 clients, was wrong") && reason.contains(REASON), "{reason}");
}

#[test]
fn a_wish_to_stop_ends_a_search_and_leaves_nothing_behind() {
    let Some(agent) = ready_and_limited() else { return };
    let watching = Watching { stops: Some(2), ..Watching::default() };
    let target = CpuTarget { share: 0.9, tolerance: 0.001, ..TARGET };
    let (ended, records, _) =
        run("stopped", &with_target(target), (&agent, &Burning::default()), &watching, &watching.cancel);
    assert!(ended.interrupted.is_some_and(|why| why.contains("test")) && records.is_empty(), "{records:?}");
}

#[test]
fn every_trial_with_control_groups_tells_how_busy_its_guests_were() {
    let Some(agent) = ready_and_limited() else { return };
    let mut plan = with_target(TARGET);
    let case = &mut plan.study.cases[0];
    case.load = KIND.at(20.0).into();
    let (ended, records, _) = run("plain", &plan, (&agent, &Burning::default()), &Quiet, &Cancel::default());
    assert_eq!(ended.completed, 1, "{records:?}");
    let Outcome::Completed(measured) = &records[0].outcome else { panic!("{:?}", records[0].outcome) };
    let share = measured.metrics[GUEST_CPU];
    assert!(share > 0.0 && share < 1.5, "{share}");
    // The account of the SUT has the same seconds.
    if let Some(account) = records[0].cpu {
        let counted = (account.guest_user_s + account.guest_system_s) / account.window_s;
        assert!((share - counted).abs() <= 0.01 * counted.max(share), "{share} {counted}");
    }
    assert!(measured.cpu_search.is_none());
}
