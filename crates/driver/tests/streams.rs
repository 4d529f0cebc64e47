//! Bulk data between the two real ends on loopback, verified to the byte, and between one and a liar.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use crate::common::*;
use tare_driver::protocol::{HELLO_LEN, Purpose, Reply};
use tare_model::drive::{Direction, ReceiveMethod, SendMethod, SocketDrive};

fn stream(direction: Direction, method: SendMethod, receive: ReceiveMethod) -> SocketDrive {
    // A window that is no multiple of the chunk: sends are cut at its end.
    SocketDrive::Stream { direction, method, receive, chunk_bytes: 65_536, window_bytes: 100_000 }
}

#[test]
fn both_ends_count_the_same_bytes_in_every_direction_and_mode() {
    for direction in [Direction::Receive, Direction::Send, Direction::Both] {
        for method in [SendMethod::Write, SendMethod::Sendfile] {
            for receive in [ReceiveMethod::Read, ReceiveMethod::Truncate] {
                let server = serve_stream(method, receive);
                let kind = stream(direction, method, receive);
                let result = run(&spec(kind, server.addr, closed(2), phases(20, 20, 100, 20))).unwrap();
                assert_eq!(result.errors, [], "{direction:?} {method:?} {receive:?}");
                assert!(result.verified);
                assert_eq!(result.operations, 0);
                let (to, from) = (result.bytes_to_guest, result.bytes_from_guest);
                assert_eq!(to > 0, direction != Direction::Send);
                assert_eq!(from > 0, direction != Direction::Receive);
                let report = server.stop();
                assert!(report.bytes_in >= to && report.bytes_out >= from, "the window is a part of the whole");
                assert_eq!(report.errors, []);
                let series: u64 = result.intervals.iter().map(|i| i.bytes).sum();
                assert!(series >= to + from && series <= report.bytes_in + report.bytes_out);
            }
        }
    }
}

/// A server that swallows all data and then claims a count of its own making.
fn liar(claim: impl Fn(u64) -> Vec<u8> + Send + 'static) -> std::net::SocketAddr {
    let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        connection.read_exact(&mut [0; HELLO_LEN]).unwrap();
        let reply = Reply { serves: Purpose::BulkToGuest, request_bytes: 0, response_bytes: 0, port: 0 };
        connection.write_all(&reply.encode()).unwrap();
        let count = std::io::copy(&mut connection, &mut std::io::sink()).unwrap();
        connection.write_all(&claim(count)).unwrap();
    });
    address
}

#[test]
fn a_count_that_is_off_by_one_is_seen() {
    let note = |count: u64| [b"\xA5tareEND".as_slice(), &count.to_be_bytes()].concat();
    let kind = || stream(Direction::Receive, SendMethod::Write, ReceiveMethod::Read);
    let honest = run(&spec(kind(), liar(note), closed(1), steady(50))).unwrap();
    assert!(honest.verified, "{:?}", honest.errors);

    let short = run(&spec(kind(), liar(move |count| note(count - 1)), closed(1), steady(50))).unwrap();
    assert!(!short.verified);
    assert_eq!(short.errors, [("bytes received differ from bytes sent".to_owned(), 1)]);

    let silent = run(&spec(kind(), liar(|_| Vec::new()), closed(1), steady(50))).unwrap();
    assert!(!silent.verified);
    assert_eq!(silent.errors, [("stream closed without a count".to_owned(), 1)]);
}
