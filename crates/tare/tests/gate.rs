//! `tare gate`, over made-up folders and over small real runs.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use tare_model::plan::Plan;
use tare_model::trial::{Outcome, Phase};
use tare_record::testing;

use crate::common::{expect_code, is_root, run, stderr, stdout, tare};

/// Writes the folder of a run whose container takes `times` as long, and of which `broken` trials failed.
fn written(folder: &Path, name: &str, times: f64, broken: usize) -> PathBuf {
    let plan: Plan = testing::plan(12);
    let mut trials: Vec<_> = (0..plan.trials.len() as u32).map(|index| testing::trial(&plan, index)).collect();
    let own = trials.iter_mut().filter(|record| record.planned.arm == "container");
    for (at, record) in own.enumerate() {
        if at < broken {
            record.outcome = Outcome::Failed { phase: Phase::Drive, reason: "it broke".to_owned() };
        } else if let Outcome::Completed(measured) = &mut record.outcome {
            *measured.metrics.get_mut("response_time_p50_s").unwrap() *= times;
        }
    }
    let dir = folder.join(name);
    testing::write_run(&dir, &plan, &trials);
    dir
}

fn gate(runs: &[&Path], options: &[&str]) -> Output {
    let runs = runs.iter().map(|run| run.to_str().unwrap());
    run(&["gate"].into_iter().chain(runs).chain(options.iter().copied()).collect::<Vec<_>>())
}

fn json(runs: &[&Path], options: &[&str]) -> Value {
    serde_json::from_str(&stdout(&gate(runs, &[options, &["--format", "json"]].concat()))).unwrap()
}

#[test]
fn a_proven_regression_ends_with_1_none_with_0_and_doubt_with_2_where_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    // The container is 5 % slower, give or take half a percent.
    let (slow, broken) = (written(folder.path(), "slow", 1.0, 0), written(folder.path(), "broken", 1.0, 4));
    let all_broken = written(folder.path(), "all-broken", 1.0, 12);
    let none = &["--metric", "response_time_p50_s"];
    for (run, fail_on, code) in [
        (&slow, &["worse:2%"][..], 1),
        (&slow, &["worse:2%", "unsure"], 1),
        (&slow, &["worse:10%", "unsure"], 0),
        (&slow, &["worse:5%"], 0),
        (&slow, &["worse:5%", "no-verdict"], 0),
        (&slow, &["worse:5%", "unsure"], 2),
        (&broken, &["worse:2%"], 2),
        (&all_broken, &["worse:2%"], 2),
    ] {
        let fail_on: Vec<&str> = fail_on.iter().flat_map(|when| ["--fail-on", when]).collect();
        let said = gate(&[run], &[&fail_on, &none[..]].concat());
        expect_code(&said, code);
        let word = ["Pass: ", "Regression: ", "Cannot say: "][code as usize];
        assert!(stdout(&said).starts_with(word), "{}", stdout(&said));
    }
    let two = gate(&[&slow, &broken], &["--fail-on", "worse:10%", "--metric", "response_time_p50_s"]);
    expect_code(&two, 0);
    assert!(stdout(&two).contains("ruled out in 1; no verdict in 1"), "{}", stdout(&two));
    let two = gate(&[&slow, &broken], &["--fail-on", "worse:10%", "--fail-on", "no-verdict"]);
    expect_code(&two, 2);
}

#[test]
fn json_has_the_bound_that_decided_and_the_files_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let slow = written(folder.path(), "slow", 1.0, 0);
    let found = json(&[&slow], &["--fail-on", "worse:2%"]);
    assert_eq!((&found["schema"], &found["answer"], &found["limit"]), (&1.into(), &"regression".into(), &0.02.into()));
    let own = &found["runs"][0]["comparisons"][0];
    assert_eq!((&own["id"], &own["outcome"]), (&"idle/container/response_time_p50_s".into(), &"worse".into()));
    assert!(own["ratio"]["low"].as_f64().unwrap() > 1.02 && own["p_worse"].as_f64().unwrap() <= 0.05, "{own}");

    let [xml, summary] = ["gate.xml", "summary.md"].map(|name| folder.path().join(name));
    std::fs::write(&summary, "before\n").unwrap();
    let said = tare()
        .args(["gate", slow.to_str().unwrap(), "--fail-on", "worse:2%", "--format", "json", "--github", "--junit"])
        .arg(&xml)
        .env("GITHUB_STEP_SUMMARY", &summary)
        .output()
        .unwrap();
    expect_code(&said, 1);
    assert_eq!(serde_json::from_str::<Value>(&stdout(&said)).unwrap(), found, "standard output is the JSON alone");
    let errors: Vec<String> =
        stderr(&said).lines().filter(|line| line.starts_with("::error ")).map(str::to_owned).collect();
    assert_eq!(errors.len(), 1, "{}", stderr(&said));
    assert!(
        errors[0].starts_with("::error title=tare gate%3A worse%3A idle/container/response_time_p50_s::idle host, ")
    );
    let xml = std::fs::read_to_string(&xml).unwrap();
    assert!(
        xml.contains("failures=\"1\"") && xml.contains("<failure message=\"+4.9 % [+4.6, +5.2] against native: "),
        "{xml}"
    );
    let summary = std::fs::read_to_string(&summary).unwrap();
    assert!(summary.starts_with("before\n# Gate\n") && summary.contains("Regression: "), "{summary}");
}

