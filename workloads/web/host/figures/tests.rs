#![allow(clippy::unwrap_used)]

use tare_model::trial::RequestType;

use super::*;
use crate::yields::tests::{histogram, result};

fn one(name: &str, requests: u64, errors: u64) -> RequestType {
    RequestType {
        name: name.to_owned(),
        requests,
        good: requests - errors - 10,
        tolerable: 10,
        failed: errors,
        validation_errors: errors,
        bytes: requests * 1000,
        response_s: requests as f64 * 0.5,
        target: Some(0.5),
        times: histogram(500_000_000, requests),
    }
}

/// A driver that saw so many requests of two types in one second.
fn driver(requests: u64) -> (DriveResult, WebDone) {
    let web = WebDone {
        types: vec![one("home", requests, 0), one("search", requests, 2)],
        exchanges: 10 * requests,
        not_modified: 4 * requests,
        faults: vec![("proof".to_owned(), 2)],
        sessions_most: 7,
        handshakes_full: 3,
        ..WebDone::default()
    };
    let response = histogram(500_000_000, 2 * requests);
    (DriveResult { bytes_from_guest: 3000, response, ..result(2 * requests) }, web)
}

fn guest(requests: u64) -> Driven {
    let (mut driven, _) = of_guest(vec![driver(requests)], 8).unwrap();
    let seen = ServeReport {
        requests: 2 * requests,
        service: histogram(1_000_000, 2 * requests),
        cpu_ns: 200_000_000,
        ..ServeReport::default()
    };
    add_backend(&mut driven, &seen, 2.0);
    driven
}

fn close(driven: &Driven, metric: &str, value: f64) {
    let actual = driven.measurement.metrics.get(metric).copied().unwrap_or(f64::NAN);
    assert!((actual - value).abs() < 1e-9 * value.abs().max(1.0), "{metric}: {actual}, not {value}");
}

#[test]
fn figures_of_a_guest_are_made_of_its_request_types() {
    let driven = guest(1000);
    close(&driven, "response_time_mean_s", 0.5);
    close(&driven, "good_share", 1978.0 / 2000.0);
    close(&driven, "tolerable_share", 1998.0 / 2000.0);
    close(&driven, "pages_per_s", 2000.0);
    close(&driven, "goodput_pages_per_s", 1998.0);
    close(&driven, "bits_per_s", 24_000.0);
    close(&driven, "bytes_per_request", 1000.0);
    close(&driven, "validation_error_share", 0.001);
    close(&driven, "backend_cpu_share", 0.1);
    close(&driven, "not_modified_share", 0.4);
    close(&driven, "sessions", 8.0);
    assert!((driven.work - 2000.0).abs() < 1e-9);
    assert_eq!(driven.measurement.counts["fault: proof"], 2);
    assert_eq!(driven.facts["TLS handshakes in full, all phases"], "3");
    let declared: Vec<String> = specs().into_iter().map(|spec| spec.id).collect();
    let reported: Vec<&String> = driven.measurement.metrics.keys().collect();
    assert!(reported.iter().all(|id| declared.contains(id)), "{reported:?}");
    assert_eq!(reported.len(), declared.len(), "{reported:?}");
}

#[test]
fn drivers_of_a_guest_are_one_and_guests_add_up() {
    let (both, done) = of_guest(vec![driver(1000), driver(3000)], 16).unwrap();
    close(&both, "pages_per_s", 8000.0);
    assert_eq!((done.types.len(), done.types[0].requests, done.types[0].times.count()), (2, 4000, 4000));
    assert_eq!((done.sessions_most, done.handshakes_full, done.faults[0].1), (14, 6, 4));

    let all = combine(vec![guest(1000), guest(3000)]).unwrap();
    close(&all, "pages_per_s", 8000.0);
    close(&all, "sessions", 16.0);
    close(&all, "good_share", (978.0 + 4978.0 + 2000.0) / 8000.0 + 0.0);
    close(&all, "backend_cpu_share", 0.2);
    assert_eq!(all.measurement.requests.iter().map(|one| one.requests).collect::<Vec<_>>(), [4000, 4000]);
    let parts: Vec<(u32, f64)> =
        all.measurement.parts.iter().map(|part| (part.guest, part.metrics["pages_per_s"])).collect();
    assert_eq!(parts, [(1, 2000.0), (2, 6000.0)]);
    assert!(combine(vec![guest(1000)]).unwrap().measurement.parts.is_empty());
    assert_eq!(combine(Vec::new()), None);
}

#[test]
fn a_guest_without_a_request_is_invalid_and_one_without_web_figures_is_none() {
    let idle = (result(0), WebDone::default());
    let (driven, _) = of_guest(vec![idle], 1).unwrap();
    assert!(driven.invalid.unwrap().contains("no page"));
    assert_eq!(of_guest(Vec::new(), 1), None);
}

#[test]
fn guests_that_have_their_turns_together_have_their_rates_over_the_time_of_one() {
    use tare_model::turns::{TurnCount, TurnsDone};
    let count = |operations| TurnCount { operations, measured_ns: 250_000_000, ..TurnCount::default() };
    let of = |requests: u64| {
        let turns =
            TurnsDone { measured_ns: 500_000_000, counts: vec![count(requests); 2], overran: 1, began_ns: Vec::new() };
        let (result, web) = driver(requests);
        of_guest(vec![(DriveResult { turns: Some(turns), ..result }, web)], 8).unwrap().0
    };
    let all = combine(vec![of(100), of(300), of(200)]).unwrap();
    close(&all, "pages_per_s", 1200.0 / 0.5);
    let turns = all.turns.unwrap();
    assert_eq!((turns.counts[0].operations, turns.measured_ns, turns.overran), (600, 500_000_000, 1));
}
