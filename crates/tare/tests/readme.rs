//! Every command of the README and of the tutorial is run, and every study in them is checked.

use crate::common;

use std::path::Path;
use std::process::{Command, Output};

use crate::common::{expect_code, is_root};

const README: &str = "README.md";
const TUTORIAL: &str = "docs/tutorial.md";

/// A fenced block of a document.
struct Block {
    language: String,
    /// The file's name, where the block is one: the second word after the fence.
    file: Option<String>,
    text: String,
}

/// The blocks of a document, in order.
fn blocks(document: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document)).unwrap();
    let fenced = text.split("\n```").skip(1).step_by(2);
    let block = |fenced: &str| {
        let (head, text) = fenced.split_once('\n').unwrap();
        let mut words = head.split_whitespace().map(str::to_owned);
        Block { language: words.next().unwrap(), file: words.next(), text: format!("{text}\n") }
    };
    fenced.map(block).collect()
}

/// The command lines of a block without their comments; none of a block that is no shell's.
fn commands(block: &Block) -> Vec<String> {
    let lines = if block.language == "sh" { block.text.as_str() } else { "" };
    let lines = lines.lines().map(|line| line.split(" #").next().unwrap().trim().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}

/// Runs a line of a document as its reader does: in a shell that finds tare.
fn typed(line: &str, folder: &Path) -> Output {
    let tare = common::tare();
    let program = Path::new(tare.get_program());
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    let set = tare.get_envs().filter_map(|(name, value)| Some((name, value?)));
    shell.args(["-c", line]).envs(set).env("PATH", path).current_dir(folder).stdin(std::process::Stdio::null());
    shell.output().unwrap()
}

/// Writes the files of a document and runs what it asks of tare, in order.
fn follow(document: &str, folder: &Path) -> usize {
    let mut ran = 0;
    for block in blocks(document) {
        if let Some(name) = &block.file {
            std::fs::write(folder.join(name), &block.text).unwrap();
        }
        for line in commands(&block).iter().filter(|line| line.starts_with("tare ")) {
            let output = typed(line, folder);
            ran += 1;
            println!("{line}");
            match output.status.code() {
                // To say that is what `plan` is for.
                Some(4) if line.starts_with("tare plan ") => {
                    tare_testkit::skipped(&format!("`{line}` is for another host: {}", common::stderr(&output).trim()));
                }
                // A host that is busy with other tests may carry nothing in a first look's few milliseconds.
                Some(3) if line.starts_with("tare run ") => println!("{}", common::stderr(&output)),
                _ => expect_code(&output, 0),
            }
        }
    }
    ran
}

#[test]
fn every_command_of_tare_in_the_readme_does_what_it_says() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ran = follow(README, folder.path());
    assert!(ran >= 2, "only {ran} commands were found");
    assert!(folder.path().join("first/report.html").exists());
}

#[test]
fn every_command_of_the_tutorial_does_what_it_says() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ran = follow(TUTORIAL, folder.path());
    assert!(ran >= 15, "only {ran} commands were found");
    for run in ["first", "saved", "service", "database", "branch"] {
        assert!(folder.path().join(run).join("report.html").exists(), "{run}");
    }
}

#[test]
fn the_readme_is_short() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(README)).unwrap();
    assert!(text.lines().count() <= 80, "{} lines", text.lines().count());
}

/// These tests are run by `make test` themselves, `make quickstart` takes minutes and `make platforms` installs, so
/// that all are there and would run what the README says is asked of make.
#[test]
fn every_make_target_in_the_readme_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let lines: Vec<String> = blocks(README).iter().flat_map(commands).collect();
    let targets: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("make ")).collect();
    assert_eq!(targets, ["quickstart", "test"]);
    for target in targets.into_iter().chain(["install", "platforms", "dist"]) {
        let output = Command::new("make").args(["--dry-run", target]).current_dir(&root).output().unwrap();
        assert!(output.status.success(), "make {target}: {}", common::stderr(&output));
        let would_run = common::stdout(&output);
        let expected = match target {
            "quickstart" => "tare run studies/quickstart.toml",
            "test" => "cargo xtask test",
            "platforms" => "scripts/setup.sh platforms",
            "dist" => "scripts/dist.sh",
            _ => "scripts/install.sh",
        };
        assert!(would_run.contains(expected), "make {target} would run: {would_run}");
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
