//! Guests are added until the host carries no more: the way up and down, each reason to stop, what is reported of it, and that
//! whatever happens the host is as it was. The host's memory is a made-up one; the guests are real.

use std::path::Path;
use std::sync::Mutex;

use crate::common::{killed_at, killed_in, plan, ready, run_plan};
use tare_controller::{
    Cancel, ControllerError, HostAccess, Observer, Quiet, Registry, RunEnd, RunOptions, ScaleUpNow, ThisHost, run,
};
use tare_model::Span;
use tare_model::density::{DensitySpec, GuestSeries, ScaleUp, StopKind, metric};
use tare_model::field::FieldError;
use tare_model::load::LoadModel;
use tare_model::merging::{HostMemory, MergeRule, Merging};
use tare_model::metric::common::START_TIME;
use tare_model::plan::{Plan, PlannedTrial};
use tare_model::study::{CaseLoad, QosObjective};
use tare_model::trial::{Measurement, Outcome, Phase, TrialRecord};
use tare_model::units::ByteSize;
use tare_platform::Platform;
use tare_record::RunFolder;
use tare_testkit::{AVAILABLE, CALIBRATED, Crowd, EACH, Mishap, RATE_OF_EACH, REASON, RESPONSE, TOTAL, skipped};
use tare_workload::Workload;

/// Kept in reserve: 8 guests fit above it.
const RESERVE: u64 = 2 << 30;

/// One trial of one scale-up.
fn scale_up_plan(guests: GuestSeries) -> Plan {
    let mut plan = plan();
    plan.trials.truncate(1);
    let case = &mut plan.study.cases[0];
    case.neighbours = None;
    case.phases.steady_state = Span::from_millis(150);
    let (reserve, settle) = (Some(ByteSize(RESERVE)), Span::from_secs(20));
    let spec = DensitySpec { guests, tile: Vec::new(), reserve, settle, rest: Span::ZERO, pressure: 0.4 };
    case.load = CaseLoad::Density { load: case.load.largest(), spec };
    plan
}

fn spec(plan: &mut Plan) -> &mut DensitySpec {
    let CaseLoad::Density { spec, .. } = &mut plan.study.cases[0].load else { panic!("guests are added") };
    spec
}

fn listed(guests: &[u32]) -> Plan {
    scale_up_plan(GuestSeries::Listed(guests.to_vec()))
}

/// What a run left to be looked at.
struct Ran {
    ended: Result<RunEnd, ControllerError>,
    records: Vec<TrialRecord>,
}

impl Ran {
    /// Its only trial, which completed.
    fn measured(&self) -> (&Measurement, &ScaleUp) {
        let record = self.records.first().unwrap_or_else(|| panic!("{:?}", self.ended));
        let Outcome::Completed(measured) = &record.outcome else { panic!("{:?}", record.outcome) };
        (measured, measured.scale_up.as_ref().unwrap())
    }
}

/// Runs a plan on a host with this mishap, and sees that nothing is left of it.
fn ran(agent: &Path, name: &str, plan: &Plan, mishap: Mishap) -> Ran {
    ran_on(agent, name, plan, |kernel| Crowd::new(mishap, kernel).unwrap())
}

/// The same on a host of which the kernel's files are in a folder.
fn ran_on(agent: &Path, name: &str, plan: &Plan, host: impl FnOnce(&Path) -> Crowd) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let crowd = host(&folder.path().join("kernel"));
    let run_id = format!("density-{}-{name}", std::process::id());
    let out = folder.path().join("run");
    let (ended, records) = run_plan(plan, &crowd, (&out, agent, &run_id), &Quiet, &Cancel::new());
    assert_eq!(tare_lab::leftovers(&run_id), Vec::<String>::new(), "{name}");
    Ran { ended, records }
}

/// (guests, whether they held) of each level.
fn levels(scale_up: &ScaleUp) -> Vec<(u32, bool)> {
    scale_up.levels.iter().map(|level| (level.guests, level.failed.is_none())).collect()
}

