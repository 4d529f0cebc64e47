#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::collections::BTreeMap;

use tare_model::findings::{ArmObjective, Estimate};
use tare_model::merging::SavedFrom;
use tare_model::metric::Better;

use super::*;

fn estimate(value: f64) -> Estimate {
    Estimate { value, low: None, high: None, level: 0.95, n: 2, method: String::new() }
}

fn level(tiles: u32, held: u32, response: f64) -> LevelFindings {
    let metrics = [("shop:response_time_p99_s", response), ("shop:share_of_single", 1.0), ("my-shop:work_per_s", 7.0)];
    let metrics: BTreeMap<String, Estimate> = metrics.map(|(id, value)| (id.to_owned(), estimate(value))).into();
    LevelFindings { guests: tiles * 2, tried: 2, held, metrics, saved_from: SavedFrom::default() }
}

fn density() -> DensityFindings {
    let arm = ArmDensity {
        arm: "a".into(),
        held: 2,
        fit: None,
        held_blocks: vec![],
        end_of_series: false,
        stopped: vec![],
        levels: vec![level(1, 2, 0.1), level(2, 1, 0.25)],
        course: vec![],
        models: vec![],
        tile: vec!["shop".into(), "my-shop".into()],
    };
    DensityFindings { guest_memory_bytes: 1, host_memory_bytes: 1, offered_per_guest_per_s: None, arms: vec![arm] }
}

fn spec(id: &str, label: &str, unit: Unit) -> MetricSpec {
    MetricSpec::new(id, label, unit, Better::Lower)
}

fn with<T>(found: &CaseFindings, density: &DensityFindings, of: impl Fn(&Added<'_>) -> T) -> T {
    let specs = vec![
        spec("shop:response_time_p99_s", "shop: response time, p99", Unit::Seconds),
        spec("shop:share_of_single", "shop: operations of a guest, share of those with one tile", Unit::Share),
        spec("my-shop:work_per_s", "my-shop: operations", Unit::OperationsPerSecond),
        spec("shop:response_time_mean_s", "shop: response time, mean", Unit::Seconds),
    ];
    of(&Added { found, density, names: vec!["shop".into(), "my-shop".into()], specs })
}

#[test]
fn each_member_has_a_row_a_metric_and_number_of_tiles_with_its_share_of_a_single_tile() {
    let (found, density) = (CaseFindings::default(), density());
    let table = with(&found, &density, |added| added.table().unwrap());
    let names: Vec<&Value> = table.rows.iter().map(|row| &row[0].value).collect();
    assert_eq!(names.len(), 6, "three metrics that were seen, at one and two tiles: {names:?}");
    assert_eq!(table.rows[0][2].note, "", "a single tile is its own measure");
    assert_eq!(
        table.rows[1][2],
        Cell::from(Value::Estimate(estimate(0.25), Unit::Seconds)).noted("250 % of a single tile; did not hold")
    );
    assert_eq!(table.rows[3][2].note, "did not hold", "a share of a share tells nothing");
}

#[test]
fn the_figure_has_what_objectives_bound_and_what_is_left_of_a_single_tile() {
    let density = density();
    let objective = ArmObjective {
        arm: "a".into(),
        spec: spec("shop:response_time_p99_s", "shop: response time, p99", Unit::Seconds),
        bound: 0.3,
        blocks: vec![],
        planned: 2,
        sentence: String::new(),
    };
    let found = CaseFindings { objectives: vec![objective], ..CaseFindings::default() };
    let figure = with(&found, &density, |added| added.figure().unwrap());
    let titles: Vec<&str> = figure.panels.iter().map(|panel| panel.title.as_str()).collect();
    assert_eq!(titles, ["shop: response time, p99", "shop: operations of a guest, share of those with one tile"]);
    assert_eq!(figure.panels[0].bound, Some((0.3, "objective".to_owned())));
    let points: Vec<(f64, bool)> =
        figure.panels[0].lines[0].points.iter().map(|point| (point.x, point.hollow)).collect();
    assert_eq!(points, [(1.0, false), (2.0, true)]);
    assert!(figure.x_title.contains("tiles of 2 guests (shop, my-shop)"));
}
