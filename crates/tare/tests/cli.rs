//! The command line without a lab: arguments, study files, errors, exit codes.

use crate::common;

use crate::common::{CONTAINER, expect_code, ran, run, small_study, stderr, stdout, write_study};

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
fn a_shipped_study_can_be_copied_and_planned() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let file = file.to_str().unwrap();
    expect_code(&run(&["init", file, "--from", "response-time"]), 0);
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("name = \"response-time\"") && !text.contains("#:schema"), "{text}");
    let json = |args: &[&str]| stdout(&run(args));
    assert_eq!(json(&["plan", file, "--format", "json"]), json(&["plan", "response-time", "--format", "json"]));
    let unknown = run(&["init", "-", "--from", "response-tim"]);
    expect_code(&unknown, 2);
    assert!(
        stderr(&unknown).contains("did you mean `response-time`")
            || stderr(&unknown).contains("Did you mean `response-time`")
    );
    expect_code(&run(&["init", folder.path().join("no/folder.toml").to_str().unwrap()]), 1);
}

#[test]
fn what_platforms_and_workloads_take_is_listed_in_words() {
    let store = stdout(&run(&["schema", "store"]));
    for part in ["db-size = ", "postgres", "`parameters`", "\"functions\": "] {
        assert!(store.contains(part), "{part} is not in\n{store}");
    }
    let qemu = stdout(&run(&["schema", "qemu"]));
    assert!(qemu.contains("`options`") && qemu.contains("data-disk.") && qemu.contains("image.file.path"), "{qemu}");
    // A platform and a workload are both called so.
    assert_eq!(stdout(&run(&["schema", "null"])).matches("`null`:").count(), 2);
    let unknown = run(&["schema", "stor"]);
    expect_code(&unknown, 2);
    assert!(stderr(&unknown).contains("did you mean `store`?"), "{}", stderr(&unknown));
}