#[test]
fn guests_are_added_along_the_list_and_all_is_reported() {
    let Some(agent) = ready() else { return };
    let ran = ran(&agent, "list", &listed(&[1, 3, 4]), Mishap::None);
    let (measured, scale_up) = ran.measured();
    assert_eq!(levels(scale_up), [(1, true), (3, true), (4, true)]);
    assert_eq!((scale_up.stopped.kind, scale_up.stopped.guests), (StopKind::End, 4));
    let of = |level: usize, id: &str| scale_up.levels[level].metrics[id];
    for (n, guests) in [1.0, 3.0, 4.0].into_iter().enumerate() {
        assert_eq!(of(n, metric::PROMISED), guests * f64::from(64 << 20));
        assert_eq!(of(n, metric::OVERCOMMIT), guests * f64::from(64 << 20) / TOTAL as f64);
        assert_eq!(of(n, metric::AVAILABLE), AVAILABLE as f64 - guests * EACH as f64);
        assert_eq!(of(n, metric::GUEST_COST), EACH as f64);
        assert!((of(n, metric::OPERATIONS) - guests * RATE_OF_EACH).abs() < 1e-6);
        assert!((of(n, metric::PER_GUEST) - RATE_OF_EACH).abs() < 1e-6);
        assert!((0.0..=1.0).contains(&of(n, metric::HOST_CPU)));
        let level = &scale_up.levels[n];
        assert_eq!((level.parts.len() as f64, level.response.count() as f64), (guests, guests * 10.0));
        assert!(level.window_ns.1 > level.window_ns.0 && level.settled_after_s.is_none(), "nothing merges");
    }
    assert_eq!(of(2, metric::GUEST_UNIQUE), f64::from(700 << 20));
    // The trial's own figures are those of the largest number.
    assert_eq!((measured.metrics[metric::HELD], measured.metrics[RESPONSE]), (4.0, 0.04));
    assert!(measured.metrics[START_TIME] > 0.0);
    let record = &ran.records[0];
    let primary: Vec<&str> = record.metrics.iter().filter(|m| m.primary).map(|m| m.id.as_str()).collect();
    assert_eq!((primary, record.metrics[0].id.as_str()), (vec![metric::HELD], metric::HELD));
    assert_eq!(record.window_ns, Some(scale_up.levels[2].window_ns));
    assert_eq!(record.facts["at work"], "4");
    let flags: Vec<&str> = record.flags.iter().filter(|f| f.kind == "crowd").map(|f| f.detail.as_str()).collect();
    assert_eq!(flags, ["at 1, 3, 4 guests: 1 at work"], "one of a kind");
    // The host over time, from before the first guest to the end.
    assert_eq!((scale_up.course[0].guests, scale_up.course[0].available_bytes), (0, AVAILABLE));
    assert!(scale_up.course.windows(2).all(|pair| pair[1].at_s > pair[0].at_s));
}

#[test]
fn machines_elsewhere_are_added_until_one_does_not_start_and_this_hosts_memory_has_no_part_in_it() {
    let Some(agent) = ready() else { return };
    // On this host none would fit.
    let mut plan = scale_up_plan(GuestSeries::Search { from: 1, most: 8 });
    spec(&mut plan).reserve = Some(ByteSize(AVAILABLE));
    let host = |kernel: &Path| Crowd::new(Mishap::Start(4), kernel).unwrap().elsewhere(8);
    let ran = ran_on(&agent, "elsewhere", &plan, host);
    let (measured, scale_up) = ran.measured();
    assert_eq!(levels(scale_up), [(1, true), (2, true), (3, true)]);
    assert_eq!((scale_up.stopped.kind, scale_up.stopped.guests), (StopKind::Start, 3));
    assert!(scale_up.stopped.detail.contains(REASON), "{}", scale_up.stopped.detail);
    assert_eq!(measured.metrics[metric::HELD], 3.0);
    let of_the_host = [
        metric::HOST_CPU,
        metric::PROMISED,
        metric::OVERCOMMIT,
        metric::AVAILABLE,
        metric::GUEST_COST,
        metric::GUEST_UNIQUE,
    ];
    for (level, guests) in scale_up.levels.iter().zip([1.0, 2.0, 3.0]) {
        assert!((level.metrics[metric::OPERATIONS] - guests * RATE_OF_EACH).abs() < 1e-6);
        assert!(of_the_host.iter().all(|id| !level.metrics.contains_key(*id)), "{:?}", level.metrics);
    }
    assert!(scale_up.course.is_empty());
    let facts = &ran.records[0].facts;
    assert!(facts["memory of the host under the guests"].starts_with("not seen"), "{facts:?}");
    assert!(!facts.contains_key("memory that all guests together may take"), "{facts:?}");
}

