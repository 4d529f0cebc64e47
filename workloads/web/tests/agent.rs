//! Users of a web site against servers of the tests' own: right answers are counted, faults are reported by kind.

use crate::common::web as sites;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::{closed, open, phases, run, steady};
use sites::*;
use tare_driver::web::spec::{Body, Embedded, WebDone, WebDrive};
use tare_driver::{DriverError, drive as driver};
use tare_model::drive::DriveResult;
use tare_model::load::Arrivals;

fn done(result: &DriveResult) -> WebDone {
    result.outcome::<WebDrive>().unwrap()
}

/// Whether a page was the first of its connection, and its cookie.
type Seen = (bool, Option<String>);

/// Kinds of faults.
fn kinds(result: &DriveResult) -> Vec<String> {
    done(result).faults.into_iter().map(|(kind, _)| kind).collect()
}

const LOGO: (&str, u64) = ("/files/shop/images/home/00.gif", 9_000);
const KNOWN: (&str, u64) = ("/files/shop/images/home/01.gif", 5_000);

fn embedded((path, bytes): (&str, u64), unchanged: f64) -> Embedded {
    Embedded { file: fixed(path, bytes), unchanged }
}

/// Serves a page, a file and a file that has not changed.
fn right(request: &Request) -> Answer {
    let answer = match request.path.as_str() {
        path if path == LOGO.0 => sized("200 OK", &file(LOGO.0, LOGO.1)),
        path if path == KNOWN.0 && request.field("If-Modified-Since").is_some() => {
            b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5000\r\n\r\n".to_vec()
        }
        path if path.starts_with("/shop/home?") => {
            let cookie = if request.field("Cookie").is_none() { "Set-Cookie: SESSION=abc; Path=/\r\n" } else { "" };
            chunked(cookie, &page(request, "Home", 3_000))
        }
        _ => sized("404 Not Found", b""),
    };
    (answer, true)
}

#[test]
fn a_page_comes_with_its_files_and_the_session_is_known_by_its_cookie() {
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let log = Arc::clone(&seen);
    let server = serve(move |request| {
        if request.path.starts_with("/shop/home?") {
            log.lock().unwrap().push((request.nth == 0, request.field("Cookie").map(str::to_owned)));
        }
        assert_eq!(request.field("Host"), Some("shop.test"));
        right(request)
    });
    let mut site = site(home(3_000), vec![embedded(LOGO, 0.0), embedded(KNOWN, 1.0), embedded(LOGO, 0.0)]);
    // Users leave after five pages on average.
    site.states[0].next = vec![(0, 0.8)];
    let result = run(&spec(drive(site), &[server], closed(4), phases(50, 0, 300, 0))).unwrap();
    let web = done(&result);
    assert_eq!((web.faults.as_slice(), result.errors.as_slice()), (&[][..], &[][..]));
    let home = &web.types[0];
    assert!(result.operations > 20, "{} pages", result.operations);
    assert_eq!((home.requests, home.good, home.failed), (result.operations, result.operations, 0));
    assert_eq!(web.sessions_most, 4);
    assert!(web.sessions_began > 2 && web.reconnected == 0);
    // Of every page that ended in the window all files but for those under way at its edges.
    assert!(web.not_modified.abs_diff(home.requests) <= 4, "{} of {}", web.not_modified, home.requests);
    assert!(web.exchanges.abs_diff(4 * home.requests) <= 16, "{} requests, {} pages", web.exchanges, home.requests);
    assert!(home.bytes > home.requests * (3_000 + 2 * LOGO.1));
    assert!(result.response.count() >= result.operations - 4 && result.lateness.count() > 0);
    let seen = seen.lock().unwrap();
    // The first page of a session is the first of its connection, and has no cookie; others have the session's.
    for (first, cookie) in seen.iter() {
        assert_eq!(cookie.as_deref(), (!first).then_some("SESSION=abc"));
    }
    let users = seen.iter().filter(|(first, _)| *first).count() as u64;
    assert!(users > 4 && web.connections.abs_diff(2 * users) <= 8, "{} connections of {users} users", web.connections);
}

