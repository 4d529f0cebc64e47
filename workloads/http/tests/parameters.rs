//! Parameters: defaults, and what is refused, by its field and with what helps.
use serde_json::json;

use super::*;

fn with(more: Value) -> Value {
    let mut all = json!({"command": ["/bin/service", "{port}"], "requests": ["/"]});
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    all
}

#[test]
fn a_path_alone_is_a_get_of_it_and_defaults_are_filled_in() {
    let read = checked(&with(json!({"requests": ["/", {"path": "/items", "method": "POST", "weight": 3}]}))).unwrap();
    let [first, second] = [&read.requests[0].0, &read.requests[1].0];
    assert_eq!((first.path.as_str(), first.weight, second.weight, read.port()), ("/", 1.0, 3.0, 8080));
    let filled = serde_json::to_value(&read).unwrap();
    assert_eq!(filled["requests"][0], json!({"path": "/", "method": "GET", "weight": 1.0, "expect": {}}));
    assert_eq!((&filled["timeout"], &filled["connections"]), (&json!("10s"), &json!("kept")));
    assert!(checked(&filled).is_ok(), "what is disclosed is a study again");
}

#[test]
fn what_cannot_be_is_refused_by_its_field() {
    let request = |more: Value| json!({"requests": ["/", more]});
    for (parameters, path) in [
        (json!({"requests": ["/"]}), "command"),
        (with(json!({"command": [""]})), "command"),
        (with(json!({"requests": []})), "requests"),
        (with(json!({"requests": [{"path": "/", "weight": 0}]})), "requests"),
        (with(json!({"requests": [7]})), "requests.0"),
        (with(request(json!("items"))), "requests.1.path"),
        (with(request(json!("/a b"))), "requests.1.path"),
        (with(request(json!({"path": "/", "verb": "GET"}))), "requests.1.verb"),
        (with(request(json!({"path": "/", "method": "HEAD"}))), "requests.1.method"),
        (with(request(json!({"path": "/", "weight": -1}))), "requests.1.weight"),
        (with(request(json!({"path": "/", "headers": {"A b": "1"}}))), "requests.1.headers.A b"),
        (with(request(json!({"path": "/", "headers": {"Connection": "close"}}))), "requests.1.headers.Connection"),
        (with(request(json!({"path": "/", "headers": {"A": "1\r\nB: 2"}}))), "requests.1.headers.A"),
        (
            with(request(json!({"path": "/", "headers": {"A": {"from-env": "NO_SUCH_ONE"}}}))),
            "requests.1.headers.A.from-env",
        ),
        (with(request(json!({"path": "/", "expect": {"status": 99}}))), "requests.1.expect.status"),
        (with(request(json!({"path": "/", "expect": {"sha256": "abc"}}))), "requests.1.expect.sha256"),
        (with(json!({"ready": "healthz"})), "ready"),
        (with(json!({"ready-within": "0s"})), "ready-within"),
        (with(json!({"timeout": "0s"})), "timeout"),
        (with(json!({"port": 0})), "port"),
        (with(json!({"directory": "srv"})), "directory"),
        (with(json!({"env": {"A": {"from-file": "/no/such/file"}}})), "env.A.from-file"),
        (with(json!({"url": "http://{guest}:8080"})), "command"),
        (json!({"requests": ["/"], "url": "{guest}:8080"}), "url"),
        (json!({"requests": ["/"], "url": "https://{guest}:8443", "tls": true}), "tls"),
        (with(json!({"verdict": "p42"})), "verdict"),
    ] {
        let error = checked(&parameters).unwrap_err();
        assert_eq!(error.path.join("."), path, "{parameters}: {error}");
    }
    let error = checked(&json!({"requests": ["/"]})).unwrap_err();
    assert!(error.help.unwrap().contains("command = [\"/usr/bin/python3\""));
}

#[test]
fn a_service_that_is_there_needs_no_command() {
    let read = checked(&json!({"requests": ["/"], "url": "https://{guest}:8443"})).unwrap();
    assert_eq!(scheme(read.url.as_deref().unwrap()), "https");
}