#[test]
fn the_load_is_found_once_a_run_and_kept_when_it_is_resumed() {
    struct StopsAfterOne(Cancel);
    impl Observer for StopsAfterOne {
        fn trial_ended(&self, _: &TrialRecord) {
            self.0.cancel("test");
        }
    }
    let Some(agent) = ready() else { return };
    let mut plan = listed(&[1]);
    plan.trials.push(PlannedTrial { index: 1, block: 1, case: "idle".into(), arm: "b".into() });
    let folder = tempfile::tempdir().unwrap();
    // Of the form that a run folder must have to be gone on with.
    let run_id = format!("20260102-030406-{:04x}", std::process::id() as u16);
    let options = |registry: &dyn Registry, observer: &dyn Observer, cancel: &Cancel, resume| {
        let out = folder.path().join("run");
        let (agent, run_id) = (agent.clone(), run_id.clone());
        let (plan, source, version) = (&plan, "", "test");
        let (redact, alongside, out) = (true, true, out.as_path());
        run(&RunOptions {
            plan,
            source,
            out,
            resume,
            run_id,
            reaper: None,
            agent,
            version,
            redact,
            alongside,
            registry,
            rule: tare_analysis::judge,
            observer,
            cancel,
        })
    };
    let first = Crowd::new(Mishap::None, &folder.path().join("kernel")).unwrap();
    let cancel = Cancel::new();
    let ended = options(&first, &StopsAfterOne(cancel.clone()), &cancel, false).unwrap();
    assert_eq!((ended.completed, ended.interrupted.as_deref(), first.calibrations()), (1, Some("test"), 1));
    // It would fail now.
    let second = Crowd::new(Mishap::Calibration, &folder.path().join("kernel")).unwrap();
    let ended = options(&second, &Quiet, &Cancel::new(), true).unwrap();
    assert_eq!((ended.completed, ended.interrupted, second.calibrations()), (2, None, 0));
    assert_eq!((first.rates(), second.rates()), (vec![Some(CALIBRATED)], vec![Some(CALIBRATED)]));
    let records = RunFolder::open(&folder.path().join("run")).unwrap().trials().unwrap();
    for record in records {
        assert_eq!(record.facts["offered rate"], "1234.5 operations/s a guest");
        assert_eq!(record.facts["CPU of one guest alone"], "55.0 % of the guest's CPUs");
        let Outcome::Completed(measured) = &record.outcome else { panic!("{record:?}") };
        assert_eq!(measured.scale_up.as_ref().unwrap().offered_per_guest_per_s, Some(CALIBRATED));
    }
    assert_eq!(tare_lab::leftovers(&run_id), Vec::<String>::new());
}

#[test]
fn a_load_that_is_not_found_ends_the_run_before_its_first_trial() {
    let Some(agent) = ready() else { return };
    let ran = ran(&agent, "noload", &listed(&[1]), Mishap::Calibration);
    let Err(ControllerError::Calibration { case, reason }) = &ran.ended else { panic!("{:?}", ran.ended) };
    assert!(case == "idle" && reason.contains(REASON) && ran.records.is_empty(), "{case}: {reason}");
}