#[test]
fn a_kept_connection_that_the_server_closed_is_opened_again_and_no_fault() {
    // The second request of each connection is not answered.
    let server = serve(|request| if request.nth == 0 { right(request) } else { (Vec::new(), false) });
    let result = run(&spec(drive(site(home(100), Vec::new())), &[server], closed(2), steady(200))).unwrap();
    assert!(kinds(&result).is_empty() && result.errors.is_empty(), "{:?}", done(&result));
    assert!(result.operations > 4);
    let (again, opened) = (done(&result).reconnected, done(&result).connections);
    assert!(again > 2 && opened >= again, "{again} reconnected, {opened} opened");
    // One that says so beforehand is not even asked.
    let server = serve(|request| {
        let answer = String::from_utf8(right(request).0).unwrap();
        (answer.replacen("\r\n", "\r\nConnection: close\r\n", 1).into_bytes(), false)
    });
    let result = run(&spec(drive(site(home(100), Vec::new())), &[server], closed(2), steady(200))).unwrap();
    assert!(kinds(&result).is_empty() && result.operations > 4);
    assert_eq!(done(&result).reconnected, 0);
    // A new connection that ends without an answer is a fault all the same.
    let server = serve(|_| (Vec::new(), false));
    let result = run(&spec(drive(site(home(100), Vec::new())), &[server], closed(2), steady(200))).unwrap();
    assert_eq!((kinds(&result), result.operations), (vec!["closed".to_owned()], 0));
}

#[test]
fn a_body_without_a_length_ends_with_its_connection() {
    let server = serve(|request| {
        let mut answer = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        answer.extend_from_slice(&page(request, "Home", 200));
        (answer, false)
    });
    let result = run(&spec(drive(site(home(100), Vec::new())), &[server], closed(2), steady(200))).unwrap();
    assert!(kinds(&result).is_empty() && result.operations > 2, "{:?}", done(&result));
}

#[test]
fn an_answer_that_never_comes_is_a_timeout_and_never_good() {
    let server = serve(|request| {
        if request.path.starts_with("/files") {
            std::thread::park();
        }
        right(request)
    });
    let mut drive = drive(site(home(100), vec![embedded(LOGO, 0.0)]));
    drive.timeout_ns = 40_000_000;
    let result = run(&spec(drive, &[server], closed(3), steady(400))).unwrap();
    let home = &done(&result).types[0];
    assert_eq!(kinds(&result), ["timeout"]);
    assert_eq!((result.operations, home.good, home.tolerable), (0, 0, 0));
    assert!(home.requests >= 3 && home.failed == home.requests && home.validation_errors == home.requests);
    // What was waited for is not left out: it took longer than that.
    let response = &result.response;
    assert!(response.count() == 0 && response.given_up >= 3, "{response:?}");
    assert!(response.waited_ns >= response.given_up * 40_000_000 && response.quantile(0.0).is_none());
}

/// The faults of a run against a server that answers like this.
fn faults_of(
    site: tare_driver::web::spec::SiteModel,
    answer: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static,
) -> DriveResult {
    let server = serve(move |request| (answer(request), true));
    run(&spec(drive(site), &[server], closed(2), steady(100))).unwrap()
}

#[test]
fn what_is_wrong_with_an_answer_is_reported_by_its_kind() {
    let page_site = || site(home(100), Vec::new());
    let file_site = || site(Body::File(fixed(LOGO.0, LOGO.1)), Vec::new());
    let text = |request: &Request| String::from_utf8(page(request, "Home", 500)).unwrap();
    let cases: Vec<(&str, DriveResult)> = vec![
        ("title", faults_of(page_site(), |r| sized("200 OK", &page(r, "Sorry", 500)))),
        (
            "proof",
            faults_of(page_site(), move |r| {
                let mut page = text(r).into_bytes();
                let at = page.windows(9).position(|w| w == b"content=\"").unwrap() + 9;
                page[at] = if page[at] == b'0' { b'1' } else { b'0' };
                sized("200 OK", &page)
            }),
        ),
        ("end", faults_of(page_site(), move |r| sized("200 OK", text(r).replace("</html>\n", "ppppppp\n").as_bytes()))),
        ("length", faults_of(site(home(1_000), Vec::new()), |r| sized("200 OK", &page(r, "Home", 2)))),
        ("marker", faults_of(file_site(), |_| sized("200 OK", &file("/files/shop/other.gif", LOGO.1)))),
        ("length", faults_of(file_site(), |_| sized("200 OK", &file(LOGO.0, LOGO.1 - 1)))),
        ("status 503", faults_of(page_site(), |_| sized("503 Service Unavailable", b"busy"))),
        ("status 304", faults_of(file_site(), |_| b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec())),
        ("http", faults_of(page_site(), |_| b"220 mail.test ESMTP\r\n\r\n".to_vec())),
        ("http", faults_of(file_site(), |_| [sized("200 OK", &file(LOGO.0, LOGO.1)), b"HTTP".to_vec()].concat())),
    ];
    for (kind, result) in cases {
        assert_eq!(kinds(&result), [kind]);
        let home = &done(&result).types[0];
        assert_eq!((result.operations, home.good, home.failed), (0, 0, home.requests), "{kind}");
        assert_eq!(result.errors, done(&result).faults, "{kind}");
        assert!(
            result.response.count() == 0 && result.response.failed > 0,
            "{kind}: it has no response time, and is not forgotten"
        );
    }
}

