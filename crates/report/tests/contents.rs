//! What is where: the table of `docs/method.md` against the files, and the figures that no CSV file has.

use crate::fixture;

use serde_json::Value;
use tare_model::findings::Findings;

const METHOD: &str = include_str!("../../../docs/method.md");
const SCHEMA: &str = include_str!("../../record/src/store/schema.sql");

/// The findings as another program reads them.
fn json(findings: &Findings) -> Value {
    serde_json::from_str(&tare_report::json(findings).unwrap()).unwrap()
}

/// All that a path such as `cases[].parts[]` leads to.
fn at<'a>(value: &'a Value, path: &str) -> Vec<&'a Value> {
    path.split('.').fold(vec![value], |found, step| {
        let (name, each) = step.strip_suffix("[]").map_or((step, false), |name| (name, true));
        let members = found.into_iter().filter_map(|value| value.get(name));
        if each { members.flat_map(|list| list.as_array().into_iter().flatten()).collect() } else { members.collect() }
    })
}

/// The rows of the table that says what is where: tables, findings, results.
fn table() -> Vec<[&'static str; 3]> {
    let rows = METHOD.split("| what | table |").nth(1).expect("the table").lines().skip(2);
    rows.take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').collect();
            [cells[2], cells[3], cells[4]]
        })
        .collect()
}

/// What stands between backticks.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn is_something(value: &Value) -> bool {
    !matches!(value, Value::Null) && value.as_array().is_none_or(|list| !list.is_empty())
}

#[test]
fn what_the_documentation_names_is_there() {
    let fixtures = [
        fixture::findings(),
        fixture::platforms(),
        fixture::store(),
        fixture::density(),
        fixture::serving(),
        fixture::instances(),
        fixture::isolation(),
    ];
    let jsons: Vec<Value> = fixtures.iter().map(json).collect();
    let parquet = tare_report::parquet(&fixtures[0]).unwrap().into_iter().map(|(name, _)| name);
    let files: Vec<String> = tare_report::csv(&fixtures[0]).into_iter().map(|(name, _)| name).chain(parquet).collect();
    let table = table();
    assert!(table.len() > 10, "{table:?}");
    for [csv, findings, results] in &table {
        for name in names(csv) {
            assert!(files.iter().any(|file| file == name), "no file {name}");
        }
        for path in names(findings) {
            let found = jsons.iter().any(|json| at(json, path).into_iter().any(is_something));
            assert!(found, "nothing at {path}");
        }
        for name in names(results) {
            let made = |kind: &str, after: &str| SCHEMA.contains(&format!("CREATE {kind} {name} {after}"));
            assert!(made("TABLE", "(") || made("VIEW", "AS"), "no table {name}");
        }
    }
    for file in &files {
        assert!(table.iter().any(|row| names(row[0]).any(|name| name == file)), "the table does not name {file}");
    }
}

#[test]
fn what_limits_a_case_in_turns_is_said() {
    let mut found = fixture::findings();
    let said = tare_report::markdown(&found);
    assert!(said.contains("The arms took turns of 20ms in random order, 1ms apart, in 400 rounds a block;"), "{said}");
    assert!(said.contains("The arms ran one trial after another: its guests are busy"), "{said}");
    let section = said.split("## What limits this study").nth(1).expect("the section");
    let row = section.lines().find(|line| line.contains("bulk throughput, receive")).expect("a row");
    for cell in
        ["| 0.6 % 35 % |", "| 17 blocks 12 min |", "| not possible |", "| 13 blocks of 7.40 s: 9.8 min |", "at best"]
    {
        assert!(row.contains(cell), "{cell}: {row}");
    }
    assert!(!section.contains("stands for"));
    let case = found.cases.iter_mut().find(|case| !case.limits.is_empty()).unwrap();
    case.limits[0].of_primary = false;
    case.limits[0].figure = tare_model::findings::TurnFigure::MeanResponse;
    let stands = "turns hold no percentiles, so the mean response time stands for \u{201c}throughput\u{201d}";
    assert!(tare_report::markdown(&found).contains(stands));
    found.cases.iter_mut().for_each(|case| case.limits.clear());
    assert!(!tare_report::markdown(&found).contains("What limits this study"));
}

#[test]
fn every_part_and_step_is_in_the_findings() {
    let store = json(&fixture::store());
    let sriov: Vec<&Value> = at(&store, "cases[].parts[]").into_iter().filter(|arm| arm["arm"] == "sriov").collect();
    assert_eq!((sriov.len(), at(&store, "cases[].parts[].parts[]").len()), (1, 3 * 12));
    let value = |estimate: &Value| estimate["value"].as_f64().unwrap().round();
    let driver = at(sriov[0], "parts[]").into_iter().find(|part| part["guest"] == 3 && part["driver"] == 1).unwrap();
    assert_eq!((value(&driver["estimate"]), value(&sriov[0]["total"])), (28_549.0, 222_048.0));
    let arms = at(&store, "cases[].steps[]");
    let steps = at(arms.iter().find(|arm| arm["arm"] == "sriov").unwrap(), "steps[]");
    let step = |name: &str| *steps.iter().find(|step| step["name"] == name).unwrap();
    assert!(step("purchase")["within"] == true && is_something(&step("purchase")["of_operation_s"]));
    assert!(step("read prices")["within"] == false);
    assert!(at(step("read prices"), "quantiles[]").iter().any(|pair| pair[0] == 0.99));
}