#[test]
fn the_scale_up_stops_before_the_reserve_and_the_last_number_that_stands_is_measured() {
    let Some(agent) = ready() else { return };
    let ran = ran(&agent, "memory", &listed(&[1, 6, 20]), Mishap::None);
    let (measured, scale_up) = ran.measured();
    assert_eq!(levels(scale_up), [(1, true), (6, true), (8, true)]);
    assert_eq!((scale_up.stopped.kind, scale_up.stopped.guests), (StopKind::Memory, 8));
    let detail = &scale_up.stopped.detail;
    assert!(
        detail.contains("takes 1.00 GiB") && detail.contains("of 2.00 GiB") && detail.contains("2.00 GiB are kept")
    );
    assert_eq!(measured.metrics[metric::HELD], 8.0);
}

#[test]
fn each_mishap_stops_the_scale_up_and_is_reported() {
    let Some(agent) = ready() else { return };
    let adding = [
        ("start", Mishap::Start(3), StopKind::Start, REASON),
        ("prepare", Mishap::Prepare(3), StopKind::Start, REASON),
        ("gone", Mishap::Gone(3), StopKind::Killed, REASON),
        ("swap", Mishap::Swap(3), StopKind::Swap, "100000 pages to swap"),
        ("drain", Mishap::Drain(3), StopKind::Memory, "were available"),
    ];
    for (name, mishap, kind, says) in adding {
        let ran = ran(&agent, name, &listed(&[1, 4]), mishap);
        let (measured, scale_up) = ran.measured();
        assert_eq!(levels(scale_up), [(1, true), (2, true)], "{name}");
        assert_eq!((scale_up.stopped.kind, scale_up.stopped.guests), (kind, 2), "{name}: {:?}", scale_up.stopped);
        assert!(scale_up.stopped.detail.contains(says), "{name}: {}", scale_up.stopped.detail);
        assert_eq!(measured.metrics[metric::HELD], 2.0, "{name}");
    }
    let driving = [
        ("lost", Mishap::Lost(4), StopKind::Killed, REASON),
        ("pressure", Mishap::Pressure(4), StopKind::Pressure, "90.0 %"),
        ("wrong", Mishap::Wrong(4), StopKind::Wrong, REASON),
    ];
    for (name, mishap, kind, says) in driving {
        let ran = ran(&agent, name, &listed(&[2, 4, 5]), mishap);
        let (measured, scale_up) = ran.measured();
        assert_eq!(levels(scale_up), [(2, true), (4, false)], "{name}: {scale_up:?}");
        assert_eq!((scale_up.stopped.kind, scale_up.stopped.guests), (kind, 4), "{name}");
        let failed = scale_up.levels[1].failed.as_deref().unwrap();
        assert!(failed.contains(says) && scale_up.stopped.detail == failed, "{name}: {failed}");
        assert_eq!((measured.metrics[metric::HELD], measured.metrics[RESPONSE]), (2.0, 0.02), "{name}");
    }
}

#[test]
fn what_the_kernel_kills_elsewhere_stops_no_scale_up() {
    let Some(agent) = ready() else { return };
    if let Some(why) = tare_lab::Cgroup::unavailable() {
        return skipped(&why);
    }
    let ran = ran(&agent, "elsewhere", &listed(&[1, 3]), Mishap::Elsewhere(2));
    let (_, scale_up) = ran.measured();
    assert_eq!((levels(scale_up), scale_up.stopped.kind), (vec![(1, true), (3, true)], StopKind::End));
}

