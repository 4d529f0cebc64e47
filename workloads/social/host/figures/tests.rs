#![allow(clippy::unwrap_used)]

use crate::social::spec::{InstanceDone, SocialDone};

use super::*;
use crate::yields::tests::{histogram, result};

/// So many operations of a kind that all took so many milliseconds, of which some failed.
fn kind(operation: Operation, requests: u64, ms: u64, errors: u64) -> RequestType {
    RequestType {
        name: operation.name().to_owned(),
        requests,
        good: requests - errors,
        tolerable: 0,
        failed: errors,
        validation_errors: errors,
        bytes: requests * 1000,
        response_s: requests as f64 * ms as f64 / 1e3,
        target: Some(stationary()[operation as usize]),
        times: histogram(ms * 1_000_000, requests),
    }
}

/// An instance of `users` with so many operations of each kind, home in 100 ms, all others in 200 ms.
fn instance(users: u32, each: u64) -> InstanceDone {
    let ms = |operation| if operation == Operation::Home { 100 } else { 200 };
    InstanceDone {
        users,
        operations: Operation::ALL.map(|operation| kind(operation, each, ms(operation), 0)).to_vec(),
        cycles: (7 * each, 35.0, 38.5),
        requests: 10 * each,
        not_modified: 4 * each,
        ..InstanceDone::default()
    }
}

fn driver(instances: Vec<InstanceDone>) -> (DriveResult, SocialDone) {
    let all: u64 = instances.iter().map(|one| total(&one.operations).requests).sum();
    let social = SocialDone { instances, faults: vec![("marker".into(), 1)], ..SocialDone::default() };
    (DriveResult { response: histogram(150_000_000, all), ..result(all) }, social)
}

fn close(actual: Option<&f64>, value: f64) {
    let actual = actual.copied().unwrap_or(f64::NAN);
    assert!((actual - value).abs() < 2e-3 * value.abs().max(1e-3), "{actual}, not {value}");
}

#[test]
fn the_primary_metric_is_the_mean_of_percentiles_by_their_frequency() {
    let home = stationary()[Operation::Home as usize];
    let types = instance(1, 100).operations;
    let p90 = weighted_p90(&types);
    close(p90.seconds.as_ref(), home * 0.1 + (1.0 - home) * 0.2);
    assert!(p90.left_out.is_empty());
}

#[test]
fn rare_operations_are_left_out_and_listed_and_common_ones_are_required() {
    let mut types = instance(1, 100).operations;
    let add = Operation::AddPerson as usize;
    types[add] = kind(Operation::AddPerson, LEAST - 1, 10_000, 0);
    let p90 = weighted_p90(&types);
    assert_eq!((p90.left_out.as_slice(), p90.operations), (&["add_person"][..], LEAST - 1));
    let (home, rare) = (stationary()[0], stationary()[add]);
    close(p90.seconds.as_ref(), (home * 0.1 + (1.0 - home - rare) * 0.2) / (1.0 - rare));
    types.remove(Operation::Home as usize);
    assert_eq!(weighted_p90(&types).seconds, None, "a quarter of all operations is missing");
    let (driven, _) = of_guest(vec![driver(vec![InstanceDone { operations: types, ..instance(1, 1) }])]).unwrap();
    assert!(driven.invalid.unwrap().contains("home, add_person"));
}

#[test]
fn figures_of_a_guest_are_those_of_its_instances_together() {
    // Two drivers, each with users in both instances; a window of one second.
    let drivers = vec![driver(vec![instance(4, 50), instance(3, 50)]), driver(vec![instance(4, 50), instance(3, 50)])];
    let (mut driven, done) = of_guest(drivers).unwrap();
    assert_eq!((done.instances[0].users, done.instances[1].users), (8, 6));
    add_resident(&mut driven, &[Some(300 << 20), Some(500 << 20)]);
    let metrics = &driven.measurement.metrics;
    close(metrics.get("operations_per_s"), 1400.0);
    close(metrics.get("users_over_rate_s"), 0.01);
    close(metrics.get("cycle_ratio"), 1.1);
    close(metrics.get("not_modified_share"), 0.4);
    close(metrics.get("bytes_per_operation"), 1000.0);
    close(metrics.get("p90_home_s"), 0.1);
    close(metrics.get("p90_add_event_s"), 0.2);
    close(metrics.get("response_time_p99_s"), 0.15);
    close(metrics.get(common::INSTANCE_MEMORY), 400.0 * f64::from(1 << 20));
    assert!((driven.work - 1400.0).abs() < 1e-9);
    let declared: Vec<String> = specs().into_iter().map(|spec| spec.id).collect();
    assert!(metrics.keys().all(|id| declared.contains(id)), "{metrics:?}");
    let parts = &driven.measurement.parts;
    assert_eq!(parts.iter().map(|part| part.instance).collect::<Vec<_>>(), [Some(1), Some(2)]);
    close(parts[1].metrics.get("operations_per_s"), 700.0);
    close(parts[1].metrics.get(common::INSTANCE_MEMORY), f64::from(500 << 20));
    assert_eq!(driven.measurement.counts["fault: marker"], 2);
}

#[test]
fn each_instance_counts_alike_in_the_mean_over_instances() {
    let part = |instance, p90: Option<f64>| Part {
        guest: 1,
        driver: None,
        instance: Some(instance),
        metrics: p90.map(|p90| (RESPONSE_P90.to_owned(), p90)).into_iter().collect(),
    };
    let of = |parts| over_instances(&Measurement { parts, ..Measurement::default() });
    close(of(vec![part(1, Some(0.1)), part(2, Some(0.3))]).as_ref(), 0.2);
    assert_eq!(of(vec![part(1, Some(0.1)), part(2, None)]), None, "an instance without one is not left out");
    let one = combine(vec![of_guest(vec![driver(vec![instance(4, 100)])]).unwrap().0]).unwrap().measurement.metrics;
    assert_eq!(one.get(RESPONSE_P90_INSTANCES), one.get(RESPONSE_P90));
}

#[test]
fn guests_are_put_together_from_what_their_figures_are_made_of() {
    let guest = |instances| of_guest(vec![driver(instances)]).unwrap().0;
    let one = combine(vec![guest(vec![instance(4, 100)])]).unwrap();
    assert!(one.measurement.parts.is_empty(), "one instance is the whole");
    let two = combine(vec![guest(vec![instance(4, 100), instance(4, 100)])]).unwrap();
    assert_eq!(two.measurement.parts.len(), 2);
    let both = combine(vec![guest(vec![instance(4, 100)]), guest(vec![instance(2, 60)])]).unwrap();
    close(both.measurement.metrics.get("operations_per_s"), 1120.0);
    close(both.measurement.metrics.get("users_over_rate_s"), 6.0 / 1120.0);
    let ids: Vec<(u32, Option<u32>)> = both.measurement.parts.iter().map(|part| (part.guest, part.instance)).collect();
    assert_eq!(ids, [(1, None), (1, Some(1)), (2, None), (2, Some(1))]);
}

#[test]
fn what_failed_is_no_operation_and_nothing_right_is_no_trial() {
    let mut failing = instance(4, 100);
    failing.operations[0] = kind(Operation::Home, 100, 100, 40);
    let (driven, _) = of_guest(vec![driver(vec![failing])]).unwrap();
    close(driven.measurement.metrics.get("operations_per_s"), 660.0);
    close(driven.measurement.metrics.get("failed_share"), 40.0 / 700.0);
    let (none, _) = of_guest(vec![driver(vec![InstanceDone::default()])]).unwrap();
    assert!(none.invalid.unwrap().contains("no operation"));
}
