//! What is counted, and how it is judged.

use super::*;
use crate::session::engine::Ended;
use crate::session::fault::{Fault, UNFINISHED};

fn done(response_ns: u64, bytes: u64) -> Ended {
    Ended { response_ns, bytes, fault: None, cut: false }
}

#[test]
fn pages_are_judged_by_their_time_and_downloads_by_their_rate() {
    let site = Site::compile(&drive(all_kinds())).unwrap();
    let mut tally = Tally::new(&site);
    for ns in [0, 2 * SECOND, 2 * SECOND + 1, 4 * SECOND, 4 * SECOND + 1] {
        tally.record(&site, 0, &done(ns, 1_000), true);
    }
    // A download of 10 s.
    for bytes in [990_000, 989_999, 950_000, 949_999] {
        tally.record(&site, 5, &done(10 * SECOND, bytes), true);
    }
    tally.record(&site, 5, &Ended { fault: Some(Fault::Kind("marker")), ..done(1, 1_000_000) }, true);
    let (types, faults) = Tally::merge(&site, vec![tally]);
    let [page, download] = &types[..] else { panic!("{types:?}") };
    assert_eq!((page.requests, page.good, page.tolerable, page.failed, page.validation_errors), (5, 2, 2, 1, 0));
    assert_eq!((page.bytes, page.times.count(), page.times.max), (5_000, 5, 4 * SECOND + 1));
    assert!((page.response_s - 12.000_000_002).abs() < 1e-9, "{}", page.response_s);
    assert_eq!((download.requests, download.good, download.tolerable, download.failed), (5, 1, 2, 2));
    assert_eq!(download.validation_errors, 1);
    assert_eq!(faults, [("marker".to_owned(), 1)]);
}

#[test]
fn outside_the_window_only_faults_are_counted() {
    let site = Site::compile(&drive(all_kinds())).unwrap();
    let mut tally = Tally::new(&site);
    tally.record(&site, 0, &done(1, 1), false);
    tally.record(&site, 0, &Ended { fault: Some(Fault::Status(500)), ..done(1, 1) }, false);
    let (types, faults) = Tally::merge(&site, vec![tally]);
    assert!(types.iter().all(|kind| kind.requests == 0 && kind.times.is_empty()));
    assert_eq!(faults, [("status 500".to_owned(), 1)]);
}

#[test]
fn threads_add_up_and_targets_of_a_type_do_too() {
    let mut model = all_kinds();
    model.states[0].target = Some(0.5);
    model.states[4].target = Some(0.25);
    let site = Site::compile(&drive(model)).unwrap();
    let tallies = (1..=3u64).map(|thread| {
        let mut tally = Tally::new(&site);
        for n in 0..100 {
            let fault = (n % 50 == 0).then_some(Fault::Kind("timeout"));
            tally.record(&site, 4, &Ended { fault, ..done(thread * SECOND, 7) }, true);
        }
        tally
    });
    let (types, faults) = Tally::merge(&site, tallies);
    assert_eq!((types[0].name.as_str(), types[0].target), ("page", Some(0.75)));
    assert_eq!((types[1].name.as_str(), types[1].target), ("download", None));
    // The third thread's took 3 s each.
    assert_eq!((types[0].requests, types[0].good, types[0].tolerable, types[0].failed), (300, 196, 98, 6));
    assert_eq!((types[0].bytes, types[0].times.count(), types[0].times.given_up), (2_100, 294, 6));
    assert!((types[0].response_s - 600.0).abs() < 1e-6);
    assert_eq!(faults, [("timeout".to_owned(), 6)]);
}

#[test]
fn a_wrong_answer_that_comes_soon_does_not_make_the_mean_shorter() {
    let site = Site::compile(&drive(all_kinds())).unwrap();
    let mut tally = Tally::new(&site);
    for _ in 0..3 {
        tally.record(&site, 0, &done(SECOND, 1), true);
    }
    tally.record(&site, 0, &Ended { fault: Some(Fault::Status(500)), ..done(1_000, 1) }, true);
    let (types, _) = Tally::merge(&site, vec![tally]);
    let page = &types[0];
    assert_eq!((page.requests, page.failed, page.validation_errors, page.times.count()), (4, 1, 1, 3));
    assert!((page.response_s / page.requests as f64 - 1.0).abs() < 1e-9, "{}", page.response_s);
}

#[test]
fn what_was_due_in_the_window_and_failed_after_it_is_counted() {
    let site = Site::compile(&drive(all_kinds())).unwrap();
    let mut tally = Tally::new(&site);
    tally.record_late(&site, 0, &done(SECOND, 1));
    tally.record_late(&site, 0, &Ended { cut: true, ..done(5 * SECOND, 1) });
    // Of a download that is under way nobody knows how fast it will have been, unless nothing comes any more.
    tally.record_late(&site, 5, &Ended { cut: true, ..done(10 * SECOND, 1) });
    tally.record_late(&site, 5, &Ended { fault: Some(UNFINISHED), cut: true, ..done(10 * SECOND, 1) });
    let (types, faults) = Tally::merge(&site, vec![tally]);
    assert_eq!((types[0].requests, types[0].failed, types[0].validation_errors), (1, 1, 0));
    assert_eq!((types[1].requests, types[1].failed), (1, 1));
    assert_eq!(faults, [("unfinished".to_owned(), 1)]);
}