#[test]
fn a_search_goes_down_to_the_largest_number_that_meets_the_objective() {
    let Some(agent) = ready() else { return };
    let searched = |name: &str, bound: f64| {
        let mut plan = scale_up_plan(GuestSeries::Search { from: 1, most: 16 });
        plan.study.cases[0].qos = vec![QosObjective { metric: RESPONSE.into(), bound }];
        ran(&agent, name, &plan, Mishap::None)
    };
    let ran = searched("search", 0.065);
    let (measured, scale_up) = ran.measured();
    let expected = [(1, true), (2, true), (3, true), (5, true), (8, false), (6, true), (7, false)];
    assert_eq!(levels(scale_up), expected, "{:?}", scale_up.stopped);
    assert_eq!((scale_up.stopped.kind, scale_up.stopped.guests), (StopKind::Qos, 8));
    assert!(scale_up.stopped.detail.contains("at most 65.0 ms"), "{}", scale_up.stopped.detail);
    assert_eq!((measured.metrics[metric::HELD], measured.metrics[RESPONSE]), (6.0, 0.06));
    assert_eq!(ran.records[0].facts["at work"], "6");
    // A host that carries not one guest as asked is an answer, without figures of a level.
    let ran = searched("none", 0.005);
    let (measured, scale_up) = ran.measured();
    assert_eq!((levels(scale_up), scale_up.stopped.kind), (vec![(1, false)], StopKind::Qos));
    assert_eq!((measured.metrics.len(), measured.metrics[metric::HELD]), (1, 0.0));
}

#[test]
fn where_not_one_guest_works_there_are_no_figures() {
    let Some(agent) = ready() else { return };
    let outcome = |name: &str, mishap| ran(&agent, name, &listed(&[1, 2]), mishap).records.remove(0).outcome;
    // The calibration's guest is the first, so that it is the first of all that does not start.
    let ended = ran(&agent, "first", &listed(&[1, 2]), Mishap::Start(1)).ended;
    assert!(matches!(&ended, Err(ControllerError::Calibration { .. })), "{ended:?}");
    let swapped = outcome("swapped", Mishap::Lost(1));
    assert!(
        matches!(&swapped, Outcome::Failed { phase: Phase::Drive, reason } if reason.contains(REASON)),
        "{swapped:?}"
    );
    let wrong = outcome("wrong", Mishap::Wrong(1));
    assert!(matches!(&wrong, Outcome::Invalid { reason } if reason.contains(REASON)), "{wrong:?}");
}

#[test]
fn a_host_without_room_for_one_guest_is_refused_with_the_figures() {
    let Some(agent) = ready() else { return };
    let mut plan = listed(&[1]);
    spec(&mut plan).reserve = Some(ByteSize(AVAILABLE));
    let ran = ran(&agent, "noroom", &plan, Mishap::None);
    let Err(error @ ControllerError::NoRoom { needed: EACH, available: AVAILABLE, reserve: AVAILABLE, .. }) =
        &ran.ended
    else {
        panic!("{:?}", ran.ended)
    };
    assert!(error.to_string().contains("10GiB are available"), "{error}");
    assert!(ran.records.is_empty());
}

/// A plan of two arms, of which the second merges.
fn merging_plan(guests: &[u32]) -> Plan {
    let mut plan = listed(guests);
    plan.trials.push(PlannedTrial { index: 1, block: 1, case: "idle".into(), arm: "b".into() });
    let rule = MergeRule::Fixed { pages_to_scan: 137, sleep: Span::from_millis(33) };
    plan.study.arms[1].host_memory =
        HostMemory { merging: Some(Merging { rule, zero_pages: true }), ..HostMemory::default() };
    plan
}

