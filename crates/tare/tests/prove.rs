//! `tare prove`: what it counts is there, and an arm that is slower on purpose is.

use std::path::Path;

use serde_json::Value;

use crate::common::{expect_code, findings, is_root, python, ran, run, small_study, stderr, stdout, write_study};

/// The bars of a proof of one group, with so many runs of each kind.
fn proof(folder: &Path, group: &str, times: &str) -> Value {
    let out = folder.join(group);
    let output = run(&["prove", "--only", group, "--times", times, "--out", out.to_str().unwrap()]);
    assert!(matches!(output.status.code(), Some(0 | 5)), "{}{}", stdout(&output), stderr(&output));
    for name in ["proof.md", "proof.html"] {
        assert!(std::fs::read_to_string(out.join(name)).unwrap().contains("How often tare is wrong"), "{name}");
    }
    serde_json::from_slice(&std::fs::read(out.join("proof.json")).unwrap()).unwrap()
}

fn bar<'p>(proof: &'p Value, id: &str) -> &'p Value {
    proof["bars"].as_array().unwrap().iter().find(|bar| bar["id"] == id).unwrap_or_else(|| panic!("no {id}: {proof}"))
}

#[test]
fn planted_secrets_and_names_of_the_host_are_searched_for_in_all_run_folders() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let proof = proof(folder.path(), "secrets", "1");
    let secrets = bar(&proof, "secrets");
    assert!(secrets["share"]["of"].as_u64() >= Some(60), "{secrets}");
    assert_eq!((&secrets["share"]["failed"], &secrets["verdict"]), (&0.into(), &"met".into()), "{secrets}");
}

#[test]
fn a_killed_run_is_taken_down_resumed_and_counted() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let proof = proof(folder.path(), "killed", "4");
    for id in ["killed-leaves-nothing", "killed-loses-nothing"] {
        let bar = bar(&proof, id);
        // A kill that comes before a run has begun is in no count; four of four are not. So few say nothing.
        assert_eq!((&bar["share"]["failed"], &bar["verdict"]), (&0.into(), &"open".into()), "{bar}");
    }
}

#[test]
fn each_planted_cause_is_run_beside_a_run_at_rest() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let proof = proof(folder.path(), "planted", "1");
    let (seen, rest) = (bar(&proof, "planted-seen"), bar(&proof, "planted-false"));
    assert_eq!((&seen["share"]["of"], &rest["share"]["of"]), (&4.into(), &4.into()), "{proof}");
    // Other tests run beside it, so that runs at rest are not at rest; what is planted is there all the same.
    assert_eq!(seen["share"]["failed"], 0, "{seen}");
}

const CONTROL: &str = "[arms.control]\nplatform = \"native\"\nslowed-by = \"50%\"";

#[test]
fn an_arm_that_is_slower_on_purpose_is_found_and_named_first() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (out, output) = ran(folder.path(), &small_study(6, CONTROL));
    expect_code(&output, 0);
    let found = findings(&out);
    let warned = found["warnings"].to_string();
    assert!(
        warned.contains("`control` is a positive control: each operation takes 50 % longer on purpose"),
        "{warned}"
    );
    let metrics = found["cases"][0]["metrics"].as_array().unwrap();
    let mean = metrics.iter().find(|metric| metric["spec"]["primary"] == true).unwrap();
    let ratio = mean["comparisons"][0]["ratio"]["value"].as_f64().unwrap();
    // Other tests run beside it, so it can be said only that it is slower.
    assert!(ratio > 1.15, "{ratio}");
    let report = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(report.contains("positive control"), "{report}");
}

#[test]
fn what_cannot_be_slowed_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |text: &str| {
        let study = write_study(folder.path(), text);
        let output = run(&["plan", study.to_str().unwrap()]);
        expect_code(&output, 2);
        stderr(&output)
    };
    let study = small_study(6, CONTROL);
    let baseline = study.replace("[arms.native]\n", "[arms.native]\nslowed-by = \"2%\"\n");
    assert!(refused(&baseline).contains("slows the baseline"), "{}", refused(&baseline));
    let open = study.clone() + "load = { open = { rate = \"100/s\", connections = 1 } }\n";
    assert!(refused(&open).contains("no closed loop"), "{}", refused(&open));
    let crowd = study.clone() + "load = { closed = { clients = 4 } }\n";
    assert!(refused(&crowd).contains("more clients than the guest has CPUs"), "{}", refused(&crowd));
    let stream = study.replace("workload = \"rr\"", "workload = \"stream\"");
    assert!(refused(&stream).contains("which it cannot be"), "{}", refused(&stream));
    assert!(refused(&study.replace("50%", "0.05%")).contains("0.1 %"));
}

#[test]
fn a_folder_that_is_there_is_not_written_into() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&["prove", "--out", folder.path().to_str().unwrap()]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("is there already"), "{}", stderr(&output));
}

#[test]
fn figures_of_a_proof_are_made_again() {
    if !is_root() || python().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let proof = proof(folder.path(), "recomputed", "1");
    let bar = bar(&proof, "recomputed");
    assert_eq!(bar["share"], serde_json::json!({"failed": 0, "of": 1}), "{bar}");
    assert!(!bar["notes"].to_string().contains("\"0 figures"), "{bar}");
}
