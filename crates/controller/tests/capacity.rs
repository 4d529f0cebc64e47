//! The largest load that meets its objectives is searched: each load in a fresh guest that is gone before the next, whatever
//! goes wrong. The server is a made-up one that slows down at a known load; the guests are real.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;

use crate::common::{killed_at, killed_in, plan, ready, run_plan};
use tare_controller::{Cancel, ControllerError, HostAccess, Observer, Quiet, RunEnd, RunOptions, TryNow, run};
use tare_model::Span;
use tare_model::capacity::{CapacitySearch, CapacitySpec, LoadShare, ProbeCause, ProbePurpose, metric};
use tare_model::load::{LoadKind, LoadModel};
use tare_model::merging::{HostMemory, MergeRule, Merging};
use tare_model::metric::common::START_TIME;
use tare_model::plan::{Plan, PlannedTrial};
use tare_model::study::{CaseLoad, Guests, QosObjective};
use tare_model::trial::{Measurement, Outcome, Phase, TrialRecord};
use tare_record::{JournalEvent, RunFolder};
use tare_testkit::{Crowd, Hitch, Limited, Mishap, QUICK_S, REASON, RESPONSE, skipped};

/// Served by the made-up server; the grid from 10 with steps of a fifth has 35 below it and 42 above.
const SERVES: f64 = 37.0;
const KIND: LoadKind = LoadKind::Closed { think_time: Span::ZERO };
const SPEC: CapacitySpec =
    CapacitySpec { kind: KIND, from: 10.0, most: 100.0, precision: 0.2, iterations: 3, drivers: 1 };

/// One trial of one search.
fn search_plan(spec: CapacitySpec) -> Plan {
    let mut plan = plan();
    plan.trials.truncate(1);
    let case = &mut plan.study.cases[0];
    case.neighbours = None;
    case.phases.steady_state = Span::from_millis(50);
    case.qos = vec![QosObjective { metric: RESPONSE.into(), bound: QUICK_S * 2.0 }];
    case.load = CaseLoad::Capacity(spec);
    plan
}

/// What a run left to be looked at.
struct Ran {
    limited: Limited,
    ended: Result<RunEnd, ControllerError>,
    records: Vec<TrialRecord>,
    /// Tries in the journal: number and load.
    tries: Vec<(u32, f64)>,
}

impl Ran {
    /// Its first trial, which completed.
    fn found(&self) -> (&Measurement, &CapacitySearch) {
        let record = self.records.first().unwrap_or_else(|| panic!("{:?}", self.ended));
        let Outcome::Completed(measured) = &record.outcome else { panic!("{:?}", record.outcome) };
        (measured, measured.search.as_ref().unwrap())
    }

    fn outcome(&self) -> &Outcome {
        &self.records.first().unwrap_or_else(|| panic!("{:?}", self.ended)).outcome
    }
}

/// Runs a plan on a server that serves 37, and sees that nothing is left of it.
fn ran(agent: &Path, name: &str, plan: &Plan, hitches: &[(usize, Hitch)]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let limited = Limited::new(SERVES, hitches);
    let run_id = format!("capacity-{}-{name}", std::process::id());
    let out = folder.path().join("run");
    let (ended, records) = run_plan(plan, &limited, (&out, agent, &run_id), &Quiet, &Cancel::new());
    assert_eq!(tare_lab::leftovers(&run_id), Vec::<String>::new(), "{name}");
    assert_eq!(limited.seen().standing.0, 0, "{name}");
    let journal = RunFolder::open(&out).unwrap();
    let tries = journal.journal().entries.iter().filter_map(|entry| match entry.event {
        JournalEvent::TryStarted { index: 0, number, load } => Some((number, load)),
        _ => None,
    });
    let tries = tries.collect();
    Ran { limited, ended, records, tries }
}

/// Load of each try, and whether it held.
fn probes(search: &CapacitySearch) -> Vec<(f64, bool)> {
    search.probes.iter().map(|probe| (probe.load, probe.failed.is_none())).collect()
}

