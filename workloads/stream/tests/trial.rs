//! Latency under load: a probe beside bulk data, in turns and one trial after the other.

use tare_model::trial::{Measurement, Outcome, TrialRecord};
use tare_model::{Histogram, histogram};
use tare_record::RunFolder;

use crate::common::{
    CONTAINER, expect_code, findings, is_root, left_by_runs_into, outcomes, ran, run, stderr, study, write_study,
};

const MS: u64 = 1_000_000;
/// Steady state of a trial.
const STEADY_MS: u64 = 1_300;

/// A case in turns and one in trials, each with an exchange every millisecond.
fn probed(blocks: u32) -> String {
    let case = |id: &str, schedule: &str| {
        format!(
            "[cases.{id}]\nworkload = \"stream\"\nparameters = {{ direction = \"send\", probe = {{ every = \"1ms\", request = \"128B\", response = \"128B\" }} }}\n{schedule}\n"
        )
    };
    let cases = case("turns", "schedule = \"turns\"") + &case("trials", "schedule = \"trials\"");
    let steady = format!("{STEADY_MS}ms");
    study(blocks, CONTAINER, "128MiB", &[("warm-up", "100ms"), ("steady-state", &steady)], &cases)
}

fn measured(trial: &TrialRecord) -> &Measurement {
    let Outcome::Completed(measured) = &trial.outcome else { panic!("{trial:?}") };
    measured
}

/// Exchanges that are due in the measured time: all of steady state, or what of it lies in the measured parts of turns.
fn due(trial: &TrialRecord, warm_up_ms: u64) -> u64 {
    let steady = warm_up_ms * MS..(warm_up_ms + STEADY_MS) * MS;
    let due = (MS / 2..steady.end).step_by(MS as usize).filter(|at| steady.contains(at));
    match &trial.turns {
        None => due.count() as u64,
        Some(own) => {
            let (turn, cold) = (own.turns.spec.turn.ns, own.turns.spec.warm_up.ns);
            due.filter(|at| at % turn >= cold).count() as u64
        }
    }
}

#[test]
fn a_probe_beside_bulk_data_has_all_its_exchanges_and_is_compared_on_both_schedules() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (out, output) = ran(folder.path(), &probed(2));
    expect_code(&output, 0);
    assert_eq!(outcomes(&out), vec!["completed"; 8]);
    let trials = RunFolder::open(&out).unwrap().trials().unwrap();
    assert_eq!(trials.iter().filter(|trial| trial.turns.is_some()).count(), 4);
    for trial in &trials {
        let (own, due) = (measured(trial), due(trial, 100));
        let times: &Histogram = &own.histograms[histogram::PROBE];
        assert_eq!((times.operations(), times.not_completed()), (due, 0), "{trial:?}");
        let [bulk, p50, p99] =
            ["throughput_bits_per_s", "latency_under_load_p50_s", "latency_under_load_p99_s"].map(|id| own.metrics[id]);
        assert!(bulk > 1e6 && p50 > 1e-6 && p99 >= p50, "{own:?}");
        assert!(trial.facts.contains_key("latency probe, CPU of its server's threads in the guest"), "{:?}", trial.facts);
    }
    let found = findings(&out);
    for case in found["cases"].as_array().unwrap() {
        let compared = |id: &str| {
            let mut metrics = case["metrics"].as_array().unwrap().iter();
            let metric = metrics.find(|metric| metric["spec"]["id"] == id).unwrap();
            let of = metric["comparisons"].as_array().unwrap().iter().find(|one| one["arm"] == "container").unwrap();
            (of["ratio"]["value"].as_f64().unwrap(), of["ratio"]["low"].is_number())
        };
        for id in ["latency_under_load_p50_s", "latency_under_load_p99_s"] {
            let (ratio, has_interval) = compared(id);
            assert!(ratio > 0.0 && has_interval, "{id}: {ratio}");
        }
        let names = case["distributions"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap());
        assert!(names.eq([histogram::PROBE; 2]), "{case}");
    }
    let report = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(report.contains("latency under load, 99th percentile"), "{report}");
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}

#[test]
fn a_probe_that_is_none_is_refused_by_the_plan_with_file_line_and_field() {
    let folder = tempfile::tempdir().unwrap();
    for (right, wrong, says) in [
        ("every = \"1ms\"", "every = \"0s\"", "0s is not between 1ms and 100ms"),
        ("request = \"128B\"", "request = \"1MiB\"", "1MiB is not between 1B and 4KiB"),
        ("response = \"128B\"", "answer = \"128B\"", "probe.answer` is no field"),
    ] {
        let text = probed(2).replace(right, wrong);
        let line = text.lines().position(|line| line.contains(wrong)).unwrap() + 1;
        let refused = run(&["plan", write_study(folder.path(), &text).to_str().unwrap()]);
        expect_code(&refused, 2);
        let said = stderr(&refused);
        let (field, place) = ("cases.turns.parameters.probe", format!("study.toml:{line}:"));
        assert!(said.contains(says) && said.contains(field) && said.contains(&place), "{wrong}: {said}");
    }
}
