//! Starts as operations: guests that are made, answer and are taken away, one by one and in bursts.

use std::path::Path;

use tare_model::histogram;
use tare_model::trial::{Measurement, Outcome, TrialRecord};
use tare_record::RunFolder;

use crate::common::{
    CONTAINER, begin, expect_code, is_root, journal, kill, left_by_runs_into, ran, run, signal, stderr, study, until,
    write_study,
};

const CASES: &str = "[cases.alone]\nworkload = \"guest-start\"\n\
    [cases.burst]\nworkload = \"guest-start\"\nload = { closed = { clients = 3 } }\n\
    parameters = { command = [\"sh\", \"-c\", \"exit 0\"] }\n[turns]\nrounds = 4\n";

fn starts(blocks: u32, cases: &str) -> String {
    study(blocks, CONTAINER, "128MiB", &[("steady-state", "1s")], cases)
}

fn measured(trial: &TrialRecord) -> &Measurement {
    match &trial.outcome {
        Outcome::Completed(measured) => measured,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_start_counts_alone_and_in_a_burst_and_nothing_of_them_is_left() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (out, output) = ran(folder.path(), &starts(2, CASES));
    expect_code(&output, 0);
    let trials = RunFolder::open(&out).unwrap().trials().unwrap();
    assert_eq!(trials.len(), 8);
    for trial in &trials {
        let (measured, burst) = (measured(trial), trial.planned.case == "burst");
        let all = if burst { 12 } else { 4 };
        assert_eq!((measured.counts["operations"], measured.counts["starts_failed"]), (all, 0));
        assert_eq!(measured.histograms[histogram::RESPONSE].count(), all);
        let [start, stop] = ["start_mean_s", "stop_mean_s"].map(|id| measured.metrics[id]);
        assert!(start > 0.0 && stop > 0.0, "{measured:?}");
        // A task ends after its guest has answered, and a burst takes longer than one start of it.
        let more = ["task_mean_s", "burst_mean_s"].map(|id| measured.metrics.get(id).copied());
        assert_eq!(more.map(|more| more.is_some()), [burst; 2]);
        assert!(more.into_iter().flatten().all(|more| more > start), "{measured:?}");
        assert!(trial.facts.contains_key("tare's own share, beside each start"), "{:?}", trial.facts);
        assert!(!trial.flags.iter().any(|flag| flag.kind == "foreign-load"), "{:?}", trial.flags);
        let turns = trial.turns.as_ref().expect("arms take turns");
        assert_eq!(turns.done.counts.iter().map(|count| count.operations).sum::<u64>(), all);
    }
    let report = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(report.contains("start, create to first answer"), "{report}");
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}

#[test]
fn starts_of_an_open_loop_are_due_at_their_times_and_what_they_wait_counts() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // More are due than one guest at a time can be: they wait for one another.
    let case = "[cases.rate]\nworkload = \"guest-start\"\nload = { open = { rate = \"40/s\", connections = 1 } }\n\
                parameters = { command = [\"sleep\", \"0.05\"] }\n";
    let (out, output) = ran(folder.path(), &starts(1, case));
    expect_code(&output, 0);
    let trials = RunFolder::open(&out).unwrap().trials().unwrap();
    assert_eq!(trials.len(), 2);
    for trial in &trials {
        let measured = measured(trial);
        let starts = measured.counts["operations"];
        assert!((10..100).contains(&starts), "40 are expected: {starts}");
        assert!(trial.turns.is_none() && trial.facts.contains_key("wait from when a start was due"), "{trial:?}");
        // Whoever waits for one start after the other takes longer than its own start and task.
        assert!(measured.metrics["task_mean_s"] > 2.0 * 0.05, "{measured:?}");
        assert!(measured.metrics["task_mean_s"] > measured.metrics["start_mean_s"], "{measured:?}");
        assert!(!measured.metrics.contains_key("burst_mean_s"));
    }
    let planned = run(&["plan", folder.path().join("study.toml").to_str().unwrap()]);
    assert!(crate::common::stdout(&planned).contains("open loop"), "{planned:?}");
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}

#[test]
fn starts_whose_task_fails_end_the_trial_with_the_reason() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let failing = "[cases.task]\nworkload = \"guest-start\"\nparameters = { command = [\"sh\", \"-c\", \"echo no such thing >&2; exit 3\"] }\n";
    let (out, output) = ran(folder.path(), &starts(1, failing));
    assert_ne!(output.status.code(), Some(0), "{}", stderr(&output));
    let trials = RunFolder::open(&out).unwrap().trials().unwrap();
    let Outcome::Failed { reason, .. } = &trials[0].outcome else { panic!("{:?}", trials[0].outcome) };
    assert!(reason.contains("1 of 1 starts failed") && reason.contains("exited with code 3"), "{reason}");
    assert!(reason.contains("no such thing"), "{reason}");
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}

/// Kills a run while it starts guests, and waits until nothing of it is left.
fn killed_among_starts_leaves_nothing(folder: &Path, study: &Path) {
    let out = folder.join("run");
    let mut running = begin(study, &out);
    until("starts", || journal(&out).contains("\"drive\""));
    std::thread::sleep(std::time::Duration::from_millis(300));
    kill(&mut running);
    until("the reaper to take everything away", || left_by_runs_into(&out).is_empty());
}

#[test]
fn a_run_that_is_killed_in_a_burst_leaves_nothing() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let long = CASES.replace("rounds = 4", "rounds = 500");
    let path = write_study(folder.path(), &starts(1, &long));
    killed_among_starts_leaves_nothing(folder.path(), &path);
}

