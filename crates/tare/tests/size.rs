//! `tare size` end to end: run folders that were written as a run writes them, and what the program says of them.

use std::path::Path;

use crate::common::{expect_code, run, stderr, stdout};
use tare_model::capacity::CapacitySpec;
use tare_model::density::{DensitySpec, GuestSeries, metric};
use tare_model::guest::GuestSize;
use tare_model::load::{LoadKind, LoadModel};
use tare_model::metric::{Better, MetricSpec, Unit, common as ids};
use tare_model::plan::{Plan, PlannedTrial};
use tare_model::study::CaseLoad;
use tare_model::trial::{Outcome, TrialRecord};
use tare_model::{ByteSize, Span};
use tare_record::testing;

const P90: &str = "response_time_p90_s";
const P99: &str = "response_time_p99_s";

/// (instances, clients, held out): loads of 50 clients an instance and three fixed ones.
const CASES: [(u32, u32, bool); 14] = [
    (1, 50, false),
    (2, 100, false),
    (4, 200, false),
    (6, 300, false),
    (8, 400, false),
    (1, 200, false),
    (2, 200, false),
    (8, 200, false),
    (1, 400, false),
    (4, 400, false),
    (2, 300, false),
    (1, 150, false),
    (3, 250, true),
    (7, 350, true),
];

/// A study of one workload in so many instances on two arms.
fn plan(blocks: u32) -> Plan {
    let mut plan = testing::plan(blocks);
    plan.study.arms.truncate(2);
    let one = plan.study.cases[0].clone();
    plan.study.cases = CASES
        .iter()
        .map(|&(instances, clients, held_out)| {
            let mut case = one.clone();
            case.id = format!("i{instances}-u{clients}");
            case.label = format!("{clients} users in {instances}");
            case.load = LoadModel::Closed { clients, think_time: Span::from_secs(5) }.into();
            case.guest = GuestSize { cpus: 1, memory: ByteSize(12 << 30) };
            (case.instances, case.held_out) = (instances, held_out);
            case
        })
        .collect();
    plan.trials.clear();
    for block in 1..=blocks {
        for case in &plan.study.cases {
            for arm in &plan.study.arms {
                let index = plan.trials.len() as u32;
                plan.trials.push(PlannedTrial { index, block, case: case.id.clone(), arm: arm.id.clone() });
            }
        }
    }
    plan
}

/// A trial as a guest of one CPU makes it whose operations take 8 ms of CPU, and 9 in a container; `off` is what a held-out case has more.
fn trial(plan: &Plan, index: u32, off: f64) -> TrialRecord {
    let mut record = testing::trial(plan, index);
    record.samples.clear();
    let case = plan.study.cases.iter().find(|case| case.id == record.planned.case).unwrap();
    let clients = case.load.largest().number();
    let noise = |of: u32| 1.0 + 0.004 * testing::noise(u64::from(index * 8 + of));
    let demand = if record.planned.arm == "container" { 0.009 } else { 0.008 };
    let more = 0.0002 * f64::from((case.instances - 1).min(4));
    let throughput = clients / 5.0 * noise(1);
    let cpu = (throughput * (demand + more) + 0.003 * f64::from(case.instances)) * noise(2);
    let cpu = if case.held_out { cpu + off } else { cpu };
    let p90 = (0.02 + 0.03 / (1.0 - cpu)) * noise(3);
    record.metrics = vec![
        MetricSpec::new(P90, "response time, 90th percentile", Unit::Seconds, Better::Lower).primary(),
        MetricSpec::new(P99, "response time, 99th percentile", Unit::Seconds, Better::Lower),
        MetricSpec::new("operations_per_s", "operations", Unit::OperationsPerSecond, Better::Higher),
        MetricSpec::new(ids::GUEST_CPU, "share of the guest's CPUs", Unit::Share, Better::Lower),
        MetricSpec::new(ids::INSTANCE_MEMORY, "memory of an instance", Unit::Bytes, Better::Lower),
        MetricSpec::new(ids::IDLE_MEMORY, "memory when idle", Unit::Bytes, Better::Lower),
    ];
    let values = [
        (P90, p90),
        (P99, p90 * 2.0),
        ("operations_per_s", throughput),
        (ids::GUEST_CPU, cpu),
        (ids::INSTANCE_MEMORY, 1.5e9),
        (ids::IDLE_MEMORY, 0.4e9),
    ];
    let Outcome::Completed(m) = &mut record.outcome else { panic!("completed") };
    m.metrics = values.map(|(id, value)| (id.to_owned(), value)).into();
    record
}

