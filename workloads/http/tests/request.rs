//! Requests as they are sent.
use serde_json::json;

use super::*;

fn sent(request: serde_json::Value, closes: bool) -> String {
    let PathOrRequest(request) = serde_json::from_value(request).unwrap();
    request.check().unwrap();
    String::from_utf8(request.asked("198.18.0.2:8080", closes).unwrap().text).unwrap()
}

#[test]
fn a_request_is_sent_with_its_fields_and_its_length() {
    assert_eq!(sent(json!("/a?b=c"), false), "GET /a?b=c HTTP/1.1\r\nHost: 198.18.0.2:8080\r\n\r\n");
    let post = json!({"path": "/a", "method": "POST", "body": "{}", "headers": {"Content-Type": "application/json", "host": "shop"}});
    let text = "POST /a HTTP/1.1\r\nContent-Type: application/json\r\nhost: shop\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
    assert_eq!(sent(post, true), text);
    assert!(sent(json!({"path": "/", "method": "PUT"}), false).ends_with("Content-Length: 0\r\n\r\n"));
}

#[test]
fn only_what_may_be_asked_for_twice_is_sent_again() {
    for (method, repeats) in [("GET", true), ("PUT", true), ("DELETE", true), ("POST", false), ("PATCH", false)] {
        let request: Request = serde_json::from_value(json!({"path": "/", "method": method})).unwrap();
        assert_eq!(request.asked("a:1", false).unwrap().repeats, repeats, "{method}");
    }
}

#[test]
fn a_digest_is_read_from_its_digits() {
    let text = "00ff10Ab".repeat(8);
    assert_eq!(digest(&text).unwrap()[..4], [0x00, 0xff, 0x10, 0xab]);
    assert!(digest(&text[1..]).is_none() && digest(&format!("{text}00")).is_none() && digest("é").is_none());
}
