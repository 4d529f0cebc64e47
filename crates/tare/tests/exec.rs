//! `tare exec`: one command on several arms.

use std::path::Path;
use std::process::{Command, Output};

use crate::common::{expect_code, findings, is_root, left_by_runs_into, run, stderr, stdout, tare};

/// A few milliseconds of computing.
const LOOP: &str = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done";

/// Runs `tare exec` into a folder.
fn exec(folder: &Path, options: &[&str], command: &[&str]) -> Output {
    let out = folder.join("run");
    run(&[&["exec", "--memory", "128MiB", "--out", out.to_str().unwrap()], options, &["--"], command].concat())
}

/// Whether this host has a program; tells if not.
fn has(program: &str) -> bool {
    let looked = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let there = looked.is_ok_and(|looked| looked.status.success());
    if !there {
        tare_testkit::skipped(&format!("there is no {program} on this host"));
    }
    there
}

#[test]
fn a_command_is_compared_on_the_arms_that_are_named() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let arms = if has("runc") { "native,container,runc" } else { "native,container" };
    let exports = ["report.html", "report.json", "report.md"].map(|name| folder.path().join(name));
    let export = exports.iter().flat_map(|file| ["--export", file.to_str().unwrap()]);
    let options: Vec<&str> = ["--on", arms, "--blocks", "3"].into_iter().chain(export).collect();
    let output = exec(folder.path(), &options, &["sh", "-c", LOOP]);
    expect_code(&output, 0);
    let (said, printed) = (stderr(&output), stdout(&output));
    assert!(said.contains("first run, not counted: native "), "{said}");
    assert!(said.contains("after block 1 of 3; no verdict is final before the end"), "{said}");
    let long = |line: &str| line.contains("/tmp") || line.starts_with("root hash");
    let wide: Vec<&str> = printed.lines().filter(|line| line.chars().count() > 80 && !long(line)).collect();
    assert!(wide.is_empty(), "{wide:?}");
    assert!(printed.contains("report: ") && printed.contains("--save study.toml"), "{printed}");
    let found = findings(&folder.path().join("run"));
    let of_study = found["plan"]["study"]["arms"].as_array().unwrap();
    let ids: Vec<&str> = of_study.iter().map(|arm| arm["id"].as_str().unwrap()).collect();
    assert_eq!(ids.join(","), format!("{arms},native-again"));
    assert_eq!(found["cases"][0]["metrics"][0]["spec"]["id"], "wall_time_s");
    let [html, json, markdown] = exports.map(|file| std::fs::read_to_string(file).unwrap());
    assert!(html.contains("</html>"));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["run"]["id"], found["run"]["id"]);
    assert!(markdown.contains(found["plan"]["study"]["question"].as_str().unwrap().split('`').next().unwrap()));
    assert_eq!(left_by_runs_into(&folder.path().join("run")), Vec::<String>::new());
}

#[test]
fn a_saved_study_has_the_plan_that_was_run_and_no_secret() {
    if !is_root() {
        return;
    }
    const NAME: &str = "TARE_TEST_WORD";
    let folder = tempfile::tempdir().unwrap();
    let [saved, out, again] = ["study.toml", "run", "again"].map(|name| folder.path().join(name).display().to_string());
    let tare = |line: &[&str]| tare().env(NAME, "swordfish").args(line).output().unwrap();
    let script = format!("test \"${NAME}\" = swordfish && test $(pwd) = /usr");
    let size = ["exec", "--seed", "7", "--blocks", "2", "--runs", "2", "--memory", "128MiB", "--env", NAME];
    let rest = ["--directory", "/usr", "--save", &saved, "--out", &out, "--", "sh", "-c", &script];
    expect_code(&tare(&[&size[..], &rest].concat()), 0);
    assert!(!std::fs::read_to_string(&saved).unwrap().contains("\"swordfish\""));
    let planned = tare(&["plan", &saved, "--format", "json"]);
    expect_code(&planned, 0);
    let planned: serde_json::Value = serde_json::from_str(&stdout(&planned)).unwrap();
    let plan = std::fs::read(Path::new(&out).join("plan.json")).unwrap();
    let ran: serde_json::Value = serde_json::from_slice(&plan).unwrap();
    assert_eq!((&planned["hash"], &planned["trials"]), (&ran["hash"], &ran["trials"]));
    expect_code(&tare(&["run", &saved, "--out", &again]), 0);
    let over = tare(&["exec", "--save", &saved, "--", "true"]);
    expect_code(&over, 2);
    assert!(stderr(&over).contains("is there already"), "{}", stderr(&over));
}

