//! Request and response between the two real ends on loopback.

use std::cell::RefCell;
use std::sync::atomic::AtomicBool;

use crate::common::*;
use tare_driver::{clock, drive};
use tare_model::drive::{Exchange, SocketDrive, SocketOptions, SocketServer, Wait};
use tare_model::load::{Arrivals, LoadModel};
use tare_model::packed::Packed;
use tare_model::{Span, drive::DriveSpec};

const EXCHANGES: [Exchange; 3] = [Exchange::TcpRr, Exchange::UdpRr, Exchange::TcpCrr];

#[test]
fn every_operation_of_the_window_is_recorded_and_nothing_fails() {
    for exchange in EXCHANGES {
        let server = serve_rr(exchange, 128, 300);
        let result = run(&spec(rr(exchange, 128, 300), server.addr, closed(3), phases(40, 40, 200, 20))).unwrap();
        assert_eq!(result.errors, [], "{exchange:?}");
        assert!(result.operations > 0);
        assert_eq!(result.response.count(), result.operations);
        assert_eq!(result.service, result.response, "a closed loop has but one duration");
        assert_eq!(result.bytes_to_guest, result.operations * 128);
        assert_eq!(result.bytes_from_guest, result.operations * 300);
        assert_eq!((result.lost, result.unfinished), (0, 0));
        assert_eq!(result.steady_end_ns - result.steady_start_ns, 200_000_000);
        assert!(result.cpu_user_ns + result.cpu_system_ns > 0);

        let all: u64 = result.intervals.iter().map(|i| i.operations).sum();
        assert!(all >= result.operations, "the series holds all phases");
        let report = server.stop();
        assert_eq!(report.errors, [], "{exchange:?}");
        assert_eq!(report.bytes_in, all * 128, "{exchange:?}: the server answered what the driver counted");
        assert_eq!(report.bytes_out, all * 300);
    }
}

#[test]
fn sizes_from_one_byte_to_many_segments() {
    for exchange in EXCHANGES {
        for (request, response) in [(1, 1), (1, 60_000), (60_000, 1), (24, 24), (7, 9)] {
            let server = serve_rr(exchange, request, response);
            let result = run(&spec(rr(exchange, request, response), server.addr, closed(1), steady(50))).unwrap();
            assert_eq!(result.errors, [], "{exchange:?} {request}/{response}");
            assert!(result.operations > 0, "{exchange:?} {request}/{response}");
        }
    }
}

#[test]
fn polling_works_at_both_ends() {
    for exchange in EXCHANGES {
        let socket = SocketOptions::default();
        let (request_bytes, response_bytes, wait) = (16, 16, Wait::Spin);
        let serve = SocketServer::Rr { exchange, request_bytes, response_bytes, wait, hold: None, socket };
        let server = tare_driver::serve::start(&Packed::of(&serve).unwrap(), LOOPBACK).unwrap();
        let kind = SocketDrive::Rr { exchange, request_bytes, response_bytes, wait };
        let result = run(&spec(kind, server.addr, closed(1), steady(100))).unwrap();
        assert_eq!(result.errors, []);
        assert!(result.operations > 0);
    }
}

#[test]
fn an_open_loop_sends_each_arrival_once() {
    for exchange in EXCHANGES {
        let server = serve_rr(exchange, 32, 32);
        let mut spec =
            spec(rr(exchange, 32, 32), server.addr, open(2000.0, Arrivals::Uniform, 4), phases(0, 0, 500, 50));
        // Far beyond what a loaded machine delays a datagram: none may count as lost.
        spec.loss_timeout_ns = 4_000_000_000;
        let result = run(&spec).unwrap();
        assert_eq!(result.errors, []);
        assert_eq!(result.response.count() + result.unfinished, 1000, "{exchange:?}: every arrival due in the window");
        assert_eq!(result.lateness.count(), result.response.count());
        assert!(result.response.sum >= result.service.sum);
        assert_eq!(result.response.sum, result.service.sum + result.lateness.sum);
    }
}

#[test]
fn requests_that_do_not_wait_for_answers_are_sent_once_each_and_answered_in_order() {
    let kind = SocketDrive::Pipelined { request_bytes: 32, response_bytes: 200 };
    let load = open(1000.0, Arrivals::Uniform, 1);
    let server = serve_rr(Exchange::TcpRr, 32, 200);
    let result = run(&spec(kind, server.addr, load, phases(50, 0, 500, 50))).unwrap();
    assert_eq!((result.errors.len(), result.unfinished), (0, 0), "{:?}", result.errors);
    assert_eq!((result.response.operations(), result.answered_total), (500, 600));
    assert_eq!(result.response.sum, result.service.sum + result.lateness.sum);
    let report = server.stop();
    assert_eq!((report.bytes_in, report.bytes_out, report.errors), (600 * 32, 600 * 200, Vec::new()));

    let servers = [(); 2].map(|()| serve_rr(Exchange::TcpRr, 32, 200));
    let steady = steady(300);
    let turns = two_arms(30, 10, &steady);
    let mut own = servers.iter().zip(turns).map(|(server, turns)| {
        let spec = spec(kind, server.addr, load, steady);
        DriveSpec { turns: Some(turns), ..spec }
    });
    let (_, results) = run_in_turns([own.next().unwrap(), own.next().unwrap()]);
    for result in results {
        assert_eq!((result.response.operations(), result.response.not_completed()), (300, 0));
        let done = result.turns.unwrap();
        assert_eq!(done.counts.iter().map(|count| count.operations).collect::<Vec<_>>(), [30; 10]);
    }

    let refused = run(&spec(kind, servers[0].addr, closed(1), steady)).unwrap_err().to_string();
    assert!(refused.contains("a closed loop waits for each answer"), "{refused}");
}

