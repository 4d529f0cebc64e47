//! The driver against servers: real ones on loopback, and some that do what no server should.
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tare_model::Span;
use tare_model::load::{Arrivals, Phases};
use tare_model::packed::Packed;
use tare_model::turns::{TurnSpec, Turns, Waiting};

use super::spec::{Keys, KvFound, Popularity, Protocol};
use super::*;
use crate::drive;
use crate::noting::Noting;
use crate::task::Calls;

const KEYS: Keys = Keys { count: 500, key_bytes: 20, value_bytes: (16, 3000), seed: 9 };
const CLOSED: LoadModel = LoadModel::Closed { clients: 2, think_time: Span::ZERO };

/// A real server, killed when it is dropped.
struct Real {
    child: Child,
    protocol: Protocol,
    address: SocketAddr,
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Real {
    fn start(protocol: Protocol, more: &[&str]) -> Option<Self> {
        let program = match protocol {
            Protocol::Redis => "/usr/bin/redis-server",
            Protocol::Memcached => "/usr/bin/memcached",
        };
        if !std::path::Path::new(program).exists() {
            println!("SKIPPED: there is no {program} (`make platforms` installs it)");
            return None;
        }
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let mut command = Command::new(program);
        match protocol {
            Protocol::Redis => {
                command.args(["--bind", "127.0.0.1", "--save", "", "--dir", "/", "--port"]).arg(port.to_string())
            }
            Protocol::Memcached => command.args(["-l", "127.0.0.1", "-u", "nobody", "-p"]).arg(port.to_string()),
        };
        let child = command.args(more).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let real = Self { child, protocol, address: (Ipv4Addr::LOCALHOST, port).into() };
        let began = Instant::now();
        while real.asked().is_err_and(|failure| failure.unreachable) {
            assert!(began.elapsed() < Duration::from_secs(20), "{program} does not answer");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(real)
    }

    fn asked(&self) -> Result<HashMap<String, String>, spec::KvFailure> {
        let ask = KvAsk { server: self.address, protocol: self.protocol, timeout_ns: 5_000_000_000 };
        ask.call(&AtomicBool::new(false)).map(|said| said.into_iter().collect())
    }

    /// GETs and SETs that it has counted.
    fn counted(&self) -> (u64, u64) {
        let said = self.asked().unwrap();
        let calls = |name: &str| {
            let line = said.get(name).map_or("calls=0,", String::as_str);
            line.trim_start_matches("calls=").split(',').next().unwrap().parse().unwrap()
        };
        match self.protocol {
            Protocol::Redis => (calls("cmdstat_get"), calls("cmdstat_set")),
            Protocol::Memcached => (said["cmd_get"].parse().unwrap(), said["cmd_set"].parse().unwrap()),
        }
    }
}

fn sweep(server: SocketAddr, protocol: Protocol, keys: Keys, fill: bool) -> Result<KvFound, spec::KvFailure> {
    KvSweep { server, protocol, keys, fill, timeout_ns: 20_000_000_000 }.call(&AtomicBool::new(false))
}

fn task(protocol: Protocol, depth: u32) -> KvDrive {
    let popularity = Popularity::Zipf { exponent: 0.9 };
    KvDrive { protocol, keys: KEYS, get_share: 0.7, popularity, depth, first_writer: 1, oldest_writer: 1 }
}

fn spec_of(target: SocketAddr, task: &KvDrive, load: LoadModel, steady_state: Span) -> DriveSpec {
    let (warm_up, ramp_down) = (Span::from_millis(50), Span::from_millis(20));
    let phases = Phases { warm_up, ramp_down, ..Phases::measuring(steady_state) };
    DriveSpec { seed: 11, ..DriveSpec::new(Packed::of(task).unwrap(), vec![target], load, phases) }
}

fn driven(target: SocketAddr, task: &KvDrive, load: LoadModel) -> Result<(DriveResult, KvDone), DriverError> {
    let spec = spec_of(target, task, load, Span::from_millis(300));
    let result = drive::run(&spec, &|_| {}, &AtomicBool::new(false))?;
    let done = result.outcome::<KvDrive>()?;
    Ok((result, done))
}

#[test]
fn real_servers_are_filled_driven_and_agree_with_what_was_seen() {
    for protocol in [Protocol::Redis, Protocol::Memcached] {
        let Some(server) = Real::start(protocol, &[]) else { continue };
        let whole = KvFound { sound: KEYS.count, ..KvFound::default() };
        assert_eq!(sweep(server.address, protocol, KEYS, true), Ok(whole.clone()), "{protocol:?}");
        for (round, depth) in [(0, 1), (1, 64)] {
            let before = server.counted();
            let task = KvDrive { first_writer: 1 + 2 * round, oldest_writer: 1 + 2 * round, ..task(protocol, depth) };
            let (result, done) = driven(server.address, &task, CLOSED).unwrap();
            let what = format!("{protocol:?} {depth}: {done:?} {:?}", result.errors);
            assert!(result.errors.is_empty() && done.wrong == 0 && done.all.misses == 0, "{what}");
            let after = server.counted();
            assert_eq!((after.0 - before.0, after.1 - before.1), (done.all.gets, done.all.sets), "{what}");
            assert_eq!(result.answered_total, done.all.gets + done.all.sets, "{what}");
            assert_eq!(result.operations, done.steady.gets + done.steady.sets, "{what}");
            assert_eq!(result.operations, result.response.count() * u64::from(depth), "{what}");
            let share = done.all.gets as f64 / result.answered_total as f64;
            assert!((share - 0.7).abs() < 0.1, "{what}");
            assert_eq!((result.bytes_to_guest, result.bytes_from_guest), (done.steady.bytes_out, done.steady.bytes_in));
            let counted: u64 = result.intervals.iter().map(|interval| interval.operations).sum();
            assert_eq!(counted, result.answered_total);
        }
        assert_eq!(sweep(server.address, protocol, KEYS, false), Ok(whole), "{protocol:?}");
    }
}

#[test]
fn pipelines_are_sent_in_turns_alone_and_counted_where_they_began() {
    let Some(server) = Real::start(Protocol::Redis, &[]) else { return };
    sweep(server.address, Protocol::Redis, KEYS, true).unwrap();
    let (turn, gap) = (Span::from_millis(20), Span::from_millis(2));
    let turn_spec = TurnSpec { turn, warm_up: Span::ZERO, gap, waiting: Waiting::Idle, commands: None };
    let open = LoadModel::Open { rate: Rate(4000.0), arrivals: Arrivals::Uniform, connections: 3 };
    for (round, (load, depth)) in [(CLOSED, 1), (CLOSED, 64), (open, 8)].into_iter().enumerate() {
        let before = server.counted();
        let arms = [0, 1].map(|arm| {
            let noting = Noting::before(server.address, now_ns, b"");
            let first_writer = 1 + 10 * (2 * round as u32 + arm);
            let task = KvDrive { first_writer, ..task(Protocol::Redis, depth) };
            let phases = Phases::measuring(Span::from_millis(200));
            let places = (0..turn_spec.rounds(&phases)).map(|round| (round + arm) % 2).collect();
            let turns = Turns { spec: turn_spec, arms: 2, places };
            let spec = spec_of(noting.address, &task, load, Span::ZERO);
            (noting, DriveSpec { phases, turns: Some(turns.clone()), ..spec }, turns)
        });
        let never = AtomicBool::new(false);
        let prepared = arms.each_ref().map(|(_, spec, _)| drive::prepare(spec, &never).unwrap());
        let start = now_ns() + 50_000_000;
        let results = std::thread::scope(|scope| {
            let threads = prepared.map(|drive| scope.spawn(|| drive.run(start, &|_| {}, &never).unwrap()));
            threads.map(|thread| thread.join().unwrap())
        });
        let (mut gets, mut sets) = before;
        for (result, (noting, _, turns)) in results.iter().zip(&arms) {
            let done = result.outcome::<KvDrive>().unwrap();
            let what = format!("{load:?} {depth}: {done:?} {:?}", result.errors);
            assert!(result.errors.is_empty() && done.wrong == 0, "{what}");
            let in_turns = result.turns.as_ref().unwrap();
            assert_eq!(in_turns.counts.iter().map(|count| count.operations).sum::<u64>(), result.operations, "{what}");
            assert_eq!(result.operations, done.steady.gets + done.steady.sets, "{what}");
            assert!(noting.late(turns, start) <= in_turns.overran, "{what}");
            (gets, sets) = (gets + done.all.gets, sets + done.all.sets);
        }
        assert_eq!(server.counted(), (gets, sets));
    }
}

#[test]
fn requests_at_a_rate_are_as_many_as_were_offered_at_any_depth() {
    let Some(server) = Real::start(Protocol::Redis, &[]) else { return };
    sweep(server.address, Protocol::Redis, KEYS, true).unwrap();
    for depth in [1, 8] {
        let load = LoadModel::Open { rate: Rate(4000.0), arrivals: Arrivals::Uniform, connections: 3 };
        let task = KvDrive { first_writer: depth * 10, ..task(Protocol::Redis, depth) };
        let (result, done) = driven(server.address, &task, load).unwrap();
        assert_eq!((done.wrong, result.errors.len()), (0, 0), "{done:?} {:?}", result.errors);
        let due = result.response.operations() * u64::from(depth);
        assert!(due.abs_diff(1200) <= 8, "{due} requests were due");
        assert!(!result.lateness.is_empty() && result.response.mean() >= result.service.mean());
    }
}

#[test]
fn pipelines_larger_than_all_buffers_come_through() {
    for protocol in [Protocol::Redis, Protocol::Memcached] {
        let Some(server) = Real::start(protocol, &[]) else { continue };
        let keys = Keys { count: 100, value_bytes: (16_000, 16_000), ..KEYS };
        sweep(server.address, protocol, keys, true).unwrap();
        let (result, done) = driven(server.address, &KvDrive { keys, ..task(protocol, 500) }, CLOSED).unwrap();
        assert!(done.wrong == 0 && done.all.gets > 0 && result.errors.is_empty(), "{done:?} {:?}", result.errors);
    }
}

#[test]
fn a_server_without_room_refuses_by_its_own_words_and_one_that_drops_keys_misses_them() {
    let keys = Keys { count: 20_000, value_bytes: (1000, 1000), ..KEYS };
    let Some(full) = Real::start(Protocol::Redis, &["--maxmemory", "8mb"]) else { return };
    let failure = sweep(full.address, Protocol::Redis, keys, true).unwrap_err();
    assert!(failure.why.contains("OOM") && !failure.unreachable, "{failure:?}");
    let options = ["--maxmemory", "8mb", "--maxmemory-policy", "allkeys-lru"];
    let Some(drops) = Real::start(Protocol::Redis, &options) else { return };
    let found = sweep(drops.address, Protocol::Redis, keys, true).unwrap();
    assert!(found.missing > 0 && found.sound > 0 && found.wrong == 0, "{found:?}");
    let (_, done) = driven(drops.address, &KvDrive { keys, ..task(Protocol::Redis, 1) }, CLOSED).unwrap();
    assert!(done.all.misses > 0 && done.wrong == 0, "{done:?}");
}

/// All keys of a server, and their values.
type Values = HashMap<Vec<u8>, Vec<u8>>;

/// What it does with its answer, whichever it is.
type LieOfAny = fn(&mut Vec<u8>, &Values);

/// What a server of ours does with its answer to the n-th GET of a connection.
trait Lie: Fn(u64, &mut Vec<u8>, &Values) + Copy + Send + 'static {}

impl<F: Fn(u64, &mut Vec<u8>, &Values) + Copy + Send + 'static> Lie for F {}

/// The same with every GET after those of the sweep that fills it.
fn once_filled(lie: LieOfAny) -> impl Lie {
    move |n, answer: &mut Vec<u8>, values: &Values| {
        if n > 20 {
            lie(answer, values);
        }
    }
}

/// A server that speaks RESP a few bytes at a time, and lies as it is asked to. It ends with the test.
fn liar(lie: impl Lie) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let values = std::sync::Arc::new(std::sync::Mutex::new(HashMap::new()));
        for stream in listener.incoming().flatten() {
            let values = std::sync::Arc::clone(&values);
            std::thread::spawn(move || serve(stream, &values, lie));
        }
    });
    address
}