#[test]
fn the_load_that_is_served_is_found_in_fresh_guests_and_all_is_reported() {
    let Some(agent) = ready() else { return };
    let ran = ran(&agent, "found", &search_plan(SPEC), &[]);
    let (measured, search) = ran.found();
    let (held, missed) = (search.held, search.missed.unwrap());
    assert!(held <= SERVES && missed > SERVES && missed <= held * 1.2, "{held} to {missed}");
    assert_eq!(search.iterations().count(), 3);
    assert!(probes(search).iter().all(|&(load, held)| held == (load <= SERVES)), "{search:?}");
    assert!(search.ended.contains("held in 3 instances"), "{}", search.ended);
    let purposes: Vec<ProbePurpose> = search.probes.iter().map(|probe| probe.purpose).collect();
    assert_eq!(purposes[..2], [ProbePurpose::Bracket; 2]);
    assert_eq!(purposes[purposes.len() - 2..], [ProbePurpose::Confirm; 2]);

    // A guest of its own for each try, never two at one time, with the try's load and a seed of its own.
    let seen = ran.limited.seen();
    let loads: Vec<f64> = search.probes.iter().map(|probe| probe.load).collect();
    let names: Vec<String> = (1..=loads.len()).map(|n| format!("t0y{n}")).collect();
    assert_eq!((&seen.names, seen.standing.1), (&names, 1));
    let clients = |load: &LoadModel| matches!(load, LoadModel::Closed { .. }).then(|| f64::from(load.connections()));
    assert_eq!(seen.drives.iter().filter_map(|(load, _)| clients(load)).collect::<Vec<_>>(), loads);
    let seeds: BTreeSet<u64> = seen.drives.iter().map(|(_, seed)| *seed).collect();
    assert_eq!(seeds.len(), loads.len());
    // Every guest is given the client's address on the lab's network, which is not the address of any guest.
    let client = seen.clients[0].expect("the client is on the lab's network");
    assert!(client.to_string().starts_with("198.18.") && seen.clients.iter().all(|own| *own == Some(client)));
    assert_eq!(ran.tries, (1..).zip(loads).collect::<Vec<_>>(), "the journal has them");

    // The figures are those of the last iteration at the load that held.
    let (record, last) = (&ran.records[0], search.iterations().last().unwrap());
    assert_eq!((measured.metrics[metric::CAPACITY], measured.metrics[RESPONSE]), (held, QUICK_S));
    assert!(measured.metrics[START_TIME] > 0.0);
    assert_eq!((record.window_ns, &measured.requests), (Some(last.window_ns), &last.requests));
    assert_eq!(record.facts["served by"], *names.last().unwrap());
    let primary: Vec<&str> = record.metrics.iter().filter(|m| m.primary).map(|m| m.id.as_str()).collect();
    assert_eq!((primary, record.metrics[0].id.as_str()), (vec![metric::CAPACITY], metric::CAPACITY));
    let flags: Vec<&str> =
        record.flags.iter().map(|flag| flag.detail.as_str()).filter(|d| d.ends_with("at work")).collect();
    assert_eq!(flags, [format!("{held} at work")], "those of the other tries are with them");
    for probe in &search.probes {
        assert!(probe.window_ns.1 > probe.window_ns.0 && probe.response.count() == 10 && probe.requests.len() == 1);
        assert!(probe.flags.iter().any(|flag| flag.detail == format!("{} at work", probe.load)), "{probe:?}");
        assert_eq!(
            (probe.cause, probe.counts["operations"] as f64),
            (probe.failed.as_ref().map(|_| ProbeCause::Qos), probe.load)
        );
    }
}

#[test]
fn a_load_that_is_tried_is_dealt_out_among_the_drivers() {
    let Some(agent) = ready() else { return };
    let ran = ran(&agent, "drivers", &search_plan(CapacitySpec { drivers: 3, ..SPEC }), &[]);
    let (measured, search) = ran.found();
    // What three drivers offer together, of whole clients each.
    assert_eq!((search.held, search.missed), (36.0, Some(42.0)), "{search:?}");
    assert_eq!(measured.metrics[metric::CAPACITY], 36.0);
    let offered: Vec<f64> = ran.limited.seen().drives.iter().map(|(each, _)| each.number() * 3.0).collect();
    assert_eq!(offered, search.probes.iter().map(|probe| probe.load).collect::<Vec<_>>());
}

