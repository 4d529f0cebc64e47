//! What happens when the other end is wrong, stalls or dies: errors by reason, and never a hang.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::*;
use tare_driver::protocol::{HELLO_LEN, Hello, Purpose, REPLY_LEN, Reply};
use tare_driver::{DriverError, clock, drive};
use tare_model::drive::{Direction, Exchange, ReceiveMethod, SendMethod, SocketDrive};
use tare_model::load::Arrivals;
use tare_model::packed::Packed;

const BULK: SocketDrive = SocketDrive::Stream {
    direction: Direction::Both,
    method: SendMethod::Write,
    receive: ReceiveMethod::Read,
    chunk_bytes: 65_536,
    window_bytes: 65_536,
};

/// Accepts one connection, answers the hello, and hands it to `then`.
fn peer(serves: Purpose, then: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let (mut connection, then) = (connection.unwrap(), then.clone());
            thread::spawn(move || {
                connection.read_exact(&mut [0; HELLO_LEN]).unwrap();
                let sizes = if serves == Purpose::BulkToGuest { 0 } else { 16 };
                let reply = Reply { serves, request_bytes: sizes, response_bytes: sizes, port: 0 };
                connection.write_all(&reply.encode()).unwrap();
                then(connection);
            });
        }
    });
    address
}

#[test]
fn a_server_that_dies_in_the_run_gives_errors_and_an_early_end() {
    let kinds = [rr(Exchange::TcpRr, 16, 16), rr(Exchange::TcpCrr, 16, 16), rr(Exchange::UdpRr, 16, 16), BULK];
    for kind in kinds {
        let server = match kind {
            SocketDrive::Rr { exchange, .. } => serve_rr(exchange, 16, 16),
            _ => serve_stream(SendMethod::Write, ReceiveMethod::Read),
        };
        let spec = spec(kind, server.addr, closed(2), steady(600));
        let prepared = drive::prepare(&spec, &AtomicBool::new(false)).unwrap();
        let killer = thread::spawn(move || {
            thread::sleep(Duration::from_millis(200));
            server.stop()
        });
        let started = clock::now_ns();
        let result = prepared.run(0, &|_| (), &AtomicBool::new(false)).unwrap();
        let took = clock::now_ns() - started;
        let limit = spec.phases.total().ns + drive::GRACE_NS + 2_000_000_000;
        assert!(took < limit, "{kind:?} took {took} ns");
        assert!(errors(&result) + result.lost > 0, "{kind:?}: {:?}", result.errors);
        assert_eq!(result.verified, !matches!(kind, SocketDrive::Stream { .. }));
        killer.join().unwrap();
    }
}

#[test]
fn a_closed_loop_whose_server_stalls_ends_and_says_so() {
    let address = peer(Purpose::TcpRr, |connection| {
        let _held = connection;
        thread::sleep(Duration::from_secs(60));
    });
    let started = clock::now_ns();
    let result = run(&spec(rr(Exchange::TcpRr, 16, 16), address, closed(3), steady(100))).unwrap();
    let took = clock::now_ns() - started;
    assert!(took < 100_000_000 + drive::GRACE_CLOSED_NS + 5_000_000_000, "{took} ns");
    assert_eq!(result.operations, 0);
    assert_eq!(result.errors, [("no answer by the end of the run".to_owned(), 3)]);
    assert_eq!(result.response.given_up, 3, "they are no better than those that were answered");
    assert!(result.response.waited_ns >= 3 * drive::GRACE_CLOSED_NS);
}

#[test]
fn a_window_that_has_begun_is_refused_and_never_shifted() {
    let server = serve_rr(Exchange::TcpRr, 16, 16);
    let never = AtomicBool::new(false);
    let late = spec(rr(Exchange::TcpRr, 16, 16), server.addr, closed(1), steady(50));
    let refused = drive::prepare(&late, &never).unwrap().run(clock::now_ns() - 1_000_000, &|_| (), &never);
    assert!(matches!(refused, Err(DriverError::Late { late_ns }) if late_ns >= 1_000_000), "{refused:?}");
    // With a warm-up there is room: the window stays where it was announced.
    let spec = spec(rr(Exchange::TcpRr, 16, 16), server.addr, closed(1), phases(2_000, 0, 50, 0));
    let start = clock::now_ns() - 1_900_000_000;
    let result = drive::prepare(&spec, &never).unwrap().run(start, &|_| (), &never).unwrap();
    assert_eq!(result.steady_start_ns, start + 2_000_000_000);
    assert_eq!(result.steady_end_ns, start + 2_050_000_000);
    assert!(result.operations > 0);
}

