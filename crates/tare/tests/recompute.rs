//! `tare verify --recompute`: figures of run folders made again by a second path, and that this finds what is altered.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tare_model::Span;
use tare_model::capacity::CapacitySpec;
use tare_model::density::{DensitySpec, GuestSeries};
use tare_model::load::LoadKind;
use tare_model::plan::Plan;
use tare_model::study::CaseLoad;
use tare_model::trial::TrialRecord;
use tare_record::testing;

use crate::common::{CONTAINER, expect_code, is_root, python, ran, run, small_study, stderr, stdout, tare};

/// What the second path says of a folder.
fn recomputed(folder: &Path) -> Value {
    let output = run(&["verify", folder.to_str().unwrap(), "--recompute", "--format", "json"]);
    let said: Value = serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    said["recomputed"].clone()
}

/// Places of findings that differ. Made-up trials have metrics that do not follow from their histograms, which is said of the trials.
fn differing(said: &Value) -> Vec<String> {
    let places = said["listed"].as_array().unwrap().iter().map(|one| one["figure"].as_str().unwrap().to_owned());
    places.filter(|place| !place.starts_with("results.sqlite")).collect()
}

fn count(said: &Value, what: &str) -> u64 {
    match &said[what] {
        Value::Object(counts) => counts.values().filter_map(Value::as_u64).sum(),
        number => number.as_u64().unwrap(),
    }
}

fn written(place: &Path, plan: &Plan, trial: impl Fn(u32) -> TrialRecord) -> PathBuf {
    let dir = place.join("run");
    let trials: Vec<TrialRecord> = (0..plan.trials.len() as u32).map(trial).collect();
    testing::write_run(&dir, plan, &trials);
    dir
}

/// One case of another kind of load, whose arms run one after the other.
fn with_load(blocks: u32, load: CaseLoad) -> Plan {
    let mut plan = testing::plan(blocks);
    plan.study.cases[0].load = load;
    plan
}

fn density(blocks: u32) -> Plan {
    let (settle, rest) = (Span::from_secs(1), Span::ZERO);
    let guests = GuestSeries::Listed(vec![1, 2, 4, 8]);
    let spec = DensitySpec { guests, reserve: None, settle, rest, pressure: 0.4, tile: Vec::new() };
    let load = testing::plan(1).study.cases[0].load.largest();
    with_load(blocks, CaseLoad::Density { load, spec })
}

fn capacity(blocks: u32) -> Plan {
    let kind = LoadKind::Closed { think_time: Span::ZERO };
    let spec = CapacitySpec { kind, from: 8.0, most: 64.0, precision: 0.05, iterations: 2, drivers: 1 };
    with_load(blocks, CaseLoad::Capacity(spec))
}

/// A folder of each kind that the records' own tests know.
fn folders(place: &Path) -> Vec<(&'static str, PathBuf)> {
    let at = |name: &str| place.join(name);
    let (plain, few, turns) = (testing::plan(12), testing::plan(4), testing::turns_plan(8));
    let (pairs, conditions) = (testing::pairs_plan(6), testing::conditions_plan(6));
    let (density, capacity) = (density(3), capacity(3));
    vec![
        ("trials", written(&at("trials"), &plain, |n| testing::trial(&plain, n))),
        ("few blocks", written(&at("few"), &few, |n| testing::trial(&few, n))),
        ("parts and steps", written(&at("store"), &plain, |n| testing::store_trial(&plain, n))),
        ("turns", written(&at("turns"), &turns, |n| testing::turns_trial(&turns, n))),
        ("pairs", written(&at("pairs"), &pairs, |n| testing::turns_trial(&pairs, n))),
        ("conditions", written(&at("conditions"), &conditions, |n| testing::conditions_trial(&conditions, n))),
        ("density", written(&at("density"), &density, |n| testing::density_trial(&density, n, &[1, 2, 4, 8]))),
        ("capacity", written(&at("capacity"), &capacity, |n| testing::capacity_trial(&capacity, n))),
        ("sizing", PathBuf::from(crate::size::written(&at("sizing"), 4, 0.0))),
    ]
}

#[test]
fn folders_of_every_kind_have_the_same_figures_by_the_second_path() {
    if python().is_none() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    for (name, folder) in folders(place.path()) {
        let said = recomputed(&folder);
        assert_eq!(differing(&said), Vec::<String>::new(), "{name}: {said:#}");
        assert!(count(&said, "checked") > 300, "{name}: {said:#}");
        let left: Vec<&String> = said["left_out"].as_object().unwrap().keys().collect();
        assert!(left.iter().all(|why| why.starts_with("interval of the knee") || why.starts_with("thresholds that nothing bounds")), "{name}: {left:?}");
    }
}

#[test]
fn figures_that_others_published_are_made_again_too() {
    if python().is_none() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("../import/published");
    let tables = std::fs::read_dir(tables).unwrap().map(|entry| entry.unwrap().path());
    let tables: Vec<PathBuf> = tables.filter(|path| path.extension().is_some_and(|end| end == "csv")).collect();
    let imported = tare().arg("import").args(&tables).arg("--out").arg(place.path().join("imported")).output().unwrap();
    expect_code(&imported, 0);
    for run in std::fs::read_dir(place.path().join("imported")).unwrap().map(|entry| entry.unwrap().path()) {
        let said = recomputed(&run);
        assert_eq!((count(&said, "mismatches"), count(&said, "left_out")), (0, 0), "{said:#}");
        assert!(count(&said, "checked") > 100, "{said:#}");
    }
}

