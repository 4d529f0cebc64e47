//! Two equal servers, or two that differ by a known share, driven in turns or one after the other: does the interval hold the truth, and
//! how much do blocks differ?
//!
//!     cargo run --release -p tare-driver --example turns -- --comparisons 100 --delay-permille 20
//!
//! On one CPU (`taskset -c 1 PROGRAM`) the delay is all that differs: on several, the scheduler may place a server that waits otherwise.
//! Each block has new servers and connections on loopback. The figure of a block is the ratio of the mean times of an operation.
#![allow(clippy::expect_used, clippy::print_stdout)]

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::AtomicBool;

use clap::Parser;
use tare_analysis::paired_ratio;
use tare_driver::{clock, drive, serve};
use tare_model::Span;
use tare_model::drive::{DriveResult, DriveSpec, Exchange, Hold, SocketDrive, SocketOptions, SocketServer, Wait};
use tare_model::load::{LoadModel, Phases};
use tare_model::packed::Packed;
use tare_model::random::{MirroredOrders, SplitMix64};
use tare_model::turns::{TurnSpec, Turns, Waiting};

#[derive(Debug, Parser)]
struct Options {
    /// Comparisons, each of so many blocks.
    #[arg(long, default_value_t = 20)]
    comparisons: u32,
    #[arg(long, default_value_t = 12)]
    blocks: u32,
    /// Measured time of each server in a block.
    #[arg(long, default_value_t = 300)]
    steady_ms: u64,
    #[arg(long, default_value_t = 20)]
    turn_ms: u64,
    /// By how many thousandths an operation of the second server takes longer.
    #[arg(long, default_value_t = 0)]
    delay_permille: u32,
    /// One after the other, not in turns.
    #[arg(long)]
    trials: bool,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let truth = 1.0 + f64::from(options.delay_permille) / 1000.0;
    let mut random = SplitMix64(options.seed);
    let (mut holds, mut excludes_one) = (0, 0);
    let (mut all, mut estimates) = (Vec::new(), Vec::new());
    for _ in 0..options.comparisons {
        let pairs = (0..options.blocks).map(|_| block(&options, &mut random)).collect::<Result<Vec<_>, _>>()?;
        let ratio = paired_ratio(&pairs).ok_or("a block had no operations")?;
        let (low, high) = (ratio.low.unwrap_or(0.0), ratio.high.unwrap_or(f64::INFINITY));
        holds += u32::from(low <= truth && truth <= high);
        excludes_one += u32::from(low > 1.0 || high < 1.0);
        estimates.push(ratio.value);
        all.extend(pairs.iter().map(|(slow, plain)| (slow / plain).ln()));
    }
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let spread = (all.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (all.len() as f64 - 1.0)).sqrt();
    let way = if options.trials { "one after the other" } else { "in turns" };
    println!(
        "{way}: {} comparisons of {} blocks; the interval holds the truth ({truth:.3}) in {holds}, excludes equality in {excludes_one}; \
         mean ratio {:.4}; s.d. of a block's log ratio {:.2} %",
        options.comparisons,
        options.blocks,
        mean.exp(),
        spread * 100.0
    );
    Ok(())
}

/// Mean times of an operation of the second and of the first server.
fn block(options: &Options, random: &mut SplitMix64) -> Result<(f64, f64), Box<dyn Error>> {
    let plain = serve(0)?;
    let slow = serve(options.delay_permille)?;
    let phases = Phases {
        warm_up: Span::from_millis(options.turn_ms * 2),
        ..Phases::measuring(Span::from_millis(options.steady_ms))
    };
    let (turn, gap) = (Span::from_millis(options.turn_ms), Span::from_millis(1));
    let spec = TurnSpec { turn, warm_up: Span::ZERO, gap, waiting: Waiting::Idle, commands: None };
    let mut orders = MirroredOrders::new(2, random.draw());
    let places: Vec<u32> = (0..spec.rounds(&phases)).map(|_| orders.draw()[0] as u32).collect();
    let turns = |places: Vec<u32>| (!options.trials).then_some(Turns { spec, arms: 2, places });
    let never = AtomicBool::new(false);
    let specs = [
        drive_spec(plain.addr, phases, turns(places.clone()))?,
        drive_spec(slow.addr, phases, turns(places.iter().map(|place| 1 - place).collect()))?,
    ];
    let prepared = specs.iter().map(|spec| drive::prepare(spec, &never)).collect::<Result<Vec<_>, _>>()?;
    let run = |prepared: drive::Prepared, start| prepared.run(start, &|_| {}, &never);
    let results: Vec<DriveResult> = if options.trials {
        let mut ordered: Vec<_> = prepared.into_iter().enumerate().collect();
        random.shuffle(&mut ordered);
        let ran = ordered.into_iter().map(|(at, prepared)| Ok((at, run(prepared, 0)?)));
        let mut ran = ran.collect::<Result<Vec<_>, Box<dyn Error>>>()?;
        ran.sort_by_key(|(at, _)| *at);
        ran.into_iter().map(|(_, result)| result).collect()
    } else {
        let start = clock::now_ns() + 10_000_000;
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                prepared.into_iter().map(|prepared| scope.spawn(move || run(prepared, start))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a driver panicked")).collect::<Result<_, _>>()
        })?
    };
    let mean = |result: &DriveResult| result.measured_s() / result.operations as f64;
    Ok((mean(&results[1]), mean(&results[0])))
}

fn serve(delay_permille: u32) -> Result<serve::Server, Box<dyn Error>> {
    let socket = SocketOptions::default();
    let (exchange, wait) = (Exchange::TcpRr, Wait::Block);
    let spec = SocketServer::Rr {
        exchange,
        request_bytes: 128,
        response_bytes: 128,
        wait,
        hold: Some(Hold::Share(delay_permille)),
        socket,
    };
    Ok(serve::start(&Packed::of(&spec)?, IpAddr::V4(Ipv4Addr::LOCALHOST))?)
}

fn drive_spec(target: std::net::SocketAddr, phases: Phases, turns: Option<Turns>) -> Result<DriveSpec, Box<dyn Error>> {
    let kind =
        SocketDrive::Rr { exchange: Exchange::TcpRr, request_bytes: 128, response_bytes: 128, wait: Wait::Block };
    let load = LoadModel::Closed { clients: 1, think_time: Span::ZERO };
    Ok(DriveSpec { turns, ..DriveSpec::new(Packed::of(&kind)?, vec![target], load, phases) })
}
