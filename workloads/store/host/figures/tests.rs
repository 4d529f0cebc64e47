#![allow(clippy::unwrap_used, clippy::expect_used)]
use super::*;
use crate::store::spec::StoreDone;
use crate::yields::tests::{histogram, result};
use tare_model::sample::{Sample, Source};
use tare_model::trial::Step;

/// So many orders of 10 ms in one second, of which so many were rolled back.
fn driver(orders: u64, rolled_back: u64) -> (DriveResult, StoreDone) {
    let done = StoreDone { rolled_back, statements: orders * 20, ramp: "at once".into(), ..StoreDone::default() };
    let times = histogram(4_000_000, orders);
    let result = DriveResult {
        steps: vec![Step { name: "purchase".into(), within: true, times }],
        response: histogram(10_000_000, orders),
        ..result(orders)
    };
    (result, done)
}

/// The same of which the driver saw something else.
fn changed(
    (mut result, done): (DriveResult, StoreDone),
    change: impl FnOnce(&mut DriveResult),
) -> (DriveResult, StoreDone) {
    change(&mut result);
    (result, done)
}

fn guest(orders: u64, wal: Option<u64>) -> Driven {
    let mut driven = of_guest(vec![driver(orders, 0), driver(orders, orders / 10)], 1, false).0;
    driven.measurement.counts.extend(wal.map(|bytes| (WAL_BYTES.to_owned(), bytes)));
    driven.facts.insert("data on".into(), format!("disk of {orders}"));
    driven.facts.insert("PostgreSQL".into(), "18.6".into());
    let at = |at_ns, value| Sample { at_ns, source: Source::Client, series: "operations_per_s".into(), value };
    driven.samples = vec![at(1_000_000_000, orders as f64), at(2_000_000_000 + orders, 1.0)];
    finish(&mut driven);
    driven
}

#[test]
fn orders_a_minute_count_those_rolled_back_and_goodput_does_not() {
    let driven = guest(1000, Some(4_000_000));
    let metrics = &driven.measurement.metrics;
    assert!((metrics["orders_per_minute"] - 120_000.0).abs() < 1e-6, "{metrics:?}");
    assert!((metrics["goodput_per_minute"] - 114_000.0).abs() < 1e-6);
    assert!((metrics["rollback_share"] - 0.05).abs() < 1e-12);
    assert!((metrics["wal_bytes_per_order"] - 2000.0).abs() < 1e-9);
    assert!((metrics["statements_per_s"] - 40_000.0).abs() < 1e-6);
    assert!((metrics["response_time_p99_s"] - 0.01).abs() < 1e-9);
    let times = &driven.measurement.histograms["response"];
    assert!(
        (metrics["response_time_max_s"] - times.max as f64 / 1e9).abs() < 1e-12 && times.max > 0,
        "exact, no bin's end"
    );
    assert!(!metrics.contains_key("response_time_p999_s"), "2000 orders are too few");
    let parts = &driven.measurement.parts;
    let keys: Vec<(u32, Option<u32>)> = parts.iter().map(|part| (part.guest, part.driver)).collect();
    assert_eq!(keys, [(1, None), (1, Some(1)), (1, Some(2))]);
    assert!((parts[0].metrics["wal_bytes_per_order"] - 2000.0).abs() < 1e-9);
    let sum: f64 = parts[1..].iter().map(|part| part.metrics["orders_per_minute"]).sum();
    assert!((sum - 120_000.0).abs() < 1e-6);
    assert_eq!(driven.facts["clients started"], "at once");
}

#[test]
fn guests_add_up_and_keep_what_is_their_own() {
    let all = combine(vec![guest(1000, Some(4_000_000)), guest(500, Some(1_000_000))], VerdictOn::Mean).unwrap();
    let metrics = &all.measurement.metrics;
    assert!((metrics["orders_per_minute"] - 180_000.0).abs() < 1e-6);
    assert!((metrics["wal_bytes_per_order"] - 5_000_000.0 / 3000.0).abs() < 1e-9);
    assert_eq!((all.work, all.window_ns, all.invalid), (3000.0, (0, 1_000_000_000), None));
    assert_eq!(all.measurement.histograms["response"].count(), 3000);
    assert_eq!(all.measurement.steps[0].times.count(), 3000);
    let keys: Vec<(u32, Option<u32>)> = all.measurement.parts.iter().map(|part| (part.guest, part.driver)).collect();
    assert_eq!(keys, [(1, None), (1, Some(1)), (1, Some(2)), (2, None), (2, Some(1)), (2, Some(2))]);
    assert_eq!(
        (all.facts["data on"].as_str(), all.facts["guest 2: data on"].as_str()),
        ("disk of 1000", "disk of 500")
    );
    assert!(!all.facts.contains_key("guest 2: PostgreSQL"), "the same as the first guest's");
    let values: Vec<f64> = all.samples.iter().map(|sample| sample.value).collect();
    assert_eq!(values, [1500.0, 2.0]);
}

#[test]
fn what_one_guest_did_not_report_is_reported_of_none() {
    let all = combine(vec![guest(1000, Some(4_000_000)), guest(500, None)], VerdictOn::Mean).unwrap();
    assert!(!all.measurement.metrics.contains_key("wal_bytes_per_order"));
    assert!(!all.measurement.counts.contains_key(WAL_BYTES));
    assert!(all.measurement.counts.contains_key(count::DRIVER_RUN_DELAY_NS));
}

