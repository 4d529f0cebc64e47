//! Servers with a token: who shows it is served, and nobody else is, whoever comes and however long they take.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use crate::common::*;
use tare_driver::DriverError;
use tare_driver::protocol::{HELLO_LEN, Hello, Purpose};
use tare_driver::serve::{self, Door, Server};
use tare_model::drive::{
    Direction, DriveSpec, Exchange, ReceiveMethod, SendMethod, SocketDrive, SocketOptions, SocketServer, Wait,
};
use tare_model::packed::Packed;
use tare_model::token::Token;

const RIGHT: Token = Token::new([0xA7; Token::LEN]);
const WRONG: Token = Token::new([0xA6; Token::LEN]);

/// A kind of server, what drives it, and what its drivers say that they are.
type Kind = (SocketServer, SocketDrive, Purpose);

fn kinds() -> Vec<Kind> {
    let socket = SocketOptions::default();
    let (request_bytes, response_bytes, wait) = (16, 16, Wait::Block);
    let exchange = |exchange, purpose| {
        let hold = None;
        let socket = socket.clone();
        let serves = SocketServer::Rr { exchange, request_bytes, response_bytes, wait, hold, socket };
        (serves, SocketDrive::Rr { exchange, request_bytes, response_bytes, wait }, purpose)
    };
    let (method, receive, chunk_bytes, window_bytes) = (SendMethod::Write, ReceiveMethod::Read, 65_536, 100_000);
    let bulk = SocketServer::Stream { method, receive, chunk_bytes, window_bytes, socket: socket.clone() };
    let stream = |direction| SocketDrive::Stream { direction, method, receive, chunk_bytes, window_bytes };
    vec![
        exchange(Exchange::TcpRr, Purpose::TcpRr),
        exchange(Exchange::UdpRr, Purpose::UdpRr),
        exchange(Exchange::TcpCrr, Purpose::TcpCrr),
        (bulk.clone(), stream(Direction::Send), Purpose::BulkFromGuest),
        (bulk, stream(Direction::Receive), Purpose::BulkToGuest),
    ]
}

fn guarded(serves: &SocketServer) -> Server {
    serve::start(&Packed::of(serves).unwrap(), Door { token: Some(RIGHT), ..Door::from(LOOPBACK) }).unwrap()
}

fn showing(kind: SocketDrive, target: SocketAddr, token: Option<Token>) -> DriveSpec {
    DriveSpec { token, ..spec(kind, target, closed(2), steady(100)) }
}

/// A hello with so many bytes of what stands for a token.
fn words(purpose: Purpose, token: &[u8]) -> Vec<u8> {
    let bytes = if matches!(purpose, Purpose::BulkToGuest | Purpose::BulkFromGuest) { 0 } else { 16 };
    let hello = Hello { purpose, request_bytes: bytes, response_bytes: bytes, connection: 0 };
    [&hello.encode()[..], token].concat()
}