#[test]
fn a_page_whose_file_is_wrong_has_failed_and_asks_for_no_more() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let server = serve(move |request| {
        if request.path == LOGO.0 {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let wrong = request.path == KNOWN.0;
        (if wrong { sized("500 Oops", b"") } else { right(request).0 }, true)
    });
    let mut drive = drive(site(home(100), vec![embedded(KNOWN, 0.0), embedded(LOGO, 0.0), embedded(LOGO, 0.0)]));
    drive.connections = 1;
    let result = run(&spec(drive, &[server], closed(1), steady(150))).unwrap();
    assert_eq!((kinds(&result), result.operations), (vec!["status 500".to_owned()], 0));
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[test]
fn reading_slowly_takes_as_long_as_its_rate_says() {
    const BYTES: u64 = 200_000;
    let server = serve(|request| (sized("200 OK", &file(&request.path, BYTES)), true));
    let time_at = |rate: u64| {
        let mut drive = drive(site(Body::File(fixed("/files/shop/big.bin", BYTES)), Vec::new()));
        drive.receive_bytes_per_s = Some(rate);
        let result = run(&spec(drive, &[server], closed(1), steady(1_500))).unwrap();
        assert!(kinds(&result).is_empty() && result.operations > 1);
        result.response.quantile(0.5).unwrap()
    };
    let (slow, fast) = (time_at(500_000), time_at(2_000_000));
    assert!((3.0..5.0).contains(&(slow / fast)), "{slow} ns and {fast} ns at four times the rate");
    // Never faster than the rate, but for the last read.
    assert!(slow >= 0.85 * 400e6 && fast >= 0.85 * 100e6, "{slow} {fast}");
}

#[test]
fn users_who_think_are_late_by_their_timers_alone_and_end_when_cancelled() {
    let server = serve(right);
    let mut site = site(home(100), Vec::new());
    site.states[0].thinks = true;
    site.think = tare_driver::web::spec::Think { mean_ns: 20_000_000, most_ns: 100_000_000, step_ns: 0 };
    let result = run(&spec(drive(site.clone()), &[server], closed(20), phases(0, 50, 400, 0))).unwrap();
    assert!(kinds(&result).is_empty());
    let rate = result.operations as f64 / 0.4;
    assert!((300.0..=1_100.0).contains(&rate), "{rate} pages/s of 20 users who think for 20 ms");
    assert!(result.lateness.count() > 0);

    let spec = spec(drive(site), &[server], closed(20), steady(60_000));
    let prepared = driver::prepare(&spec, &AtomicBool::new(false)).unwrap();
    let cancel = AtomicBool::new(false);
    let began = Instant::now();
    let ended = std::thread::scope(|scope| {
        let running = scope.spawn(|| prepared.run(0, &|_| cancel.store(true, Ordering::Relaxed), &cancel));
        running.join().unwrap()
    });
    assert!(matches!(ended, Err(DriverError::Cancelled)));
    assert!(began.elapsed() < Duration::from_secs(30), "it did not go on to its end");
}

#[test]
fn arrivals_beyond_the_sessions_that_there_may_be_wait_and_are_counted() {
    // One at a time, each 20 ms: 50 a second are served, and 100 come.
    let turn = Mutex::new(());
    let server = serve(move |request| {
        let _turn = turn.lock().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        right(request)
    });
    let mut one = site(home(100), Vec::new());
    one.states[0].next = Vec::new();
    let mut drive = drive(one);
    drive.fresh_connections = false;
    let result = run(&spec(drive, &[server], open(100.0, Arrivals::Uniform, 4), steady(1_000))).unwrap();
    assert_eq!(result.response.count(), 100, "none is dropped");
    assert_eq!((result.unfinished, kinds(&result).len()), (0, 0));
    assert!(result.backlog_max > 20, "{} waited", result.backlog_max);
    assert!(result.response.quantile(0.9).unwrap() > 2.0 * result.service.quantile(0.9).unwrap());
    assert!(done(&result).sessions_most <= 4 && done(&result).connections <= 4);
}

#[test]
fn what_was_due_and_never_ended_is_unfinished_and_in_the_response_times() {
    let first = AtomicBool::new(true);
    let server = serve(move |request| {
        if !first.swap(false, Ordering::Relaxed) {
            std::thread::park();
        }
        right(request)
    });
    let mut one = site(home(100), Vec::new());
    one.states[0].next = Vec::new();
    let result = run(&spec(drive(one), &[server], open(50.0, Arrivals::Uniform, 2), steady(200))).unwrap();
    assert_eq!((result.operations, result.unfinished, result.response.given_up), (1, 9, 9));
    assert!(result.response.waited_ns > 9 * 4_000_000_000, "until the moment at which they are given up");
}

#[test]
fn sessions_are_dealt_to_threads_and_no_two_requests_are_the_same() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&seen);
    let server = serve(move |request| {
        log.lock().unwrap().push(request.path.clone());
        right(request)
    });
    let mut three = drive(site(home(100), Vec::new()));
    three.threads = 3;
    let result = run(&spec(three, &[server], closed(7), phases(0, 50, 200, 0))).unwrap();
    let web = done(&result);
    assert_eq!((result.threads, web.sessions_most, web.faults.len()), (4, 7, 0));
    assert!(result.operations > 7 && web.types[0].requests == result.operations);
    assert_eq!(web.connections, 7);
    let summed: u64 = result.intervals.iter().map(|interval| interval.operations).sum();
    assert_eq!(summed, result.answered_total);
    let mut paths = seen.lock().unwrap().clone();
    let asked = paths.len() as u64;
    assert!(asked >= result.answered_total);
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths.len() as u64, asked, "every request has a token of its own");
}