#[test]
fn a_figure_of_the_output_is_compared_by_expression_and_by_path() {
    if !is_root() {
        return;
    }
    for (way, script, label) in [
        (["--metric", "events per second: +([0-9.]+)"], "echo events per second:  42.5", "events per second"),
        (["--json-path", "$.jobs[0].iops"], r#"echo '{"jobs":[{"iops":42.5}]}'"#, "$.jobs[0].iops"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let options = [&way[..], &["--blocks", "1"]].concat();
        expect_code(&exec(folder.path(), &options, &["sh", "-c", script]), 0);
        let metric = &findings(&folder.path().join("run"))["cases"][0]["metrics"][0];
        let spec = &metric["spec"];
        assert_eq!((spec["label"].as_str(), spec["better"].as_str()), (Some(label), Some("higher")));
        let value = metric["arms"][0]["estimate"]["value"].as_f64().unwrap();
        assert!((value - 42.5).abs() < 1e-9, "{value}");
    }
}

#[test]
fn unmeasured_runs_come_first_in_each_fresh_guest() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // A container counts in a layer of its own, which is new in each block.
    let count = format!(
        "f={}/$(cat /proc/sys/kernel/hostname); n=$(cat $f 2>/dev/null || echo 0); n=$((n + 1)); echo $n > $f; echo n: $n",
        folder.path().display()
    );
    let options = ["--metric", "n: ([0-9]+)", "--runs", "2", "--warm-up", "3", "--blocks", "1"];
    expect_code(&exec(folder.path(), &options, &["sh", "-c", &count]), 0);
    let metric = &findings(&folder.path().join("run"))["cases"][0]["metrics"][0];
    let arms = metric["arms"].as_array().unwrap();
    let container = arms.iter().find(|arm| arm["arm"] == "container").unwrap();
    let value = container["estimate"]["value"].as_f64().unwrap();
    assert!((value - 4.5).abs() < 1e-9, "the mean of the fourth and the fifth run: {value}");
}

#[test]
fn precision_and_time_decide_how_many_blocks_there_are() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("study.toml");
    let options = ["--until", "90%", "--max-time", "2m", "--no-noise-floor", "--save", saved.to_str().unwrap()];
    expect_code(&exec(folder.path(), &options, &["sh", "-c", LOOP]), 0);
    assert!(std::fs::read_to_string(&saved).unwrap().contains("until = \"90%\""));
    let blocks = findings(&folder.path().join("run"))["cases"][0]["blocks"].clone();
    assert!(blocks["blocks"].as_u64().unwrap() >= 6, "{blocks}");
    let refused = exec(&folder.path().join("other"), &["--max-time", "1s"], &["sleep", "0.5"]);
    expect_code(&refused, 2);
    assert!(stderr(&refused).contains("fit into --max-time 1s"), "{}", stderr(&refused));
}

#[test]
fn a_command_that_does_not_work_is_reported_at_once_with_its_own_words() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // It works natively, and not where processes are counted anew.
    let script = "test $$ -gt 50 || { echo no such luck >&2; exit 3; }";
    let failed = exec(folder.path(), &[], &["sh", "-c", script]);
    expect_code(&failed, 1);
    let said = stderr(&failed);
    for part in ["nothing was measured", "`container`", "exited with code 3", "no such luck", "remedy: "] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let missing = exec(folder.path(), &[], &["no-such-program-here"]);
    expect_code(&missing, 1);
    assert!(stderr(&missing).contains("there is no such program in this guest"), "{}", stderr(&missing));
    assert!(!folder.path().join("run").exists(), "there is no run of what was not measured");
}

#[test]
fn what_is_wrong_with_the_command_line_is_found_before_anything_is_started() {
    for (line, says) in [
        (&["--on", "native,dockr"][..], "Did you mean `docker`?"),
        (&["--on", "native,dockr"], "crun,"),
        (&["--on", "native"], "what it is compared with"),
        (&["--on", "native,native"], "twice"),
        (&["--on", "native:x,container"], "takes nothing behind a colon"),
        (&["--memory", "256mb"], "did you mean \"256MiB\""),
        (&["--until", "0%"], "percentage"),
        (&["--metric", "no group"], "put the figure in parentheses"),
        (&["--json-path", "jobs["], "not a JSON path"),
        (&["--export", "report.pdf"], ".html, .json, .md or .txt"),
        (&["--env", "TARE_TEST_UNSET"], "is not"),
        (&["--env", "WORD=swordfish"], "give the name alone"),
        (&["--export", "/nowhere/report.html"], "there is no folder /nowhere"),
    ] {
        let output = run(&[&["exec"], line, &["--", "true"]].concat());
        expect_code(&output, 2);
        let said = stderr(&output);
        assert!(said.contains(says) && !said.contains("trying") && !said.contains("swordfish"), "{line:?}: {said}");
    }
}

#[test]
fn a_terminal_shows_the_figures_as_they_narrow() {
    if !is_root() || !has("script") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (program, out) = (tare().get_program().to_owned(), folder.path().join("run"));
    let line = format!(
        "stty cols 80 rows 24; {} exec --memory 128MiB --blocks 3 --out {} -- sh -c '{LOOP}'",
        program.display(),
        out.display()
    );
    let output = Command::new("script").args(["-qec", &line, "/dev/null"]).env("TARE_ALONGSIDE", "1").output().unwrap();
    expect_code(&output, 0);
    let shown = stdout(&output);
    assert!(shown.contains("after block 1 of 3") && shown.contains("after block 2 of 3"), "{shown}");
    assert!(shown.contains("difference"), "{shown}");
}
