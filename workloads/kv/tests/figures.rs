//! Figures from what drivers report.
use super::super::spec::Counts;
use super::*;
use crate::yields::tests::{histogram, result};
use tare_model::turns::TurnsDone;

fn done(gets: u64, misses: u64, sets: u64) -> KvDone {
    let counts = Counts { gets, misses, sets, ..Counts::default() };
    KvDone { steady: counts, all: counts, ..KvDone::default() }
}

fn driven(requests: u64, done: &KvDone, eviction: bool) -> Driven {
    let result = DriveResult { response: histogram(1_000_000, requests / 4), ..result(requests) };
    yields(result, done, 4, eviction)
}

#[test]
fn rates_are_of_requests_and_quantiles_of_pipelines() {
    let all = combine(vec![driven(4_000, &done(3_000, 600, 1_000), true)], VerdictOn::P99).unwrap();
    let metrics = &all.measurement.metrics;
    assert_eq!((metrics["operations_per_s"], metrics["hit_share"]), (4_000.0, 0.8));
    assert!((metrics["response_time_p99_s"] - 0.001).abs() < 1e-5 && !metrics.contains_key("response_time_p999_s"));
    assert_eq!((all.invalid, all.work, all.measurement.counts["hits"]), (None, 4_000.0, 2_400));
    let turns = TurnsDone { measured_ns: 250_000_000, ..TurnsDone::default() };
    let in_turns = Driven { turns: Some(turns), ..driven(4_000, &done(3_000, 600, 1_000), true) };
    let two = combine(vec![in_turns.clone(), in_turns], VerdictOn::P99).unwrap();
    assert_eq!(two.measurement.metrics["operations_per_s"], 32_000.0, "over the time of the turns");
    let few = combine(vec![driven(400, &done(300, 0, 100), false)], VerdictOn::P99).unwrap();
    assert!(few.invalid.unwrap().contains("response_time_p99_s"));
}

#[test]
fn guests_are_added_and_each_says_what_was_wrong_in_it() {
    let wrong = KvDone { wrong: 2, first_wrong: "GET of key 7".into(), ..done(10, 0, 0) };
    let all =
        combine(vec![driven(4_000, &done(10, 0, 0), false), driven(4_000, &wrong, false)], VerdictOn::Rate).unwrap();
    assert_eq!(all.measurement.metrics["operations_per_s"], 8_000.0);
    let why = all.invalid.unwrap();
    assert!(why.contains("guest 2: 2 answers were wrong") && why.contains("key 7"), "{why}");
}

#[test]
fn a_miss_is_wrong_only_where_no_key_may_be_dropped() {
    assert!(driven(40, &done(30, 1, 10), false).invalid.unwrap().contains("1 GETs found no value"));
    assert_eq!(driven(40, &done(30, 1, 10), true).invalid, None);
}

#[test]
fn requests_that_were_late_are_counted_and_too_many_failures_are_no_figures() {
    let open = DriveResult { lateness: histogram(2_000_000, 3), ..result(400) };
    assert_eq!(yields(open, &done(1, 0, 0), 4, false).measurement.counts["sent more than 1 ms late"], 12);
    let closed = yields(result(400), &done(1, 0, 0), 4, false);
    assert!(!closed.measurement.counts.contains_key("sent more than 1 ms late"));
    let failing = |count| DriveResult { errors: vec![("OOM".into(), count)], ..result(1000) };
    assert_eq!(yields(failing(10), &done(1, 0, 0), 1, false).invalid, None);
    let why = yields(failing(11), &done(1, 0, 0), 1, false).invalid.unwrap();
    assert!(why.contains("11 failed") && why.contains("OOM"), "{why}");
    let why = yields(DriveResult { operations: 0, ..failing(3) }, &done(0, 0, 0), 1, false).invalid.unwrap();
    assert!(why.contains("no request was answered") && why.contains("OOM"), "{why}");
}