/// What a server answers to somebody who says this, and then no more; of UDP to a datagram.
fn answer(server: &Server, udp: bool, say: &[u8]) -> Vec<u8> {
    if udp {
        let socket = UdpSocket::bind((LOOPBACK, 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        socket.send_to(say, server.addr).unwrap();
        let mut buffer = [0; 100];
        return socket.recv(&mut buffer).map(|n| buffer[..n].to_vec()).unwrap_or_default();
    }
    let mut stream = TcpStream::connect(server.addr).unwrap();
    stream.write_all(say).unwrap();
    // A server that has heard enough may have reset it already.
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut heard = Vec::new();
    // Reset is as good an end as closed.
    let _ = stream.read_to_end(&mut heard);
    heard
}

#[test]
fn who_shows_the_token_is_served_and_who_shows_another_or_none_is_not() {
    for (serves, drives, _) in kinds() {
        let server = guarded(&serves);
        let done = run(&showing(drives, server.addr, Some(RIGHT))).unwrap();
        assert!(done.errors.is_empty() && done.bytes_to_guest + done.bytes_from_guest > 0, "{drives:?}: {done:?}");
        let before = server.stop();
        assert_eq!((before.strangers, before.errors), (0, Vec::new()), "{drives:?}");
        for token in [Some(WRONG), None] {
            let server = guarded(&serves);
            let refused = run(&showing(drives, server.addr, token)).unwrap_err();
            let udp = matches!(drives, SocketDrive::Rr { exchange: Exchange::UdpRr, .. });
            // A datagram is not answered, as if nobody were there.
            let fits = matches!(&refused, DriverError::Connect { .. } if udp)
                || matches!(&refused, DriverError::NotOurs { .. });
            assert!(fits, "{drives:?}: {refused}");
            let report = server.stop();
            assert_eq!((report.connections, report.bytes_in, report.bytes_out), (0, 0, 0), "{drives:?}");
            assert_eq!((report.strangers, report.errors), (if udp { 5 } else { 1 }, Vec::new()), "{drives:?}");
        }
    }
}

#[test]
fn strangers_are_not_answered_and_touch_no_count_of_the_load_beside_them() {
    for (serves, drives, purpose) in kinds() {
        let udp = purpose == Purpose::UdpRr;
        let server = guarded(&serves);
        let says = [
            words(purpose, WRONG.bits()),
            words(purpose, &[]),
            words(purpose, &RIGHT.bits()[..15]),
            vec![0; 16],
            b"GET / HTTP/1.1\r\nHost: a-host-of-some-length\r\n\r\n".to_vec(),
        ];
        let mut quiet = Vec::new();
        let (done, heard) = std::thread::scope(|scope| {
            let drive = scope.spawn(|| run(&showing(drives, server.addr, Some(RIGHT))).unwrap());
            // They keep nobody waiting. Of exchanges on connections of their own, only those from an address that is not known: see below.
            let silent = if matches!(purpose, Purpose::UdpRr | Purpose::TcpCrr) { 0 } else { 70 };
            quiet.extend((0..silent).map(|_| TcpStream::connect(server.addr).unwrap()));
            let heard: Vec<_> = says.iter().map(|say| answer(&server, udp, say)).collect();
            (drive.join().unwrap(), heard)
        });
        // Of exchanges on connections of their own the address is let in: what comes from there is a request, and no hello.
        if purpose != Purpose::TcpCrr {
            assert!(heard.iter().all(Vec::is_empty), "{purpose:?}: {heard:?}");
        }
        assert_eq!(done.errors, [], "{purpose:?}");
        drop(quiet);
        let report = server.stop();
        if purpose == Purpose::TcpRr || udp {
            let all: u64 = done.intervals.iter().map(|interval| interval.operations).sum();
            assert_eq!((report.bytes_in, report.bytes_out), (all * 16, all * 16), "{purpose:?}");
            assert_eq!((report.connections, report.errors.len()), (2, 0), "{purpose:?}");
        }
        assert!(report.strangers >= 1, "{purpose:?}: {report:?}");
    }
}

#[test]
fn exchanges_on_connections_of_their_own_are_served_from_where_the_token_was_shown_alone() {
    let (serves, drives, purpose) = kinds().remove(2);
    let server = guarded(&serves);
    // An exchange from an address from which nobody has shown it, and one that says nothing at all.
    let request = vec![1; 16];
    assert_eq!(answer(&server, false, &request), b"");
    let silent: Vec<TcpStream> = (0..70).map(|_| TcpStream::connect(server.addr).unwrap()).collect();
    let done = run(&showing(drives, server.addr, Some(RIGHT))).unwrap();
    assert!(done.operations > 0 && done.errors.is_empty(), "{done:?}");
    // Now it is known; a wrong token is refused from there too.
    assert_eq!(answer(&server, false, &request).len(), 16);
    assert_eq!(answer(&server, false, &words(purpose, WRONG.bits())), b"");
    drop(silent);
    let report = server.stop();
    assert!(report.strangers >= 2 && report.errors.is_empty(), "{report:?}");
}

#[test]
fn a_stranger_that_says_nothing_is_closed_and_one_that_is_slow_with_the_token_is_served() {
    let (serves, _, purpose) = kinds().remove(0);
    let server = guarded(&serves);
    let mut slow = TcpStream::connect(server.addr).unwrap();
    for byte in words(purpose, RIGHT.bits()) {
        slow.write_all(&[byte]).unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut reply = [0; 24];
    slow.read_exact(&mut reply).unwrap();
    let mut silent = TcpStream::connect(server.addr).unwrap();
    silent.write_all(&words(purpose, RIGHT.bits())[..HELLO_LEN - 1]).unwrap();
    silent.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(silent.read(&mut reply).unwrap_or(0), 0, "it is closed after 5 s");
    drop(slow);
    let report = server.stop();
    assert_eq!((report.strangers, report.errors), (1, Vec::new()));
}

#[test]
fn where_connections_of_one_machine_are_accepted_others_are_closed_unheard() {
    let (serves, drives, _) = kinds().remove(0);
    for (from, let_in) in [("127.0.0.1", true), ("127.0.0.2", false)] {
        let door = Door { from: Some(from.parse().unwrap()), ..Door::from(LOOPBACK) };
        let server = serve::start(&Packed::of(&serves).unwrap(), door).unwrap();
        let done = run(&showing(drives, server.addr, None));
        assert_eq!(done.is_ok(), let_in, "{from}: {done:?}");
        let report = server.stop();
        assert_eq!((report.strangers, report.connections), if let_in { (0, 2) } else { (1, 0) }, "{from}");
    }
}
