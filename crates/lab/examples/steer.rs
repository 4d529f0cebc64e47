//! What it does and costs that each end of a link receives on CPUs of its own (RPS): request and response, and bulk
//! data towards the guest, with the guest on CPU 0 and the client on CPU 1, steered and not, in turn.
//!
//! `cargo run --release -p tare-lab --example steer [ROUNDS]`, as root, on a host with nothing else to do.

use std::error::Error;
use std::io::{Read, Write, stdout};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use tare_lab::{Lab, LabConfig};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const GUEST: u32 = 0;
const CLIENT: u32 = 1;
const TIME: Duration = Duration::from_millis(300);

fn main() -> Outcome<()> {
    let rounds: usize = std::env::args().nth(1).map_or(Ok(9), |text| text.parse())?;
    let mut found: [Vec<[f64; 6]>; 3] = Default::default();
    for round in 0..rounds {
        // Each goes first in turn.
        for place in 0..3 {
            let way = (round + place) % 3;
            let cpus = |on: bool, cpu| if on { vec![cpu] } else { Vec::new() };
            found[way].push(measure(cpus(way > 0, GUEST), cpus(way > 1, CLIENT))?);
        }
    }
    let names = [
        "RR p50, us",
        "RR p99, us",
        "RR, client thread's CPU, us",
        "bulk, Gbit/s",
        "bulk, client thread's CPU, ms/GB",
        "bulk, guest thread's CPU, ms/GB",
    ];
    writeln!(
        stdout(),
        "{rounds} rounds in turn, medians: on the sender's CPU, guest steered, both steered; ratios within rounds"
    )?;
    for (n, name) in names.iter().enumerate() {
        let column = |way: usize| found[way].iter().map(|row| row[n]).collect::<Vec<_>>();
        let ratio = |way: usize| median(column(0).iter().zip(column(way)).map(|(off, on)| on / off).collect());
        let medians = [0, 1, 2].map(|way| median(column(way)));
        let [off, guest, both] = medians;
        writeln!(stdout(), "{name:32} {off:9.2} {guest:9.2} {both:9.2}   x {:.2} x {:.2}", ratio(1), ratio(2))?;
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn measure(guest_cpus: Vec<u32>, client_cpus: Vec<u32>) -> Outcome<[f64; 6]> {
    let config = LabConfig::new(format!("steer-{}", std::process::id()));
    let lab = Lab::create(LabConfig { guest_cpus, client_cpus, ..config })?;
    let port = lab.attach("guest")?;
    let listener = port.netns.run(|| TcpListener::bind(SocketAddr::new(port.address, 0)))??;
    let to = listener.local_addr()?;
    let mut server = listener.try_clone()?;
    let guest = std::thread::spawn(move || serve(&mut server));
    let connect = || lab.client().run(|| TcpStream::connect(to));
    let (mut exchanges, mut bulk) = (connect()??, connect()??);
    exchanges.set_nodelay(true)?;
    let result = std::thread::scope(|scope| {
        let client = scope.spawn(|| -> Outcome<[f64; 6]> {
            bind(CLIENT)?;
            let cpu = thread_s();
            let mut times = round_trips(&mut exchanges)?;
            let exchange = (thread_s() - cpu) * 1e6 / times.len() as f64;
            times.sort_by(f64::total_cmp);
            drop(exchanges);
            let (cpu, began) = (thread_s(), Instant::now());
            let gigabytes = send(&mut bulk)? / 1e9;
            let gigabits_s = gigabytes * 8.0 / began.elapsed().as_secs_f64();
            let demand = (thread_s() - cpu) * 1e3 / gigabytes;
            Ok([times[times.len() / 2], times[times.len() * 99 / 100], exchange, gigabits_s, demand, gigabytes])
        });
        client.join().map_err(|_| "the client panicked")?
    });
    drop(bulk);
    let guest_s = guest.join().map_err(|_| "the guest panicked")??;
    port.detach()?;
    let [p50, p99, exchange, gigabits_s, demand, gigabytes] = result?;
    Ok([p50, p99, exchange, gigabits_s, demand, guest_s * 1e3 / gigabytes])
}

/// The guest: answers on its first connection, takes all of its second; CPU seconds for the latter.
fn serve(listener: &mut TcpListener) -> Outcome<f64> {
    bind(GUEST)?;
    let (mut exchanges, _) = listener.accept()?;
    let (mut bulk, _) = listener.accept()?;
    exchanges.set_nodelay(true)?;
    let mut message = [0; 128];
    while exchanges.read_exact(&mut message).is_ok() {
        exchanges.write_all(&message)?;
    }
    let (mut chunk, cpu) = (vec![0; 1 << 17], thread_s());
    while bulk.read(&mut chunk)? > 0 {}
    Ok(thread_s() - cpu)
}

fn round_trips(stream: &mut TcpStream) -> Outcome<Vec<f64>> {
    let (mut times, mut message, end) = (Vec::new(), [0; 128], Instant::now() + TIME);
    while Instant::now() < end {
        let began = Instant::now();
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
        times.push(began.elapsed().as_secs_f64() * 1e6);
    }
    Ok(times)
}

/// Bytes sent.
fn send(stream: &mut TcpStream) -> Outcome<f64> {
    let (mut sent, chunk, end) = (0.0, vec![0; 1 << 17], Instant::now() + TIME);
    while Instant::now() < end {
        stream.write_all(&chunk)?;
        sent += chunk.len() as f64;
    }
    Ok(sent)
}

fn bind(cpu: u32) -> Outcome<()> {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    Ok(sched_setaffinity(None, &set)?)
}

/// CPU time of this thread, seconds.
fn thread_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
