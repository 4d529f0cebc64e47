//! `tare history` on made-up run folders, and on real runs.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use crate::common::{CONTAINER, expect_code, is_root, small_study, stderr, stdout, tare, write_study};
use serde_json::Value;
use tare_model::environment::Environment;
use tare_model::trial::Outcome;
use tare_record::{layout, testing};

/// Writes the folder of the `number`-th run, whose container takes `times` as long, on this host.
fn written(folder: &Path, number: u32, times: f64, host: &Environment) -> PathBuf {
    let plan = testing::plan(4);
    let mut trials: Vec<_> = (0..plan.trials.len() as u32).map(|index| testing::trial(&plan, index)).collect();
    for record in &mut trials {
        record.started_at = format!("2026-01-{:02}T03:00:00Z", number + 1);
        if record.planned.arm == "container"
            && let Outcome::Completed(measured) = &mut record.outcome
        {
            let odd = 1.0 + 0.001 * testing::noise(number.into());
            *measured.metrics.get_mut("response_time_p50_s").unwrap() *= times * odd;
        }
    }
    let dir = folder.join(format!("run-{number:02}"));
    testing::write_run_as(&dir, &plan, &trials, &format!("202601{:02}-030000-00af", number + 1), host);
    dir
}

fn history(folder: &Path, args: &[&str]) -> Output {
    tare().current_dir(folder).arg("history").args(args).output().unwrap()
}

fn add(folder: &Path, runs: &[PathBuf]) -> Output {
    let runs: Vec<&str> = runs.iter().map(|run| run.file_name().unwrap().to_str().unwrap()).collect();
    history(folder, &[&["add"], &runs[..]].concat())
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let output = history(folder, &[&["show", "--format", "json"], args].concat());
    expect_code(&output, 0);
    serde_json::from_str(&stdout(&output)).unwrap()
}

#[test]
fn runs_that_change_show_from_which_run_on_and_how_much() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let host = testing::environment();
    let runs: Vec<PathBuf> =
        (0..16).map(|number| written(at, number, if number < 8 { 1.0 } else { 1.1 }, &host)).collect();
    expect_code(&add(at, &runs), 0);
    let again = add(at, &runs[..2]);
    expect_code(&again, 0);
    assert_eq!(stdout(&again).matches("is there already").count(), 2, "{}", stdout(&again));

    let found = json(at, &[]);
    assert_eq!((found["runs"].as_array().unwrap().len(), &found["schema"]), (16, &1.into()));
    let series = found["series"].as_array().unwrap();
    let own = series.iter().find(|own| own["id"] == "idle/container/response_time_p50_s").unwrap();
    let [change] = &own["change_points"].as_array().unwrap()[..] else { panic!("{own}") };
    assert_eq!((&change["after"], &change["verdict"]), (&"20260109-030000-00af".into(), &"worse".into()));
    let ratio = &change["ratio"];
    assert!(ratio["low"].as_f64().unwrap() < 1.1 && 1.1 < ratio["high"].as_f64().unwrap(), "{ratio}");

    let text = stdout(&history(at, &["show"]));
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.starts_with("16 runs of 1 study on 1 host, 2026-01-01"), "{text}");
    assert!(words.contains("- idle host: container over native, response time (median): +10.00 % [+"), "{text}");
    assert!(words.contains("1 change in 1 series that answer their studies."), "{text}");
    assert!(stdout(&history(at, &["show", "--all"])).len() > text.len());
    let page = stdout(&history(at, &["show", "--format", "html"]));
    assert!(page.starts_with("<!DOCTYPE html>") && page.matches("<svg").count() >= 2 && !page.contains("<script"));
    assert!(stdout(&history(at, &["show", "--format", "md"])).starts_with("# made-up over time"));

    let chosen = json(at, &["--metric", "response_*", "--arm", "cont*", "--case", "idle", "--study", "made-up"]);
    assert_eq!(chosen["series"].as_array().unwrap().len(), 1);
    for (option, value, why) in
        [("--study", "other", "its studies: `made-up`"), ("--arm", "x*", "there are: `container`")]
    {
        let said = history(at, &["show", option, value]);
        expect_code(&said, 2);
        assert!(stderr(&said).contains(why), "{}", stderr(&said));
    }
    let exported = history(at, &["export", "--out", "tables"]);
    expect_code(&exported, 0);
    for name in ["history-runs.parquet", "history-effects.parquet", "history-changes.parquet"] {
        assert!(std::fs::read(at.join("tables").join(name)).unwrap().starts_with(b"PAR1"), "{name}");
    }
}