#[test]
fn the_same_load_is_offered_to_every_arm_and_another_in_every_block() {
    let Some(agent) = ready() else { return };
    let mut plan = search_plan(CapacitySpec { from: 30.0, most: 30.0, ..SPEC });
    plan.study.blocks = 2;
    plan.trials = ["a", "b", "a"]
        .into_iter()
        .zip([1, 1, 2])
        .zip(0..)
        .map(|((arm, block), index)| PlannedTrial { index, block, case: "idle".into(), arm: arm.into() })
        .collect();
    let ran = ran(&agent, "seeds", &plan, &[]);
    assert_eq!(ran.ended.as_ref().unwrap().completed, 3, "{:?}", ran.records);
    let seeds: Vec<u64> = ran.limited.seen().drives.iter().map(|(_, seed)| *seed).collect();
    assert_eq!((seeds.len(), &seeds[..3]), (9, &seeds[3..6]));
    assert_eq!(seeds.iter().collect::<BTreeSet<_>>().len(), 6);
    let names: BTreeSet<String> = ran.limited.seen().names.into_iter().collect();
    assert_eq!(names.len(), 9);
}

#[test]
fn one_miss_refutes_what_had_held_and_the_search_goes_on_below() {
    let Some(agent) = ready() else { return };
    // 10, 17, 29 and 50: nothing above 37 holds; then 42 or 35 ... the first confirmation is slow.
    let straight = ran(&agent, "straight", &search_plan(SPEC), &[]);
    let first_confirmation = straight.found().1.probes.len() - 1;
    let ran = ran(&agent, "refuted", &search_plan(SPEC), &[(first_confirmation, Hitch::Slow)]);
    let (_, search) = ran.found();
    let was = straight.found().1.held;
    assert!(search.held < was && search.missed == Some(was), "{:?}", probes(search));
    let refuted = &search.probes[first_confirmation - 1];
    assert_eq!((refuted.load, refuted.purpose, refuted.cause), (was, ProbePurpose::Confirm, Some(ProbeCause::Qos)));
    assert!(search.probes[first_confirmation..].iter().all(|probe| probe.load < was));
    assert_eq!(search.iterations().count(), 3);
}

#[test]
fn what_shows_nothing_is_repeated_once_in_a_fresh_guest() {
    let Some(agent) = ready() else { return };
    let plan = search_plan(CapacitySpec { from: 30.0, most: 30.0, ..SPEC });
    let hitches = [(1, Hitch::Start), (3, Hitch::Wrong), (5, Hitch::Drive)];
    let once = ran(&agent, "once", &plan, &hitches);
    let (_, search) = once.found();
    let held: Vec<bool> = search.probes.iter().map(|probe| probe.failed.is_none()).collect();
    assert_eq!((search.held, held), (30.0, vec![false, true, false, true, false, true]));
    let causes: Vec<Option<ProbeCause>> = search.probes.iter().map(|probe| probe.cause).step_by(2).collect();
    assert_eq!(causes, [ProbeCause::Failed, ProbeCause::Invalid, ProbeCause::Failed].map(Some));
    assert!(
        search.probes[0].failed.as_ref().is_some_and(|why| why.starts_with("in provision: ") && why.contains(REASON))
    );
    assert_eq!(search.probes[0].window_ns, (0, 0), "it was not reached");
    assert_eq!(search.probes[2].failed.as_deref(), Some(REASON));
    assert!(search.probes[2].metrics.contains_key(RESPONSE), "what it showed is kept as evidence");
}

