//! Fills a database of the social application and tells how long it took and what was sent.
#![allow(clippy::print_stdout)]

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use clap::Parser;
use tare_driver::social;
use tare_driver::social::spec::{Scale, SocialLoad};
use tare_model::sql::SqlServer;

#[derive(Parser)]
struct Arguments {
    /// Where the server listens.
    #[arg(long)]
    address: SocketAddr,
    /// Role, which needs no password.
    #[arg(long, default_value = "postgres")]
    user: String,
    /// Database; it must be there and have no such tables.
    #[arg(long)]
    database: String,
    /// Users at one time that it is loaded for.
    #[arg(long, default_value_t = 25)]
    users: u32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value_t = 2)]
    connections: u32,
}

fn main() -> ExitCode {
    let a = Arguments::parse();
    let server = SqlServer { address: a.address, user: a.user, password: None, database: a.database, schema: None };
    let load = SocialLoad { server, scale: Scale::of(a.users), seed: a.seed, connections: a.connections };
    let began = Instant::now();
    match social::load(&load, &AtomicBool::new(false)) {
        Ok(loaded) => {
            for (table, rows, bytes) in &loaded.tables {
                eprintln!("{table}: {rows} rows, {bytes} bytes");
            }
            let bytes: u64 = loaded.tables.iter().map(|(_, _, bytes)| bytes).sum();
            let rate = bytes as f64 / 1e6 / loaded.rows_s.max(1e-9);
            eprintln!("{:?}: {bytes} bytes of rows, {rate:.1} MB/s", load.scale);
            println!("{:.3} {:.3} {:.3}", began.elapsed().as_secs_f64(), loaded.rows_s, loaded.indexes_s);
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{failure:?}");
            ExitCode::FAILURE
        }
    }
}
