//! Serves files and geocodes on a loopback port that it prints, until its standard input ends; then tells what it did.
#![allow(clippy::print_stdout)]

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tare_driver::serve;
use tare_driver::social::spec::{Scale, StoreSpec};
use tare_model::packed::Packed;

#[derive(Parser)]
struct Arguments {
    /// An empty folder for an upload.
    #[arg(long)]
    folder: String,
    /// Users at one time that each instance is loaded for.
    #[arg(long, default_value_t = 25)]
    users: u32,
    #[arg(long, default_value_t = 1)]
    instances: u32,
    /// How long it waits before each answer, ms.
    #[arg(long, default_value_t = 0)]
    delay_ms: u64,
}

fn main() -> ExitCode {
    let a = Arguments::parse();
    let delay_ns = Duration::from_millis(a.delay_ms).as_nanos() as u64;
    let spec = StoreSpec { scale: Scale::of(a.users), instances: a.instances, folder: a.folder, delay_ns };
    let start = |task| serve::start(&task, IpAddr::V4(Ipv4Addr::LOCALHOST));
    let server = match Packed::of(&spec).map_err(Into::into).and_then(start) {
        Ok(server) => server,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    println!("{}", server.addr);
    let mut rest = Vec::new();
    // However it ends, that is the sign to stop.
    let _ = std::io::stdin().read_to_end(&mut rest);
    let report = server.stop();
    let per_request = report.cpu_ns as f64 / report.requests.max(1) as f64 / 1e3;
    eprintln!(
        "{} requests on {} connections, {} bytes in, {} out, {per_request:.1} us CPU each",
        report.requests, report.connections, report.bytes_in, report.bytes_out
    );
    eprintln!("{:?} {:?}", report.granted, report.errors);
    ExitCode::SUCCESS
}
