//! What the tests of the driver share.
#![allow(dead_code, reason = "two of the programs use a part of it")]

pub mod cutter;
pub mod noting;
pub mod postgres;
#[path = "../../../../workloads/social/tests/application.rs"]
pub mod social;
#[path = "../../../../workloads/web/tests/sites.rs"]
pub mod web;

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tare_driver::serve::{self, Server};
use tare_driver::{DriverError, drive};
use tare_model::drive::{
    DriveResult, DriveSpec, Exchange, ReceiveMethod, SendMethod, SocketDrive, SocketOptions, SocketServer, Wait,
};
use tare_model::load::{Arrivals, LoadModel, Phases};
use tare_model::packed::{Packed, Task};
use tare_model::turns::{TurnSpec, Turns, Waiting};
use tare_model::{Rate, Span};

pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

pub fn closed(clients: u32) -> LoadModel {
    LoadModel::Closed { clients, think_time: Span::ZERO }
}

pub fn open(rate: f64, arrivals: Arrivals, connections: u32) -> LoadModel {
    LoadModel::Open { rate: Rate(rate), arrivals, connections }
}

/// Steady state alone.
pub fn steady(ms: u64) -> Phases {
    Phases { warm_up: Span::ZERO, ramp_up: Span::ZERO, steady_state: Span::from_millis(ms), ramp_down: Span::ZERO }
}

pub fn phases(warm_ms: u64, ramp_ms: u64, steady_ms: u64, down_ms: u64) -> Phases {
    Phases {
        warm_up: Span::from_millis(warm_ms),
        ramp_up: Span::from_millis(ramp_ms),
        steady_state: Span::from_millis(steady_ms),
        ramp_down: Span::from_millis(down_ms),
    }
}

pub fn rr(exchange: Exchange, request_bytes: u32, response_bytes: u32) -> SocketDrive {
    SocketDrive::Rr { exchange, request_bytes, response_bytes, wait: Wait::Block }
}

pub fn spec<T: Task>(task: T, target: SocketAddr, load: LoadModel, phases: Phases) -> DriveSpec {
    let spec = DriveSpec::new(Packed::of(&task).unwrap(), vec![target], load, phases);
    DriveSpec { seed: 7, loss_timeout_ns: 50_000_000, interval_ns: 50_000_000, ..spec }
}

pub fn serve_rr(exchange: Exchange, request_bytes: u32, response_bytes: u32) -> Server {
    let socket = SocketOptions::default();
    let spec = SocketServer::Rr { exchange, request_bytes, response_bytes, wait: Wait::Block, hold: None, socket };
    serve::start(&Packed::of(&spec).unwrap(), LOOPBACK).unwrap()
}

pub fn serve_stream(method: SendMethod, receive: ReceiveMethod) -> Server {
    let socket = SocketOptions::default();
    let spec = SocketServer::Stream { method, receive, chunk_bytes: 65_536, window_bytes: 100_000, socket };
    serve::start(&Packed::of(&spec).unwrap(), LOOPBACK).unwrap()
}

pub fn run(spec: &DriveSpec) -> Result<DriveResult, DriverError> {
    drive::run(spec, &|_| (), &AtomicBool::new(false))
}

/// Two arms that take turns of so many milliseconds, in another order in each round.
pub fn two_arms(turn_ms: u64, gap_ms: u64, phases: &Phases) -> [Turns; 2] {
    let (turn, gap) = (Span::from_millis(turn_ms), Span::from_millis(gap_ms));
    let spec = TurnSpec { turn, warm_up: Span::ZERO, gap, waiting: Waiting::Idle, commands: None };
    [0, 1].map(|arm| Turns { spec, arms: 2, places: (0..spec.rounds(phases)).map(|round| (round + arm) % 2).collect() })
}

/// Drives both in their turns, of which the first begins at the moment that is returned.
pub fn run_in_turns(specs: [DriveSpec; 2]) -> (u64, [DriveResult; 2]) {
    let never = AtomicBool::new(false);
    let prepared = specs.map(|spec| drive::prepare(&spec, &never).unwrap());
    let start = tare_driver::clock::now_ns() + 100_000_000;
    let results = std::thread::scope(|scope| {
        let threads = prepared.map(|drive| scope.spawn(|| drive.run(start, &|_| (), &never).unwrap()));
        threads.map(|thread| thread.join().unwrap())
    });
    (start, results)
}

/// A connection whose reader is not kept waiting for ever.
pub fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Head and body of the next answer, as long as its head says.
pub fn answer(mut stream: impl Read) -> (String, Vec<u8>) {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        text.push(byte[0]);
    }
    let head = String::from_utf8(text).unwrap();
    let length = head.split_once("Content-Length: ").unwrap().1.split_once("\r\n").unwrap().0.parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    (head, body)
}

pub fn errors(result: &DriveResult) -> u64 {
    result.errors.iter().map(|(_, count)| count).sum()
}