#[test]
fn what_was_altered_or_cut_short_is_refused_and_nothing_is_added() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let host = testing::environment();
    let runs: Vec<PathBuf> = (0..3).map(|number| written(at, number, 1.0, &host)).collect();
    let results = rusqlite::Connection::open(runs[1].join(layout::RESULTS)).unwrap();
    assert!(results.execute("UPDATE metrics SET value = value * 2", []).unwrap() > 0);
    drop(results);
    let journal = runs[2].join(layout::JOURNAL);
    let text = std::fs::read_to_string(&journal).unwrap();
    let cut: Vec<&str> = text.lines().take(text.lines().count() - 1).collect();
    std::fs::write(&journal, cut.join("\n") + "\n").unwrap();
    let refused = add(at, &runs);
    expect_code(&refused, 2);
    let said = stderr(&refused);
    assert!(said.contains("its figures were altered") && said.contains("the run was cut short"), "{said}");
    assert!(said.trim_end().ends_with("Nothing was added"), "{said}");
    let none = history(at, &["show"]);
    expect_code(&none, 2);
    assert!(stderr(&none).contains("is not there: `tare history add DIR"), "{}", stderr(&none));
}

#[test]
fn jobs_that_add_at_one_time_both_add() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let hosts = ["one", "two"].map(|model| {
        let mut host = testing::environment();
        model.clone_into(&mut host.sections[0].facts[0].1);
        host
    });
    let jobs: Vec<_> = (0..6)
        .map(|number| {
            let run = written(at, number, 1.0, &hosts[number as usize % 2]);
            let mut command = tare();
            command.current_dir(at).args(["history", "add"]).arg(run.file_name().unwrap());
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for job in jobs {
        expect_code(&job.wait_with_output().unwrap(), 0);
    }
    let found = json(at, &["--metric", "response_time_p50_s"]);
    assert_eq!(found["runs"].as_array().unwrap().len(), 6);
    let series = found["series"].as_array().unwrap();
    let points: Vec<usize> = series.iter().map(|own| own["points"].as_array().unwrap().len()).collect();
    assert_eq!(points, [3, 3], "a series a host");
    assert!(series[1]["split"].as_str().unwrap().contains("CPU, model: one, then two"), "{series:?}");
}

#[test]
fn real_runs_of_a_study_make_series() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let at = folder.path();
    let study = write_study(at, &small_study(3, CONTAINER));
    let runs: Vec<PathBuf> = ["run-1", "run-2", "run-3"].map(|name| at.join(name)).into();
    for run in &runs {
        expect_code(&tare().arg("run").arg(&study).arg("--out").arg(run).output().unwrap(), 0);
    }
    expect_code(&add(at, &runs), 0);
    let found = json(at, &[]);
    let (runs, hosts) = (found["runs"].as_array().unwrap(), found["hosts"].as_array().unwrap());
    assert_eq!((runs.len(), hosts.len()), (3, 1));
    assert!(runs[0]["started_at"].as_str() < runs[2]["started_at"].as_str());
    let noted = runs[0]["notes"].as_array().unwrap();
    assert!(noted.iter().any(|fact| fact[0] == "Kernel, release"), "{noted:?}");
    let primary: Vec<&Value> =
        found["series"].as_array().unwrap().iter().filter(|own| own["metric"]["primary"] == true).collect();
    assert!(primary.iter().any(|own| own["case"] == "idle") && primary.iter().any(|own| own["case"].is_null()));
    for own in &primary {
        assert_eq!(own["points"].as_array().unwrap().len(), 3, "{own}");
        assert!(own["withheld"].as_str().unwrap().starts_with("3 of the 6 runs"), "{own}");
    }
    expect_code(&history(at, &["show"]), 0);
}