#[test]
fn its_own_tests_pass() {
    let Some(python) = python() else { return };
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("recompute/tests");
    let output = Command::new(python).args(["-B", "-m", "unittest", "discover", "-s"]).arg(&tests).output().unwrap();
    assert!(output.status.success() && stderr(&output).contains("OK"), "{}", stderr(&output));
}

/// The program of the second path, with findings from a file; what it says.
fn beside(python: &str, folder: &Path, findings: &Value) -> Value {
    let file = folder.join("altered.json");
    std::fs::write(&file, findings.to_string()).unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("recompute");
    let output = Command::new(python).args(["-I", "-B"]).args([&program, folder, &file]).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)))
}

/// Pointers to every number below a value.
fn numbers(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, own)| numbers(own, &format!("{at}/{name}"), found)),
        Value::Array(entries) => {
            entries.iter().enumerate().for_each(|(n, own)| numbers(own, &format!("{at}/{n}"), found))
        }
        Value::Number(number) if number.as_f64() != Some(0.0) => found.push(at.to_owned()),
        _ => {}
    }
}

#[test]
fn a_figure_that_is_off_by_a_millionth_is_found_wherever_it_stands() {
    let Some(python) = python() else { return };
    let place = tempfile::tempdir().unwrap();
    let plan = testing::turns_plan(8);
    let folder = written(place.path(), &plan, |n| testing::turns_trial(&plan, n));
    let made = run(&["report", folder.to_str().unwrap(), "--format", "json"]);
    expect_code(&made, 0);
    let made: Value = serde_json::from_str(&stdout(&made)).unwrap();
    assert_eq!(differing(&beside(python, &folder, &made)), Vec::<String>::new());
    let mut all = Vec::new();
    numbers(&made, "", &mut all);
    // One of each kind of place.
    let kind = |pointer: &String| {
        pointer.split('/').filter(|part| part.parse::<usize>().is_err()).collect::<Vec<_>>().join("/")
    };
    let mut kinds = std::collections::BTreeMap::new();
    all.iter().for_each(|pointer| _ = kinds.entry(kind(pointer)).or_insert(pointer));
    let (mut altered, mut places) = (made.clone(), 0);
    for pointer in kinds.values() {
        let own = altered.pointer_mut(pointer).unwrap();
        let number = own.as_f64().unwrap();
        *own = if own.is_f64() { Value::from(number * (1.0 + 1e-6)) } else { Value::from(number as i64 + 1) };
        places += 1;
    }
    let said = beside(python, &folder, &altered);
    assert!(places > 60, "{places} kinds of places");
    assert_eq!(count(&said, "mismatches") - count(&said, "metrics_differ"), places, "{:#}", said["listed"]);
    // A word that says more than the figures do.
    let mut praised = made;
    praised["cases"][0]["metrics"][0]["comparisons"][0]["verdict"] = Value::from("better");
    let was = differing(&beside(python, &folder, &praised));
    assert!(was.iter().any(|place| place.ends_with("verdict")), "{was:?}");
}

#[test]
fn real_runs_agree_and_an_altered_findings_file_is_found() {
    if python().is_none() || !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // In turns, and one arm after the other.
    let turns = small_study(6, CONTAINER);
    let trials = format!("schedule = \"trials\"\n{turns}");
    for (name, study) in [("turns", turns), ("trials", trials)] {
        let place = folder.path().join(name);
        std::fs::create_dir(&place).unwrap();
        let (out, output) = ran(&place, &study);
        expect_code(&output, 0);
        let verified = run(&["verify", out.to_str().unwrap(), "--recompute"]);
        expect_code(&verified, 0);
        let said = stdout(&verified);
        assert!(said.contains("figures agree to 1e-9") && said.contains("no figure was left out"), "{said}");
        assert!(count(&recomputed(&out), "metrics") > 0, "{said}");
        let file = out.join("findings.json");
        let mut made: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let figure = made.pointer_mut("/cases/0/metrics/0/arms/0/estimate/value").unwrap();
        *figure = Value::from(figure.as_f64().unwrap() * (1.0 + 1e-6));
        std::fs::write(&file, made.to_string()).unwrap();
        let verified = run(&["verify", out.to_str().unwrap(), "--recompute"]);
        expect_code(&verified, 1);
        let said = stderr(&verified);
        assert!(
            said.contains("findings.json") && said.contains("cases[0].metrics[0].arms[0].estimate.value"),
            "{said}"
        );
        expect_code(&run(&["verify", out.to_str().unwrap()]), 0);
    }
}

#[test]
fn without_python_it_is_said_what_is_missing() {
    if Path::new("/usr/bin/python3").exists() {
        return tare_testkit::skipped("python3 is in its usual place, which is always looked at");
    }
    let place = tempfile::tempdir().unwrap();
    let plan = testing::plan(2);
    let folder = written(place.path(), &plan, |n| testing::trial(&plan, n));
    let output = tare().env("PATH", "").args(["verify", folder.to_str().unwrap(), "--recompute"]).output().unwrap();
    expect_code(&output, 4);
    assert!(stderr(&output).contains("python3-numpy"), "{}", stderr(&output));
}
