//! What users send.

use std::collections::BTreeSet;

use crate::web::spec::TlsSpec;
use tare_model::marker::file_id;

use super::*;
use crate::web::site::asked::Expected;

fn asked(site: &Site, user: &mut User, cookie: &[u8]) -> (String, Asked) {
    let mut out = Vec::new();
    let asked = user.ask(site, cookie, &mut Tokens::new(1, 0), &mut out);
    (String::from_utf8(out).unwrap(), asked)
}

fn path(request: &str) -> &str {
    request.strip_prefix("GET ").unwrap().split_once(" HTTP/1.1\r\n").unwrap().0
}

fn value<'a>(path: &'a str, name: &str) -> &'a str {
    path.split(['?', '&']).find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).unwrap()
}

/// Name and length of the file that is waited for.
fn awaited(asked: &Asked) -> (u64, u64) {
    match asked.what {
        Expected::File { id, bytes, .. } => (id, bytes),
        Expected::Page { .. } => panic!("a page"),
    }
}

#[test]
fn a_page_is_asked_for_with_its_values_in_order_and_the_cookie() {
    let site = Site::compile(&drive(all_kinds())).unwrap();
    let (text, _) = asked(&site, &mut user_in(&site, 0), b"abc123");
    let path_text = path(&text).to_owned();
    let user = value(&path_text, "user");
    assert!(user.len() == 10 && (1..=250).contains(&user.parse::<u32>().unwrap()), "{user}");
    let token = value(&path_text, "token");
    assert!(token.len() == 16 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{token}");
    let expected =
        format!("GET /shop/list?user={user}&token={token} HTTP/1.1\r\nHost: sut\r\nCookie: SESSION=abc123\r\n\r\n");
    assert_eq!(text, expected);
    let (without, _) = asked(&site, &mut user_in(&site, 0), b"");
    assert!(!without.contains("Cookie") && without.ends_with("\r\nHost: sut\r\n\r\n"), "{without}");
}

#[test]
fn the_images_of_a_check_are_of_the_check_whose_page_was_shown() {
    let site = Site::compile(&drive(all_kinds())).unwrap();
    let mut numbers = BTreeSet::new();
    for session in 0..400 {
        let mut user = User::fresh(&site, 9, session);
        while let Next::State(state) = user.next(&site) {
            if state != 1 {
                continue;
            }
            let (text, _) = asked(&site, &mut user, b"");
            let (number, check) = (value(path(&text), "user").to_owned(), value(path(&text), "check").to_owned());
            let i: u64 = check.parse::<u64>().unwrap() % 10;
            assert_eq!(check, format!("{:06}", number.parse::<u64>().unwrap() % 100_000 * 10 + i));
            numbers.insert(i);
            for (end, base, step) in [("front", 10_757, 511), ("back", 5_458, 334)] {
                assert!(matches!(user.next(&site), Next::State(2 | 3)));
                let (text, image) = asked(&site, &mut user, b"");
                let expected = format!("/files/shop/checks/{number}/{check}-{end}.gif");
                assert_eq!(path(&text), expected);
                assert_eq!(awaited(&image), (file_id(expected.as_bytes()), base + step * i));
            }
        }
    }
    assert_eq!(numbers.len(), 10, "all checks are looked at: {numbers:?}");
}

#[test]
fn the_image_of_a_product_is_of_the_product_of_the_page() {
    let site = Site::compile(&drive(all_kinds())).unwrap();
    let mut user = user_in(&site, 4);
    let (text, _) = asked(&site, &mut user, b"");
    let (directory, item) = value(path(&text), "product").split_once('-').unwrap();
    assert!(value(path(&text), "os").parse::<u32>().unwrap() < 7);
    let mut out = Vec::new();
    let image = user.ask_embedded(&site, 0, &mut out);
    let expected = format!("/files/shop/products/{directory}/{item}-b.jpg");
    assert_eq!(path(std::str::from_utf8(&out).unwrap()), expected);
    assert_eq!(directory.len(), 5);
    assert_eq!(awaited(&image), (file_id(expected.as_bytes()), 6_710 + 3_590 * item.parse::<u64>().unwrap()));
}

#[test]
fn a_file_is_asked_for_only_if_it_has_changed_as_often_as_the_site_says() {
    let site = Site::compile(&drive(all_kinds())).unwrap();
    let mut user = user_in(&site, 0);
    let mut conditional = 0;
    for _ in 0..4_000 {
        let mut out = Vec::new();
        let asked = user.ask_embedded(&site, 0, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(path(&text), "/files/shop/images/list/00.gif");
        let has = text.contains("\r\nIf-Modified-Since: Sun, 02 Jan 2005 00:00:00 GMT\r\n");
        assert_eq!(asked.status(304).is_ok(), has);
        assert!(text.ends_with("\r\n\r\n") && text.matches("\r\n\r\n").count() == 1, "{text}");
        conditional += u32::from(has);
        out = Vec::new();
        user.ask_embedded(&site, 1, &mut out);
        assert!(!String::from_utf8(out).unwrap().contains("If-Modified"));
    }
    assert!(conditional.abs_diff(2_000) < 200, "{conditional} of 4000");
}

#[test]
fn downloads_are_as_popular_as_their_directory_class_and_item() {
    let site = Site::compile(&drive(all_kinds())).unwrap();
    let mut user = user_in(&site, 5);
    let draws = 40_000;
    let (mut first, mut second, mut largest, mut item1) = (0, 0, 0, 0);
    for _ in 0..draws {
        let (text, file) = asked(&site, &mut user, b"");
        let (directory, name) = path(&text).strip_prefix("/files/shop/downloads/").unwrap().split_once('/').unwrap();
        assert!(directory.len() == 5 && directory.parse::<u32>().unwrap() < 50);
        first += u32::from(directory == "00000");
        second += u32::from(directory == "00001");
        largest += u32::from(name == "1-0.bin");
        item1 += u32::from(name == "0-1.bin");
        let bytes = match name {
            "0-0.bin" => 104_858,
            "0-1.bin" => 209_716,
            "1-0.bin" => 629_146,
            other => panic!("{other}"),
        };
        assert_eq!(awaited(&file), (file_id(path(&text).as_bytes()), bytes));
    }
    let share = |count: u32| f64::from(count) / f64::from(draws);
    let zipf: f64 = (1..=50).map(|rank| f64::from(rank).powf(-1.2)).sum();
    for (count, expected) in [(first, 1.0 / zipf), (second, 2f64.powf(-1.2) / zipf), (largest, 0.4), (item1, 0.6 * 0.7)]
    {
        assert!((share(count) - expected).abs() < 0.013, "{} instead of {expected}", share(count));
    }
}

#[test]
fn tokens_of_a_run_are_all_different() {
    let mut seen = BTreeSet::new();
    let site = Site::compile(&drive(all_kinds())).unwrap();
    for thread in 0..4 {
        let mut tokens = Tokens::new(7, thread);
        let mut user = user_in(&site, 0);
        for _ in 0..5_000 {
            let mut out = Vec::new();
            user.ask(&site, b"", &mut tokens, &mut out);
            let text = String::from_utf8(out).unwrap();
            assert!(seen.insert(value(path(&text), "token").to_owned()), "twice: {text}");
        }
    }
}

#[test]
fn pages_go_over_tls_only_where_the_server_has_it() {
    let mut drive = drive(all_kinds());
    assert!(!Site::compile(&drive).unwrap().secure(4));
    drive.tls = Some(TlsSpec { certificate_sha256: None });
    let site = Site::compile(&drive).unwrap();
    assert!(site.secure(4) && !site.secure(0));
}

#[test]
fn a_user_thinks_before_all_but_the_first_request_and_as_the_state_says() {
    let site = Site::compile(&drive(all_kinds())).unwrap();
    for session in 0..200 {
        let mut user = User::fresh(&site, 3, session);
        let mut first = true;
        while let Next::State(state) = user.next(&site) {
            assert_eq!(user.state(), state);
            assert_eq!(user.thinks(&site), !first && matches!(state, 0 | 1 | 4));
            first = false;
        }
        assert_eq!(user.next(&site), Next::End, "an ended session stays ended");
    }
}