#[test]
fn what_is_no_answer_has_a_code_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let slow = written(folder.path(), "slow", 1.0, 0);
    let altered = written(folder.path(), "altered", 1.0, 0);
    let plan = altered.join("plan.json");
    let text = std::fs::read_to_string(&plan).unwrap().replace("idle host", "idle Host");
    std::fs::write(plan, text).unwrap();
    let (slow, altered) = (slow.to_str().unwrap(), altered.to_str().unwrap());
    let missing = folder.path().join("missing").display().to_string();
    let nowhere = folder.path().join("no/folder/gate.xml").display().to_string();
    for (line, why) in [
        (&[slow][..], "--fail-on"),
        (&[slow, "--fail-on", "worse"], "worse:2%"),
        (&[slow, "--fail-on", "unsure"], "give one limit"),
        (&[slow, "--fail-on", "worse:2%", "--fail-on", "worse:3%"], "give one limit"),
        (&[slow, "--fail-on", "worse:2%", "--unknown"], "--unknown"),
        (&["--fail-on", "worse:2%"], "DIR"),
        (&[&missing, "--fail-on", "worse:2%"], "missing"),
        (&[altered, "--fail-on", "worse:2%"], "plan.json"),
        (&[slow, "--fail-on", "worse:2%", "--case", "other"], "--case other"),
        (&[slow, "--fail-on", "worse:2%", "--metric", "operations_per_s"], "there are `response_time_p50_s`"),
        (&[slow, "--fail-on", "worse:2%", "--junit", &nowhere], "cannot be written"),
    ] {
        let said = run(&[&["gate"], line].concat());
        expect_code(&said, 64);
        assert!(
            stderr(&said).contains(why) && stdout(&said).is_empty(),
            "{line:?}: {}{}",
            stderr(&said),
            stdout(&said)
        );
    }
    let unfit =
        tare().args(["gate", slow, "--fail-on", "worse:2%"]).env("TARE_LOG", "tare=nothing=x").output().unwrap();
    expect_code(&unfit, 64);
    let help = run(&["gate", "--help"]);
    expect_code(&help, 0);
    assert!(stdout(&help).contains("64   there is no answer"), "{}", stdout(&help));
}

/// Runs a command that takes `native` seconds on the host and `container` in a container.
fn ran(folder: &Path, (native, container): (&str, &str)) -> PathBuf {
    let out = folder.join("run");
    let wait = format!("if [ \"$(cat /proc/1/comm)\" = tare-agent ]; then sleep {container}; else sleep {native}; fi");
    let options = ["--blocks", "8", "--runs", "3", "--memory", "128MiB", "--no-noise-floor"];
    let command = ["--", "sh", "-c", &wait];
    expect_code(&run(&[&["exec", "--out", out.to_str().unwrap()], &options[..], &command].concat()), 0);
    out
}

#[test]
fn a_command_that_takes_half_as_long_again_fails_a_gate_of_20_percent_and_passes_one_of_90() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = ran(folder.path(), ("0.04", "0.06"));
    let wall = ["--metric", "wall_time_s", "--fail-on", "unsure", "--fail-on"];
    let failed = gate(&[&out], &[&wall[..], &["worse:20%"]].concat());
    expect_code(&failed, 1);
    assert!(stdout(&failed).contains("proven worse by more than 20 %"), "{}", stdout(&failed));
    expect_code(&gate(&[&out], &[&wall[..], &["worse:90%"]].concat()), 0);
}

#[test]
fn a_command_that_takes_as_long_on_both_arms_passes() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = ran(folder.path(), ("0.05", "0.05"));
    let wall = ["--metric", "wall_time_s", "--fail-on", "unsure", "--fail-on", "worse:30%"];
    let passed = gate(&[&out], &wall);
    expect_code(&passed, 0);
    assert!(stdout(&passed).starts_with("Pass: "), "{}", stdout(&passed));
}
