//! The truth of open-loop figures: against a server that delays its answers by a known law and logs when
//! each request came and when its answer left, on the same clock as the driver's.
//!
//! What the log implies: the k-th answer of a connection is that to its k-th arrival, and arrivals are known
//! from the seed. Response time is the answer's moment minus the arrival's; service time the answer's
//! minus the request's. Delays of the machine are in the log as well, so that a busy one does not change
//! the verdict; only the answer's way back is not. As a late wake-up of the driver is on that way, a
//! case may be tried several times, and the driver's bias, which is what is tested, shows in every one.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::common::*;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use tare_driver::clock::{now_ns, sleep_until};
use tare_driver::protocol::{HELLO_LEN, Hello, Purpose, REPLY_LEN, Reply};
use tare_driver::schedule::Schedule;
use tare_model::Histogram;
use tare_model::drive::{DriveResult, Exchange};
use tare_model::load::{Arrivals, LoadModel, Phases};

const ATTEMPTS: u32 = 6;
/// Cases run one after another: each would be the noise of the others.
static TURN: Mutex<()> = Mutex::new(());
const MS: u64 = 1_000_000;

/// How long an answer is held back, by a random number in 0..1.
#[derive(Clone, Copy)]
enum Law {
    Constant(u64),
    /// One in twenty is slow.
    Bimodal(u64, u64),
    /// Pareto with shape 1.5 from a least delay, up to a largest.
    HeavyTail(u64, u64),
    /// Constant, but nothing is answered for a second, from so long after the first request.
    Stall(u64, u64),
}

impl Law {
    /// When the answer to a request leaves.
    fn answers_at(self, received: u64, first: u64, u: f64) -> u64 {
        match self {
            Self::Constant(d) => received + d,
            Self::Bimodal(fast, slow) => received + if u < 0.05 { slow } else { fast },
            Self::HeavyTail(least, most) => received + ((least as f64 * (1.0 - u).powf(-1.0 / 1.5)) as u64).min(most),
            Self::Stall(d, after) => {
                let (from, to) = (first + after, first + after + 1000 * MS);
                let at = received + d;
                if (from..to).contains(&at) { to } else { at }
            }
        }
    }
}

/// (connection, request received, answer sent), in order for each connection.
type Log = Arc<Mutex<Vec<(u32, u64, u64)>>>;

fn start(law: Law, connections: u32) -> (SocketAddr, Log, thread::JoinHandle<()>) {
    let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let log = Log::default();
    let entries = Arc::clone(&log);
    let acceptor = thread::spawn(move || {
        let first = Arc::new(Mutex::new(None));
        let serving: Vec<_> = (0..connections)
            .map(|_| {
                let (connection, _) = listener.accept().unwrap();
                let (entries, first) = (Arc::clone(&entries), Arc::clone(&first));
                thread::spawn(move || serve(connection, law, &first, &entries))
            })
            .collect();
        serving.into_iter().for_each(|t| t.join().unwrap());
    });
    (address, log, acceptor)
}

fn serve(mut connection: TcpStream, law: Law, first: &Mutex<Option<u64>>, entries: &Mutex<Vec<(u32, u64, u64)>>) {
    let never = AtomicBool::new(false);
    connection.set_nodelay(true).unwrap();
    let mut hello = [0; HELLO_LEN];
    connection.read_exact(&mut hello).unwrap();
    let index = Hello::decode(&hello[..REPLY_LEN]).unwrap().connection;
    let reply = Reply { serves: Purpose::TcpRr, request_bytes: 16, response_bytes: 16, port: 0 };
    connection.write_all(&reply.encode()).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(u64::from(index));
    let mut request = [0; 16];
    let mut mine = Vec::new();
    while connection.read_exact(&mut request).is_ok() {
        let received = now_ns();
        let first = *first.lock().unwrap().get_or_insert(received);
        sleep_until(law.answers_at(received, first, rng.random()), &never);
        mine.push((index, received, now_ns()));
        if connection.write_all(&request).is_err() {
            break;
        }
    }
    entries.lock().unwrap().extend(mine);
}

struct Case {
    name: &'static str,
    law: Law,
    rate: f64,
    arrivals: Arrivals,
    connections: u32,
    phases: Phases,
}

