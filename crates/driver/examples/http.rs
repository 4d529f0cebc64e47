//! The driver of web sites on one address: so many connections as fast as they are answered, a fixed rate, or many users who think.
//! It is the engine that studies use, with a site of one file. Prints one line of JSON; see `bench/README.md`.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::io::{Write, stdout};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::AtomicBool;

use clap::Parser;
use tare_driver::drive;
use tare_driver::web::spec::{
    Body, Embedded, FileRef, FileSet, Quality, SiteModel, SiteState, Think, TlsSpec, WebDrive,
};
use tare_model::Histogram;
use tare_model::drive::{DriveResult, DriveSpec};
use tare_model::load::{Arrivals, LoadModel, Phases};
use tare_model::marker::{file_id, marked};
use tare_model::packed::Packed;
use tare_model::units::{Rate, Span};

/// Longest thought, in means.
const LONGEST_THOUGHT: u64 = 15;

#[derive(Parser)]
#[command(about)]
struct Cli {
    /// What is asked for: http://ADDRESS:PORT/PATH, or https.
    #[arg(long)]
    url: String,
    /// Connections that are kept busy, or the most requests at one time of an open loop.
    #[arg(long, default_value_t = 32)]
    connections: u32,
    /// Seconds that are measured.
    #[arg(long, default_value_t = 5.0)]
    duration: f64,
    /// Seconds before, in which the connections are opened one after another.
    #[arg(long, default_value_t = 0.0)]
    ramp: f64,
    /// Open loop at this many requests a second.
    #[arg(long)]
    rate: Option<f64>,
    /// Exponential gaps between requests of an open loop instead of equal ones.
    #[arg(long)]
    poisson: bool,
    /// Users with a connection each who think between requests, instead of busy connections.
    #[arg(long)]
    sessions: Option<u32>,
    /// How long users think on average, seconds.
    #[arg(long, default_value_t = 5.0)]
    think: f64,
    /// Length of the file. It must have the markers of `docs/reference/web.md`, and every body is checked for them; without
    /// it no body is looked at.
    #[arg(long)]
    bytes: Option<u64>,
    /// Bytes a second that are read from a connection at most.
    #[arg(long)]
    receive_rate: Option<u64>,
    /// SHA-256 of the certificate that the server must show, hexadecimal.
    #[arg(long)]
    certificate: Option<String>,
    /// Connections a user; with more than one, each page has so many files of the same address with it.
    #[arg(long, default_value_t = 1)]
    per_user: u8,
    /// Prints the file that has the right markers for `url` and `bytes`, and asks for nothing.
    #[arg(long, requires = "bytes")]
    print_file: bool,
    /// Threads of the driver.
    #[arg(long, default_value_t = 1)]
    threads: u32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let cli = Cli::parse();
    if cli.print_file {
        let file = file_id(split(&cli.url)?.2.as_bytes());
        return Ok(stdout().write_all(&marked(file, cli.bytes.unwrap_or(0) as usize))?);
    }
    let spec = spec(&cli)?;
    let result = drive::run(&spec, &|_| (), &AtomicBool::new(false))?;
    print(&result)?;
    Ok(())
}

/// Whether TLS is spoken, the host with its port, and the path.
fn split(url: &str) -> Result<(bool, &str, &str), Box<dyn Error>> {
    let (secure, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
        (Some(rest), _) => (false, rest),
        (_, Some(rest)) => (true, rest),
        _ => return Err("the URL must begin with http:// or https://".into()),
    };
    let (authority, path) = rest.split_at(rest.find('/').ok_or("the URL must have a path, such as /")?);
    Ok((secure, authority, path))
}

