//! Drivers that take turns.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::noting::Noting;
use crate::common::*;
use tare_driver::clock::now_ns;
use tare_driver::protocol::{HELLO_LEN, Purpose, Reply};
use tare_model::drive::{Direction, DriveResult, DriveSpec, Exchange, ReceiveMethod, SendMethod, SocketDrive};
use tare_model::load::Arrivals;
use tare_model::turns::Turns;

fn stream(direction: Direction, method: SendMethod, receive: ReceiveMethod) -> SocketDrive {
    SocketDrive::Stream { direction, method, receive, chunk_bytes: 65_536, window_bytes: 100_000 }
}

/// What its turns come to must be what it came to in all.
fn adds_up(result: &DriveResult, turns: &Turns) {
    let done = result.turns.as_ref().unwrap();
    assert_eq!(done.counts.len(), turns.places.len());
    assert_eq!(
        done.counts.iter().map(|count| count.bytes).sum::<u64>(),
        result.bytes_to_guest + result.bytes_from_guest
    );
    assert!(done.measured_ns.abs_diff(done.counts.iter().map(|count| count.measured_ns).sum()) <= 1_000, "{done:?}");
    assert!(result.measured_s() > 0.0);
}

#[test]
fn streams_in_turns_have_a_connection_for_each_and_count_to_the_byte() {
    let load_phases = phases(60, 0, 180, 0);
    for direction in [Direction::Receive, Direction::Send, Direction::Both] {
        for method in [SendMethod::Write, SendMethod::Sendfile] {
            for receive in [ReceiveMethod::Read, ReceiveMethod::Truncate] {
                let what = format!("{direction:?} {method:?} {receive:?}");
                let turns = two_arms(60, 16, &load_phases);
                let servers = [(); 2].map(|()| serve_stream(method, receive));
                let arm = |arm: usize| DriveSpec {
                    turns: Some(turns[arm].clone()),
                    ..spec(stream(direction, method, receive), servers[arm].addr, closed(2), load_phases)
                };
                let (_, results) = run_in_turns([arm(0), arm(1)]);
                for ((result, server), turns) in results.iter().zip(servers).zip(&turns) {
                    assert_eq!(result.errors, [], "{what}");
                    assert!(result.verified, "{what}");
                    adds_up(result, turns);
                    assert_eq!(result.turns.as_ref().unwrap().counts[0].bytes, 0, "the warm-up is not measured");
                    let (to, from) = (result.bytes_to_guest, result.bytes_from_guest);
                    assert_eq!((to > 0, from > 0), (direction != Direction::Send, direction != Direction::Receive));
                    let report = server.stop();
                    assert_eq!(report.errors, [], "{what}");
                    let (to_total, from_total) = (result.bytes_to_guest_total, result.bytes_from_guest_total);
                    assert_eq!((report.bytes_in, report.bytes_out), (to_total, from_total), "{what}");
                    assert!(to <= to_total && from <= from_total && to + from < to_total + from_total, "{what}");
                    assert_eq!(report.connections, 2 * turns.places.len() as u64, "{what}");
                    assert_eq!(
                        result.intervals.iter().map(|interval| interval.bytes).sum::<u64>(),
                        to_total + from_total
                    );
                }
            }
        }
    }
}

#[test]
fn a_stream_carries_as_much_in_the_time_of_its_turns_as_without_them() {
    let load_phases = steady(300);
    for direction in [Direction::Receive, Direction::Send] {
        let task = || stream(direction, SendMethod::Write, ReceiveMethod::Read);
        let server = serve_stream(SendMethod::Write, ReceiveMethod::Read);
        let rate =
            |result: &DriveResult| (result.bytes_to_guest + result.bytes_from_guest) as f64 / result.measured_s();
        let alone = rate(&run(&spec(task(), server.addr, closed(1), load_phases)).unwrap());
        let turns = two_arms(30, 4, &load_phases);
        let arm = |arm: usize| DriveSpec {
            turns: Some(turns[arm].clone()),
            ..spec(task(), server.addr, closed(1), load_phases)
        };
        let (_, results) = run_in_turns([arm(0), arm(1)]);
        for result in &results {
            let ratio = rate(result) / alone;
            // The host may be busy with other things: what counts is that neither time nor bytes of others are in it.
            assert!((0.2..5.0).contains(&ratio), "{direction:?}: {ratio}");
        }
    }
}