#[test]
fn twice_is_a_miss_and_the_cause_is_reported() {
    let Some(agent) = ready() else { return };
    let plan =
        search_plan(CapacitySpec { kind: KIND, from: 10.0, most: 20.0, precision: 1.0, iterations: 2, drivers: 1 });
    for (name, hitch, says) in [
        ("start", Hitch::Start, "it did not run to its end, twice: in provision"),
        ("drive", Hitch::Drive, "it did not run to its end, twice: in drive"),
        ("wrong", Hitch::Wrong, "its work was wrong, twice"),
        ("silent", Hitch::Silent, "has no figure"),
    ] {
        let ran = ran(&agent, name, &plan, &[(2, hitch), (3, hitch)]);
        let (_, search) = ran.found();
        let silent = hitch == Hitch::Silent;
        // Without a figure the load has missed at once; the next guest is then that of the confirmation.
        let expected = if silent { (5.0, Some(10.0)) } else { (10.0, Some(20.0)) };
        assert_eq!((search.held, search.missed), expected, "{name}: {:?}", probes(search));
        let reason = if silent { search.probes[1].failed.clone().unwrap() } else { search.ended.clone() };
        assert!(reason.contains(says), "{name}: {reason}");
        let flagged = ran.records[0].flags.iter().any(|flag| flag.kind == "bound-by-failure");
        assert_eq!(flagged, !silent, "{name}");
    }
}

#[test]
fn a_first_load_that_is_too_small_to_be_judged_sends_the_search_up() {
    let Some(agent) = ready() else { return };
    let ran = ran(&agent, "few", &search_plan(SPEC), &[(1, Hitch::Silent)]);
    let (_, search) = ran.found();
    assert_eq!((search.held, search.missed), (37.0, Some(44.0)), "{:?}", probes(search));
    let why = search.probes[0].failed.as_deref();
    assert!(why.is_some_and(|why| why.contains("too few operations") && why.contains("has no figure")), "{why:?}");
    assert!(search.probes[1..].iter().all(|probe| probe.load > SPEC.from), "{:?}", probes(search));
}

#[test]
fn a_first_load_that_is_too_much_is_gone_below_and_where_nothing_holds_there_are_no_figures() {
    let Some(agent) = ready() else { return };
    let ran = |name: &str, from, hitches: &[(usize, Hitch)]| {
        ran(
            &agent,
            name,
            &search_plan(CapacitySpec { kind: KIND, from, most: 400.0, precision: 1.0, iterations: 2, drivers: 1 }),
            hitches,
        )
    };
    let below = ran("below", 200.0, &[]);
    let (_, search) = below.found();
    assert_eq!(probes(search)[..3], [(200.0, false), (100.0, false), (50.0, false)]);
    assert_eq!((search.held, search.missed), (25.0, Some(50.0)));

    let slow: Vec<(usize, Hitch)> = (1..20).map(|n| (n, Hitch::Slow)).collect();
    let none = ran("none", 4.0, &slow);
    let Outcome::Invalid { reason } = none.outcome() else { panic!("{:?}", none.outcome()) };
    assert!(reason.contains("in 3 tries: not even 1 client held") && reason.contains("at most 20.0 ms"), "{reason}");
    let facts = &none.records[0].facts;
    assert!(facts["try 001"].starts_with("4 clients did not hold: response time") && facts.contains_key("try 003"));

    // What keeps every guest from starting is no matter of load: it is not tried at ever smaller ones.
    let broken: Vec<(usize, Hitch)> = (1..20).map(|n| (n, Hitch::Prepare)).collect();
    let broken = ran("broken", 200.0, &broken);
    let Outcome::Failed { phase: Phase::Prepare, reason } = broken.outcome() else { panic!("{:?}", broken.outcome()) };
    assert!(reason.contains(REASON) && reason.contains("could not even be offered, twice"), "{reason}");
    assert_eq!(broken.limited.seen().names.len(), 2);
    // What breaks off under load may be one.
    let lost: Vec<(usize, Hitch)> = (1..40).map(|n| (n, Hitch::Drive)).collect();
    let lost = ran("lost", 4.0, &lost);
    let Outcome::Failed { phase: Phase::Drive, reason } = lost.outcome() else { panic!("{:?}", lost.outcome()) };
    assert!(reason.contains("in 6 tries"), "{reason}");
}