#[test]
fn a_folder_that_cannot_be_that_of_a_run_is_refused_before_anything_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    for out in [file.clone(), file.join("run")] {
        let refused = run(&["run", "quickstart", "--scale", "0.01", "--out", out.to_str().unwrap()]);
        expect_code(&refused, 2);
        let said = stderr(&refused);
        assert!(said.contains("is a file") && said.contains("--out"), "{said}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    // Nor is a folder a study, though it may hold one.
    std::fs::write(folder.path().join("study.toml"), "").unwrap();
    let refused = run(&["plan", folder.path().to_str().unwrap()]);
    expect_code(&refused, 2);
    assert!(stderr(&refused).contains("study.toml") && stderr(&refused).contains("--resume"), "{}", stderr(&refused));
}

#[test]
fn runs_alongside_may_be_allowed_by_any_word_that_means_yes() {
    let folder = tempfile::tempdir().unwrap();
    let study = write_study(folder.path(), "");
    for word in ["1", "yes", "true", "0", ""] {
        let output =
            common::tare().args(["run", study.to_str().unwrap()]).env("TARE_ALONGSIDE", word).output().unwrap();
        expect_code(&output, 2);
        assert!(stderr(&output).contains("is empty"), "{word:?}: {}", stderr(&output));
    }
}

#[test]
fn every_shipped_study_is_listed_and_can_be_planned() {
    let listed = stdout(&run(&["list"]));
    for name in ["null", "native", "container", "oci", "rr", "stream", "cpu", "exec", "quickstart"] {
        assert!(listed.contains(name), "{name} is not in\n{listed}");
    }
    for study in [
        "quickstart",
        "platforms",
        "response-time",
        "response-time-as-published",
        "throughput",
        "throughput-as-published",
    ] {
        let plan = run(&["plan", study]);
        // 4 where a runtime that an arm asks for is missing on this host: the plan is shown, and which arm that is.
        assert!(matches!(plan.status.code(), Some(0 | 4)), "{study}: {}", stderr(&plan));
        assert!(stdout(&plan).contains("block"), "{}", stdout(&plan));
    }
}

#[test]
fn a_plan_is_the_same_every_time_and_another_seed_gives_another_order() {
    let json = |args: &[&str]| stdout(&run(args));
    let first = json(&["plan", "quickstart", "--format", "json"]);
    assert_eq!(first, json(&["plan", "quickstart", "--format", "json"]));
    assert_ne!(first, json(&["plan", "quickstart", "--format", "json", "--seed", "2"]));
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
        let (out, output) = ran(folder.path(), &small_study(1, CONTAINER).replace(right, wrong));
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
    let negative = run(&["plan", "quickstart", "--scale", "-1"]);
    expect_code(&negative, 2);
    assert!(stderr(&negative).contains("more than 0"), "{}", stderr(&negative));
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
    let unknown = run(&["plan", "quickstart", "--without", "docker"]);
    expect_code(&unknown, 2);
    assert!(stderr(&unknown).contains("`container`"), "{}", stderr(&unknown));
}

#[test]
fn arms_and_cases_are_chosen_by_name_and_the_plan_says_so() {
    let output = run(&["plan", "quickstart", "--format", "json", "--only-case", "re*", "--without-case", "*-time"]);
    let plan: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let cases: Vec<&str> =
        plan["study"]["cases"].as_array().unwrap().iter().map(|case| case["id"].as_str().unwrap()).collect();
    assert_eq!(cases, ["receive"]);
    let said = plan["differences"].to_string();
    assert!(said.contains("1 of the study's 3 cases are run, as the command line asks: `receive`"), "{said}");
    let unknown = run(&["run", "quickstart", "--only-case", "users-*"]);
    expect_code(&unknown, 2);
    assert!(
        stderr(&unknown).contains("--only-case users-*: the study has no such case; cases: "),
        "{}",
        stderr(&unknown)
    );
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

/// Machines that would be emulated cost minutes and say nothing about machines: they are measured where that is asked for.
#[test]
fn machines_that_would_be_emulated_are_left_out_unless_they_are_asked_for() {
    let installed = std::process::Command::new("qemu-system-x86_64").arg("--version").output().is_ok();
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    let promises = cpus.split_whitespace().any(|word| word == "vmx" || word == "svm");
    if promises && std::path::Path::new("/dev/kvm").exists() || !installed {
        return tare_testkit::skipped("needs QEMU and a host without KVM");
    }
    let folder = tempfile::tempdir().unwrap();
    let machine = |id: &str, options: &str| format!("[arms.{id}]\nplatform = \"qemu\"\n{options}\n");
    let arms = format!("{CONTAINER}\n{}{}", machine("open", ""), machine("asked", "options = { accel = \"tcg\" }"));
    let text = small_study(1, &arms).replace("noise-floor", "skip-unavailable = true\nnoise-floor");
    let study = write_study(folder.path(), &text);
    let plan = |more: &[&str]| {
        let output = run(&[&["plan", "--format", "json", study.to_str().unwrap()], more].concat());
        expect_code(&output, 0);
        let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let arms = plan["study"]["arms"].as_array().unwrap();
        let arms: Vec<String> = arms.iter().map(|arm| arm["id"].as_str().unwrap().to_owned()).collect();
        (arms, plan["left_out"].to_string())
    };
    let (arms, left_out) = plan(&[]);
    if !arms.contains(&"asked".to_owned()) {
        return tare_testkit::skipped(&format!("this host runs no machine: {left_out}"));
    }
    assert_eq!(arms, ["native", "container", "asked"]);
    assert!(left_out.contains("--emulated") && left_out.contains("would be emulated"), "{left_out}");
    let (arms, left_out) = plan(&["--emulated"]);
    assert_eq!(arms, ["native", "container", "open", "asked"], "{left_out}");
}

#[test]
fn a_plan_holds_services_and_storage_paths() {
    let plan = |args: &[&str]| -> serde_json::Value {
        let output = run(&[&["plan", "--format", "json"], args].concat());
        assert!(matches!(output.status.code(), Some(0 | 4)), "{}", stderr(&output));
        serde_json::from_str(&stdout(&output)).unwrap()
    };
    let of = |arm: &str, all: &serde_json::Value| {
        all["layout"]["arms"].as_array().unwrap().iter().find(|own| own["arm"] == arm).unwrap()["own"].clone()
    };
    let orders = plan(&["order-entry", "--emulated"]);
    let works = &orders["layout"]["cases"][0]["guests"][0];
    assert_eq!((&works["services"][0]["what"], &works["data"]["shared"]), (&"PostgreSQL".into(), &false.into()));
    assert_eq!(of("native", &orders)[0]["store"]["kind"], "directory");
    for (arm, store) in [
        ("qemu-raw", serde_json::json!({"kind": "file", "format": "raw"})),
        ("qemu-iscsi", serde_json::json!({"kind": "unit", "san": false, "initiator": "hypervisor"})),
    ] {
        // They are left out where there is no QEMU or no target.
        if orders["layout"]["arms"].as_array().unwrap().iter().any(|own| own["arm"] == arm) {
            assert_eq!(of(arm, &orders)[0]["store"], store, "{arm}");
        }
    }
    let social = plan(&["jvm-consolidation"]);
    let services = social["layout"]["cases"][0]["guests"][0]["services"].as_array().unwrap();
    let placed = services.iter().map(|service| service["place"].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(placed, ["guest", "beside", "beside"], "{services:?}");
}