#[test]
fn a_single_guest_with_a_single_driver_has_no_parts_and_the_same_figures() {
    let one = of_guest(vec![driver(1000, 10)], 1, false).0;
    let all = combine(vec![one.clone()], VerdictOn::Goodput).unwrap();
    assert!(all.measurement.parts.is_empty());
    assert_eq!(all.measurement.metrics, one.measurement.metrics);
    assert_eq!((all.facts, all.flags), (one.facts, one.flags));
    assert!(combine(Vec::new(), VerdictOn::Goodput).is_none());
}

#[test]
fn counts_that_end_in_max_are_not_added() {
    let with =
        |backlog_max| of_guest(vec![changed(driver(10, 0), |result| result.backlog_max = backlog_max)], 1, false).0;
    let all = combine(vec![with(5), with(3)], VerdictOn::Goodput).unwrap();
    assert_eq!((all.measurement.counts["backlog_max"], all.measurement.counts["operations"]), (5, 20));
}

#[test]
fn flags_and_reasons_name_the_guest_and_what_is_common_is_listed_once() {
    let flagged = |detail: &str| {
        let mut driven = guest(1000, None);
        driven.flags.push(Flag { kind: "unsafe".into(), detail: "fsync is off".into() });
        driven.flags.push(Flag { kind: "driver-starved".into(), detail: detail.into() });
        driven
    };
    let mut second = flagged("b");
    second.invalid = Some("orders were lost".into());
    let all = combine(vec![flagged("a"), second], VerdictOn::Goodput).unwrap();
    let details: Vec<&str> = all.flags.iter().map(|flag| flag.detail.as_str()).collect();
    assert_eq!(details, ["fsync is off", "guest 1: a", "guest 2: b"]);
    assert_eq!(all.invalid.as_deref(), Some("guest 2: orders were lost"));
}

#[test]
fn failures_beyond_a_hundredth_and_clients_that_gave_up_make_a_trial_invalid() {
    let with = |failed, gave_up, killed| {
        let mut driver = changed(driver(1000, 0), |result| result.errors = vec![("08006".into(), failed)]);
        driver.1.gave_up = gave_up;
        of_guest(vec![driver], 1, killed).0.invalid
    };
    assert_eq!(with(10, 0, false), None);
    assert!(with(11, 0, false).unwrap().contains("of 1011 orders 11 failed"));
    assert_eq!(with(11, 0, true), None, "a server that is killed fails what it was doing");
    assert!(with(1, 2, true).unwrap().contains("2 clients gave up"));
    let none = changed(driver(0, 0), |result| result.errors = vec![(CUT_OFF.to_owned(), 20)]);
    let none = of_guest(vec![none], 1, false).0.invalid.unwrap();
    assert!(
        none.contains("no order") && none.contains("20 were under way") && none.contains("longer phases"),
        "{none}"
    );
    let errors = [("08006 gone", 2), ("53100 disk full", 9), (CUT_OFF, 30)].map(|(why, n)| (why.to_owned(), n));
    let mut hanging = changed(driver(1000, 0), |result| result.errors = errors.into());
    assert!(
        of_guest(vec![hanging.clone()], 1, false).0.invalid.unwrap().ends_with(CUT_OFF),
        "these were cut off for hanging"
    );
    hanging.1.gave_up = 1;
    assert!(of_guest(vec![hanging], 1, false).0.invalid.unwrap().ends_with("most often: 53100 disk full"));
}

#[test]
fn the_verdict_has_its_figure_or_not_by_the_orders_of_all_guests() {
    let trial = |guests: usize| {
        let guest = |orders| of_guest(vec![driver(orders, 0)], 1, false).0;
        combine(vec![guest(900); guests], VerdictOn::P99).unwrap()
    };
    assert!(trial(1).invalid.unwrap().contains("900 orders are too few for response_time_p99_s"));
    let two = trial(2);
    assert_eq!(two.invalid, None, "1,800 orders are enough");
    assert!(two.measurement.metrics.contains_key("response_time_p99_s"));
}

#[test]
fn orders_under_way_at_the_end_are_no_failures_and_are_flagged() {
    let taking = |ns, cut, failed| {
        let mut errors = vec![(CUT_OFF.to_owned(), cut), ("40001 no".to_owned(), failed)];
        errors.retain(|(_, count)| *count > 0);
        let change = |result: &mut DriveResult| {
            result.errors = errors;
            result.response = histogram(ns, 100);
        };
        of_guest(vec![changed(driver(100, 0), change)], 1, false).0
    };
    let with = |cut, failed| taking(8_000_000_000, cut, failed);
    let few = with(1, 0);
    assert!(few.invalid.is_none() && few.flags.iter().all(|flag| flag.kind != "cut-at-the-end"));
    let many = with(40, 0);
    assert_eq!(many.invalid, None);
    assert!(many.flags.iter().any(|flag| flag.kind == "cut-at-the-end" && flag.detail.contains("40 orders")));
    let failed = with(40, 5).invalid.unwrap();
    assert!(failed.contains("5 failed") && failed.contains("40001 no"), "{failed}");
    let hangs = taking(10_000_000, 40, 0).invalid.expect("a server that answers in 10 ms and then no more hangs");
    assert!(hangs.contains("40 failed") && hangs.contains(CUT_OFF), "{hangs}");
}

#[test]
fn the_metric_of_the_verdict_comes_first() {
    for verdict in [VerdictOn::OrdersPerMinute, VerdictOn::Goodput, VerdictOn::P95, VerdictOn::P999] {
        let specs = specs(verdict);
        assert_eq!(specs[0].id, verdict.metric());
        assert_eq!(specs.iter().filter(|spec| spec.primary).count(), 1);
        assert_eq!(specs.len(), 13);
    }
}
