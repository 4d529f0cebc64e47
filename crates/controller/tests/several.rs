//! Several measured guests with several drivers and data: what a trial of them tells, and that trouble in one of them
//! is reported with its name, ends the others and leaves nothing behind.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use crate::common::{plan, ready, run_plan};
use tare_controller::{Cancel, ControllerError, Observer, Quiet, RunEnd};
use tare_model::metric::common::{DISK_WRITE, START_TIME};
use tare_model::plan::Plan;
use tare_model::sample::Source;
use tare_model::study::{CaseLoad, Guests};
use tare_model::trial::{Outcome, Phase, TrialRecord};
use tare_testkit::{RATE, REASON, Several, Trouble};

/// The plan of two guests with two drivers each, beside a neighbour.
fn two_by_two() -> Plan {
    let mut plan = plan();
    let case = &mut plan.study.cases[0];
    case.load = CaseLoad::Fixed { load: case.load.largest(), guests: Guests { count: 2, drivers: 2 } };
    plan
}

/// What the observer receives while a run goes on.
#[derive(Default)]
struct Watching {
    notes: Mutex<Vec<String>>,
    /// Wishes to stop once something has begun that takes long.
    stops: bool,
    cancel: Cancel,
}

impl Watching {
    fn stopping() -> Self {
        Self { stops: true, ..Self::default() }
    }
}

impl Observer for Watching {
    fn note(&self, text: &str) {
        self.notes.lock().unwrap().push(text.to_owned());
    }
}

/// Runs two guests with this trouble.
fn troubled(agent: &Path, trouble: Trouble, watching: &Watching) -> (Several, RunEndOrError, Vec<TrialRecord>) {
    let folder = tempfile::tempdir().unwrap();
    let registry = Several::new(trouble, Some(folder.path().join("gold")));
    let run_id = format!("several-{}-{trouble:?}", std::process::id()).to_lowercase();
    let out = folder.path().join("run");
    if watching.stops {
        let (registry, cancel) = (registry.clone(), watching.cancel.clone());
        std::thread::spawn(move || {
            while registry.with_seen(|seen| seen.begun) == 0 {
                std::thread::sleep(Duration::from_millis(10));
            }
            cancel.cancel("test");
        });
    }
    let (ended, records) = run_plan(&two_by_two(), &registry, (&out, agent, &run_id), watching, &watching.cancel);
    assert_eq!(tare_lab::leftovers(&run_id), Vec::<String>::new(), "{trouble:?}");
    (registry, ended, records)
}

type RunEndOrError = Result<RunEnd, ControllerError>;

#[test]
fn every_guest_and_driver_is_counted_sampled_and_given_its_data() {
    let Some(agent) = ready() else { return };
    let watching = Watching::default();
    let (registry, ended, records) = troubled(&agent, Trouble::None, &watching);
    assert_eq!(ended.unwrap().completed, 2, "{records:?}");
    assert_eq!(registry.with_seen(|seen| seen.setups), 1, "once for both arms");
    let notes = watching.notes.lock().unwrap();
    // Tests beside this one end their runs, and a note may tell so.
    let notes: Vec<&String> = notes.iter().filter(|note| note.starts_with("case ")).collect();
    assert_eq!(notes, ["case idle: for 2 guests"]);
    for record in &records {
        let Outcome::Completed(measured) = &record.outcome else { panic!("{record:?}") };
        let parts: Vec<_> = measured.parts.iter().map(|part| (part.guest, part.driver)).collect();
        assert_eq!(parts, [(1, None), (1, Some(1)), (1, Some(2)), (2, None), (2, Some(1)), (2, Some(2))]);
        let sum: f64 = measured.parts.iter().filter(|part| part.driver.is_some()).map(|part| part.metrics[RATE]).sum();
        assert!((measured.metrics[RATE] - sum).abs() <= sum * 1e-9, "{measured:?}");
        assert!(measured.metrics[START_TIME] > 0.0);
        let sampled = |source: Source| record.samples.iter().any(|sample| sample.source == source);
        for name in ["target", "target-2"] {
            assert!(sampled(Source::InGuest(name.into())), "{name} from inside");
        }
        assert!(sampled(Source::Client) || sampled(Source::Host));
        let fact = |name: &str| record.facts.get(name).map(String::as_str);
        assert_eq!(fact("data on"), Some("the gold copy itself"));
        assert_eq!(fact("data restored in"), Some("0.25 s"));
        assert_eq!(fact("guest 2: data restored in"), Some("0.50 s"));
        assert_eq!(fact("guest 2: data on"), None, "it is the same");
        assert!(fact("guest clock").is_some() && fact("guest 2: guest clock").is_some(), "{:?}", record.facts);
        let spec = record.metrics.iter().find(|spec| spec.id == DISK_WRITE).expect("guests have data");
        assert!(spec.label.contains("whole host"));
        // It was beside the run folder.
        if tare_probe::disk_of(&std::env::temp_dir()).is_some() {
            assert!(measured.metrics[DISK_WRITE] >= 0.0 && fact("disk under the guests' data").is_some());
        }
    }
}