#[test]
fn a_guest_that_stays_ends_the_search_before_the_next_is_made() {
    let Some(agent) = ready() else { return };
    let mut plan = search_plan(SPEC);
    plan.trials.push(PlannedTrial { index: 1, block: 1, case: "idle".into(), arm: "b".into() });
    plan.study.cases[0].load = CaseLoad::Capacity(CapacitySpec { from: 30.0, most: 30.0, ..SPEC });
    let ran = ran(&agent, "stays", &plan, &[(2, Hitch::Stays)]);
    let Outcome::Failed { phase: Phase::Teardown, reason } = ran.outcome() else { panic!("{:?}", ran.outcome()) };
    assert!(reason.contains("after try 2 the host was not clean") && reason.contains(REASON), "{reason}");
    assert_eq!(ran.records[0].facts["try 001"], "30 clients held");
    // It went when it was asked again, so the next trial could begin.
    assert_eq!((ran.records.len(), ran.limited.seen().standing.1), (2, 1));
    assert!(matches!(ran.records[1].outcome, Outcome::Completed(_)), "{:?}", ran.records[1].outcome);
}

/// Tells what is tried, and wishes to stop before a try, or in a phase of it.
#[derive(Default)]
struct Watches {
    tries: Mutex<Vec<String>>,
    stop_at: u32,
    stop_in: Option<(u32, Phase)>,
    number: Mutex<u32>,
    cancel: Cancel,
}

impl Observer for Watches {
    fn phase_entered(&self, _: &PlannedTrial, phase: Phase) {
        if self.stop_in == Some((*self.number.lock().unwrap(), phase)) {
            self.cancel.cancel("test");
        }
    }

    fn trying(&self, _: &PlannedTrial, now: &TryNow) {
        *self.number.lock().unwrap() = now.number;
        if now.number == self.stop_at {
            self.cancel.cancel("test");
        }
    }

    fn tried(&self, _: &PlannedTrial, now: &TryNow, failed: Option<&str>) {
        let TryNow { number, at_most, load, held, missed, .. } = now;
        let (held, missed) = (held.as_deref().unwrap_or("-"), missed.as_deref().unwrap_or("-"));
        let became = failed.map_or("held", |_| "missed");
        self.tries.lock().unwrap().push(format!("{number}/{at_most} {load} {became} {held} {missed}"));
    }
}

#[test]
fn an_observer_sees_each_try_and_a_search_that_is_stopped_begins_anew_when_it_is_resumed() {
    let Some(agent) = ready() else { return };
    let (folder, limited) = (tempfile::tempdir().unwrap(), Limited::new(SERVES, &[]));
    let spec = CapacitySpec { kind: KIND, from: 20.0, most: 80.0, precision: 1.0, iterations: 2, drivers: 1 };
    let plan = search_plan(spec);
    // Of the form that runs have: what is resumed is verified.
    let run_id = format!("20260102-030405-{:04x}", std::process::id() as u16);
    let out = folder.path().join("run");
    let watches = |stop_at| Watches { stop_at, ..Watches::default() };
    let stopped = watches(3);
    let cancel = stopped.cancel.clone();
    let (ended, records) = run_plan(&plan, &limited, (&out, &agent, &run_id), &stopped, &cancel);
    assert_eq!((ended.unwrap().interrupted.as_deref(), records.len()), (Some("test"), 0));
    assert_eq!((tare_lab::leftovers(&run_id), limited.seen().standing.0), (Vec::new(), 0));
    assert_eq!(limited.seen().drives.len(), 2, "nothing was offered any more");

    let (again, cancel) = (watches(0), Cancel::new());
    let options = RunOptions {
        plan: &plan,
        source: "",
        out: &out,
        resume: true,
        run_id: run_id.clone(),
        reaper: None,
        agent,
        version: "test",
        redact: true,
        alongside: true,
        registry: &limited,
        rule: tare_analysis::judge,
        observer: &again,
        cancel: &cancel,
    };
    assert_eq!(run(&options).unwrap().completed, 1);
    let at_most = spec.tries_at_most();
    let expected = [
        ("1", "20 clients held 20 clients -"),
        ("2", "40 clients missed 20 clients 40 clients"),
        ("3", "20 clients held 20 clients 40 clients"),
    ]
    .map(|(number, rest)| format!("{number}/{at_most} {rest}"));
    assert_eq!(*again.tries.lock().unwrap(), expected);
    assert_eq!(tare_lab::leftovers(&run_id), Vec::<String>::new());
}

