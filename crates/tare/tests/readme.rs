//! Every command of the README is run, and every study in it is checked.

use crate::common;

use std::path::Path;
use std::process::{Command, Output};

use crate::common::{expect_code, is_root, tare};

fn readme() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap()
}

/// The code blocks of one language.
fn blocks(language: &str) -> Vec<String> {
    let text = readme();
    let mut found = Vec::new();
    for part in text.split(&format!("```{language}\n")).skip(1) {
        found.push(part[..part.find("```").unwrap()].to_owned());
    }
    assert!(!found.is_empty(), "the README has no {language} block");
    found
}

/// Command lines without their comments.
fn commands() -> Vec<String> {
    let lines = blocks("sh").join("\n");
    lines
        .lines()
        .map(|line| line.split('#').next().unwrap().trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

#[test]
fn every_command_of_tare_in_the_readme_does_what_it_says() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut ran = 0;
    for line in commands() {
        let Some(args) = line.strip_prefix("tare ") else { continue };
        let output = tare().args(args.split_whitespace()).current_dir(folder.path()).output().unwrap();
        ran += 1;
        if args.starts_with("plan ") && too_small_a_host(&output) {
            tare_testkit::skipped(&format!("`{line}` is for a larger host: {}", common::stderr(&output).trim()));
            continue;
        }
        expect_code(&output, 0);
    }
    assert!(ran >= 10, "only {ran} commands were found");
    for report in ["first/report.html", "second/report.html"] {
        assert!(folder.path().join(report).exists(), "{report}");
    }
}

/// Whether a plan was refused for nothing but the disk or memory that this host has left, which is what `plan` is there to say.
fn too_small_a_host(output: &Output) -> bool {
    let said = common::stderr(output);
    let mut reasons = said.lines().filter(|line| line.starts_with("- ")).peekable();
    output.status.code() == Some(4)
        && reasons.peek().is_some()
        && reasons.all(|reason| ["- disk: ", "- memory: "].iter().any(|kind| reason.starts_with(kind)))
}

/// These tests are run by `make test` themselves, `make quickstart` takes minutes and `make platforms` installs, so
/// that all are there and would run what the README says is asked of make.
#[test]
fn every_make_target_in_the_readme_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let targets: Vec<String> =
        commands().iter().filter_map(|line| line.strip_prefix("make ").map(str::to_owned)).collect();
    assert_eq!(targets, ["quickstart", "test", "platforms"]);
    for target in targets.iter().map(String::as_str).chain(["install"]) {
        let output = Command::new("make").args(["--dry-run", target]).current_dir(&root).output().unwrap();
        assert!(output.status.success(), "make {target}: {}", common::stderr(&output));
        let would_run = common::stdout(&output);
        let expected = match target {
            "quickstart" => "tare run studies/quickstart.toml",
            "test" => "cargo xtask test",
            "platforms" => "scripts/setup.sh platforms",
            _ => "scripts/install.sh",
        };
        assert!(would_run.contains(expected), "make {target} would run: {would_run}");
    }
}

#[test]
fn the_study_in_the_readme_can_be_planned() {
    let folder = tempfile::tempdir().unwrap();
    for text in blocks("toml") {
        let study = common::write_study(folder.path(), &text);
        expect_code(&common::run(&["plan", study.to_str().unwrap()]), 0);
    }
}

#[test]
fn the_generated_schema_in_the_repository_is_todays() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/study-schema.json");
    let kept: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(kept).unwrap()).unwrap();
    let printed = common::stdout(&common::run(&["schema"]));
    let printed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    // Both are too long to be shown.
    assert!(kept == printed, "run `tare schema > docs/reference/study-schema.json`");
}
