//! The driver against a server that does what it should, and one that does not.
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tare_model::load::{Arrivals, Phases};
use tare_model::packed::Packed;
use tare_model::turns::{TurnSpec, Turns, Waiting};
use tare_model::{Rate, Span};

use super::spec::Expected;
use super::*;
use crate::clock::now_ns;
use crate::drive;
use crate::noting::Noting;

const CLOSED: LoadModel = LoadModel::Closed { clients: 3, think_time: Span::ZERO };

/// What a server does with a request.
enum Does {
    Answers(String),
    /// It sends this and closes the connection.
    Closes(&'static str),
    /// It answers so many milliseconds later.
    Waits(u64),
}

fn sized(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// TLS with a certificate of its own.
fn certified() -> Arc<ServerConfig> {
    let made = rcgen::generate_simple_self_signed(vec!["shop.test".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Arc::new(config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap())
}

/// Serves without TLS.
fn serve(does: impl Fn(&str, u64) -> Does + Send + Sync + 'static) -> (SocketAddr, Arc<AtomicU64>) {
    serve_with(None, does)
}

/// Serves: what it does depends on the request's line and on how many came before. Its address, and how many connections it took.
fn serve_with(
    tls: Option<Arc<ServerConfig>>,
    does: impl Fn(&str, u64) -> Does + Send + Sync + 'static,
) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (address, taken) = (listener.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
    let (does, count, connections) = (Arc::new(does), Arc::new(AtomicU64::new(0)), Arc::clone(&taken));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            connections.fetch_add(1, Ordering::Relaxed);
            let (does, count, tls) = (Arc::clone(&does), Arc::clone(&count), tls.clone());
            std::thread::spawn(move || {
                let _ = stream.set_nodelay(true);
                match tls {
                    None => converse(stream, &*does, &count),
                    Some(config) => {
                        let records = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
                        converse(records, &*does, &count);
                    }
                }
            });
        }
    });
    (address, taken)
}

fn converse(stream: impl Read + Write, does: &dyn Fn(&str, u64) -> Does, count: &AtomicU64) {
    let mut from = BufReader::new(stream);
    loop {
        let (mut line, mut field, mut length, mut closes) = (String::new(), String::new(), 0, false);
        if from.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        while from.read_line(&mut field).unwrap_or(0) > 2 {
            let text = std::mem::take(&mut field).to_ascii_lowercase();
            length = text.strip_prefix("content-length: ").map_or(length, |text| text.trim().parse().unwrap());
            closes |= text.starts_with("connection: close");
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body).unwrap();
        let answer = match does(line.trim(), count.fetch_add(1, Ordering::Relaxed)) {
            Does::Answers(answer) => answer,
            Does::Closes(last) => {
                let _ = from.get_mut().write_all(last.as_bytes());
                return;
            }
            Does::Waits(ms) => {
                std::thread::sleep(Duration::from_millis(ms));
                sized("200 OK", "late")
            }
        };
        if from.get_mut().write_all(answer.as_bytes()).is_err() || closes {
            return;
        }
    }
}

fn asked(method: &str, path: &str, weight: f64, contains: &str) -> Asked {
    let name = format!("{method} {path}");
    let body = if method == "POST" { "{}" } else { "" };
    let text = format!("{name} HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes();
    let expect = Expected { contains: contains.as_bytes().to_vec(), ..Expected::default() };
    Asked { name, text, repeats: method == "GET", weight, expect }
}

fn task(requests: Vec<Asked>) -> HttpDrive {
    HttpDrive { requests, reached: Reached { tls: None, timeout_ns: 5_000_000_000 }, fresh: false }
}

fn spec_of(target: SocketAddr, task: &HttpDrive, load: LoadModel, steady_ms: u64) -> DriveSpec {
    let phases = Phases { warm_up: Span::from_millis(20), ..Phases::measuring(Span::from_millis(steady_ms)) };
    DriveSpec { seed: 11, ..DriveSpec::new(Packed::of(task).unwrap(), vec![target], load, phases) }
}

fn driven(target: SocketAddr, task: &HttpDrive, load: LoadModel) -> (DriveResult, HttpDone) {
    let result = drive::run(&spec_of(target, task, load, 400), &|_| {}, &AtomicBool::new(false)).unwrap();
    let done = result.outcome::<HttpDrive>().unwrap();
    (result, done)
}

/// Answers each request with its line.
fn echo(line: &str, _: u64) -> Does {
    Does::Answers(sized("200 OK", line))
}

#[test]
fn requests_are_chosen_by_weight_verified_and_timed_on_connections_that_stay() {
    let (server, connections) = serve(echo);
    let task =
        task(vec![asked("GET", "/a", 1.0, "/a"), asked("POST", "/b", 3.0, "POST /b"), asked("GET", "/c", 0.0, "")]);
    let (result, done) = driven(server, &task, CLOSED);
    assert_eq!((result.errors.as_slice(), done.wrong, done.refused, done.reconnected), (&[][..], 0, 0, 0));
    assert!(result.operations > 20 && done.answered.iter().sum::<u64>() == result.operations, "{done:?}");
    let share = done.answered[1] as f64 / result.operations as f64;
    // Four standard deviations of a share among so many.
    let bound = 4.0 * (0.75f64 * 0.25 / result.operations as f64).sqrt();
    assert!((share - 0.75).abs() < bound && done.answered[2] == 0, "{share} of {}", result.operations);
    assert!(result.response.count() > 20 && result.bytes_from_guest > 30 * result.operations);
    // Each of three requests was asked for once before.
    assert_eq!((done.connections, connections.load(Ordering::Relaxed)), (3, 6));
}

#[test]
fn each_request_has_a_connection_of_its_own_where_that_is_asked_for() {
    for load in [CLOSED, LoadModel::Open { rate: Rate(200.0), arrivals: Arrivals::Uniform, connections: 4 }] {
        let (server, connections) = serve(echo);
        let task = HttpDrive { fresh: true, ..task(vec![asked("GET", "/a", 1.0, "")]) };
        let (result, done) = driven(server, &task, load);
        assert!(done.wrong == 0 && result.errors.is_empty() && result.operations > 20, "{result:?}");
        assert!(done.connections >= result.answered_total && done.connections <= result.answered_total + 4, "{done:?}");
        // The last ones may still wait to be accepted.
        let (taken, began) = (|| connections.load(Ordering::Relaxed), Instant::now());
        while taken() <= done.connections && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(taken(), done.connections + 1);
    }
}

#[test]
fn a_service_with_tls_is_asked_whatever_its_certificate_and_a_plain_one_is_not() {
    let (server, _) = serve_with(Some(certified()), echo);
    let mut task = task(vec![asked("GET", "/a", 1.0, "/a")]);
    task.reached.tls = Some("shop.test".to_owned());
    for fresh in [false, true] {
        let (result, done) = driven(server, &HttpDrive { fresh, ..task.clone() }, CLOSED);
        assert!(done.wrong == 0 && result.errors.is_empty() && result.operations > 3, "{result:?}");
    }
    let (plain, _) = serve(echo);
    let ask = HttpAsk { server: plain, reached: task.reached.clone(), request: task.requests[0].clone() };
    assert!(ask.call(&AtomicBool::new(false)).is_err());
}

#[test]
fn an_open_loop_offers_its_rate_on_kept_connections() {
    let (server, connections) = serve(echo);
    let load = LoadModel::Open { rate: Rate(500.0), arrivals: Arrivals::Uniform, connections: 4 };
    let (result, done) = driven(server, &task(vec![asked("GET", "/a", 1.0, "")]), load);
    assert_eq!((result.response.count(), result.unfinished, done.wrong), (200, 0, 0));
    assert!(connections.load(Ordering::Relaxed) <= 5 && done.connections <= 4);
}

#[test]
fn wrong_answers_are_counted_with_the_first_of_them_and_the_others_go_on() {
    let (server, _) = serve(|line, before| match before % 10 {
        3 if before > 9 => Does::Answers(sized("404 Not Found", "nobody is here")),
        5 if before > 9 => Does::Answers(sized("200 OK", "GET /other")),
        7 if before > 9 => Does::Answers(sized("503 Service Unavailable", "")),
        _ => echo(line, before),
    });
    let (result, done) = driven(server, &task(vec![asked("GET", "/a", 1.0, "/a")]), CLOSED);
    let error = |name: &str| result.errors.iter().find(|(reason, _)| reason == name).map_or(0, |(_, count)| *count);
    let [status, text, busy] = [error("status 404"), error("wrong answer: text is missing"), error("status 503")];
    assert!(status > 1 && text > 1 && busy > 1, "{:?}", result.errors);
    assert_eq!((done.wrong, done.refused), (status + text, busy));
    assert!(done.first_wrong.contains("GET /a: status 404 in place of 2xx; it begins \"nobody is here\""), "{done:?}");
    // They are in the distribution, as longer than all others.
    assert!(result.response.operations() > result.response.count(), "{:?}", result.response);
    assert!(result.operations > status, "others were answered");
}

#[test]
fn what_is_no_answer_of_http_is_wrong_and_a_connection_that_ends_is_a_failure() {
    let (server, _) = serve(|line, before| match before {
        20 => Does::Answers("OK\n".to_owned()),
        _ if before > 20 && before.is_multiple_of(7) => {
            Does::Closes("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        }
        _ => echo(line, before),
    });
    let (result, done) = driven(server, &task(vec![asked("GET", "/a", 1.0, "")]), CLOSED);
    assert_eq!((done.wrong, done.first_wrong.as_str()), (1, "GET /a: what is answered is not HTTP/1.1"));
    assert!(result.errors.iter().any(|(reason, count)| reason == "closed" && *count > 0), "{:?}", result.errors);
}

#[test]
fn a_request_is_sent_once_more_on_a_connection_that_was_closed_between_two_unless_it_is_a_post() {
    let closes = |line: &str, before: u64| match before {
        2.. if before.is_multiple_of(3) => Does::Closes(""),
        _ => echo(line, before),
    };
    let (server, _) = serve(closes);
    let (result, done) = driven(server, &task(vec![asked("GET", "/a", 1.0, "")]), CLOSED);
    assert!(done.reconnected > 3 && result.operations > 3, "{done:?}");
    let (server, _) = serve(closes);
    let (result, done) = driven(server, &task(vec![asked("POST", "/a", 1.0, "")]), CLOSED);
    assert_eq!((done.reconnected, done.wrong), (0, 0));
    assert!(result.errors.iter().any(|(reason, _)| reason == "closed"), "{:?}", result.errors);
}

#[test]
fn an_answer_that_comes_too_late_is_a_time_out() {
    let (server, _) = serve(|line, before| if before == 9 { Does::Waits(2_000) } else { echo(line, before) });
    let mut task = task(vec![asked("GET", "/a", 1.0, "")]);
    task.reached.timeout_ns = 300_000_000;
    let (result, done) = driven(server, &task, CLOSED);
    assert!(result.errors.iter().any(|(reason, count)| reason == "timeout" && *count > 0), "{:?}", result.errors);
    assert!(result.operations > 20 && done.wrong == 0, "the others go on: {result:?}");
}

#[test]
fn before_the_load_each_request_is_held_against_what_is_expected() {
    let (server, _) = serve(|line, before| match line.contains("/b") {
        true => Does::Answers(sized("500 Oops", "no table")),
        false => echo(line, before),
    });
    let task = task(vec![asked("GET", "/a", 1.0, ""), asked("GET", "/b", 1.0, "")]);
    let error = drive::run(&spec_of(server, &task, CLOSED, 50), &|_| {}, &AtomicBool::new(false)).unwrap_err();
    let words = error.to_string();
    assert!(
        words.contains("GET /b is not answered as the study says: status 500") && words.contains("no table"),
        "{words}"
    );
    let ask = |request: &Asked| HttpAsk { server, reached: task.reached.clone(), request: request.clone() };
    let call = |at: usize| ask(&task.requests[at]).call(&AtomicBool::new(false));
    assert!(call(0).is_ok() && call(1).unwrap_err().contains("status 500"));
    let (server, _) = serve(|_, _| Does::Answers("HTTP/1.0 200 OK\r\n\r\nas long as it lasts".to_owned()));
    let mut lasts = HttpAsk { server, ..ask(&asked("GET", "/", 1.0, "")) };
    lasts.reached.timeout_ns = 200_000_000;
    assert!(lasts.call(&AtomicBool::new(false)).unwrap_err().contains("does not answer within 0.2 s"));
    let (server, _) = serve(|_, _| Does::Closes("HTTP/1.0 200 OK\r\n\r\nas long as it lasts"));
    let ends = HttpAsk { server, ..ask(&asked("GET", "/", 1.0, "lasts")) };
    assert_eq!(ends.call(&AtomicBool::new(false)), Ok(()));
}

#[test]
fn in_turns_nothing_is_sent_outside_of_them_and_each_counts_what_began_in_it() {
    let (turn, gap) = (Span::from_millis(30), Span::from_millis(20));
    let spec = TurnSpec { turn, warm_up: Span::ZERO, gap, waiting: Waiting::Idle, commands: None };
    for load in [CLOSED, LoadModel::Open { rate: Rate(1_000.0), arrivals: Arrivals::Uniform, connections: 8 }] {
        let (server, _) = serve(echo);
        let noting = Noting::before(server, now_ns, b"");
        let drive = spec_of(noting.address, &task(vec![asked("GET", "/a", 1.0, "")]), load, 200);
        let turns = Turns { spec, arms: 2, places: vec![0; spec.rounds(&drive.phases) as usize] };
        let drive = DriveSpec { turns: Some(turns.clone()), ..drive };
        let prepared = drive::prepare(&drive, &AtomicBool::new(false)).unwrap();
        let start = now_ns() + 50_000_000;
        let result = prepared.run(start, &|_| {}, &AtomicBool::new(false)).unwrap();
        let counts = &result.turns.as_ref().unwrap().counts;
        assert!(result.errors.is_empty() && result.operations > 20, "{result:?}");
        assert_eq!(counts.iter().map(|turn| turn.operations).sum::<u64>(), result.operations);
        // A machine that is busy keeps the driver from running now and then.
        let late = noting.late(&turns, start);
        assert!(late <= 1, "{late} of {} turns reach into others'", counts.len());
    }
}
