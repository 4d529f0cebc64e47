//! The store's loader and driver as a program, so that they can be measured beside `pgbench`: see `bench/README.md`.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use clap::{Args, Parser, Subcommand};
use tare_driver::store::spec::{StoreCount, StoreDrive, StoreLoad, StoreSize, StoreStatements};
use tare_driver::{drive, store};
use tare_model::drive::{DriveResult, DriveSpec};
use tare_model::load::{Arrivals, LoadModel, Phases};
use tare_model::packed::Packed;
use tare_model::sql::{SqlFailure, SqlServer};
use tare_model::units::{Rate, Span};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    server: Server,
    #[command(subcommand)]
    command: Command,
}

#[derive(Args)]
struct Server {
    /// Where PostgreSQL listens.
    #[arg(long)]
    address: SocketAddr,
    /// Role.
    #[arg(long, default_value = "store")]
    user: String,
    /// Database.
    #[arg(long, default_value = "store")]
    database: String,
    /// Customers that the store begins with.
    #[arg(long, default_value_t = 20_000)]
    customers: u64,
    /// Orders of each month.
    #[arg(long, default_value_t = 1_000)]
    orders: u64,
    /// Products.
    #[arg(long, default_value_t = 10_000)]
    products: u64,
}

#[derive(Subcommand)]
enum Command {
    /// Fills the store and prints what it came to.
    Load {
        /// Connections that load side by side.
        #[arg(long, default_value_t = 2)]
        connections: u32,
    },
    /// Counts what is in the store.
    Count {
        /// Orders up to this number were there before.
        #[arg(long, default_value_t = 0)]
        after: u64,
    },
    /// Drives the store and prints what was measured.
    Drive(Drive),
}

#[derive(Args)]
struct Drive {
    /// Seconds of steady state.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Seconds of warm-up.
    #[arg(long, default_value_t = 0.0)]
    warm_up: f64,
    /// Clients.
    #[arg(long, default_value_t = 20)]
    clients: u32,
    /// Mean of the think time, seconds.
    #[arg(long, default_value_t = 0.0)]
    think: f64,
    /// Open loop at this many orders a second.
    #[arg(long)]
    rate: Option<f64>,
    /// Call functions in the database.
    #[arg(long)]
    functions: bool,
    /// Seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// First number of names of new customers; by default one that no earlier run of the same second had.
    #[arg(long)]
    new_user_from: Option<u64>,
}

impl Server {
    fn server(&self) -> SqlServer {
        SqlServer {
            password: std::env::var("PGPASSWORD").ok(),
            ..SqlServer::of(self.address, &self.user, &self.database)
        }
    }

    const fn size(&self) -> StoreSize {
        StoreSize { customers: self.customers, orders_per_month: self.orders, products: self.products }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let Cli { server, command } = Cli::parse();
    let refused = |failure: SqlFailure| failure.message;
    match command {
        Command::Load { connections } => {
            let load = StoreLoad { server: server.server(), size: server.size(), seed: 1, connections };
            let loaded = store::load(&load, &AtomicBool::new(false)).map_err(refused)?;
            println!("{}", serde_json::to_string(&loaded)?);
        }
        Command::Count { after } => {
            let timeout_ns = 60_000_000_000;
            let count = StoreCount { server: server.server(), after_order: after, in_doubt: Vec::new(), timeout_ns };
            println!("{}", serde_json::to_string(&store::count(&count).map_err(refused)?)?);
        }
        Command::Drive(settings) => {
            let spec = spec(&server, &settings)?;
            let resident = std::cell::Cell::new(0);
            let look = |_| resident.set(resident_kb().max(resident.get()));
            let result = drive::run(&spec, &look, &AtomicBool::new(false))?;
            print(&result, resident.get())?;
        }
    }
    Ok(())
}

fn spec(server: &Server, settings: &Drive) -> Result<DriveSpec, Box<dyn Error>> {
    let span = |s: f64| Span { ns: (s * 1e9) as u64 };
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let drive = StoreDrive {
        statements: if settings.functions { StoreStatements::Functions } else { StoreStatements::Prepared },
        new_user_from: settings.new_user_from.unwrap_or(since.as_micros() as u64),
        ..StoreDrive::of(server.server(), server.size())
    };
    let clients = settings.clients;
    let load = match settings.rate {
        None => LoadModel::Closed { clients, think_time: span(settings.think) },
        Some(rate) => LoadModel::Open { rate: Rate(rate), arrivals: Arrivals::Poisson, connections: clients },
    };
    let phases = Phases { warm_up: span(settings.warm_up), ..Phases::measuring(span(settings.seconds)) };
    let spec = DriveSpec::new(Packed::of(&drive)?, vec![server.address], load, phases);
    Ok(DriveSpec { seed: settings.seed, interval_ns: 500_000_000, ..spec })
}

/// Resident memory of this process, kB.
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_ascii_whitespace().next().and_then(|kb| kb.parse().ok()).unwrap_or(0)
}

fn print(result: &DriveResult, resident_kb: u64) -> Result<(), Box<dyn std::error::Error>> {
    let seconds = (result.steady_end_ns - result.steady_start_ns) as f64 / 1e9;
    let cpu_us = (result.cpu_user_ns + result.cpu_system_ns) as f64 / 1e3;
    let ms = |q| result.response.quantile(q).map(|ns| ns / 1e6);
    let done = result.outcome::<StoreDrive>()?;
    let steps: serde_json::Map<_, _> = result
        .steps
        .iter()
        .map(|s| (s.name.clone(), serde_json::json!([s.times.count(), s.times.mean().map(|ns| ns / 1e6)])))
        .collect();
    let line = serde_json::json!({
        "operations": result.operations,
        "rate": result.operations as f64 / seconds,
        "statements": done.statements,
        "statements_per_order": done.statements as f64 / result.operations.max(1) as f64,
        "cpu_us_per_order": cpu_us / result.operations.max(1) as f64,
        "p50_ms": ms(0.5),
        "p99_ms": ms(0.99),
        "resident_mb": resident_kb as f64 / 1024.0,
        "unfinished": result.unfinished,
        "errors": result.errors,
        "steps": steps,
        "store": done,
    });
    println!("{line}");
    Ok(())
}
