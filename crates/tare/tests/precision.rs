//! Blocks by precision: a case with little spread ends early, one with much goes to the most, and a run that was killed between goes on so.
//! Spare blocks: a case whose blocks are disturbed takes them.

use std::path::Path;

use crate::common::{
    begin, expect_code, findings, is_root, journal, kill, left_by_runs_into, outcomes, run, small_study, stderr,
    stdout, until, write_study,
};

/// Two equal arms whose scores differ by chance alone: by next to nothing in one case, by anything in the other.
fn study(folder: &Path) -> String {
    let blocks = "blocks = { at-least = 6, at-most = 12, until = \"5%\" }";
    let case = |id: &str, score: &str| {
        format!(
            "[cases.{id}]\nworkload = \"exec\"\n[cases.{id}.parameters]\n\
             command = [\"sh\", \"-c\", 'echo score: $(({score} + $(od -An -N2 -tu2 /dev/urandom)))']\n\
             verdict = \"score\"\nmetrics = {{ score = {{ regex = \"score: ([0-9]+)\", unit = \"points\", better = \"higher\" }} }}\n"
        )
    };
    let text = small_study(1, "[arms.other]\nplatform = \"native\"").replace("blocks = 1", blocks);
    let (text, _) = text.split_once("[cases.idle]").unwrap();
    let text = format!("{text}{}{}", case("quiet", "90000000"), case("loud", "1"));
    write_study(folder, &text).to_str().unwrap().to_owned()
}

/// The cases that the journal says ended, with their blocks and why.
fn ended(out: &Path) -> Vec<(String, u64, String)> {
    let journal = journal(out);
    let lines = journal.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let events = lines.map(|line| line["event"].clone()).filter(|event| event["kind"] == "case-ended");
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    events.map(|event| (text(&event["case"]), event["blocks"].as_u64().unwrap(), text(&event["why"]))).collect()
}

#[test]
fn a_quiet_case_ends_early_a_loud_one_at_the_most_and_a_killed_run_goes_on_so() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let study = study(folder.path());
    let out = folder.path().join("run");
    let place = out.to_str().unwrap();
    let planned = run(&["plan", &study]);
    assert!(stdout(&planned).contains("at most 48 = 6 to 12 blocks x 2 cases x 2 arms"), "{}", stdout(&planned));
    let mut child = begin(Path::new(&study), &out);
    until("the quiet case to end", || !ended(&out).is_empty());
    kill(&mut child);
    let kept = outcomes(&out).len();
    assert!((16..40).contains(&kept), "{kept} trials");
    let resumed = run(&["run", &study, "--out", place, "--resume"]);
    expect_code(&resumed, 0);
    assert!(stderr(&resumed).contains("quiet: precise enough after 8 blocks"), "{}", stderr(&resumed));
    // The fewest whose last three had an interval.
    let expected = [("quiet", 8, "precise"), ("loud", 12, "at-most")];
    assert_eq!(ended(&out), expected.map(|(case, blocks, why)| (case.to_owned(), blocks, why.to_owned())));
    assert_eq!(outcomes(&out), vec!["completed"; 40], "8 blocks of the one and 12 of the other, of two arms");
    expect_code(&run(&["verify", place]), 0);
    let found = findings(&out);
    assert_eq!((&found["run"]["planned"], found["not_completed"].as_array().map(Vec::len)), (&40.into(), Some(0)));
    let report = std::fs::read_to_string(out.join("report.md")).unwrap();
    for said in [
        "8 blocks, precise enough: the widest interval reaches",
        "12 blocks of at most 12, not precise enough",
        "8 to 12 blocks a case",
    ] {
        assert!(report.contains(said), "{said}: {report}");
    }
    let again = run(&["report", place]);
    expect_code(&again, 0);
    let more = run(&["run", &study, "--out", place, "--resume"]);
    expect_code(&more, 0);
    assert_eq!((outcomes(&out).len(), ended(&out).len()), (40, 2), "nothing is left to do");
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}

/// Programs beside the run that keep every CPU busy; they end with this.
struct Busy(Vec<std::process::Child>);

impl Busy {
    fn new() -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let one = || std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        Self((0..2 * cpus).map(|_| one()).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

#[test]
fn a_case_whose_blocks_are_disturbed_takes_its_spare_blocks_and_reports_which_count() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text =
        small_study(2, "[arms.other]\nplatform = \"native\"").replace("blocks = 2", "blocks = 2\nspare-blocks = 1");
    let study = write_study(folder.path(), &text);
    let (study, out) = (study.to_str().unwrap(), folder.path().join("run"));
    let place = out.to_str().unwrap();
    let planned = stdout(&run(&["plan", study]));
    assert!(planned.contains("at most 6 = 2 to 3 blocks x 1 case x 2 arms"), "{planned}");
    let busy = Busy::new();
    expect_code(&run(&["run", study, "--out", place]), 0);
    drop(busy);
    assert_eq!(ended(&out), [("idle".to_owned(), 3, "spares-used".to_owned())]);
    expect_code(&run(&["verify", place]), 0);
    let case = &findings(&out)["cases"][0];
    let comparison = &case["metrics"][0]["comparisons"][0];
    assert_eq!((&comparison["ratio"]["n"], &comparison["planned"]), (&2.into(), &2.into()), "{comparison}");
    assert_eq!(case["replaced"].as_array().map(Vec::len), Some(1));
    assert_eq!(case["over_all"][0]["ratio"]["n"], 3);
    let report = std::fs::read_to_string(out.join("report.md")).unwrap();
    assert!(report.contains("Disturbed from outside and replaced by spare blocks: 3 ("), "{report}");
}
