#![allow(clippy::unwrap_used, clippy::expect_used)]

use serde_json::json;
use tare_model::load::Arrivals;
use tare_model::units::Rate;

use super::*;

const PUBLISHED: GuestSize = GuestSize { cpus: 1, memory: ByteSize(6 << 30) };

#[test]
fn the_defaults_are_those_of_the_published_study() {
    for (site, users, directories) in
        [(Site::Banking, Some(50.0), None), (Site::Ecommerce, None, Some(5.0)), (Site::Support, None, Some(0.25))]
    {
        let (read, _) = checked(site, &json!({})).unwrap();
        assert_eq!((read.users_per_session, read.directories_per_session), (users, directories));
        assert_eq!((read.connections, read.receive_rate.0, read.least_requests), (2, Some(100_000), 100));
        let normal = serde_json::to_value(&read).unwrap();
        assert_eq!((normal["overrun"].as_str(), normal["receive-rate"].as_u64()), (Some("20s"), Some(100_000)));
        assert!(
            tare_model::audit::limit::ALL.iter().all(|name| normal.get(name).is_some()),
            "the audit looks for them"
        );
        assert_eq!(checked(site, &normal).unwrap().0, read);
        read.fit(&PUBLISHED).unwrap();
        assert_eq!(read.heap_in(&PUBLISHED, 0), 3 << 29);
    }
    let unlimited = checked(Site::Support, &json!({"receive-rate": "unlimited"})).unwrap().0;
    assert_eq!(unlimited.receive_rate, ReceiveRate(None));
    assert_eq!(serde_json::to_value(&unlimited).unwrap()["receive-rate"], "unlimited");
}

#[test]
fn what_cannot_be_is_refused_by_its_field() {
    for (parameters, path) in [
        (json!({"server": "apache"}), vec!["server"]),
        (json!({"nginx": "nginx"}), vec!["nginx"]),
        (json!({"java": "bin/java"}), vec!["java"]),
        (json!({"heap": "64MiB"}), vec!["heap"]),
        (json!({"options": ["-Xss512k", "Main"]}), vec!["options", "1"]),
        (json!({"options": ["-Xmx1g"]}), vec!["options", "0"]),
        (json!({"options": ["-jar"]}), vec!["options", "0"]),
        (json!({"connections": 0}), vec!["connections"]),
        (json!({"connections": 300}), vec!["connections"]),
        (json!({"receive-rate": 10}), vec!["receive-rate"]),
        (json!({"receive-rate": "fast"}), vec!["receive-rate"]),
        (json!({"users-per-session": 0}), vec!["users-per-session"]),
        (json!({"directories-per-session": 1}), vec!["directories-per-session"]),
        (json!({"file-sessions": 0}), vec!["file-sessions"]),
        (json!({"session-timeout": "1ms"}), vec!["session-timeout"]),
        (json!({"backend-connections": 0}), vec!["backend-connections"]),
        (json!({"driver-threads": 0}), vec!["driver-threads"]),
        (json!({"timeout": "2days"}), vec!["timeout"]),
        (json!({"validation-errors-max": 1.5}), vec!["validation-errors-max"]),
        (json!({"mix-deviation-max": -0.1}), vec!["mix-deviation-max"]),
        (json!({"url": "https://x:1"}), vec!["url"]),
        (json!({"url": "http://x:1", "heap": "1GiB"}), vec!["url"]),
        (json!({"url": "http://x:1", "tls-url": "http://x:2"}), vec!["tls-url"]),
        (json!({"tls-url": "https://x:2"}), vec!["tls-url"]),
        (json!({"tables": "/no/such.toml"}), vec!["tables"]),
    ] {
        let error = checked(Site::Banking, &parameters).expect_err(&parameters.to_string());
        assert_eq!(error.path, path, "{parameters}: {error}");
    }
    let users = checked(Site::Support, &json!({"users-per-session": 5})).unwrap_err();
    assert_eq!((users.path, users.help), (vec!["users-per-session".to_owned()], Some("leave it out".to_owned())));
    checked(Site::Ecommerce, &json!({"url": "http://{guest}:80", "tls-url": "https://{guest}:443"})).unwrap();
}

#[test]
fn a_load_is_sessions_without_a_think_time_of_its_own() {
    let closed = |clients, think_time| LoadModel::Closed { clients, think_time };
    assert_eq!(sessions(&closed(7, Span::ZERO)), Ok(7));
    let open = LoadModel::Open { rate: Rate(10.0), arrivals: Arrivals::Poisson, connections: 70 };
    assert_eq!(sessions(&open), Ok(70));
    for (load, path) in [
        (closed(0, Span::ZERO), ["load", "closed", "clients"]),
        (closed(7, Span::from_secs(1)), ["load", "closed", "think-time"]),
        (
            LoadModel::Open { rate: Rate(1.0), arrivals: Arrivals::Poisson, connections: 0 },
            ["load", "open", "connections"],
        ),
    ] {
        assert_eq!(sessions(&load).unwrap_err().path, path, "{load:?}");
    }
}

#[test]
fn a_heap_that_leaves_no_room_is_refused_with_figures() {
    let small = GuestSize { cpus: 1, memory: ByteSize(512 << 20) };
    let (plain, _) = checked(Site::Banking, &json!({})).unwrap();
    plain.fit(&small).unwrap();
    let (large, _) = checked(Site::Banking, &json!({"heap": "400MiB"})).unwrap();
    let error = large.fit(&small).unwrap_err();
    assert!(error.message.contains("400 MiB") && error.message.contains("512 MiB"), "{error}");
    let tiny = GuestSize { cpus: 1, memory: ByteSize(256 << 20) };
    assert_eq!(plain.fit(&tiny).unwrap_err().path, ["heap"]);
}

#[test]
fn the_heap_grows_with_what_users_keep_busy_as_far_as_the_guest_has_room() {
    let (plain, _) = checked(Site::Banking, &json!({})).unwrap();
    let guest = GuestSize { cpus: 1, memory: ByteSize(2 << 30) };
    assert_eq!(plain.heap_in(&guest, 0), 512 << 20);
    assert_eq!(plain.heap_in(&guest, 600 << 20), 900 << 20);
    let most = plain.heap_in(&guest, 8 << 30);
    assert!(most > 1500 << 20 && most + beside_heap(most) + AGENT_BYTES <= guest.memory.0, "{most}");
    let (own, _) = checked(Site::Banking, &json!({"heap": "256MiB"})).unwrap();
    assert_eq!(own.heap_in(&guest, 600 << 20), 256 << 20);
}