fn serve(mut stream: TcpStream, values: &std::sync::Mutex<Values>, lie: impl Lie) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut from = BufReader::new(stream.try_clone().ok()?);
    let mut gets = 0;
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        let Some(count) = line.trim().strip_prefix('*') else {
            stream.write_all(b"+PONG\r\n").ok()?;
            continue;
        };
        let mut words = Vec::new();
        for _ in 0..count.parse::<usize>().ok()? {
            line.clear();
            from.read_line(&mut line).ok()?;
            let mut word = vec![0; line.trim()[1..].parse::<usize>().ok()? + 2];
            from.read_exact(&mut word).ok()?;
            word.truncate(word.len() - 2);
            words.push(word);
        }
        let mut values = values.lock().unwrap();
        let mut answer = Vec::new();
        match words.len() {
            3 => {
                values.insert(words[1].clone(), words[2].clone());
                answer.extend_from_slice(b"+OK\r\n");
            }
            _ => {
                gets += 1;
                if let Some(value) = values.get(&words[1]) {
                    answer = [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat();
                }
                lie(gets, &mut answer, &values);
            }
        }
        drop(values);
        // The first bytes one by one, so that lines are cut everywhere.
        let (first, rest) = answer.split_at(answer.len().min(7));
        first.iter().try_for_each(|byte| stream.write_all(&[*byte])).ok()?;
        stream.write_all(rest).ok()?;
    }
}