#[test]
fn every_number_of_guests_is_in_the_findings() {
    let of = |findings: &Findings, arm: &str, guests: u32| -> Value {
        let json = json(findings);
        let arms = at(&json, "cases[].density.arms[]");
        let levels = arms.into_iter().filter(|own| own["arm"] == arm).flat_map(|own| at(own, "levels[]"));
        levels.clone().find(|level| level["guests"] == guests).unwrap().clone()
    };
    let level = of(&fixture::density(), "tare", 32);
    assert_eq!((&level["tried"], &level["held"]), (&Value::from(2), &Value::from(2)));
    assert_eq!(level["metrics"]["operations_per_s"]["value"].as_f64().unwrap().round(), 105_660.0);
    let tiles = of(&fixture::tiles(), "off", 12);
    assert_eq!((&tiles["tried"], &tiles["held"]), (&Value::from(2), &Value::from(0)));
    assert!(is_something(&tiles["metrics"]["shop:response_time_p99_s"]));
}

#[test]
fn every_try_request_resource_score_and_check_is_in_the_findings() {
    let serving = json(&fixture::serving());
    let of = |path: &str, arm: &str| -> Vec<&Value> {
        at(&serving, path).into_iter().filter(|own| own["arm"] == arm).collect()
    };
    let search = at(of("cases[].capacity[]", "gvisor")[0], "searches[]")[1];
    let sixth = &search["tried"][5];
    assert_eq!((&search["block"], sixth[0].as_f64()), (&Value::from(2), Some(328.0)));
    assert!(sixth[1].as_str().unwrap().starts_with("good_share was 0.946, and at least"));
    let iteration = at(of("cases[].requests[]", "native")[0], "iterations[]")[0];
    assert_eq!((iteration["load"].as_f64(), &iteration["met"]), (Some(510.0), &Value::from(true)));
    assert_eq!(iteration["rows"][0]["counts"]["name"], "login");
    assert_eq!(iteration["rows"][0]["counts"]["requests"], 134_640);
    assert_eq!(iteration["total"]["counts"]["name"], "all types");
    let used = of("cases[].resources[]", "native")[0];
    assert_eq!((used["load"].as_f64(), used["host_cpu_shares"][2].as_f64()), (Some(510.0), Some(0.08)));
    let ratio = at(&serving, "score.ratios[]").into_iter().find(|own| own[0] == "gvisor").unwrap();
    assert!((0.7..0.8).contains(&ratio[1]["value"].as_f64().unwrap()), "{ratio}");
    let broken = at(&serving, "audit[]").into_iter().find(|own| own["check"] == "bytes-a-request").unwrap();
    assert_eq!((&broken["outcome"], &broken["case"]), (&Value::from("broken"), &Value::from("ecommerce")));
    assert_eq!(broken["arms"], serde_json::json!(["native", "gvisor"]));
}

#[test]
fn every_point_of_instances_sizing_and_holds_is_in_the_findings() {
    let instances = json(&fixture::instances());
    let count = |path: &str| at(&instances, path).len();
    assert_eq!(count("consolidation[].arms[].by_load[].points[]"), 2 * 15);
    assert_eq!(count("consolidation[].arms[].lost[].points[]"), 2 * 2 * 4);
    assert_eq!(count("consolidation[].arms[].gained[].points[]"), 2 * 3 * 4);
    assert!(at(&instances, "consolidation[].arms[].by_load[].points[].response").into_iter().all(is_something));
    let eighth = at(&instances, "consolidation[].arms[].side_by_side[].each[]");
    assert!(eighth.iter().any(|each| each["instance"] == 8 && is_something(&each["response"])));
    assert!(at(&instances, "consolidation[].arms[].side_by_side[].response_apart").into_iter().any(is_something));
    let refused = at(&instances, "sizing[].arms[]").into_iter().filter(|arm| is_something(&arm["refused"]));
    assert_eq!(refused.map(|arm| arm["arm"].clone()).collect::<Vec<_>>(), ["vm"]);
    let checks = at(&instances, "sizing[].arms[].checks[]");
    assert_eq!(checks.iter().filter(|check| check["response_within"] == false).count(), 4);
    let searches = at(&instances, "cases[].cpu_searches[]").into_iter().filter(|pair| pair[0] == "native");
    let blocks = searches.flat_map(|pair| pair[1].as_array().unwrap());
    assert_eq!(blocks.flat_map(|block| block[1]["steps"].as_array().unwrap()).count(), 8 * 3 * 3);
}