#[test]
fn requests_are_sent_in_turns_alone_and_take_as_long_as_without_them() {
    let load_phases = steady(300);
    let task = || rr(Exchange::TcpRr, 64, 64);
    for load in [closed(2), open(2_000.0, Arrivals::Poisson, 2)] {
        let server = serve_rr(Exchange::TcpRr, 64, 64);
        let noting = [(); 2].map(|()| Noting::before(server.addr, now_ns, b""));
        let alone = run(&spec(task(), noting[0].address, load, load_phases)).unwrap();
        let turns = two_arms(20, 3, &load_phases);
        let arm = |arm: usize| DriveSpec {
            turns: Some(turns[arm].clone()),
            ..spec(task(), noting[arm].address, load, load_phases)
        };
        let (start, results) = run_in_turns([arm(0), arm(1)]);
        let mut answered = alone.answered_total;
        for ((result, turns), noting) in results.iter().zip(&turns).zip(&noting) {
            assert_eq!(errors(result), 0);
            let done = result.turns.as_ref().unwrap();
            assert!(noting.late(turns, start) <= done.overran);
            let counted: u64 = done.counts.iter().map(|count| count.operations).sum();
            // In an open loop what was due in a turn is counted there, answered or not.
            assert!(counted.abs_diff(result.operations) <= result.unfinished + result.lost);
            let ratio = result.operations as f64 / result.measured_s() / (alone.operations as f64 / alone.measured_s());
            assert!((0.2..5.0).contains(&ratio), "{load:?}: {ratio}");
            answered += result.answered_total;
        }
        let report = server.stop();
        assert_eq!(report.bytes_in, answered * 64, "every request was answered and counted");
    }
}

/// When bytes arrived on each connection, in the order in which they were opened.
type Seen = Arc<Mutex<Vec<Vec<u64>>>>;

/// A server that notes when bytes come, and takes so long until it gives their count.
fn observer(closes_after: Duration) -> (SocketAddr, Seen) {
    let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let (address, seen) = (listener.local_addr().unwrap(), Seen::default());
    let arrivals = Arc::clone(&seen);
    thread::spawn(move || {
        for (number, connection) in listener.incoming().map_while(Result::ok).enumerate() {
            seen.lock().unwrap().push(Vec::new());
            let (mut connection, seen) = (connection, Arc::clone(&seen));
            thread::spawn(move || -> std::io::Result<()> {
                connection.read_exact(&mut [0; HELLO_LEN])?;
                let reply = Reply { serves: Purpose::BulkToGuest, request_bytes: 0, response_bytes: 0, port: 0 };
                connection.write_all(&reply.encode())?;
                let (mut count, mut buffer) = (0, vec![0; 1 << 18]);
                loop {
                    let bytes = connection.read(&mut buffer)?;
                    if bytes == 0 {
                        break;
                    }
                    count += bytes as u64;
                    seen.lock().unwrap()[number].push(now_ns());
                }
                thread::sleep(closes_after);
                connection.write_all(&[b"\xA5tareEND".as_slice(), &count.to_be_bytes()].concat())
            });
        }
    });
    (address, arrivals)
}

/// What a stream did in its turns, and when bytes of it arrived on each connection.
struct Observed {
    result: DriveResult,
    turns: Turns,
    arrivals: Vec<Vec<u64>>,
}

/// Two streams towards observers, in turns of 20 ms with 4 ms between them; the moment at which the first began.
fn observed(closes_after: Duration) -> (u64, [Observed; 2]) {
    let load_phases = steady(200);
    let turns = two_arms(20, 4, &load_phases);
    let servers = [(); 2].map(|()| observer(closes_after));
    let arm = |arm: usize| DriveSpec {
        turns: Some(turns[arm].clone()),
        ..spec(
            stream(Direction::Receive, SendMethod::Write, ReceiveMethod::Read),
            servers[arm].0,
            closed(1),
            load_phases,
        )
    };
    let (start, results) = run_in_turns([arm(0), arm(1)]);
    let mut each = results.into_iter().zip(turns).zip(servers);
    let arms = [(); 2].map(|()| {
        let ((result, turns), (_, seen)) = each.next().unwrap();
        let arrivals = seen.lock().unwrap().clone();
        Observed { result, turns, arrivals }
    });
    (start, arms)
}

#[test]
fn a_stream_sends_nothing_before_its_turn_and_what_comes_late_is_counted_as_an_overrun() {
    let (start, arms) = observed(Duration::ZERO);
    for Observed { result, turns, arrivals } in arms {
        assert!(result.verified, "{:?}", result.errors);
        assert_eq!(arrivals.len(), turns.places.len());
        let mut late = 0;
        for (seen, (from, to)) in arrivals.iter().zip(turns.windows(start)) {
            assert!(seen.iter().all(|at| *at >= from), "a byte came before its turn");
            late += u32::from(seen.iter().any(|at| *at > to + turns.spec.gap.ns));
        }
        assert!(late <= result.turns.unwrap().overran);
    }
}

#[test]
fn a_server_that_takes_longer_than_the_gap_overruns_every_turn_and_its_time_counts() {
    let (_, arms) = observed(Duration::from_millis(10));
    for Observed { result, turns, .. } in arms {
        let done = result.turns.unwrap();
        assert_eq!(done.overran as usize, turns.places.len());
        let counted = done.counts.iter().filter(|count| count.measured_ns > 0);
        assert!(counted.clone().count() > 0);
        assert!(counted.into_iter().all(|count| count.measured_ns > 10_000_000), "{done:?}");
    }
}
