//! Fills a store and tells how long it took, for `bench/load.sh`.
#![allow(clippy::print_stdout)]

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use clap::Parser;
use tare_driver::store;
use tare_driver::store::spec::{StoreLoad, StoreSize};
use tare_model::ByteSize;
use tare_model::sql::SqlServer;

#[derive(Parser)]
struct Arguments {
    /// Where the server listens.
    #[arg(long)]
    address: SocketAddr,
    /// Role, which needs no password.
    #[arg(long, default_value = "postgres")]
    user: String,
    /// Database.
    #[arg(long)]
    database: String,
    /// Nominal size of the store.
    #[arg(long, default_value = "10MB")]
    size: ByteSize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value_t = 2)]
    connections: u32,
}

fn main() -> ExitCode {
    let a = Arguments::parse();
    let server = SqlServer { address: a.address, user: a.user, password: None, database: a.database, schema: None };
    let load = StoreLoad { server, size: StoreSize::of(a.size), seed: a.seed, connections: a.connections };
    let began = Instant::now();
    match store::load(&load, &AtomicBool::new(false)) {
        Ok(loaded) => {
            for (table, rows, bytes) in &loaded.tables {
                eprintln!("{table}: {rows} rows, {bytes} bytes");
            }
            println!("{:.3} {:.3} {:.3}", began.elapsed().as_secs_f64(), loaded.rows_s, loaded.indexes_s);
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{failure:?}");
            ExitCode::FAILURE
        }
    }
}