#[test]
fn the_wish_to_stop_ends_a_search_in_any_phase_of_a_try_and_nothing_is_left() {
    let Some(agent) = ready() else { return };
    for phase in Phase::ALL {
        let (folder, limited) = (tempfile::tempdir().unwrap(), Limited::new(SERVES, &[]));
        let watches = Watches { stop_in: Some((2, phase)), ..Watches::default() };
        let (cancel, run_id) = (watches.cancel.clone(), format!("capacity-{}-in-{phase}", std::process::id()));
        let out = folder.path().join("run");
        let (ended, records) = run_plan(&search_plan(SPEC), &limited, (&out, &agent, &run_id), &watches, &cancel);
        assert_eq!((ended.unwrap().interrupted.as_deref(), records.len()), (Some("test"), 0), "{phase}");
        assert_eq!(tare_lab::leftovers(&run_id), Vec::<String>::new(), "{phase}");
        assert!(limited.seen().standing.0 == 0 && limited.seen().names.len() <= 2, "{phase}");
    }
}

#[test]
fn the_host_is_governed_for_the_whole_search_and_that_is_nothing_that_a_try_left() {
    struct Looks<'a>(&'a Crowd, Mutex<Vec<String>>);
    impl Observer for Looks<'_> {
        fn tried(&self, _: &PlannedTrial, _: &TryNow, _: Option<&str>) {
            self.1.lock().unwrap().push(self.0.setting("run"));
        }
    }
    let Some(agent) = ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let crowd = Crowd::new(Mishap::None, &folder.path().join("kernel")).unwrap();
    if let Some(refusal) = crowd.kernel().refusal() {
        return skipped(&refusal.reason);
    }
    let mut plan = search_plan(CapacitySpec { from: 30.0, most: 30.0, ..SPEC });
    let rule = MergeRule::Fixed { pages_to_scan: 137, sleep: Span::from_millis(33) };
    plan.study.arms[0].host_memory =
        HostMemory { merging: Some(Merging { rule, zero_pages: true }), ..HostMemory::default() };
    let (limited, looks) = (Limited::new(SERVES, &[]).on(crowd.clone()), Looks(&crowd, Mutex::default()));
    let run_id = format!("capacity-{}-merging", std::process::id());
    let out = folder.path().join("run");
    let (ended, records) = run_plan(&plan, &limited, (&out, &agent, &run_id), &looks, &Cancel::new());
    assert_eq!(ended.unwrap().completed, 1, "{records:?}");
    assert_eq!(*looks.1.lock().unwrap(), ["1", "1", "1"]);
    assert_eq!((crowd.setting("run"), crowd.setting("pages_to_scan")), ("0".into(), "100".into()), "put back");
    assert_eq!(tare_lab::leftovers(&run_id), Vec::<String>::new());
}