/// What the driver says of a server that holds all keys and lies when it is asked.
fn lied(lie: impl Lie) -> (DriveResult, KvDone) {
    let address = liar(lie);
    let keys = Keys { count: 20, value_bytes: (40, 60), ..KEYS };
    let task = KvDrive { keys, popularity: Popularity::Uniform, ..task(Protocol::Redis, 2) };
    // It is filled by a sweep, whose GETs, one for each key, come before any lie.
    assert_eq!(sweep(address, Protocol::Redis, keys, true), Ok(KvFound { sound: 20, ..KvFound::default() }));
    driven(address, &task, CLOSED).unwrap()
}

#[test]
fn a_server_that_is_slow_to_send_is_understood() {
    let (result, done) = lied(once_filled(|_, _| {}));
    assert!(done.wrong == 0 && done.all.gets > 10 && result.errors.is_empty(), "{done:?} {:?}", result.errors);
}

#[test]
fn wrong_answers_are_seen_whatever_is_wrong_with_them() {
    let lies: [(LieOfAny, &str); 6] = [
        (
            |answer, values| {
                let is_other = |value: &&Vec<u8>| !answer.windows(value.len()).any(|part| part == *value);
                let value = values.values().find(is_other).unwrap();
                *answer = [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat();
            },
            "no value of this key",
        ),
        (|answer, _| answer[20] ^= 1, "no value of this key"),
        (|answer, _| *answer = b"$9999999\r\n".to_vec(), "no size it can have"),
        (|answer, _| *answer = b"+OK\r\n".to_vec(), "no answer to what was asked"),
        (|answer, _| *answer = vec![b'x'; 5000], "a line without its end"),
        (
            |answer, _| {
                answer.pop();
                answer.extend_from_slice(b"xx");
            },
            "does not end where it should",
        ),
    ];
    for (lie, words) in lies {
        let (_, done) = lied(once_filled(lie));
        assert!(done.wrong > 0 && done.first_wrong.contains(words), "{words}: {done:?}");
    }
}

#[test]
fn a_lost_set_is_seen_by_the_client_that_wrote_it() {
    // The first value of each key that was ever read is given for ever.
    static FIRST: std::sync::Mutex<Option<Values>> = std::sync::Mutex::new(None);
    let (_, done) = lied(|n, answer: &mut Vec<u8>, values: &Values| {
        let mut first = FIRST.lock().unwrap();
        let loaded = first.get_or_insert_with(|| values.clone());
        if n > 20 || values.len() < 20 {
            let (key, _) =
                values.iter().find(|(_, value)| answer.windows(value.len()).any(|part| part == **value)).unwrap();
            let value = &loaded[key];
            *answer = [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat();
        }
    });
    assert!(done.wrong > 0 && done.first_wrong.contains("older than one whose SET was answered"), "{done:?}");
}

#[test]
fn misses_refusals_and_silence_are_counted_as_what_they_are() {
    let (_, done) = lied(once_filled(|answer, _| *answer = b"$-1\r\n".to_vec()));
    assert!(done.all.misses > 0 && done.wrong == 0, "{done:?}");
    let (result, done) = lied(|n, answer: &mut Vec<u8>, _: &Values| {
        if n > 20 {
            *answer = format!("-ERR {n} no\r\n").into_bytes();
        }
    });
    assert!(done.refused > 0 && done.wrong == 0, "{done:?}");
    assert!(
        result.errors.len() <= 60 && result.errors.iter().any(|(why, _)| why.starts_with("ERR")),
        "{:?}",
        result.errors
    );
    let (result, done) = lied(once_filled(|answer, _| answer.clear()));
    assert!(done.in_doubt.0 > 0 && done.wrong == 0, "{done:?}");
    assert!(result.errors.iter().any(|(why, _)| why == CUT_OFF), "{:?}", result.errors);
}

#[test]
fn what_cannot_be_driven_is_refused_before_the_load() {
    let task = task(Protocol::Redis, 1);
    let refused = |target, task: &KvDrive| driven(target, task, CLOSED).unwrap_err().to_string();
    let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    assert!(refused(nobody, &task).contains("cannot connect to 127.0.0.1:1"));
    let memcached = KvDrive { protocol: Protocol::Memcached, ..task.clone() };
    assert!(refused(liar(|_, _, _| {}), &memcached).contains("does not answer as Memcached does: \"+PONG"));
    for bad in [
        KvDrive { depth: 0, ..task.clone() },
        KvDrive { depth: DEPTH + 1, ..task.clone() },
        KvDrive { get_share: 1.5, ..task.clone() },
        KvDrive { first_writer: (1 << 24) - 1, ..task.clone() },
        KvDrive { keys: Keys { count: 0, ..KEYS }, ..task.clone() },
    ] {
        assert!(refused(nobody, &bad).contains("the load cannot be driven"), "{bad:?}");
    }
}

#[test]
fn who_waits_for_a_silent_server_gives_up_when_it_was_long_enough_or_somebody_wishes() {
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let server = silent.local_addr().unwrap();
    let ask = |timeout_ns, cancel| {
        let began = Instant::now();
        let failure =
            KvAsk { server, protocol: Protocol::Redis, timeout_ns }.call(&AtomicBool::new(cancel)).unwrap_err();
        assert!(failure.why.contains("no answer in time"), "{failure:?}");
        began.elapsed()
    };
    assert!(ask(300_000_000, false) < Duration::from_secs(5));
    assert!(ask(60_000_000_000, true) < Duration::from_secs(5));
}

/// Not a test: what `bench.sh` compares with its peers. `TARE_KV_BENCH` has `fill` or `drive`, the protocol, the address, clients, depth, percent of
/// GETs, bytes of a value and seconds.
#[test]
#[ignore = "a load for workloads/kv/bench.sh"]
fn bench() {
    let asked = std::env::var("TARE_KV_BENCH").unwrap();
    let words: Vec<&str> = asked.split_whitespace().collect();
    let [what, protocol, address, clients, depth, gets, bytes, seconds] = words[..] else { panic!("{asked}") };
    let protocol = if protocol == "redis" { Protocol::Redis } else { Protocol::Memcached };
    let (target, bytes) = (address.parse().unwrap(), bytes.parse().unwrap());
    let keys = Keys { count: 100_000, key_bytes: 16, value_bytes: (bytes, bytes), seed: 1 };
    if what == "fill" {
        assert_eq!(sweep(target, protocol, keys, true).unwrap().sound, keys.count);
        return;
    }
    let task = KvDrive {
        keys,
        get_share: gets.parse::<f64>().unwrap() / 100.0,
        popularity: Popularity::Uniform,
        // Values of earlier runs are there still.
        first_writer: 1 + std::process::id() % 100_000 * 64,
        ..task(protocol, depth.parse().unwrap())
    };
    let load = LoadModel::Closed { clients: clients.parse().unwrap(), think_time: Span::ZERO };
    let spec = spec_of(target, &task, load, Span::from_secs(seconds.parse().unwrap()));
    let result = drive::run(&spec, &|_| {}, &AtomicBool::new(false)).unwrap();
    let done = result.outcome::<KvDrive>().unwrap();
    assert!(done.wrong == 0 && result.errors.is_empty(), "{done:?} {:?}", result.errors);
    let rate = result.operations as f64 / (result.steady_end_ns - result.steady_start_ns) as f64 * 1e9;
    println!("{{\"rate\":{rate:.1},\"operations\":{}}}", done.all.gets + done.all.sets);
}
