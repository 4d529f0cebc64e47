#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::web::parameters::checked;
use crate::web::tables::Site;

fn argv(parameters: &serde_json::Value, tls: bool, in_front: bool) -> Vec<String> {
    let (parameters, _) = checked(Site::Banking, parameters).unwrap();
    let of = Command {
        program: "/data/runtime/bin/java".to_owned(),
        data: "/data",
        folder: "/tmp/tare-web-1",
        listen: [198, 18, 0, 2].into(),
        in_front,
        tls,
        backend: "198.18.0.1:4000".parse().unwrap(),
        needs: Needs { tls: true, sessions: 10_000, offered: 10_000, stay: Stay { thinking_s: 30.0, secure: 1.0 } },
        allowed: Allowed::default(),
        user: None,
    };
    of.argv(&parameters, 512 << 20)
}

/// The value of an option.
fn value<'a>(argv: &'a [String], name: &str) -> Option<&'a str> {
    argv.iter().position(|word| word == name).and_then(|at| argv.get(at + 1)).map(String::as_str)
}

#[test]
fn the_server_is_started_as_the_reference_says() {
    let plain = argv(&json!({"options": ["-XX:+UseParallelGC"]}), false, false);
    assert_eq!(plain[..2], ["/data/runtime/bin/java", "-Xmx524288k"]);
    assert_eq!(value(&plain, "-cp"), Some("/data/lib/*"));
    let main = plain.iter().position(|word| word == MAIN).unwrap();
    assert!(plain.iter().position(|word| word == "-XX:+UseParallelGC").unwrap() < main);
    for (name, expected) in [
        ("--data", "/data"),
        ("--listen", "198.18.0.2"),
        ("--port", "8080"),
        ("--backend", "198.18.0.1:4000"),
        ("--session-timeout", "900"),
        ("--connections", "25000"),
        ("--keep-alive", "3600"),
    ] {
        assert_eq!(value(&plain, name), Some(expected), "{plain:?}");
    }
    assert_eq!(value(&plain, "--tls-port"), None);
}

#[test]
fn tls_is_done_by_who_meets_the_clients() {
    let tls = argv(&json!({}), true, false);
    assert_eq!(value(&tls, "--tls-port"), Some("8443"));
    assert_eq!(value(&tls, "--key"), Some("/tmp/tare-web-1/key.pem"));
    assert_eq!((value(&tls, "--tls-sessions"), value(&tls, "--tls-session-seconds")), (Some("37917"), Some("900")));
    let behind = argv(&json!({}), true, true);
    assert_eq!((value(&behind, "--tls-port"), value(&behind, "--port")), (None, Some("8081")));
}

#[test]
fn a_heap_that_users_fill_is_reported_and_nginx_takes_connections_off_it() {
    let (parameters, _) = checked(Site::Banking, &json!({})).unwrap();
    let stay = Stay { thinking_s: 30.0, secure: 1.0 };
    let of = |in_front| Command {
        program: String::new(),
        data: "/data",
        folder: "/tmp",
        listen: [198, 18, 0, 2].into(),
        in_front,
        tls: true,
        backend: "198.18.0.1:4000".parse().unwrap(),
        needs: Needs { tls: true, sessions: 2300, offered: 2300, stay },
        allowed: Allowed::default(),
        user: None,
    };
    let busy = of(false).busy_heap(&parameters, 2300);
    assert!((350 << 20..450 << 20).contains(&busy), "{busy}");
    assert!(of(true).busy_heap(&parameters, 2300) < 70 << 20);
    assert!(small_heap(768 << 20, busy, 2300).is_none());
    let detail = small_heap(512 << 20, busy, 2300).unwrap().detail;
    assert!(detail.contains("2300 sessions") && detail.contains("512 MiB"), "{detail}");
    assert_eq!((of(false).files(&parameters), of(true).files(&parameters)), (4700, 9300));
}
