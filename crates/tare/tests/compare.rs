//! `tare compare` on made-up run folders.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{expect_code, run, stderr, stdout};
use tare_model::trial::Outcome;
use tare_record::testing;

/// Writes the folder of a run whose container takes `times` as long, its plan changed.
fn written(folder: &Path, name: &str, times: f64, change: impl Fn(&mut tare_model::plan::Plan)) -> PathBuf {
    let mut plan = testing::plan(4);
    change(&mut plan);
    let mut trials: Vec<_> = (0..plan.trials.len() as u32).map(|index| testing::trial(&plan, index)).collect();
    for record in trials.iter_mut().filter(|record| record.planned.arm == "container") {
        if let Outcome::Completed(m) = &mut record.outcome {
            *m.metrics.get_mut("response_time_p50_s").unwrap() *= times;
        }
    }
    let dir = folder.join(name);
    testing::write_run(&dir, &plan, &trials);
    dir
}

/// Three runs of a side.
fn side(folder: &Path, name: &str, times: f64) -> Vec<PathBuf> {
    [0.998, 1.0, 1.002]
        .iter()
        .enumerate()
        .map(|(at, own)| written(folder, &format!("{name}-{}", at + 1), own * times, |_| ()))
        .collect()
}

fn compare(before: &[PathBuf], after: &[PathBuf], options: &[&str]) -> Output {
    let mut args = vec!["compare"];
    args.extend(before.iter().map(|path| path.to_str().unwrap()));
    args.push("--with");
    args.extend(after.iter().map(|path| path.to_str().unwrap()));
    args.extend(options);
    run(&args)
}

#[test]
fn several_runs_of_each_side_give_a_summary_the_changes_and_the_rest_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = (side(folder.path(), "old", 1.0), side(folder.path(), "new", 1.2));
    let said = compare(&before, &after, &[]);
    expect_code(&said, 0);
    let text = stdout(&said);
    assert!(text.starts_with("new-1 and 2 more against old-1 and 2 more\n"), "{text}");
    assert!(text.contains("Figures that answer, 1: 1 worse.") && text.contains("--all shows"), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let change = "- worse (idle host): container over native now has a longer response time (median) than the first runs: +20.0 % [";
    assert!(words.contains(change) && words.contains(" figures changed: idle host, container: "), "{text}");
    let all = stdout(&compare(&before, &after, &["--all"]));
    assert!(all.lines().count() > text.lines().count() && !all.contains("not shown"), "{all}");

    let json: serde_json::Value =
        serde_json::from_str(&stdout(&compare(&before, &after, &["--format", "json"]))).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert!(!rows.is_empty() && json["withheld"].is_null());
    for row in rows {
        for key in ["case", "arm", "metric", "compared"] {
            assert!(row[key].as_str().is_some_and(|value| !value.is_empty()), "{key}: {row}");
        }
    }
    let worse: Vec<_> = rows.iter().filter(|row| row["comparison"]["verdict"] == "worse").collect();
    assert_eq!(worse.len(), 1, "{worse:?}");
    assert_eq!((&worse[0]["arm"], &worse[0]["compared"]), (&"container".into(), &"effect".into()));
}

#[test]
fn one_run_on_each_side_gives_figures_and_says_once_why_there_is_no_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (written(folder.path(), "old", 1.0, |_| ()), written(folder.path(), "new", 1.2, |_| ()));
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let said = run(&["compare", a, b]);
    expect_code(&said, 0);
    let text = stdout(&said);
    assert_eq!(text.matches("annot say").count(), 1, "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("tare compare A1 A2 A3 --with B1 B2 B3") && words.contains("two-settings"), "{text}");
    assert!(words.contains("(over native): old") && words.contains("+20"), "{text}");
    for word in ["worse", "no difference"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    let json: serde_json::Value = serde_json::from_str(&stdout(&run(&["compare", a, b, "--format", "json"]))).unwrap();
    for row in json["rows"].as_array().unwrap() {
        assert_eq!(
            (&row["comparison"]["verdict"], &row["comparison"]["ratio"]["low"]),
            (&"cannot-say".into(), &serde_json::Value::Null)
        );
    }
}

#[test]
fn what_cannot_be_compared_is_refused_with_what_would_help() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = (side(folder.path(), "old", 1.0), side(folder.path(), "new", 1.0));
    let larger = written(folder.path(), "larger", 1.1, |plan| plan.study.cases[0].guest.cpus = 4);
    let cases: [(&[PathBuf], &[PathBuf], &str); 4] = [
        (&before, std::slice::from_ref(&larger), "The case idle has not the same guest"),
        (&before, &[after[0].clone(), larger.clone()], "runs of one side repeat one study"),
        (&before, &[after[0].clone(), after[0].clone()], "new-1 is given twice"),
        (&before, &before[..1], "is given twice"),
    ];
    for (before, after, why) in cases {
        let said = compare(before, after, &[]);
        expect_code(&said, 2);
        assert!(stderr(&said).contains(why) && stdout(&said).is_empty(), "{why}: {}", stderr(&said));
    }
    for few in [&before[..1], &before[..]] {
        let mut args = vec!["compare"];
        args.extend(few.iter().map(|path| path.to_str().unwrap()));
        let said = run(&args);
        expect_code(&said, 2);
        assert!(stderr(&said).contains("--with B1 B2 B3"), "{}", stderr(&said));
    }
    let help = stdout(&run(&["compare", "--help"]));
    assert!(help.contains("two-settings") && help.contains("--with"), "{help}");
}
