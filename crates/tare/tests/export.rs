//! `tare export` of a made-up run.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tare_record::testing;

use crate::common::{expect_code, run, stderr, stdout};

fn made(folder: &Path, name: &str, blocks: u32) -> PathBuf {
    let plan = testing::plan(blocks);
    let trials: Vec<_> = (0..plan.trials.len() as u32).map(|index| testing::trial(&plan, index)).collect();
    let dir = folder.join(name);
    testing::write_run(&dir, &plan, &trials);
    dir
}

#[test]
fn each_format_goes_to_standard_output_or_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let made = made(folder.path(), "made", 8);
    let made = made.to_str().unwrap();
    let printed = run(&["export", made, "--format", "bencher"]);
    expect_code(&printed, 0);
    let found: Value = serde_json::from_str(&stdout(&printed)).unwrap();
    let effect = found["idle/container"]["response-time-p50-s-effect"]["value"].as_f64().unwrap();
    assert!((effect - 1.05).abs() < 0.01, "{found:#}");
    assert!(found["idle/container"]["operations-per-s"].is_null(), "it does not answer the study");
    let all = run(&["export", made, "--format", "bencher", "--metric", "*"]);
    let all: Value = serde_json::from_str(&stdout(&all)).unwrap();
    assert!(all["idle/container"]["operations-per-s"].is_object(), "{all:#}");

    let out = folder.path().join("tare.prom");
    expect_code(&run(&["export", made, "--format", "openmetrics", "--out", out.to_str().unwrap()]), 0);
    let text = std::fs::read_to_string(out).unwrap();
    let sample = "tare_effect_ratio{study=\"made-up\",case=\"idle\",arm=\"container\",metric=\"response_time_p50_s\",baseline=\"native\"} 1.0";
    assert!(text.contains(sample) && text.ends_with("# EOF\n"), "{text}");

    let lower = run(&["export", made, "--format", "github-action-benchmark"]);
    expect_code(&lower, 0);
    assert!(stderr(&lower).contains("customSmallerIsBetter"), "{}", stderr(&lower));
    let mixed = run(&["export", made, "--format", "github-action-benchmark", "--metric", "*"]);
    expect_code(&mixed, 2);
    assert!(stderr(&mixed).contains("--better higher") && stdout(&mixed).is_empty(), "{}", stderr(&mixed));
    for wrong in [&["--format", "bencher", "--append", "--out", "x"][..], &["--format", "otava", "--case", "other"]] {
        expect_code(&run(&[&["export", made], wrong].concat()), 2);
    }
}

#[test]
fn runs_become_rows_of_one_table_and_other_columns_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (made(folder.path(), "first", 8), made(folder.path(), "second", 6));
    let file = folder.path().join("history.csv");
    let append = |run_folder: &Path, more: &[&str]| {
        let options =
            ["export", run_folder.to_str().unwrap(), "--format", "otava", "--append", "--out", file.to_str().unwrap()];
        run(&[&options[..], &["--attribute", "commit=4f2a1c"], more].concat())
    };
    for run_folder in [&first, &second] {
        expect_code(&append(run_folder, &[]), 0);
    }
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines[0].starts_with("time,study,run,tare_version,commit,effect/idle/container/response_time_p50_s,value/")
    );
    let fields = lines[0].split(',').count();
    assert!(lines.iter().all(|line| line.split(',').count() == fields) && lines[2].contains(",4f2a1c,1.0"), "{text}");
    let other = append(&second, &["--arm", "native"]);
    expect_code(&other, 2);
    assert!(stderr(&other).contains("column 6 is `effect/idle/container"), "{}", stderr(&other));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "nothing was added");
}