#[test]
fn the_host_is_governed_for_each_arm_and_put_back() {
    /// What the kernel was set to while guests were added, by arm.
    struct Looks(Crowd, Mutex<Vec<(String, String, String)>>, String);
    impl Observer for Looks {
        fn ascending(&self, trial: &PlannedTrial, now: &ScaleUpNow) {
            if now.load {
                let seen = (trial.arm.clone(), self.0.setting("run"), self.0.setting("pages_to_scan"));
                self.1.lock().unwrap().push(seen);
                let owed = tare_lab::still_planned(&tare_lab::state_path(&self.2)).unwrap();
                let settings = owed.iter().filter(|what| matches!(what, tare_lab::Resource::Settings { .. }));
                assert_eq!(settings.count(), 1, "what a reaper would put back: {owed:?}");
            }
        }
    }
    let Some(agent) = ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let crowd = Crowd::new(Mishap::None, &folder.path().join("kernel")).unwrap();
    if let Some(refusal) = crowd.kernel().refusal() {
        return skipped(&refusal.reason);
    }
    let run_id = format!("density-{}-merging", std::process::id());
    let (out, looks) = (folder.path().join("run"), Looks(crowd.clone(), Mutex::default(), run_id.clone()));
    let (ended, records) = run_plan(&merging_plan(&[1, 2]), &crowd, (&out, &agent, &run_id), &looks, &Cancel::new());
    assert_eq!(ended.unwrap().completed, 2, "{records:?}");
    let seen = |arm: &str, run: &str, pages: &str| (arm.to_owned(), run.to_owned(), pages.to_owned());
    let expected = [seen("a", "0", "100"), seen("a", "0", "100"), seen("b", "1", "137"), seen("b", "1", "137")];
    assert_eq!(*looks.1.lock().unwrap(), expected);
    let now = ["run", "pages_to_scan", "sleep_millisecs", "use_zero_pages"].map(|name| crowd.setting(name));
    assert_eq!(now, ["0", "100", "20", "0"], "put back");
    let Outcome::Completed(merged) = &records[1].outcome else { panic!("{records:?}") };
    let level = &merged.scale_up.as_ref().unwrap().levels[1];
    assert!(level.settled_after_s.is_some_and(|seconds| seconds > 0.0), "{level:?}");
    assert_eq!((level.metrics[metric::SAVED], level.metrics[metric::PROFIT]), (f64::from(1 << 30), 1e6));
    assert_eq!(level.metrics[metric::SCANNER_CPU_S], 0.0);
    assert_eq!(tare_lab::leftovers(&run_id), Vec::<String>::new());
}

#[test]
fn a_second_run_that_changes_the_same_settings_is_refused_also_alongside() {
    /// Under load it tries to begin another run.
    struct Second<'a>(&'a Plan, &'a Crowd, &'a Path, &'a Path, Mutex<Vec<String>>);
    impl Observer for Second<'_> {
        fn ascending(&self, _: &PlannedTrial, now: &ScaleUpNow) {
            if now.load {
                let Self(plan, crowd, agent, out, said) = self;
                let run_id = format!("density-{}-second", std::process::id());
                let (ended, _) = run_plan(plan, *crowd, (out, agent, &run_id), &Quiet, &Cancel::new());
                said.lock().unwrap().push(ended.map_or_else(|error| error.to_string(), |end| format!("{end:?}")));
            }
        }
    }
    let Some(agent) = ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let crowd = Crowd::new(Mishap::None, &folder.path().join("kernel")).unwrap();
    if let Some(refusal) = crowd.kernel().refusal() {
        return skipped(&refusal.reason);
    }
    let plan = merging_plan(&[1]);
    let (out, run_id) = (folder.path().join("second"), format!("density-{}-first", std::process::id()));
    let second = Second(&plan, &crowd, &agent, &out, Mutex::default());
    let first = folder.path().join("first");
    let (ended, records) = run_plan(&plan, &crowd, (&first, &agent, &run_id), &second, &Cancel::new());
    assert_eq!(ended.unwrap().completed, 2, "{records:?}");
    // The first trial stops merging, the second one merges: both change the host.
    let said = second.4.into_inner().unwrap();
    assert!(said.len() == 2 && said.iter().all(|why| why.contains("--alongside does not help")), "{said:?}");
    assert!(said.iter().all(|why| why.contains(&run_id)), "{said:?}");
    assert_eq!(["run", "pages_to_scan"].map(|name| crowd.setting(name)), ["0", "100"], "put back");
}

