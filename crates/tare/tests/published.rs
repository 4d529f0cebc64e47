//! Studies that repeat a published one, on hosts that cannot run what the publication is about.

use std::path::Path;

use super::common::{self, CONTAINER, expect_code, is_root, outcomes, run, small_study, stderr, stdout, write_study};

/// An arm whose runtime no host has.
const ABSENT: &str =
    "[arms.absent]\nlabel = \"the absent\"\nplatform = \"oci\"\noptions = { runtime = \"tare-no-runtime\" }\n";
const PUBLISHED: &str = "skip-unavailable = true\n[published]\nreport = \"007\"\nsubject = [\"absent\"]\n\
    [[published.deviations]]\nwhat = \"clients\"\npublished = \"eight machines\"\nhere = \"this host\"\n\
    why = \"it has no others\"\neffect = \"fewer orders\"\n";

/// A study of three arms, of which one is the subject of a report and cannot run.
fn study(folder: &Path) -> String {
    let text = small_study(1, &format!("{CONTAINER}\n{ABSENT}"));
    let text =
        text.replacen("noise-floor = false\nseed = 7\n", &format!("noise-floor = false\nseed = 7\n{PUBLISHED}"), 1);
    write_study(folder, &text).to_str().unwrap().to_owned()
}

#[test]
fn a_published_study_without_its_subject_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let (study, out) = (study(folder.path()), folder.path().join("run"));
    let refused = run(&["run", &study, "--out", out.to_str().unwrap()]);
    expect_code(&refused, 4);
    let said = stderr(&refused);
    for words in ["repeats report 007", "`absent` (the absent)", "tare-no-runtime", "Remedy: ", "--what-can"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!out.exists(), "refused before anything is made");
    // A plan looks on, and says what a run will do.
    let plan = run(&["plan", &study]);
    expect_code(&plan, 0);
    assert!(stdout(&plan).contains("`tare run` will refuse this"), "{}", stdout(&plan));
    // Left out by the user it is missing all the same.
    let without = run(&["run", &study, "--without", "absent", "--out", out.to_str().unwrap()]);
    expect_code(&without, 4);
    assert!(stderr(&without).contains("`absent` is left out by the command line"), "{}", stderr(&without));
}

#[test]
fn what_can_run_is_run_where_that_is_asked_for_and_the_report_opens_with_it() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (study, out) = (study(folder.path()), folder.path().join("run"));
    let ran = run(&["run", &study, "--what-can", "--out", out.to_str().unwrap()]);
    expect_code(&ran, 0);
    assert_eq!(outcomes(&out), vec!["completed"; 2]);
    let opening = "This is not the published study. Report 007 is about arms that did not run: `absent` (the absent) cannot run here";
    let said = stdout(&ran).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(opening), "{said}");
    let markdown = std::fs::read_to_string(out.join("report.md")).unwrap();
    let warned = markdown.find("This is not the published study").unwrap();
    assert!(warned < markdown.find("\n## ").unwrap(), "{markdown}");
    let findings = std::fs::read_to_string(out.join("findings.json")).unwrap();
    let findings: serde_json::Value = serde_json::from_str(&findings).unwrap();
    assert!(findings["warnings"][0].as_str().unwrap().starts_with("This is not the published study."));
    // The study's own deviation, and those of its workload: the exchange is the published one but for its buffers.
    let what: Vec<&str> =
        findings["deviations"].as_array().unwrap().iter().map(|own| own["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["clients", "program", "buffers of sockets"]);
    for words in ["| clients | eight machines | this host |", "| buffers of sockets |"] {
        assert!(markdown.contains(words), "{words}: {markdown}");
    }
    let html = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(html.contains("eight machines") && html.contains("This is not the published study."));
}

#[test]
fn the_published_density_of_machines_is_refused_where_no_machine_runs() {
    let output =
        common::tare().args(["plan", "java-density-as-published", "--what-can", "--format", "json"]).output().unwrap();
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    if plan["study"]["baseline"] != "container" {
        return tare_testkit::skipped("this host runs machines, or has no room for the study");
    }
    let folder = tempfile::tempdir().unwrap();
    let refused = run(&["run", "java-density-as-published", "--out", folder.path().join("run").to_str().unwrap()]);
    expect_code(&refused, 4);
    assert!(stderr(&refused).contains("the baseline `machine`"), "{}", stderr(&refused));
    assert!(!folder.path().join("run").exists());
}