#[test]
fn a_cancel_that_comes_first_ends_what_comes_after() {
    let server = serve_rr(Exchange::TcpRr, 16, 16);
    let spec = spec(rr(Exchange::TcpRr, 16, 16), server.addr, closed(1), steady(60_000));
    let (never, cancelled) = (AtomicBool::new(false), AtomicBool::new(true));
    assert!(matches!(drive::prepare(&spec, &cancelled), Err(DriverError::Cancelled)));
    let prepared = drive::prepare(&spec, &never).unwrap();
    assert!(matches!(prepared.run(0, &|_| (), &cancelled), Err(DriverError::Cancelled)));
}

#[test]
fn an_open_loop_whose_server_stalls_shows_every_arrival_as_unfinished() {
    let address = peer(Purpose::TcpRr, |connection| {
        let _held = connection;
        thread::sleep(Duration::from_secs(60));
    });
    let load = open(1000.0, Arrivals::Uniform, 2);
    let result = run(&spec(rr(Exchange::TcpRr, 16, 16), address, load, steady(300))).unwrap();
    assert_eq!(result.operations, 0);
    assert_eq!(result.unfinished, 300);
    assert_eq!((result.response.count(), result.response.given_up), (0, 300));
    assert!(result.response.waited_ns >= 300 * drive::GRACE_NS && result.response.quantile(0.5).is_none());
    assert!(result.service.count() == 0 && result.lateness.is_empty());
    assert_eq!(result.backlog_max, 298, "two are on their way, all the others wait");
}

#[test]
fn a_bulk_receiver_that_stops_reading_is_cut_off() {
    let address = peer(Purpose::BulkToGuest, |connection| {
        let _held = connection;
        thread::sleep(Duration::from_secs(60));
    });
    let kind = SocketDrive::Stream {
        direction: Direction::Receive,
        method: SendMethod::Sendfile,
        receive: ReceiveMethod::Read,
        chunk_bytes: 65_536,
        window_bytes: 65_536,
    };
    let result = run(&spec(kind, address, closed(1), steady(100))).unwrap();
    assert!(!result.verified);
    assert_eq!(result.errors, [("no answer by the end of the run".to_owned(), 1)]);
}

#[test]
fn an_answer_that_is_not_this_requests_own_is_an_error() {
    let address = peer(Purpose::TcpRr, |mut connection| {
        let mut request = [0; 16];
        while connection.read_exact(&mut request).is_ok() {
            request[7] ^= 1;
            if connection.write_all(&request).is_err() {
                return;
            }
        }
    });
    let result = run(&spec(rr(Exchange::TcpRr, 16, 16), address, closed(1), steady(50))).unwrap();
    assert_eq!(result.errors, [("wrong answer".to_owned(), 1)]);
    assert_eq!(result.operations, 0);
}

/// Answers the hello, then every datagram unless `drops` says otherwise of its number; tells how many it dropped.
fn lossy(drops: fn(u64) -> bool, late: bool, stop: &AtomicBool, socket: &UdpSocket) -> u64 {
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let port = socket.local_addr().unwrap().port();
    let mut buffer = [0; 64];
    let (mut number, mut dropped) = (0, 0);
    let mut held: Option<Vec<u8>> = None;
    while !stop.load(Ordering::Relaxed) {
        let Ok((n, from)) = socket.recv_from(&mut buffer) else { continue };
        if let Some(hello) = buffer[..n].get(..REPLY_LEN).and_then(Hello::decode) {
            let reply = Reply { serves: Purpose::UdpRr, request_bytes: 16, response_bytes: 16, port };
            assert_eq!(hello.request_bytes, 16);
            socket.send_to(&reply.encode(), from).unwrap();
            continue;
        }
        if n != 16 {
            continue;
        }
        number += 1;
        if drops(number) {
            dropped += 1;
            held = late.then(|| buffer[..n].to_vec());
            continue;
        }
        // The late answer comes just before the right one to the next request.
        if let Some(answer) = held.take() {
            socket.send_to(&answer, from).unwrap();
        }
        socket.send_to(&buffer[..n], from).unwrap();
    }
    dropped
}

#[test]
fn lost_datagrams_are_counted_and_late_ones_are_not_taken_for_answers() {
    for late in [false, true] {
        let socket = UdpSocket::bind((LOOPBACK, 0)).unwrap();
        let address = socket.local_addr().unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let server = scope.spawn(|| lossy(|n| n % 10 == 0, late, &stop, &socket));
            let result = run(&spec(rr(Exchange::UdpRr, 16, 16), address, closed(1), steady(1000))).unwrap();
            stop.store(true, Ordering::Relaxed);
            let dropped = server.join().unwrap();
            assert_eq!(result.errors, [], "a late answer is not even an error");
            assert!(dropped > 2);
            // The wait for the last one may end after the window.
            assert!(dropped - result.lost <= 1, "dropped {dropped}, counted {}", result.lost);
            assert!(result.operations >= result.lost * 9);
            assert_eq!((result.response.count(), result.response.given_up), (result.operations, result.lost));
            let waited = result.response.waited_ns;
            assert!(
                waited >= result.lost * 50_000_000,
                "a lost exchange took at least what was waited for it: {waited}"
            );
        });
    }
}