impl Case {
    fn run(&self) -> (DriveResult, Vec<u64>, Vec<u64>) {
        let (address, log, server) = start(self.law, self.connections);
        let load = LoadModel::Open {
            rate: tare_model::Rate(self.rate),
            arrivals: self.arrivals,
            connections: self.connections,
        };
        let spec = spec(rr(Exchange::TcpRr, 16, 16), address, load, self.phases);
        let result = run(&spec).unwrap();
        server.join().unwrap();
        let start = result.steady_start_ns - self.phases.steady_offset_ns();
        let all: Vec<u64> = Schedule::new(self.rate, self.arrivals, &self.phases, start, spec.seed).collect();
        let log = log.lock().unwrap();
        let (mut response, mut service) = (Vec::new(), Vec::new());
        for connection in 0..self.connections {
            let arrivals = all.iter().skip(connection as usize).step_by(self.connections as usize);
            let answers = log.iter().filter(|(index, ..)| *index == connection);
            for (intended, (_, received, sent)) in arrivals.zip(answers) {
                if (result.steady_start_ns..result.steady_end_ns).contains(intended) {
                    response.push(sent - intended);
                    service.push(sent - received);
                }
            }
        }
        response.sort_unstable();
        service.sort_unstable();
        (result, response, service)
    }

    /// Runs the case until driver and log agree, and says how far they were apart when they never do.
    fn holds(&self) -> DriveResult {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // Where it is allowed, other work of the machine gets out of the way.
        let _ = rustix::process::nice(-15);
        let mut misses = String::new();
        for _ in 0..ATTEMPTS {
            let (result, response, service) = self.run();
            assert_eq!(result.errors, [], "{}", self.name);
            assert_eq!(result.response.count(), response.len() as u64, "{}: none is dropped", self.name);
            assert_eq!(result.unfinished, 0, "{}", self.name);
            // The tails of service time are the wake-ups on the request's way to the server, which its log
            // cannot know.
            let missed = compare("response", &result.response, &response, &[0.5, 0.99, 0.999])
                + &compare("service", &result.service, &service, &[0.5]);
            if missed.is_empty() {
                return result;
            }
            misses.push_str(&missed);
            misses.push('\n');
        }
        panic!("{}: driver and log disagree in every attempt:\n{misses}", self.name);
    }
}

fn compare(kind: &str, seen: &Histogram, truth: &[u64], quantiles: &[f64]) -> String {
    let mut missed = String::new();
    for &q in quantiles {
        let rank = ((q * truth.len() as f64).ceil() as usize).max(1) - 1;
        let (truth, seen) = (truth[rank] as f64, seen.quantile(q).unwrap());
        let allowed = (truth * 0.01).max(100_000.0);
        if (seen - truth).abs() > allowed {
            missed.push_str(&format!("  {kind} p{}: driver {seen:.0} ns, log {truth:.0} ns;", q * 100.0));
        }
    }
    missed
}

#[test]
fn constant() {
    let (law, arrivals) = (Law::Constant(20 * MS), Arrivals::Poisson);
    Case { name: "constant", law, rate: 600.0, arrivals, connections: 16, phases: phases(100, 100, 2000, 100) }.holds();
}

#[test]
fn bimodal() {
    let (law, arrivals) = (Law::Bimodal(4 * MS, 40 * MS), Arrivals::Poisson);
    Case { name: "bimodal", law, rate: 600.0, arrivals, connections: 8, phases: phases(0, 0, 2000, 200) }.holds();
}

#[test]
fn heavy_tail() {
    let (law, arrivals) = (Law::HeavyTail(MS, 300 * MS), Arrivals::Poisson);
    Case { name: "heavy tail", law, rate: 500.0, arrivals, connections: 8, phases: phases(0, 0, 2000, 500) }.holds();
}

#[test]
fn a_stall_of_one_second_reaches_everyone_who_was_due_in_it() {
    let (law, arrivals) = (Law::Stall(MS / 2, 1000 * MS), Arrivals::Uniform);
    let case = Case { name: "stall", law, rate: 1000.0, arrivals, connections: 2, phases: phases(0, 0, 4000, 500) };
    let result = case.holds();
    // About a thousand of four thousand arrivals were due in the stall or its wake: a driver that leaves
    // them out (coordinated omission) would report a p90 of a millisecond.
    assert!(result.response.quantile(0.9).unwrap() > 100e6);
    assert!(result.service.quantile(0.9).unwrap() < 100e6);
    assert!(result.backlog_max > 900, "{} waited", result.backlog_max);
}
