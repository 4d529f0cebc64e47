//! What servers count, held against what drivers saw.
use super::super::spec::Counts;
use super::*;

fn server(pairs: &[(&str, &str)]) -> Server {
    Server::of(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

#[test]
fn counters_are_read_by_each_servers_names_and_an_absent_one_is_nothing() {
    let redis = server(&[
        ("cmdstat_get", "calls=7,usec=20,usec_per_call=2.8"),
        ("cmdstat_set", "calls=5,usec=1"),
        ("keyspace_misses", "2"),
        ("evicted_keys", "1"),
        ("db0", "keys=4,expires=0,avg_ttl=0"),
        ("redis_version", "7.0.15"),
        ("setting maxmemory-policy", "noeviction"),
    ]);
    let expected = Served { gets: 7, misses: 2, sets: 5, evictions: 1, items: 4 };
    assert_eq!(redis.served(Protocol::Redis), expected);
    let memcached = server(&[
        ("cmd_get", "7"),
        ("get_misses", "2"),
        ("cmd_set", "5"),
        ("evictions", "1"),
        ("setting evictions", "off"),
        ("curr_items", "4"),
    ]);
    assert_eq!(memcached.served(Protocol::Memcached), expected);
    assert_eq!(server(&[]).served(Protocol::Redis), Served::default());
    let facts: BTreeMap<String, String> = redis.facts(Protocol::Redis).collect();
    assert_eq!(facts["server version"], "7.0.15");
    assert_eq!((facts["server maxmemory-policy"].as_str(), facts.len()), ("noeviction", 2));
}

#[test]
fn what_the_server_counts_is_what_was_answered_and_at_most_what_is_in_doubt_beside() {
    let before = Served { gets: 100, misses: 1, sets: 50, evictions: 0, items: 50 };
    let done = KvDone {
        all: Counts { gets: 30, misses: 0, sets: 10, ..Counts::default() },
        in_doubt: (2, 1),
        refused: 1,
        ..KvDone::default()
    };
    let after = Served { gets: 130, misses: 1, sets: 60, ..before };
    let check = |after: Served, eviction| disagreement(&before, &done, &after, eviction);
    assert_eq!(check(after, false), None);
    assert_eq!(check(Served { gets: 133, sets: 62, ..after }, false), None, "all in doubt was served");
    for (wrong, words) in [
        (Served { gets: 129, ..after }, "GETs: the server counts 29, the drivers 30 and 3 in doubt"),
        (Served { gets: 134, ..after }, "GETs: the server counts 34"),
        (Served { sets: 59, ..after }, "SETs: the server counts 9, the drivers 10"),
        (Served { misses: 9, ..after }, "GETs without a value: the server counts 8"),
        (Served { evictions: 1, ..after }, "keys dropped: the server counts 1"),
        (Served { items: 49, ..after }, "keys: the server counts"),
    ] {
        let why = check(wrong, false).unwrap();
        assert!(why.contains(words), "{why}");
    }
    assert_eq!(check(Served { evictions: 9, items: 41, ..after }, true), None);
}