#[test]
fn open_loop_losses_are_counted_too() {
    let socket = UdpSocket::bind((LOOPBACK, 0)).unwrap();
    let address = socket.local_addr().unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let server = scope.spawn(|| lossy(|n| n % 4 == 0, true, &stop, &socket));
        let load = open(100.0, Arrivals::Uniform, 1);
        let result = run(&spec(rr(Exchange::UdpRr, 16, 16), address, load, steady(400))).unwrap();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(result.lost, 10);
        assert_eq!(server.join().unwrap(), 10);
        assert_eq!((result.response.count(), result.response.given_up, result.service.count()), (30, 10, 30));
        assert!(result.response.waited_ns >= 500_000_000 && result.response.quantile(0.8).is_none());
    });
}

#[test]
fn a_foreign_program_is_named_as_such() {
    let http = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let shut = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let (http_at, shut_at) = (http.local_addr().unwrap(), shut.local_addr().unwrap());
    thread::spawn(move || {
        let (mut connection, _) = http.accept().unwrap();
        let _ = connection.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        let _ = connection.read_to_end(&mut Vec::new());
    });
    thread::spawn(move || drop(shut.accept().unwrap()));
    for (target, says) in [(http_at, "HTTP/1.1 400"), (shut_at, "connection")] {
        let error = run(&spec(rr(Exchange::TcpRr, 16, 16), target, closed(1), steady(50))).unwrap_err();
        assert!(matches!(error, DriverError::NotOurs { .. }), "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn nobody_listening_and_another_load_are_distinguished() {
    let closed_port = TcpListener::bind((LOOPBACK, 0)).unwrap().local_addr().unwrap();
    for exchange in [Exchange::TcpRr, Exchange::UdpRr, Exchange::TcpCrr] {
        let error = run(&spec(rr(exchange, 16, 16), closed_port, closed(1), steady(50))).unwrap_err();
        assert!(matches!(error, DriverError::Connect { .. }), "{error}");

        let server = serve_rr(exchange, 16, 16);
        let error = run(&spec(rr(exchange, 16, 17), server.addr, closed(1), steady(50))).unwrap_err();
        assert!(matches!(error, DriverError::Refused { .. }), "{error}");
        assert!(error.to_string().contains("16 and 16") && error.to_string().contains("16 and 17"), "{error}");
    }
}

#[test]
fn a_stranger_at_the_servers_door_is_counted_and_harms_nobody() {
    let server = serve_rr(Exchange::TcpRr, 16, 16);
    let mut stranger = TcpStream::connect(server.addr).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    stranger.read_to_end(&mut Vec::new()).unwrap_or(0);
    let result = run(&spec(rr(Exchange::TcpRr, 16, 16), server.addr, closed(1), steady(50))).unwrap();
    assert!(result.operations > 0 && result.errors.is_empty());
    let report = server.stop();
    assert_eq!((report.strangers, report.connections, report.errors), (1, 1, Vec::new()));
}

#[test]
fn an_impossible_load_is_refused_before_anything_is_opened() {
    let nowhere = "127.0.0.1:9".parse().unwrap();
    let good = || spec(rr(Exchange::TcpRr, 16, 16), nowhere, closed(1), steady(50));
    let mut bad = vec![good(); 7];
    bad[0].targets.clear();
    bad[1].load = closed(0);
    bad[2].phases = steady(0);
    bad[3].task = Packed::of(&rr(Exchange::UdpRr, 70_000, 1)).unwrap();
    bad[4].task = Packed::of(&rr(Exchange::TcpRr, 0, 1)).unwrap();
    bad[5].task = Packed::of(&BULK).unwrap();
    bad[6].load = open(0.0, Arrivals::Poisson, 1);
    for spec in bad {
        let error = run(&spec).unwrap_err();
        assert!(matches!(error, DriverError::Invalid { .. }), "{spec:?}: {error}");
    }
}

#[test]
fn cancelling_ends_a_run_at_once() {
    let server = serve_rr(Exchange::TcpRr, 16, 16);
    let spec = spec(rr(Exchange::TcpRr, 16, 16), server.addr, closed(2), steady(60_000));
    let cancel = AtomicBool::new(false);
    thread::scope(|scope| {
        let runner = scope.spawn(|| drive::run(&spec, &|_| (), &cancel));
        thread::sleep(Duration::from_millis(100));
        cancel.store(true, Ordering::Relaxed);
        assert!(matches!(runner.join().unwrap(), Err(DriverError::Cancelled)));
    });
}