/// A run folder in this one.
pub(crate) fn written(folder: &Path, blocks: u32, off: f64) -> String {
    let plan = plan(blocks);
    let trials: Vec<TrialRecord> = (0..plan.trials.len() as u32).map(|index| trial(&plan, index, off)).collect();
    let dir = folder.join("run");
    testing::write_run(&dir, &plan, &trials);
    dir.display().to_string()
}

/// The words alone, however lines are broken.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn json(args: &[&str]) -> serde_json::Value {
    let output = run(&[&["size"], args, &["--format", "json"]].concat());
    expect_code(&output, 0);
    serde_json::from_str(&stdout(&output)).unwrap()
}

#[test]
fn a_run_becomes_advice_with_points_models_checks_and_the_published_rule() {
    let folder = tempfile::tempdir().unwrap();
    let dir = written(folder.path(), 3, 0.0);
    let said = run(&["size", &dir, "--qos", "p90=1s", "--headroom", "25%", "--total", "10000", "--check"]);
    expect_code(&said, 0);
    let text = words(&stdout(&said));
    for part in [
        "native, rr in guests of 1 CPU and 12GiB",
        "container, rr",
        "advice",
        "6 instances in a guest, 300 clients together, 50 each",
        "keep the guest's CPU below",
        "with 25 % more load; at most 1.00 s is asked",
        "such guests for 10000 clients",
        "bound by",
        "by the published rule",
        "200 users in 8",
        "held out",
        "1 to 8 instances, 50 to 400 clients",
        "no predictions outside",
        "min(n - 1, 4)",
        "/ (1 - U)",
        "residual",
        "within 5 points and 15 %",
        "12 points in 3 blocks; residual",
        "in the fit",
        "no: held out",
        "capped line",
    ] {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
    assert!(!text.contains("NOT within"), "{text}");
    let own = json(&[&dir, "--arm", "native", "--qos", "p99=300ms"]);
    let models = own["sizing"]["models"].as_array().unwrap();
    assert_eq!((models.len(), models[0]["arms"].as_array().unwrap().len()), (1, 1));
    let arm = &models[0]["arms"][0];
    assert_eq!((arm["arm"].as_str(), arm["points"].as_array().unwrap().len()), (Some("native"), 14));
    assert_eq!(arm["advice"]["question"]["qos"][0], P99);
    let found = arm["model"]["cpu"]["demand_s"]["value"].as_f64().unwrap();
    assert!((found / 0.008 - 1.0).abs() < 0.02, "{found}");
    assert!(arm["checks"].as_array().unwrap().iter().all(|check| check["cpu_within"] == true));
    // The report has the same models, and is written as ever.
    expect_code(&run(&["report", &dir]), 0);
    let findings: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(Path::new(&dir).join("findings.json")).unwrap()).unwrap();
    assert_eq!(findings["sizing"][0]["arms"][0]["model"]["cpu"], arm["model"]["cpu"]);
    assert_eq!(
        findings["consolidation"][0]["arms"][0]["gained"].as_array().unwrap().len(),
        3,
        "200, 300 and 400 clients"
    );
}