fn spec(cli: &Cli) -> Result<DriveSpec, Box<dyn Error>> {
    let (secure, authority, path) = split(&cli.url)?;
    let target: SocketAddr = authority.to_socket_addrs()?.next().ok_or("the URL's host has no address")?;
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let certificate_sha256 = cli.certificate.as_deref().map(digest).transpose()?;
    let drive = WebDrive {
        site: site(path, cli),
        tls: secure.then_some(TlsSpec { certificate_sha256 }),
        host: host.to_owned(),
        connections: cli.per_user,
        fresh_connections: false,
        receive_bytes_per_s: cli.receive_rate,
        salt: 0,
        check: cli.bytes.is_some(),
        timeout_ns: 30_000_000_000,
        overrun_ns: 1_000_000_000,
        threads: cli.threads,
    };
    let seconds = |s: f64| Span { ns: (s * 1e9) as u64 };
    let arrivals = if cli.poisson { Arrivals::Poisson } else { Arrivals::Uniform };
    let clients = cli.sessions.unwrap_or(cli.connections);
    let load = match cli.rate {
        Some(rate) => LoadModel::Open { rate: Rate(rate), arrivals, connections: cli.connections },
        None => LoadModel::Closed { clients, think_time: Span::ZERO },
    };
    let phases = Phases { ramp_up: seconds(cli.ramp), ..Phases::measuring(seconds(cli.duration)) };
    let spec = DriveSpec::new(Packed::of(&drive)?, vec![target], load, phases);
    Ok(DriveSpec { interval_ns: 1_000_000_000, ..spec })
}

/// A site of one file. A request of an open loop is a session of its own.
fn site(path: &str, cli: &Cli) -> SiteModel {
    let mean_ns = if cli.sessions.is_some() { (cli.think * 1e9) as u64 } else { 0 };
    let file = FileRef::Fixed { path: path.to_owned(), bytes: cli.bytes.unwrap_or(0) };
    let more = if cli.per_user > 1 { cli.per_user } else { 0 };
    let state = SiteState {
        name: "file".to_owned(),
        counted_as: 0,
        body: Body::File(file.clone()),
        secure: cli.url.starts_with("https:"),
        thinks: cli.sessions.is_some(),
        embedded: (0..more).map(|_| Embedded { file: file.clone(), unchanged: 0.0 }).collect(),
        next: if cli.rate.is_some() { Vec::new() } else { vec![(0, 1.0)] },
        target: None,
    };
    SiteModel {
        name: "file".to_owned(),
        states: vec![state],
        types: vec!["file".to_owned()],
        entry: vec![(0, 1.0)],
        think: Think { mean_ns, most_ns: LONGEST_THOUGHT * mean_ns, step_ns: 0 },
        pages: Quality { good_ns: 1_000_000_000, tolerable_ns: 2_000_000_000 },
        downloads: None,
        files: FileSet::default(),
    }
}

fn digest(text: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let byte = |at: usize| text.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
    Ok(bytes.ok_or("the certificate's digest is not hexadecimal")?)
}

fn print(result: &DriveResult) -> Result<(), Box<dyn std::error::Error>> {
    let seconds = (result.steady_end_ns - result.steady_start_ns) as f64 / 1e9;
    let done = result.outcome::<WebDrive>()?;
    let each = |ns: u64| ns as f64 / 1e3 / done.exchanges.max(1) as f64;
    let at = |times: &Histogram, q: f64| times.quantile(q).map_or(0.0, |ns| ns / 1e3);
    println!(
        "{{\"rate\":{:.1},\"operations\":{},\"answered\":{},\"user_us\":{:.3},\"system_us\":{:.3},\
         \"response_p50_us\":{:.1},\"response_p99_us\":{:.1},\"service_p50_us\":{:.1},\"late_p50_us\":{:.1},\
         \"late_p99_us\":{:.1},\"session_bytes\":{},\"connections\":{},\"full\":{},\"resumed\":{},\"reconnected\":{},\
         \"unfinished\":{},\"backlog\":{},\"faults\":{:?},\"errors\":{:?}}}",
        result.operations as f64 / seconds,
        result.operations,
        result.answered_total,
        each(result.cpu_user_ns),
        each(result.cpu_system_ns),
        at(&result.response, 0.5),
        at(&result.response, 0.99),
        at(&result.service, 0.5),
        at(&result.lateness, 0.5),
        at(&result.lateness, 0.99),
        done.memory_per_session_bytes,
        done.connections,
        done.handshakes_full,
        done.handshakes_resumed,
        done.reconnected,
        result.unfinished,
        result.backlog_max,
        done.faults,
        result.errors,
    );
    Ok(())
}