/// Whether the processes of a guest can be stopped by its control group here.
fn freezes() -> bool {
    let can = tare_lab::freezing_refusal().is_none();
    if !can {
        println!("SKIPPED: guests cannot be stopped by their control groups here");
    }
    can
}

#[test]
fn a_pool_is_filled_before_it_is_taken_from_and_starts_are_quick() {
    if !is_root() || !freezes() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let arms = format!("{CONTAINER}\n[arms.pool]\nplatform = \"container\"\nstart = {{ pool = 4 }}");
    let case = "[cases.burst]\nworkload = \"guest-start\"\nload = { closed = { clients = 3 } }\n\
                parameters = { command = [\"sh\", \"-c\", \"exit 0\"] }\n[turns]\nrounds = 4\n";
    let (out, output) = ran(folder.path(), &study(1, &arms, "128MiB", &[("steady-state", "1s")], case));
    expect_code(&output, 0);
    let trials = RunFolder::open(&out).unwrap().trials().unwrap();
    let of = |arm: &str| trials.iter().find(|trial| trial.planned.arm == arm).unwrap();
    let (cold, pool) = (of("container"), of("pool"));
    for trial in [cold, pool] {
        let measured = measured(trial);
        assert_eq!((measured.counts["operations"], measured.counts["starts_failed"]), (12, 0), "{trial:?}");
        assert!(measured.metrics["task_page_faults"] > 0.0, "{measured:?}");
    }
    let start = |trial| measured(trial).metrics["start_mean_s"];
    assert!(start(pool) < start(cold), "{} of a guest that stood, {} from nothing", start(pool), start(cold));
    // Four at first; then the three that each of five bursts took, of which one is the warm-up.
    assert!(pool.facts["pool"].contains("4 guests; 19 were made"), "{:?}", pool.facts);
    assert!(!cold.facts.contains_key("pool"));
    let report = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(report.contains("from a pool of 4 guests that are stopped"), "{report}");
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}

#[test]
fn a_run_that_is_killed_with_a_pool_that_stands_still_leaves_nothing() {
    if !is_root() || !freezes() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let arms = "[arms.pool]\nplatform = \"container\"\nstart = { pool = 4 }";
    let case = "[cases.alone]\nworkload = \"guest-start\"\n[turns]\nrounds = 500\n";
    let path = write_study(folder.path(), &study(1, arms, "128MiB", &[("steady-state", "1s")], case));
    killed_among_starts_leaves_nothing(folder.path(), &path);
}

#[test]
fn more_guests_than_the_host_has_memory_for_are_refused_by_the_plan() {
    let folder = tempfile::tempdir().unwrap();
    let crowd = "[cases.crowd]\nworkload = \"guest-start\"\nload = { closed = { clients = 256 } }\nguest = { memory = \"512GiB\" }\n";
    let path = write_study(folder.path(), &starts(1, crowd));
    let output = run(&["plan", path.to_str().unwrap()]);
    assert_ne!(output.status.code(), Some(0));
    let said = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("512GiB for each of 256 that the workload makes"), "{said}");
}

#[test]
fn guests_that_stay_are_added_each_with_its_task_and_what_they_take_is_known() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let case = "[cases.idle]\nworkload = \"resident-task\"\nparameters = { every = \"100ms\" }\ndensity = { guests = [1, 3] }\n\
                [cases.task]\nworkload = \"resident-task\"\nparameters = { every = \"200ms\", command = [\"sh\", \"-c\", \"exit 0\"] }\n\
                density = { guests = [1, 3] }\n[lab]\nplacement = \"unpinned\"\n";
    let (out, output) = ran(folder.path(), &starts(1, case));
    expect_code(&output, 0);
    let trials = RunFolder::open(&out).unwrap().trials().unwrap();
    assert_eq!(trials.len(), 4);
    for trial in &trials {
        let scale_up = measured(trial).scale_up.as_ref().expect("a scale-up");
        assert_eq!(scale_up.levels.iter().map(|level| level.guests).collect::<Vec<_>>(), [1, 3]);
        for level in &scale_up.levels {
            assert!(level.failed.is_none(), "{level:?}");
            for id in ["task_mean_s", "operations_per_s", "guest_unique_bytes", "added_guest_start_s"] {
                assert!(level.metrics.get(id).is_some_and(|value| *value > 0.0), "{id}: {:?}", level.metrics);
            }
        }
        // Three guests have three times the tasks of one, within one a guest.
        let [one, three] = [0, 1].map(|n| scale_up.levels[n].metrics["operations_per_s"]);
        assert!(three > 2.0 * one, "{one} and {three}");
    }
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
    // A task that its guest cannot do is found before a second guest is added.
    let unable = case.replace("\"sh\", \"-c\", \"exit 0\"", "\"no-such-program\"");
    let (out, output) = ran(tempfile::tempdir().unwrap().path(), &starts(1, &unable));
    assert_ne!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("no such program"), "{} {}", stderr(&output), out.display());
}

#[test]
fn a_run_whose_guests_wait_for_their_next_task_is_stopped_at_once() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let case = "[cases.idle]\nworkload = \"resident-task\"\nparameters = { every = \"1h\" }\ndensity = { guests = [2] }\n\
                [lab]\nplacement = \"unpinned\"\n";
    let study = write_study(folder.path(), &study(1, "", "128MiB", &[("steady-state", "1h")], case));
    let out = folder.path().join("run");
    let mut running = begin(&study, &out);
    until("load", || journal(&out).contains("\"drive\""));
    signal(running.id(), rustix::process::Signal::INT).unwrap();
    until("its end", || running.try_wait().unwrap().is_some());
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}