#[test]
fn what_is_asked_wrongly_is_reported_with_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let dir = written(folder.path(), 1, 0.0);
    let refused = |args: &[&str]| {
        let output = run(&[&["size", &dir], args].concat());
        expect_code(&output, 2);
        assert!(stdout(&output).is_empty());
        stderr(&output)
    };
    for (args, parts) in [
        (&["--qos", "p95=1s"][..], &["`p95`", P90, P99][..]),
        (&["--qos", "p90"], &["METRIC=VALUE"]),
        (&["--qos", "p90=1"], &["\"300ms\""]),
        (&["--qos", "p90=0s"], &["above 0"]),
        (&["--qos", "operations_per_s=1s"], &["not a lower-is-better time metric", P90]),
        (&["--headroom", "lots"], &["25%"]),
        (&["--headroom", "25"], &["25%"]),
        (&["--headroom", "5"], &["per cent", "25%"]),
        (&["--arm", "qemu"], &["`qemu`", "`native`", "`container`"]),
        (&["--total", "0"], &["above 0"]),
        (&["--load-per-instance", "nan"], &["above 0"]),
    ] {
        let said = refused(args);
        assert!(parts.iter().all(|part| said.contains(part)), "{args:?}: {said}");
    }
    let missing = run(&["size", "/nonexistent"]);
    expect_code(&missing, 2);
    // Both times have `response`: the primary one is meant.
    let own = json(&[&dir, "--qos", "response=1s"]);
    assert_eq!(own["sizing"]["question"]["qos"][0], P90);
}

#[test]
fn a_held_out_case_that_is_not_predicted_ends_a_check_with_5() {
    let folder = tempfile::tempdir().unwrap();
    let dir = written(folder.path(), 2, 0.12);
    let said = run(&["size", &dir, "--check"]);
    expect_code(&said, 5);
    let text = words(&stdout(&said));
    assert!(
        text.contains("NOT within 5 points") && text.contains("read the checks before you rely on the models"),
        "{}",
        stdout(&said)
    );
    expect_code(&run(&["size", &dir]), 0);
}

#[test]
fn runs_that_cannot_be_sized_say_which_study_would_tell() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("plain");
    let plain = testing::plan(2);
    let trials: Vec<TrialRecord> = (0..plain.trials.len() as u32).map(|index| testing::trial(&plain, index)).collect();
    testing::write_run(&dir, &plain, &trials);
    let dir = dir.display().to_string();
    let said = run(&["size", &dir]);
    expect_code(&said, 0);
    assert!(stdout(&said).contains("guest_cpu_share") && stdout(&said).contains("no models"), "{}", stdout(&said));
    expect_code(&run(&["size", &dir, "--check"]), 5);
}

#[test]
fn an_arm_without_models_is_no_proof_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(2);
    let mut trials: Vec<TrialRecord> = (0..plan.trials.len() as u32).map(|index| trial(&plan, index, 0.0)).collect();
    for record in trials.iter_mut().filter(|record| record.planned.arm == "container") {
        let Outcome::Completed(m) = &mut record.outcome else { panic!("completed") };
        m.metrics.remove(ids::GUEST_CPU);
    }
    let dir = folder.path().join("run");
    testing::write_run(&dir, &plan, &trials);
    let dir = dir.display().to_string();
    expect_code(&run(&["size", &dir, "--arm", "native", "--check"]), 0);
    let both = run(&["size", &dir, "--check"]);
    expect_code(&both, 5);
    assert!(stdout(&both).contains("no models"), "{}", stdout(&both));
}

