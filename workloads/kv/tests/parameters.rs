//! Parameters: defaults, what is refused, and what fits.
use serde_json::json;
use tare_model::Span;
use tare_model::load::LoadModel;

use super::*;

#[test]
fn what_cannot_be_is_refused_by_its_field() {
    for (parameters, field) in [
        (json!({"memory": "7MiB", "keys": 1}), "memory"),
        (json!({"memory": "9000001B", "keys": 1}), "memory"),
        (json!({"memory": "8MiB"}), "memory"),
        (json!({"keys": 0}), "keys"),
        (json!({"keys": 2_000_000_000, "eviction": true}), "keys"),
        (json!({"key-size": "13B"}), "key-size"),
        (json!({"key-size": "251B"}), "key-size"),
        (json!({"value-size": "15B"}), "value-size"),
        (json!({"value-size": "1MiB", "keys": 1}), "value-size"),
        (json!({"value-size-max": "99B"}), "value-size-max"),
        (json!({"gets": -1}), "gets"),
        (json!({"popularity": {"zipf": {"exponent": 0}}}), "popularity"),
        (json!({"depth": 0}), "depth"),
        (json!({"depth": 4097}), "depth"),
        (json!({"depth": 4096, "value-size": "4KiB", "keys": 10}), "depth"),
        (json!({"threads": 0}), "threads"),
        (json!({"program": "redis-server"}), "program"),
        (json!({"server": "dbm"}), "server"),
        (json!({"verdict": "p42"}), "verdict"),
    ] {
        let error = checked(&parameters).unwrap_err();
        assert_eq!(error.path.first().map(String::as_str), Some(field), "{parameters}: {error}");
    }
}

#[test]
fn all_that_is_wrong_is_named_at_once() {
    let error = checked(&json!({"keys": 0, "gets": 101, "depth": 5000, "program": "x"})).unwrap_err();
    assert_eq!(error.path, ["keys"]);
    for words in ["`gets`: 101", "`depth`: 5000", "`program`: `x`"] {
        assert!(error.message.contains(words), "{words}: {error}");
    }
}

#[test]
fn defaults_follow_server_guest_and_load() {
    let redis = checked(&json!({})).unwrap();
    let memcached = checked(&json!({"server": "memcached", "value-size-max": "200B"})).unwrap();
    let guest = GuestSize { cpus: 3, memory: ByteSize(128 << 20) };
    assert_eq!((redis.program(), redis.threads_in(&guest)), ("/usr/bin/redis-server", 1));
    assert_eq!((memcached.program(), memcached.threads_in(&guest)), ("/usr/bin/memcached", 3));
    let keys = memcached.keys();
    assert_eq!((keys.count, keys.key_bytes, keys.value_bytes), (100_000, 24, (100, 200)));
    let closed = LoadModel::Closed { clients: 1, think_time: Span::ZERO };
    let open = LoadModel::Open { rate: tare_model::units::Rate(1.0), arrivals: Default::default(), connections: 1 };
    let verdicts =
        |parameters: &Parameters| [&closed, &open].map(|load| VerdictOn::under(load, parameters.verdict).metric());
    assert_eq!(verdicts(&redis), ["operations_per_s", "response_time_p50_s"]);
    assert_eq!(verdicts(&checked(&json!({"verdict": "p99"})).unwrap()), ["response_time_p99_s"; 2]);
}

#[test]
fn a_guest_has_room_for_the_server_and_what_is_beside_it() {
    let parameters = checked(&json!({})).unwrap();
    let guest = |mib: u64| GuestSize { cpus: 1, memory: ByteSize(mib << 20) };
    parameters.fit(&guest(128)).unwrap();
    let error = parameters.fit(&guest(127)).unwrap_err();
    assert!(error.message.contains("128 MiB") && error.message.contains("127 MiB"), "{error}");
}