#[test]
fn recording_switched_off_still_counts() {
    let server = serve_rr(Exchange::TcpRr, 1, 1);
    let spec = DriveSpec { record: false, ..spec(rr(Exchange::TcpRr, 1, 1), server.addr, closed(1), steady(50)) };
    let result = run(&spec).unwrap();
    assert!(result.operations > 0);
    assert!(result.response.is_empty() && result.service.is_empty());
}

#[test]
fn think_time_is_between_operations_and_not_in_them() {
    let server = serve_rr(Exchange::TcpRr, 1, 1);
    let load = LoadModel::Closed { clients: 2, think_time: Span::from_millis(20) };
    let result = run(&spec(rr(Exchange::TcpRr, 1, 1), server.addr, load, steady(400))).unwrap();
    assert!((2..=40).contains(&result.operations), "{} operations of 2 clients in 20 rounds", result.operations);
    assert!(result.response.quantile(0.1).unwrap() < 20e6, "thinking is no part of the response time");
}

#[test]
fn a_run_starts_when_asked_and_reports_its_intervals() {
    let server = serve_rr(Exchange::TcpRr, 1, 1);
    let spec = spec(rr(Exchange::TcpRr, 1, 1), server.addr, closed(1), phases(0, 0, 200, 0));
    let prepared = drive::prepare(&spec, &AtomicBool::new(false)).unwrap();
    let start = clock::now_ns() + 100_000_000;
    let seen = RefCell::new(Vec::new());
    let result = prepared.run(start, &|i| seen.borrow_mut().push(i), &AtomicBool::new(false)).unwrap();
    assert_eq!(result.steady_start_ns, start);
    assert_eq!(*seen.borrow(), result.intervals);
    assert!(result.intervals.is_sorted_by_key(|i| i.end_ns));
    assert!(result.intervals[0].end_ns >= start);
    assert!(result.intervals.iter().all(|i| i.bytes == 2 * i.operations));
}

#[test]
fn clients_join_one_after_another() {
    let server = serve_rr(Exchange::TcpRr, 1, 1);
    // Thinking clients offer the same load however fast the machine is.
    let load = LoadModel::Closed { clients: 10, think_time: Span::from_millis(5) };
    let mut spec = spec(rr(Exchange::TcpRr, 1, 1), server.addr, load, phases(0, 1000, 200, 0));
    spec.interval_ns = 500_000_000;
    let result = run(&spec).unwrap();
    let (first, second) = (result.intervals[0].operations, result.intervals[1].operations);
    // On average 2.75 clients in the first half of the ramp and 7.75 in the second.
    assert!(first * 2 < second, "{first} operations in the first half of the ramp, {second} in the second");
}

#[test]
fn doing_nothing_costs_next_to_nothing() {
    let nowhere = "127.0.0.1:9".parse().unwrap();
    let result =
        run(&DriveSpec { targets: vec![], ..spec(SocketDrive::Null, nowhere, closed(1), steady(100)) }).unwrap();
    assert_eq!(result.response.count(), result.operations);
    let server = serve_rr(Exchange::TcpRr, 1, 1);
    let real = run(&spec(rr(Exchange::TcpRr, 1, 1), server.addr, closed(1), steady(100))).unwrap();
    assert!(result.response.quantile(0.5) < real.response.quantile(0.5));
}

#[test]
fn socket_settings_are_read_back() {
    let server = serve_rr(Exchange::TcpRr, 1, 1);
    let mut spec = spec(rr(Exchange::TcpRr, 1, 1), server.addr, closed(1), steady(20));
    spec.socket = SocketOptions { buffer_bytes: Some(128), congestion_control: Some("reno".to_owned()) };
    let result = run(&spec).unwrap();
    let granted = |name: &str| result.granted.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone()).unwrap();
    assert_eq!(granted("congestion_control"), "reno");
    assert!(granted("send_buffer_bytes").parse::<u32>().unwrap() > 128, "the kernel clamps upward");
    assert_eq!(granted("nodelay"), "true");

    spec.socket.congestion_control = Some("no-such-algorithm".to_owned());
    let text = run(&spec).unwrap_err().to_string();
    assert!(text.contains("TCP_CONGESTION") && text.contains("no-such-algorithm"), "{text}");
}
