//! Conditions of one guest: what neighbours do, in turns, and what of it is left.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use tare_model::metric::isolation;
use tare_model::trial::{Measurement, Outcome, TrialRecord};
use tare_model::{count, flag};
use tare_record::RunFolder;

use crate::common::{
    CONTAINER, begin, expect_code, findings, is_root, journal, left_by_runs_into, processes_of, ran, run_ids, signal,
    study, until, write_study,
};

fn conditions(blocks: u32, work: &str) -> String {
    let cases = format!(
        "[cases.rr]\nworkload = \"rr\"\nneighbours = {{ count = 1, cpus = 1, memory = \"128MiB\", work = [{work}] }}\n\
         turns = {{ length = \"300ms\", gap = \"100ms\" }}\n"
    );
    study(blocks, CONTAINER, "128MiB", &[("steady-state", "900ms")], &cases)
}

fn measured(trial: &TrialRecord) -> &Measurement {
    match &trial.outcome {
        Outcome::Completed(measured) => measured,
        other => panic!("{:?}: {other:?}", trial.planned),
    }
}

#[test]
fn a_guest_meets_its_neighbours_in_turns_and_the_report_has_the_matrix() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (out, output) = ran(folder.path(), &conditions(2, "\"none\", \"spin\", \"cache\""));
    expect_code(&output, 0);
    let run = RunFolder::open(&out).unwrap();
    assert!(run.plan().sets.iter().all(|set| set.len() == 3), "{:?}", run.plan().sets);
    let trials = run.trials().unwrap();
    let mut windows: BTreeMap<(u32, &str), Vec<(u64, u64)>> = BTreeMap::new();
    for trial in &trials {
        let (measured, works) = (measured(trial), trial.planned.case != "rr@none");
        assert_eq!(measured.metrics.get(isolation::WORK).is_some_and(|work| *work > 0.0), works, "{measured:?}");
        assert!(measured.metrics[isolation::HOST_DELAY] >= 0.0 && measured.counts["operations"] > 0);
        assert!(measured.metrics["response_time_mean_s"] > 0.0 && measured.metrics["start_time_s"] > 0.0);
        let taken = trial.turns.as_ref().expect("conditions take turns");
        assert_eq!((taken.turns.arms, taken.turns.places.len(), taken.waiting_cpus), (3, 3, None));
        let own = windows.entry((trial.planned.block, &trial.planned.arm)).or_default();
        own.extend(taken.windows());
    }
    for all in windows.values_mut() {
        all.sort_unstable();
        assert!(all.len() == 9 && all.windows(2).all(|two| two[1].0 - two[0].1 == 100_000_000), "{all:?}");
    }
    let found = findings(&out);
    let matrix = &found["isolation"][0];
    assert_eq!((&matrix["victim"], matrix["works"].as_array().unwrap().len()), (&"rr".into(), 2), "{matrix}");
    for arm in matrix["arms"].as_array().unwrap() {
        for cell in arm["cells"].as_array().unwrap() {
            let of = |name: &str| cell[name]["value"].as_f64().unwrap();
            assert!(of("speed") > 0.0 && of("achieved_per_s") > 0.0, "{cell}");
            assert_eq!(cell["survival"]["victim_lost"], 0, "{cell}");
        }
    }
    let report = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(report.contains("## What neighbours do to rr") && report.contains("| cache "), "{report}");
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}

/// Processes of the first neighbour of a run's first trial.
fn first_neighbour(out: &Path) -> Vec<u32> {
    let all = run_ids(out).into_iter().flat_map(|run| processes_of(&run));
    all.filter(|pid| std::fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|group| group.contains("/n0x0")))
        .collect()
}

#[test]
fn a_neighbour_that_is_killed_in_its_turn_is_contained_and_nothing_of_it_is_left() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = conditions(1, "\"none\", \"spin\"").replace("steady-state = \"900ms\"", "steady-state = \"3s\"");
    let (path, out) = (write_study(folder.path(), &text), folder.path().join("run"));
    let running = begin(&path, &out);
    until("load", || journal(&out).contains("\"drive\""));
    std::thread::sleep(Duration::from_millis(1500));
    let neighbour = first_neighbour(&out);
    assert!(!neighbour.is_empty(), "it works");
    for pid in neighbour {
        signal(pid, Signal::KILL).unwrap();
    }
    expect_code(&running.wait_with_output().unwrap(), 0);
    let trials = RunFolder::open(&out).unwrap().trials().unwrap();
    assert_eq!(trials.len(), 4);
    let ended = |trial: &TrialRecord| trial.flags.iter().any(|own| own.kind == flag::AGGRESSOR_ENDED);
    let lost: Vec<_> = trials.iter().filter(|trial| ended(trial)).collect();
    let [lost] = lost.as_slice() else { panic!("{lost:?}") };
    assert_eq!((lost.planned.case.as_str(), measured(lost).counts[count::AGGRESSOR_ENDED]), ("rr@spin", 1));
    assert!(trials.iter().all(|trial| measured(trial).counts["operations"] > 0), "victims went on");
    let matrix = findings(&out)["isolation"][0].clone();
    let contained: u64 = matrix["arms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|arm| arm["cells"][0]["survival"]["contained"].as_u64().unwrap())
        .sum();
    assert_eq!(contained, 1, "{matrix}");
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}