#[test]
#[expect(clippy::too_many_lines, reason = "two folders are made, and then asked alike")]
fn scale_ups_and_capacity_searches_are_sized_by_what_they_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = testing::plan(2);
    let case = &mut plan.study.cases[0];
    case.guest.memory = ByteSize(1 << 30);
    let guests = GuestSeries::Listed(vec![1, 2, 4, 8]);
    let (settle, rest) = (Span::from_secs(1), Span::ZERO);
    let spec = DensitySpec { guests, reserve: Some(ByteSize(1 << 30)), settle, rest, pressure: 0.4, tile: Vec::new() };
    case.load = CaseLoad::Density { load: case.load.largest(), spec };
    let mut trials: Vec<TrialRecord> =
        (0..plan.trials.len() as u32).map(|index| testing::density_trial(&plan, index, &[1, 2, 4, 8])).collect();
    // 4 guests have 400 MB each to themselves and share 400 MB; 3.4 GB are left: 8 more but for the reserve of 1.07 GB.
    for record in &mut trials {
        let Outcome::Completed(m) = &mut record.outcome else { panic!("completed") };
        for level in &mut m.scale_up.as_mut().unwrap().levels {
            let taken = f64::from(level.guests) * 4e8 + 4e8;
            let values = [
                (metric::GUEST_UNIQUE, 4e8),
                (metric::GUEST_SHARED, 4e8 / f64::from(level.guests)),
                (metric::AVAILABLE, 5.4e9 - taken),
            ];
            level.metrics.extend(values.map(|(id, value)| (id.to_owned(), value)));
        }
    }
    let dir = folder.path().join("density");
    testing::write_run(&dir, &plan, &trials);
    let dir = dir.display().to_string();
    let said = run(&["size", &dir, "--arm", "native", "--headroom", "0"]);
    expect_code(&said, 0);
    let text = words(&stdout(&said));
    assert!(
        text.contains("4 guests; 95 of 100 scale-ups hold 4")
            && text.contains("made from 2 blocks")
            && text.contains("9 [9, 9] guests by memory alone"),
        "(5.4 - 1.07 - 0.4) / 0.4: {text}"
    );
    assert!(
        text.contains("but 95 of 100 scale-ups hold no more than 4")
            && text.contains("(RAM - host - reserve - shared)"),
        "{text}"
    );

    // Of 4 guests a fifth stays free: 3, which are one tile of two; more load than they held would need a tile less.
    let mut tiles = plan.clone();
    for record in &mut trials {
        let Outcome::Completed(m) = &mut record.outcome else { panic!("completed") };
        let scale_up = m.scale_up.as_mut().unwrap();
        scale_up.tile = vec!["shop".to_owned(), "mail".to_owned()];
        scale_up.stopped.detail = "mail: response time was 3 and should be at most 1".to_owned();
    }
    tiles.study.name = "tiles".to_owned();
    let dir = folder.path().join("tiles");
    testing::write_run(&dir, &tiles, &trials);
    let dir = dir.display().to_string();
    let text = |headroom: &str| words(&stdout(&run(&["size", &dir, "--arm", "native", "--headroom", headroom])));
    let said = text("25%");
    assert!(said.contains("2 guests; 95 of 100 scale-ups hold 4") && said.contains("make one tile: 1 tile."), "{said}");
    assert!(said.contains("guests: mail: response time was 3 and should"), "{said}");
    let said = text("150%");
    assert!(said.contains("2 tiles held. With 150 % of headroom below that, no guest is left"), "{said}");

    let mut plan = testing::plan(2);
    let kind = LoadKind::Closed { think_time: Span::ZERO };
    plan.study.cases[0].load =
        CaseLoad::Capacity(CapacitySpec { kind, from: 8.0, most: 64.0, precision: 0.05, iterations: 2, drivers: 1 });
    let trials: Vec<TrialRecord> =
        (0..plan.trials.len() as u32).map(|index| testing::capacity_trial(&plan, index)).collect();
    let dir = folder.path().join("capacity");
    testing::write_run(&dir, &plan, &trials);
    let own = json(&[&dir.display().to_string(), "--arm", "native", "--headroom", "20%", "--total", "100"]);
    let load = &own["sizing"]["loads"][0];
    assert_eq!(
        (load["load"].as_f64(), load["guests"].as_u64()),
        (Some(5.0), Some(20)),
        "two blocks bound what 95 of 100 instances hold at 6 clients; less a sixth: {load}"
    );
}
