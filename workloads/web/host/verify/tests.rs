#![allow(clippy::unwrap_used, clippy::expect_used)]

use serde_json::json;
use tare_model::Histogram;

use super::*;
use crate::web::compile::{compile, file_set};
use crate::web::parameters::checked;
use crate::web::tables::Site;
use crate::yields::tests::histogram;

fn banking() -> (Parameters, SiteModel) {
    let (parameters, tables) = checked(Site::Banking, &json!({})).unwrap();
    let model = compile(&tables, file_set(&tables.files, None, 1));
    (parameters, model)
}

/// Requests of all types in their target shares, so many in all, of which so many of the first type were wrong.
fn done(model: &SiteModel, requests: u64, errors: u64) -> WebDone {
    let share = |index: usize| -> f64 {
        let of_type = model.states.iter().filter(|state| usize::from(state.counted_as) == index);
        of_type.filter_map(|state| state.target).sum()
    };
    let types = model.types.iter().enumerate().map(|(index, name)| RequestType {
        name: name.clone(),
        requests: (share(index) * requests as f64).round() as u64,
        validation_errors: if index == 0 { errors } else { 0 },
        target: Some(share(index)),
        ..RequestType::default()
    });
    let faults = vec![("timeout".to_owned(), 1), ("proof".to_owned(), errors)];
    WebDone { types: types.collect(), faults, ..WebDone::default() }
}

fn backend(requests: u64, service_ns: u64, cpu_s: f64) -> ServeReport {
    ServeReport {
        requests,
        service: histogram(service_ns, requests),
        cpu_ns: (cpu_s * 1e9) as u64,
        ..ServeReport::default()
    }
}

#[test]
fn what_is_right_is_believed_and_each_kind_of_wrong_is_reported_with_its_figures() {
    let (parameters, model) = banking();
    let right = done(&model, 10_000, 50);
    let served = Stats { pages: 9000, ..Stats::default() };
    let seen = backend(9000, 1000, 0.1);
    assert_eq!(wrong(&parameters, &model, &right, Some(&served), seen.requests), None, "half a percent is allowed");
    assert_eq!(wrong(&parameters, &model, &right, None, seen.requests), None, "a server of the user's own");
    let more = wrong(&parameters, &model, &done(&model, 10_000, 51), Some(&served), seen.requests).unwrap();
    assert!(more.starts_with("51 of 10000 requests (0.51 %)") && more.contains("proof: 51, timeout: 1"), "{more}");
    let none = wrong(&parameters, &model, &done(&model, 0, 0), Some(&served), seen.requests).unwrap();
    assert!(none.contains("no page"), "{none}");
    let few = wrong(&parameters, &model, &right, Some(&served), backend(8000, 1000, 0.1).requests).unwrap();
    assert!(few.contains("8000 requests") && few.contains("not asked of it anew"), "{few}");
    let fewer = wrong(&parameters, &model, &right, Some(&Stats { pages: 8000, ..served }), seen.requests).unwrap();
    assert!(fewer.contains("counts 8000 pages"), "{fewer}");
}

#[test]
fn images_of_checks_are_no_pages() {
    let (_, model) = banking();
    let all = done(&model, 10_000, 10);
    let images = all.types.iter().find(|one| one.name == "check_image").unwrap().requests;
    let requests = total(&all.types).requests;
    assert_eq!(right_pages(&model, &all.types), requests - images - 10);
}

fn kinds(parameters: &Parameters, model: &SiteModel, done: &WebDone, seen: &ServeReport) -> Vec<String> {
    flags(parameters, model, done, Some(seen), 10.0).into_iter().map(|flag| flag.kind).collect()
}

#[test]
fn a_mix_that_is_off_too_few_requests_and_a_slow_backend_are_flagged() {
    let (mut parameters, model) = banking();
    let quick = backend(100_000, 1_000_000, 1.0);
    let many = done(&model, 100_000, 0);
    assert_eq!(kinds(&parameters, &model, &many, &quick), Vec::<String>::new());
    assert_eq!(kinds(&parameters, &model, &done(&model, 1000, 1), &quick), ["validation-errors", "few-requests"]);

    let mut off = many.clone();
    off.types[0].requests += 2000;
    let found = flags(&parameters, &model, &off, Some(&quick), 10.0);
    assert!(found[0].kind == "mix" && found[0].detail.contains("were login, the target is 21.53 %"), "{found:?}");
    off.types[0].requests -= 1000;
    assert!(kinds(&parameters, &model, &off, &quick).is_empty(), "within a point and what chance does");

    let slow = backend(100_000, 25_000_000, 1.0);
    let found = flags(&parameters, &model, &many, Some(&slow), 10.0);
    assert!(found[0].kind == "backend-limit" && found[0].detail.contains("more than 20.0 ms"), "{found:?}");
    parameters.backend_delay = tare_model::Span::from_millis(20);
    assert!(kinds(&parameters, &model, &many, &slow).is_empty(), "20 of its 25 ms were asked for");
    let busy = flags(&parameters, &model, &many, Some(&backend(100_000, 1000, 8.0)), 10.0);
    assert!(busy[0].detail.contains("80 % of a CPU"), "{busy:?}");
    assert!(kinds(&parameters, &model, &many, &ServeReport { service: Histogram::default(), ..quick }).is_empty());
}

#[test]
fn the_servers_counts_are_read_as_it_tells_them() {
    let text = br#"{"requests": 9, "pages": 3, "files": 5, "not_modified": 1, "backend_seconds": 0.5, "backend_p99_seconds": null, "other": 1}"#;
    let stats: Stats = serde_json::from_slice(text).unwrap();
    assert_eq!((stats.pages, stats.files, stats.backend_p99_seconds), (3, 5, None));
}
