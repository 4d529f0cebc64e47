#![allow(clippy::unwrap_used, clippy::expect_used)]

use serde_json::json;
use tare_model::load::Arrivals;
use tare_model::units::Rate;

use super::*;

#[test]
fn the_defaults_are_those_of_the_published_study() {
    let read = checked(&json!({})).unwrap();
    assert_eq!((read.pool, read.threads, read.java.stack), (50, 200, ByteSize(192 << 10)));
    assert_eq!((read.heap_bytes(1), read.heap_bytes(2)), (1536 << 20, 2048 << 20));
    assert_eq!(read.cycle.cycle(), Cycle::default());
    assert_eq!((read.revalidating, read.attend), (0.6, 0.1));
    let normal = serde_json::to_value(&read).unwrap();
    assert_eq!((normal["java"]["large-pages"].as_str(), normal["postgres"].as_str()), (Some("auto"), Some("embedded")));
    assert_eq!(normal["cycle"]["mean"], "5s");
    assert_eq!(checked(&normal).unwrap(), read);
}

#[test]
fn what_cannot_be_is_refused_by_its_field() {
    for (parameters, path) in [
        (json!({"java": {"heap": "16MiB"}}), vec!["java", "heap"]),
        (json!({"java": {"heap": 1536}}), vec!["java", "heap"]),
        (json!({"java": {"stack": "64KiB"}}), vec!["java", "stack"]),
        (json!({"java": {"collector": "zgc"}}), vec!["java", "collector"]),
        (json!({"java": {"large-pages": true}}), vec!["java", "large-pages"]),
        (json!({"java": {"flags": ["-ea", "-Xmx1g"]}}), vec!["java", "flags", "1"]),
        (json!({"java": {"flags": ["-Xss1m"]}}), vec!["java", "flags", "0"]),
        (json!({"java": {"flags": ["-XX:-UseLargePages"]}}), vec!["java", "flags", "0"]),
        (json!({"java": {"flags": ["-jar"]}}), vec!["java", "flags", "0"]),
        (json!({"java": {"flags": ["-Djava.io.tmpdir=/tmp"]}}), vec!["java", "flags", "0"]),
        (json!({"java": {"flags": ["Main"]}}), vec!["java", "flags", "0"]),
        (json!({"pool": 0}), vec!["pool"]),
        (json!({"threads": 6000}), vec!["threads"]),
        (json!({"connections": 0}), vec!["connections"]),
        (json!({"scale-users": 0}), vec!["scale-users"]),
        (json!({"scale-users": 200_000}), vec!["scale-users"]),
        (json!({"driver-threads": 100}), vec!["driver-threads"]),
        (json!({"home-ttl": "1500ms"}), vec!["home-ttl"]),
        (json!({"object-ttl": "2days"}), vec!["object-ttl"]),
        (json!({"timeout": "1ms"}), vec!["timeout"]),
        (json!({"file-delay": "1m"}), vec!["file-delay"]),
        (json!({"cycle": {"mean": "0s"}}), vec!["cycle", "mean"]),
        (json!({"cycle": {"mean": "5s", "most": "4s"}}), vec!["cycle", "most"]),
        (json!({"revalidating": 1.1}), vec!["revalidating"]),
        (json!({"attend": -0.1}), vec!["attend"]),
        (json!({"errors-max": 2}), vec!["errors-max"]),
        (json!({"postgres": "usr/bin"}), vec!["postgres"]),
        (json!({"settings": {"port": 1}}), vec!["settings", "port"]),
        (json!({"settings": {"max_connections": 10}}), vec!["settings", "max_connections"]),
    ] {
        let error = checked(&parameters).expect_err(&parameters.to_string());
        assert_eq!(error.path, path, "{parameters}: {error}");
    }
    let flags = json!({"java": {"flags": ["-XX:MaxMetaspaceSize=128m", "-Dx=y"], "collector": "serial"}});
    checked(&flags).unwrap();
}

#[test]
fn a_load_is_users_who_keep_their_own_times() {
    let closed = |clients, think_time| LoadModel::Closed { clients, think_time };
    assert_eq!(users(&closed(7, Span::ZERO)), Ok(7));
    let open = LoadModel::Open { rate: Rate(10.0), arrivals: Arrivals::Poisson, connections: 70 };
    for (load, path) in [
        (closed(0, Span::ZERO), vec!["load", "closed", "clients"]),
        (closed(7, Span::from_secs(1)), vec!["load", "closed", "think-time"]),
        (open, vec!["load", "open"]),
    ] {
        assert_eq!(users(&load).unwrap_err().path, path, "{load:?}");
    }
}

#[test]
fn data_are_made_for_the_users_of_one_instance() {
    let plain = Parameters::default();
    assert_eq!(plain.scale(100, 1), Scale::of(100));
    assert_eq!(plain.scale(301, 3), Scale::of(101), "one of them has a user more");
    let fixed = Parameters { scale_users: Some(200), ..Parameters::default() };
    assert_eq!(fixed.scale(25, 1), Scale::of(200));
}

#[test]
fn users_in_haste_are_so_after_every_operation() {
    let read = checked(&json!({"cycle": {"mean": "500ms", "most": "2500ms"}})).unwrap();
    let cycle = read.cycle.cycle();
    assert_eq!((cycle.mean_ns, cycle.add_person_ns, cycle.add_event_ns), (500_000_000, 200_000_000, 300_000_000));
    let slow = checked(&json!({"cycle": {"mean": "10s"}})).unwrap().cycle.cycle();
    assert_eq!(slow.add_event_ns, 3_000_000_000);
}
