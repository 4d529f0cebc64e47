//! The command line without a lab: arguments, study files, errors, exit codes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{CONTAINER, expect_code, run, small_study, stderr, stdout, write_study};

#[test]
fn a_study_that_init_writes_can_be_planned_and_is_never_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let file = file.to_str().unwrap();
    expect_code(&run(&["init", file]), 0);
    let plan = run(&["plan", file]);
    expect_code(&plan, 0);
    assert!(stdout(&plan).contains("trials"), "{}", stdout(&plan));
    let again = run(&["init", file]);
    expect_code(&again, 2);
    assert!(stderr(&again).contains("left as it is"));
}

#[test]
fn every_shipped_study_is_listed_and_can_be_planned() {
    let listed = stdout(&run(&["list"]));
    for name in ["null", "native", "container", "oci", "rr", "stream", "cpu", "exec", "quickstart"] {
        assert!(listed.contains(name), "{name} is not in\n{listed}");
    }
    for study in ["quickstart", "platforms", "response-time", "response-time-as-published", "throughput"] {
        let plan = run(&["plan", study]);
        // 4 where this host lacks a runtime that an arm asks for: the plan is shown, and which arm that is.
        assert!(matches!(plan.status.code(), Some(0 | 4)), "{study}: {}", stderr(&plan));
        assert!(stdout(&plan).contains("block"), "{}", stdout(&plan));
    }
}

#[test]
fn a_plan_is_the_same_every_time_and_another_seed_gives_another_order() {
    let json = |args: &[&str]| stdout(&run(args));
    let first = json(&["plan", "quickstart", "--json"]);
    assert_eq!(first, json(&["plan", "quickstart", "--json"]));
    assert_ne!(first, json(&["plan", "quickstart", "--json", "--seed", "2"]));
}

#[test]
fn a_wrong_study_is_shown_where_it_is_wrong_before_anything_is_started() {
    let folder = tempfile::tempdir().unwrap();
    for (right, wrong, says) in [
        ("steady-state = \"200ms\"", "steady-sate = \"200ms\"", "steady-state"),
        ("memory = \"128MiB\"", "memory = \"128\"", "memory"),
        ("platform = \"container\"", "platform = \"contaner\"", "container"),
        ("baseline = \"native\"", "baseline = \"nativ\"", "native"),
        ("workload = \"rr\"", "workload = \"netperf\"", "netperf"),
        ("request = \"128B\"", "request = \"0B\"", "0B"),
    ] {
        let study = write_study(folder.path(), &small_study(1, CONTAINER).replace(right, wrong));
        let out = folder.path().join("run");
        let output = run(&["run", study.to_str().unwrap(), "--out", out.to_str().unwrap()]);
        expect_code(&output, 2);
        let said = stderr(&output);
        assert!(said.contains(says) && said.contains("study.toml"), "{wrong}: {said}");
        assert!(!out.exists(), "{wrong}: a run folder was made");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_the_figures() {
    let folder = tempfile::tempdir().unwrap();
    let study = write_study(folder.path(), &small_study(1, CONTAINER).replace("128MiB", "64TiB"));
    let output = run(&["plan", study.to_str().unwrap()]);
    expect_code(&output, 4);
    assert!(stderr(&output).contains("64 TiB") || stderr(&output).contains("64TiB"), "{}", stderr(&output));
}

#[test]
fn names_that_are_no_study_and_options_that_mean_nothing_are_refused() {
    let unknown = run(&["plan", "quikstart"]);
    expect_code(&unknown, 2);
    assert!(stderr(&unknown).contains("quickstart"), "{}", stderr(&unknown));
    expect_code(&run(&["plan", "nowhere/study.toml"]), 2);
    expect_code(&run(&["plan", "quickstart", "--scale", "0"]), 2);
    expect_code(&run(&["plan", "quickstart", "--blocks", "0"]), 2);
    expect_code(&run(&["run", "quickstart", "--resume"]), 2);
    expect_code(&run(&["report", "/nonexistent"]), 2);
}

#[test]
fn an_arm_can_be_left_out_but_not_the_baseline() {
    let plan = run(&["plan", "response-time", "--without", "crun"]);
    let text = stdout(&plan);
    assert!(text.contains("left out") && !text.lines().any(|line| line.trim_end().ends_with(" crun")), "{text}");
    expect_code(&run(&["plan", "quickstart", "--without", "native"]), 2);
    expect_code(&run(&["plan", "quickstart", "--without", "docker"]), 2);
}

#[test]
fn a_filter_for_the_log_that_is_none_is_refused() {
    let output = common::tare().args(["list"]).env("TARE_LOG", "tare=loud").output().unwrap();
    expect_code(&output, 2);
    assert!(stderr(&output).contains("TARE_LOG"));
}

#[test]
fn schema_completions_and_manual_pages_are_generated() {
    let schema = stdout(&run(&["schema"]));
    assert!(schema.contains("\"$schema\"") && schema.contains("steady-state"));
    assert!(stdout(&run(&["completions", "bash"])).contains("_tare"));
    let folder = tempfile::tempdir().unwrap();
    expect_code(&run(&["man", folder.path().to_str().unwrap()]), 0);
    assert!(folder.path().join("tare-run.1").exists());
}

#[test]
fn help_teaches_the_exit_codes_and_a_closed_pipe_is_no_panic() {
    let help = stdout(&run(&["--help"]));
    assert!(help.contains("Exit codes") && help.contains("130"));
    let program = common::tare().get_program().to_owned();
    let piped =
        std::process::Command::new("sh").args(["-c", "\"$0\" schema | head -c 1; true"]).arg(program).output().unwrap();
    assert!(!stderr(&piped).contains("panicked"), "{}", stderr(&piped));
}
