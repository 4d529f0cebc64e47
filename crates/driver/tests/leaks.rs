//! Nothing is left of a server that was stopped or dropped. Alone in its program, because it counts the
//! program's threads and descriptors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;

use std::fs;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use common::*;
use tare_driver::drive;
use tare_model::drive::{Direction, Exchange, ReceiveMethod, SendMethod, SocketDrive};

fn count(what: &str) -> usize {
    fs::read_dir(format!("/proc/self/{what}")).unwrap().count()
}

/// The count once it is the one expected: the kernel lists a thread for a moment after it has been joined.
fn settled(what: &str, expected: usize) -> usize {
    let began = Instant::now();
    while count(what) != expected && began.elapsed() < Duration::from_secs(5) {
        std::thread::yield_now();
    }
    count(what)
}

#[test]
fn stopping_ends_every_thread_and_closes_every_socket_however_many_connections_are_open() {
    let before = (count("task"), count("fd"));
    for exchange in [Exchange::TcpRr, Exchange::TcpCrr, Exchange::UdpRr] {
        let server = serve_rr(exchange, 16, 16);
        let connected =
            drive::prepare(&spec(rr(exchange, 16, 16), server.addr, closed(200), steady(10)), &AtomicBool::new(false))
                .unwrap();
        if exchange != Exchange::TcpCrr {
            assert!(count("task") >= before.0 + 200);
        }
        server.stop();
        assert_eq!(settled("task", before.0), before.0, "{exchange:?}: threads, with all connections still held open");
        drop(connected);
        assert_eq!(count("fd"), before.1, "{exchange:?}: descriptors");
    }
    let server = serve_stream(SendMethod::Sendfile, ReceiveMethod::Read);
    let (direction, method, receive) = (Direction::Both, SendMethod::Sendfile, ReceiveMethod::Read);
    let kind = SocketDrive::Stream { direction, method, receive, chunk_bytes: 4096, window_bytes: 4096 };
    run(&spec(kind, server.addr, closed(8), steady(20))).unwrap();
    drop(server);
    assert_eq!((settled("task", before.0), count("fd")), before, "dropping stops as well");
}
