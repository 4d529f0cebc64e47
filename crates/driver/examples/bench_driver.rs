//! The drivers as two programs, so that they can be measured beside their peers: see `bench/README.md`.
//!
//! `bench_driver serve rr` prints the address it listens on and serves until its standard input ends;
//! `bench_driver drive rr --target ADDRESS` drives it and prints one line of JSON.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::io::{Read, stdin};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tare_driver::{drive, serve};
use tare_model::drive::{
    Direction, DriveSpec, Exchange, ReceiveMethod, SendMethod, SocketDrive, SocketOptions, SocketServer, Wait,
};
use tare_model::load::{Arrivals, LoadModel, Phases};
use tare_model::packed::Packed;
use tare_model::units::{Rate, Span};

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves until standard input ends.
    Serve(Settings),
    /// Drives a server and prints what was measured.
    Drive {
        #[command(flatten)]
        settings: Settings,
        /// The server.
        #[arg(long)]
        target: Option<SocketAddr>,
        /// Seconds of steady state.
        #[arg(long, default_value_t = 5.0)]
        seconds: f64,
        /// Seconds of warm-up.
        #[arg(long, default_value_t = 0.0)]
        warm_up: f64,
        /// Connections.
        #[arg(long, default_value_t = 1)]
        clients: u32,
        /// Open loop at this many arrivals a second.
        #[arg(long)]
        rate: Option<f64>,
        /// Count operations without recording their durations.
        #[arg(long)]
        no_record: bool,
        /// Which way bulk data flows, seen from the server.
        #[arg(long, value_enum, default_value_t = Way::Receive)]
        direction: Way,
    },
}

#[derive(Args)]
struct Settings {
    /// What is served and driven.
    #[arg(value_enum)]
    kind: Kind,
    /// Address to serve on.
    #[arg(long, default_value = "127.0.0.1")]
    bind: IpAddr,
    /// Bytes of a request.
    #[arg(long, default_value_t = 128)]
    request: u32,
    /// Bytes of a response.
    #[arg(long, default_value_t = 128)]
    response: u32,
    /// Poll instead of sleeping in the kernel.
    #[arg(long)]
    spin: bool,
    /// Bytes handed to one send call of bulk data.
    #[arg(long, default_value_t = 262_144)]
    chunk: u32,
    /// Bytes of the file that sendfile cycles through.
    #[arg(long, default_value_t = 262_144)]
    window: u32,
    /// Send bulk data with write instead of sendfile.
    #[arg(long)]
    write: bool,
    /// Drop received bulk data in the kernel.
    #[arg(long)]
    truncate: bool,
    /// TCP congestion control.
    #[arg(long)]
    congestion: Option<String>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Kind {
    Null,
    Rr,
    Udp,
    Crr,
    Stream,
}

#[derive(Clone, Copy, ValueEnum)]
enum Way {
    Receive,
    Send,
    Both,
}

impl Settings {
    const fn exchange(&self) -> Exchange {
        match self.kind {
            Kind::Udp => Exchange::UdpRr,
            Kind::Crr => Exchange::TcpCrr,
            Kind::Null | Kind::Rr | Kind::Stream => Exchange::TcpRr,
        }
    }

    const fn wait(&self) -> Wait {
        if self.spin { Wait::Spin } else { Wait::Block }
    }

    const fn method(&self) -> SendMethod {
        if self.write { SendMethod::Write } else { SendMethod::Sendfile }
    }

    const fn receive(&self) -> ReceiveMethod {
        if self.truncate { ReceiveMethod::Truncate } else { ReceiveMethod::Read }
    }

    fn socket(&self) -> SocketOptions {
        SocketOptions { buffer_bytes: None, congestion_control: self.congestion.clone() }
    }

    fn serve_spec(&self) -> SocketServer {
        if self.kind == Kind::Stream {
            return SocketServer::Stream {
                method: self.method(),
                receive: self.receive(),
                chunk_bytes: self.chunk,
                window_bytes: self.window,
                socket: self.socket(),
            };
        }
        SocketServer::Rr {
            exchange: self.exchange(),
            request_bytes: self.request,
            response_bytes: self.response,
            wait: self.wait(),
            hold: None,
            socket: self.socket(),
        }
    }

    fn drive_kind(&self, direction: Way) -> SocketDrive {
        match self.kind {
            Kind::Null => SocketDrive::Null,
            Kind::Stream => SocketDrive::Stream {
                direction: match direction {
                    Way::Receive => Direction::Receive,
                    Way::Send => Direction::Send,
                    Way::Both => Direction::Both,
                },
                method: self.method(),
                receive: self.receive(),
                chunk_bytes: self.chunk,
                window_bytes: self.window,
            },
            Kind::Rr | Kind::Udp | Kind::Crr => SocketDrive::Rr {
                exchange: self.exchange(),
                request_bytes: self.request,
                response_bytes: self.response,
                wait: self.wait(),
            },
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    match Cli::parse().command {
        Command::Serve(settings) => {
            let server = serve::start(&Packed::of(&settings.serve_spec())?, settings.bind)?;
            println!("{}", server.addr);
            stdin().read_to_end(&mut Vec::new())?;
            println!("{}", serde_json::to_string(&server.stop())?);
        }
        Command::Drive { settings, target, seconds, warm_up, clients, rate, no_record, direction } => {
            let span = |s: f64| Span { ns: (s * 1e9) as u64 };
            let load = match rate {
                None => LoadModel::Closed { clients, think_time: Span::ZERO },
                Some(rate) => LoadModel::Open { rate: Rate(rate), arrivals: Arrivals::Poisson, connections: clients },
            };
            let task = Packed::of(&settings.drive_kind(direction))?;
            let phases = Phases { warm_up: span(warm_up), ..Phases::measuring(span(seconds)) };
            let spec = DriveSpec {
                socket: settings.socket(),
                record: !no_record,
                interval_ns: 1_000_000_000,
                ..DriveSpec::new(task, target.into_iter().collect(), load, phases)
            };
            print(&drive::run(&spec, &|_| (), &AtomicBool::new(false))?)?;
        }
    }
    Ok(())
}

fn print(result: &tare_model::drive::DriveResult) -> Result<(), serde_json::Error> {
    let seconds = (result.steady_end_ns - result.steady_start_ns) as f64 / 1e9;
    let bits = (result.bytes_to_guest + result.bytes_from_guest) as f64 * 8.0 / seconds;
    let cpu_us = (result.cpu_user_ns + result.cpu_system_ns) as f64 / 1e3;
    let quantile = |q| result.response.quantile(q).map(|ns| ns / 1e3);
    let line = serde_json::json!({
        "operations": result.operations,
        "rate": result.operations as f64 / seconds,
        "gbit_s": bits / 1e9,
        "cpu_us_per_operation": cpu_us / result.operations.max(1) as f64,
        "cpu_s": cpu_us / 1e6,
        "p50_us": quantile(0.5),
        "p99_us": quantile(0.99),
        "p999_us": quantile(0.999),
        "lateness_p50_us": result.lateness.quantile(0.5).map(|ns| ns / 1e3),
        "lost": result.lost,
        "unfinished": result.unfinished,
        "backlog_max": result.backlog_max,
        "errors": result.errors,
        "verified": result.verified,
        "granted": result.granted,
    });
    println!("{line}");
    Ok(())
}
