//! What makes the figures of a guest invalid.
use super::*;
use crate::operations::{VerdictOn, combine};
use crate::yields::tests::{histogram, result};

const NAMES: [&str; 3] = ["GET /", "POST /items", "GET /"];

fn of(result: DriveResult, done: &HttpDone) -> Driven {
    yields(result, done, NAMES.into_iter())
}

#[test]
fn requests_are_counted_by_name_and_guests_are_added() {
    let done = HttpDone { answered: vec![1, 20, 300], ..HttpDone::default() };
    let one = || of(DriveResult { response: histogram(1_000_000, 321), ..result(321) }, &done);
    let two = combine(vec![one(), one()], VerdictOn::P50, |_, _| {}).unwrap();
    let counts = &two.measurement.counts;
    assert_eq!((counts["answered: GET /"], counts["answered: POST /items"]), (602, 40));
    assert_eq!((two.measurement.metrics["operations_per_s"], two.invalid), (642.0, None));
}

#[test]
fn one_wrong_answer_makes_figures_invalid_and_so_do_many_failures() {
    let wrong = HttpDone { wrong: 1, first_wrong: "GET /: status 404".into(), ..HttpDone::default() };
    assert_eq!(of(result(1_000), &wrong).invalid.unwrap(), "1 answers were wrong; the first: GET /: status 404");
    let busy = |count| DriveResult { errors: vec![("status 503".into(), count)], ..result(1_000) };
    let refused = HttpDone { refused: 10, ..HttpDone::default() };
    assert_eq!(of(busy(10), &refused).invalid, None);
    assert!(of(busy(11), &refused).invalid.unwrap().contains("11 failed"));
}
