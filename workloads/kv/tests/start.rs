//! How servers are started, and when they hold what was set.
use serde_json::json;

use super::super::parameters::checked;
use super::*;

fn words(parameters: serde_json::Value, as_agent: bool) -> Vec<String> {
    argv(&checked(&parameters).unwrap(), "198.18.0.2:6379".parse().unwrap(), 67, 2, as_agent)
}

#[test]
fn servers_listen_on_one_address_keep_nothing_and_have_their_memory() {
    let redis = words(json!({"memory": "32MiB"}), false);
    let option = |name: &str| redis[redis.iter().position(|word| word == name).unwrap() + 1].as_str();
    assert_eq!((option("--bind"), option("--maxmemory")), ("198.18.0.2", "33554432"));
    assert_eq!((option("--maxmemory-policy"), option("--save"), option("--appendonly")), ("noeviction", "", "no"));
    assert!(words(json!({"eviction": true}), false).contains(&"allkeys-lru".to_owned()));
    let memcached = words(json!({"server": "memcached", "memory": "32MiB"}), false).join(" ");
    assert_eq!(memcached, "/usr/bin/memcached -l 198.18.0.2 -p 6379 -U 0 -m 32 -c 67 -t 2 -M");
    let memcached = words(json!({"server": "memcached", "eviction": true}), true).join(" ");
    assert!(memcached.ends_with("-t 2 -u root"), "{memcached}");
}

#[test]
fn a_server_without_all_that_was_set_is_refused_unless_it_may_drop_keys() {
    let of = |eviction| checked(&json!({"keys": 10, "eviction": eviction})).unwrap();
    let found = |sound, missing, wrong| KvFound { sound, missing, wrong, first_wrong: "key 3".into() };
    assert_eq!(unfilled(&found(10, 0, 0), 10, &of(false)), None);
    assert!(unfilled(&found(9, 1, 0), 9, &of(false)).unwrap().contains("1 had none"));
    assert!(unfilled(&found(10, 0, 0), 11, &of(false)).unwrap().contains("counts 11"));
    assert_eq!(unfilled(&found(9, 1, 0), 9, &of(true)), None);
    assert!(unfilled(&found(9, 0, 1), 10, &of(true)).unwrap().contains("key 3"));
}