#[test]
fn killed_between_and_within_tries_it_leaves_what_reaping_takes_away() {
    let Some(agent) = ready() else { return };
    if let Some(out) = killed_in() {
        let run_id = out.file_name().unwrap().to_str().unwrap().to_owned();
        let plan =
            search_plan(CapacitySpec { kind: KIND, from: 30.0, most: 30.0, precision: 1.0, iterations: 2, drivers: 1 });
        let limited = Limited::new(SERVES, &[]);
        let (ended, _) = run_plan(&plan, &limited, (&out, &agent, &run_id), &Quiet, &Cancel::new());
        panic!("it was not killed: {ended:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut killed = 0;
    for line in (4..60).step_by(5) {
        let out = folder.path().join(format!("capacity-killed-{}-{line}", std::process::id()));
        if !killed_at(line, &out) {
            break;
        }
        killed += 1;
        tare_controller::reap_dead(&agent).unwrap();
        let run_id = out.file_name().unwrap().to_str().unwrap();
        assert_eq!(tare_lab::leftovers(run_id), Vec::<String>::new(), "killed at line {line}");
    }
    assert!(killed > 3, "it was killed {killed} times");
}

/// A search on the baseline and on another arm, and after them a case of a share of what was found.
fn share_plan(from: f64) -> Plan {
    let mut plan =
        search_plan(CapacitySpec { kind: KIND, from, most: 30.0, precision: 1.0, iterations: 1, drivers: 1 });
    let mut share = plan.study.cases[0].clone();
    (share.id, share.qos) = ("share".into(), Vec::new());
    let load = LoadShare { kind: KIND, case: "idle".into(), share: 0.5, most: 30.0 };
    share.load = CaseLoad::ShareOf { share: load, guests: Guests::ONE };
    plan.study.cases.push(share);
    let trials = [("idle", "b", 1), ("idle", "a", 1), ("share", "a", 1), ("share", "b", 1)];
    let trial = |(index, (case, arm, block)): (u32, (&str, &str, u32))| PlannedTrial {
        index,
        block,
        case: case.into(),
        arm: arm.into(),
    };
    plan.trials = (0..).zip(trials).map(trial).collect();
    plan
}

#[test]
fn a_share_of_the_baselines_capacity_is_offered_to_every_arm() {
    let Some(agent) = ready() else { return };
    // The other arm's first guest is slow, so that it finds less.
    let ran = ran(&agent, "share", &share_plan(30.0), &[(1, Hitch::Slow)]);
    let capacities: Vec<f64> = ran.records[..2]
        .iter()
        .map(|record| match &record.outcome {
            Outcome::Completed(measured) => measured.metrics[metric::CAPACITY],
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(capacities[0] < 30.0 && capacities[1] == 30.0, "{capacities:?}");
    for record in &ran.records[2..] {
        let Outcome::Completed(measured) = &record.outcome else { panic!("{:?}", record.outcome) };
        assert_eq!((measured.counts["operations"], measured.counts["offered_load_max"]), (15, 15));
        assert!(!measured.metrics.contains_key(metric::CAPACITY) && measured.search.is_none());
        let shown = "15 clients: 50 % of the baseline's capacity 30 clients in case idle (median of 1)";
        assert_eq!(record.facts["load"], shown);
        assert!(record.metrics[0].id == RESPONSE && record.metrics[0].primary);
    }
    assert_eq!(ran.limited.seen().drives.last().unwrap().0.connections(), 15);
}

#[test]
fn where_the_baseline_found_no_capacity_a_share_of_it_is_reported_as_missing() {
    let Some(agent) = ready() else { return };
    // From 4 down to 1 and nothing on the baseline, which is second.
    let slow: Vec<(usize, Hitch)> = (2..20).map(|n| (n, Hitch::Slow)).collect();
    let mut plan = share_plan(30.0);
    plan.trials.truncate(3);
    let ran = ran(&agent, "noshare", &plan, &slow);
    assert!(matches!(&ran.records[0].outcome, Outcome::Completed(_)), "{:?}", ran.records[0].outcome);
    assert!(matches!(&ran.records[1].outcome, Outcome::Invalid { .. }), "{:?}", ran.records[1].outcome);
    let Outcome::Failed { phase: Phase::Prepare, reason } = &ran.records[2].outcome else {
        panic!("{:?}", ran.records[2])
    };
    assert!(
        reason.contains("none of the baseline's trials of that case completed")
            && reason.contains("run the study anew")
    );
    assert_eq!(ran.ended.as_ref().unwrap().failed, 1);
}