#[test]
fn what_cannot_be_driven_is_refused_before_the_load() {
    let server = serve(right);
    let refused = |change: &dyn Fn(&mut tare_driver::web::spec::WebDrive), targets: &[std::net::SocketAddr]| {
        let mut drive = drive(site(home(100), Vec::new()));
        change(&mut drive);
        run(&spec(drive, targets, closed(1), steady(50))).unwrap_err().to_string()
    };
    for change in [
        (&|d: &mut tare_driver::web::spec::WebDrive| d.threads = 0) as &dyn Fn(&mut _),
        &|d: &mut tare_driver::web::spec::WebDrive| d.connections = 0,
        &|d: &mut tare_driver::web::spec::WebDrive| d.timeout_ns = 0,
        &|d: &mut tare_driver::web::spec::WebDrive| d.receive_bytes_per_s = Some(0),
        &|d: &mut tare_driver::web::spec::WebDrive| d.host = "a b".to_owned(),
    ] {
        assert!(refused(change, &[server]).contains("cannot be driven"));
    }
    assert!(refused(&|_| (), &[]).contains("target"));
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = mute.local_addr().unwrap();
    drop(mute);
    assert!(refused(&|_| (), &[gone]).contains("cannot connect"));
    let many = spec(drive(site(home(100), Vec::new())), &[server], closed(2_000_000_000), steady(50));
    assert!(run(&many).unwrap_err().to_string().contains("open files"));
}

#[test]
fn users_of_a_server_that_refuses_them_come_again_ever_more_seldom() {
    let server = serve(|_| (sized("302 Found", b""), false));
    let result = run(&spec(drive(site(home(100), Vec::new())), &[server], closed(10), steady(1_000))).unwrap();
    assert_eq!((kinds(&result), result.operations), (vec!["status 302".to_owned()], 0));
    // 1, 2, 4 ms ... between them: 10 in the first second, not a thousand.
    let opened = done(&result).connections;
    assert!((20..=130).contains(&opened), "{opened} connections of 10 users");
}

#[test]
fn pages_that_hang_at_the_end_of_the_window_have_failed() {
    let first = AtomicBool::new(true);
    let server = serve(move |request| {
        if !first.swap(false, Ordering::Relaxed) {
            std::thread::park();
        }
        right(request)
    });
    let mut hasty = site(home(100), Vec::new());
    hasty.pages = tare_driver::web::spec::Quality { good_ns: SECOND, tolerable_ns: 2 * SECOND };
    let result = run(&spec(drive(hasty), &[server], closed(1), steady(300))).unwrap();
    let home = &done(&result).types[0];
    assert_eq!((home.requests, home.good, home.failed, home.validation_errors), (2, 1, 1, 0));
}
