//! The simulated backend over sockets: kept connections, its counts, and that one connection does not hold up another.

use crate::common::{self, connect};

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpStream};
use std::time::{Duration, Instant};

use tare_driver::serve::{self, ServeReport, Server};
use tare_driver::web::proof::proof;
use tare_driver::web::spec::BackendSpec;
use tare_model::packed::Packed;

const SALT: u64 = 0x5a17;

fn backend(delay: Duration) -> Server {
    let spec = BackendSpec { salt: SALT, delay_ns: delay.as_nanos() as u64 };
    serve::start(&Packed::of(&spec).unwrap(), IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap()
}

fn request(query: &str) -> String {
    format!("GET /?{query} HTTP/1.1\r\nHost: backend\r\n\r\n")
}

fn answer(stream: &mut TcpStream) -> (String, String) {
    let (head, body) = common::answer(stream);
    (head, String::from_utf8(body).unwrap())
}

fn proof_of(body: &str) -> &str {
    body.lines().nth(2).unwrap().split('&').next().unwrap()
}

fn errors(report: &ServeReport) -> Vec<(&str, u64)> {
    report.errors.iter().map(|(reason, count)| (reason.as_str(), *count)).collect()
}

#[test]
fn requests_on_kept_connections_are_answered_with_their_proofs_and_counted() {
    let server = backend(Duration::ZERO);
    let mut streams: Vec<TcpStream> = (0..3).map(|_| connect(server.addr)).collect();
    let (mut sent, mut received) = (0, 0);
    for n in 0..50 {
        for (at, stream) in streams.iter_mut().enumerate() {
            let query = format!("banking&2&{n:010}&{at:016x}");
            let text = request(&query);
            stream.write_all(text.as_bytes()).unwrap();
            sent += text.len();
            let (head, body) = answer(stream);
            received += head.len() + body.len();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
            assert_eq!(proof_of(&body).as_bytes(), proof(SALT, query.as_bytes()));
            assert_eq!(body.lines().nth(1), Some("0"));
        }
    }
    drop(streams);
    let report = server.stop();
    assert_eq!((report.connections, report.requests), (3, 150));
    assert_eq!((report.bytes_in, report.bytes_out), (sent as u64, received as u64));
    assert_eq!(report.service.count(), 150);
    assert!(report.cpu_ns > 0, "150 requests take longer than the clock's microsecond");
    assert_eq!(errors(&report), []);
}

#[test]
fn requests_in_pieces_and_several_at_once_are_distinguished() {
    let server = backend(Duration::ZERO);
    let mut stream = connect(server.addr);
    let queries: Vec<String> = (0..20).map(|n| format!("support&5&{n}&{n:016x}")).collect();
    let text: String = queries.iter().map(|query| request(query)).collect();
    for piece in text.as_bytes().chunks(37) {
        stream.write_all(piece).unwrap();
    }
    for query in &queries {
        let (_, body) = answer(&mut stream);
        assert_eq!(proof_of(&body).as_bytes(), proof(SALT, query.as_bytes()));
    }
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0, "it closes when it is left");
    let report = server.stop();
    assert_eq!((report.connections, report.requests, errors(&report).len()), (1, 20, 0));
}

#[test]
fn what_is_no_request_is_refused_with_400_and_reported() {
    let server = backend(Duration::ZERO);
    for wrong in ["POST /?banking&1 HTTP/1.1\r\n\r\n", "GET /elsewhere HTTP/1.1\r\n\r\n", "\u{2}\u{3}\r\n\r\n"] {
        let mut stream = connect(server.addr);
        stream.write_all(wrong.as_bytes()).unwrap();
        let (head, body) = answer(&mut stream);
        assert!(head.starts_with("HTTP/1.1 400 ") && body.is_empty(), "{head}");
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "nothing more is read of it");
    }
    let mut long = connect(server.addr);
    long.write_all(&[b"GET /?".to_vec(), vec![b'a'; 16 * 1024 - 6]].concat()).unwrap();
    assert!(answer(&mut long).0.starts_with("HTTP/1.1 400 "));
    let mut cut = connect(server.addr);
    cut.write_all(b"GET /?banking&1 HTT").unwrap();
    cut.shutdown(Shutdown::Write).unwrap();
    assert_eq!(cut.read(&mut [0]).unwrap(), 0);
    let mut unknown = connect(server.addr);
    unknown.write_all(request("banking&99&1").as_bytes()).unwrap();
    assert_eq!(answer(&mut unknown).1.lines().nth(1), Some("1"));
    drop(unknown);
    let report = server.stop();
    assert_eq!((report.connections, report.requests), (6, 1));
    let expected = [
        ("a query without a command that there is", 1),
        ("a request was cut short", 1),
        ("malformed request: a head is longer than 16 KiB", 1),
        ("malformed request: no head of HTTP", 1),
        ("malformed request: not GET", 1),
        ("malformed request: not of the address /?QUERY", 1),
    ];
    assert_eq!(errors(&report), expected);
}

#[test]
fn a_delay_holds_up_only_its_own_connection() {
    let delay = Duration::from_millis(300);
    let server = backend(delay);
    let mut streams: Vec<TcpStream> = (0..10).map(|_| connect(server.addr)).collect();
    let began = Instant::now();
    for stream in &mut streams {
        stream.write_all(request("banking&1&0000000001&00").as_bytes()).unwrap();
    }
    for stream in &mut streams {
        answer(stream);
        assert!(began.elapsed() >= delay, "an answer came before its delay");
    }
    // One after another they would have taken ten delays.
    assert!(began.elapsed() < 9 * delay, "{:?}", began.elapsed());
    drop(streams);
    let report = server.stop();
    assert_eq!(report.requests, 10);
    assert!(report.service.min >= delay.as_nanos() as u64, "the delay is part of the service");
}

#[test]
fn a_server_with_open_connections_and_a_long_delay_stops() {
    let server = backend(Duration::from_secs(3_600));
    let mut waiting = connect(server.addr);
    waiting.write_all(request("banking&1&0000000001&00").as_bytes()).unwrap();
    let idle = connect(server.addr);
    let report = server.stop();
    assert_eq!(report.requests, 0);
    drop(idle);
}