/// A host whose real kernel merges, and whose guests are offered to it by nobody.
struct RealKernel(Crowd);

impl Registry for RealKernel {
    fn platform(&self, name: &str, options: &serde_json::Value) -> Result<Box<dyn Platform>, FieldError> {
        self.0.platform(name, options)
    }

    fn workload(
        &self,
        name: &str,
        options: &serde_json::Value,
        load: &LoadModel,
    ) -> Result<Box<dyn Workload>, FieldError> {
        self.0.workload(name, options, load)
    }
}

/// Settings of this host's kernel that are changed and put back.
fn settings() -> Vec<String> {
    let names = ["run", "pages_to_scan", "sleep_millisecs", "use_zero_pages"];
    names.map(|name| std::fs::read_to_string(Path::new("/sys/kernel/mm/ksm").join(name)).unwrap_or_default()).to_vec()
}

#[test]
fn killed_under_load_it_leaves_settings_that_reaping_puts_back() {
    let Some(agent) = ready() else { return };
    if let Some(out) = killed_in() {
        let crowd = Crowd::new(Mishap::None, &out.with_extension("kernel")).unwrap();
        let run_id = out.file_name().unwrap().to_str().unwrap().to_owned();
        let mut plan = merging_plan(&[1, 2]);
        spec(&mut plan).settle = Span::ZERO;
        spec(&mut plan).reserve = Some(ByteSize(1 << 20));
        plan.trials = vec![PlannedTrial { index: 0, ..plan.trials[1].clone() }];
        let (ended, _) = run_plan(&plan, &RealKernel(crowd), (&out, &agent, &run_id), &Quiet, &Cancel::new());
        panic!("it was not killed: {ended:?}");
    }
    let kernel = ThisHost.kernel();
    if let Some(refusal) = kernel.refusal().or_else(|| kernel.opening_refusal()) {
        return skipped(&refusal.reason);
    }
    let lock = std::fs::OpenOptions::new().create(true).append(true).open("/run/lock/tare-ksm-test.lock").unwrap();
    lock.lock().unwrap();
    let (before, folder) = (settings(), tempfile::tempdir().unwrap());
    let mut changed = 0;
    // So many lines of the journal that all phases of the trial are gone through.
    for line in (8..48).step_by(4) {
        let out = folder.path().join(format!("density-killed-{}-{line}", std::process::id()));
        if !killed_at(line, &out) {
            break;
        }
        changed += u32::from(settings() != before);
        tare_controller::reap_dead(&agent).unwrap();
        assert_eq!(settings(), before, "killed at line {line}");
        let run_id = out.file_name().unwrap().to_str().unwrap();
        assert_eq!(tare_lab::leftovers(run_id), Vec::<String>::new(), "killed at line {line}");
    }
    assert!(changed > 2, "it was killed under the arm's settings {changed} times");
}

#[test]
fn the_wish_to_stop_ends_a_scale_up_and_puts_all_back() {
    struct Stops(Cancel);
    impl Observer for Stops {
        fn ascending(&self, _: &PlannedTrial, now: &ScaleUpNow) {
            if now.guests == 2 {
                self.0.cancel("test");
            }
        }
    }
    let Some(agent) = ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let crowd = Crowd::new(Mishap::None, &folder.path().join("kernel")).unwrap();
    let run_id = format!("density-{}-cancel", std::process::id());
    let (out, cancel) = (folder.path().join("run"), Cancel::new());
    let stops = Stops(cancel.clone());
    let (ended, records) = run_plan(&listed(&[1, 4]), &crowd, (&out, &agent, &run_id), &stops, &cancel);
    assert_eq!((ended.unwrap().interrupted.as_deref(), records.len()), (Some("test"), 0));
    assert_eq!(tare_lab::leftovers(&run_id), Vec::<String>::new());
}