#[test]
fn one_guest_of_the_same_workload_is_reported_as_a_single_guest() {
    let Some(agent) = ready() else { return };
    let folder = tempfile::tempdir().unwrap();
    let run_id = format!("several-one-{}", std::process::id());
    let registry = Several::new(Trouble::None, None);
    let out = folder.path().join("run");
    let (ended, records) = run_plan(&plan(), &registry, (&out, &agent, &run_id), &Quiet, &Cancel::new());
    assert_eq!(ended.unwrap().completed, 2, "{records:?}");
    let record = &records[0];
    assert!(record.metrics.iter().all(|spec| spec.id != DISK_WRITE && !spec.label.contains("mean")), "no data");
    assert!(record.facts.keys().all(|name| !name.starts_with("data ") && !name.contains("guest 2")));
    assert_eq!(tare_lab::leftovers(&run_id), Vec::<String>::new());
}

#[test]
fn trouble_in_one_guest_names_it_and_ends_the_others() {
    let Some(agent) = ready() else { return };
    let cases = [
        (Trouble::Prepare, Phase::Prepare, "guest 2 of 2 (t0x1): failed on purpose", 2),
        (Trouble::Drive, Phase::Drive, "guest 1 of 2 (t0x0): failed on purpose", 2),
        (Trouble::Driver, Phase::Drive, "guest 2 of 2 (t0x1): client: ", 0),
    ];
    for (trouble, expected, beginning, long) in cases {
        let (registry, ended, records) = troubled(&agent, trouble, &Watching::default());
        assert_eq!(ended.unwrap().failed, 2, "{trouble:?}");
        let Outcome::Failed { phase, reason } = &records[0].outcome else { panic!("{trouble:?}: {records:?}") };
        assert!(*phase == expected && reason.starts_with(beginning), "{trouble:?}: {phase}: {reason}");
        let ended = registry.with_seen(|seen| std::mem::take(&mut seen.ended));
        assert_eq!(ended.len(), long, "{trouble:?}: {ended:?}");
        assert!(ended.iter().all(|how| how.contains("was cancelled")), "{trouble:?}: {ended:?}");
    }
}

#[test]
fn wrong_work_in_one_guest_makes_the_trial_invalid_and_names_it() {
    let Some(agent) = ready() else { return };
    let (_, ended, records) = troubled(&agent, Trouble::Verify, &Watching::default());
    let outcomes: Vec<&Outcome> = records.iter().map(|record| &record.outcome).collect();
    assert_eq!(ended.unwrap().invalid, 2, "{outcomes:?}");
    let Outcome::Invalid { reason } = &records[0].outcome else { panic!("{records:?}") };
    assert_eq!(*reason, format!("guest 2 of 2 (t0x1): {REASON}"));
}

#[test]
fn a_guest_that_hangs_is_ended_by_the_wish_to_stop() {
    let Some(agent) = ready() else { return };
    let (registry, ended, records) = troubled(&agent, Trouble::Hang, &Watching::stopping());
    let end = ended.unwrap();
    assert_eq!((end.interrupted.as_deref(), records.len()), (Some("test"), 0));
    let ended = registry.with_seen(|seen| std::mem::take(&mut seen.ended));
    assert!(ended.len() == 1 && ended[0].contains("was cancelled"), "{ended:?}");
}

#[test]
fn what_cannot_be_made_ready_ends_the_run_before_its_first_trial() {
    let Some(agent) = ready() else { return };
    let (_, ended, records) = troubled(&agent, Trouble::Setup, &Watching::default());
    let Err(ControllerError::Setup { case, reason }) = ended else { panic!("{ended:?}") };
    assert!(case == "idle" && reason.contains(REASON) && records.is_empty(), "{case}: {reason}");
    let (registry, ended, records) = troubled(&agent, Trouble::Refusal, &Watching::default());
    let Err(ControllerError::Unusable { reason, remedy, .. }) = ended else { panic!("{ended:?}") };
    assert!(reason == REASON && remedy == "do not use it" && records.is_empty());
    assert_eq!(registry.with_seen(|seen| seen.setups), 0);
}

#[test]
fn making_ready_is_ended_by_the_wish_to_stop() {
    let Some(agent) = ready() else { return };
    let (registry, ended, records) = troubled(&agent, Trouble::AheadHang, &Watching::stopping());
    let end = ended.unwrap();
    assert_eq!((end.interrupted.as_deref(), records.len()), (Some("test"), 0));
    let ended = registry.with_seen(|seen| std::mem::take(&mut seen.ended));
    assert!(ended.iter().all(|how| how.contains("was cancelled")), "{ended:?}");
}
