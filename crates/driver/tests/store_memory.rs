//! What hundreds of clients cost in memory. Alone in its program, because it looks at the whole of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::{phases, postgres, spec};
use tare_driver::store::spec::{StoreDrive, StoreLoad, StoreSize};
use tare_driver::{drive, store};
use tare_model::Span;
use tare_model::load::LoadModel;
use tare_model::sql::SqlServer;

const CLIENTS: u32 = 400;
/// What the clients may cost together, kB.
const AT_MOST_KB: u64 = 60 * 1024;

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn four_hundred_clients_that_think_cost_less_than_60_mb() {
    let Some(postgres) = postgres::start(&["max_connections=420", "shared_buffers=64MB"]) else { return };
    let server = SqlServer::of(postgres.address(), postgres::USER, postgres::DATABASE);
    // Products enough that so many hardly ever want the same.
    let size = StoreSize { customers: 2_000, orders_per_month: 10, products: 9_000 };
    store::load(&StoreLoad { server: server.clone(), size, seed: 1, connections: 1 }, &AtomicBool::new(false)).unwrap();
    let drive = StoreDrive { start_jitter_ns: 500_000_000, ramp_rate_per_s: 400.0, ..StoreDrive::of(server, size) };
    let load = LoadModel::Closed { clients: CLIENTS, think_time: Span::from_millis(1_500) };
    let spec = spec(drive, postgres.address(), load, phases(1_500, 0, 2_500, 0));
    let most = AtomicU64::new(0);
    let look = |_| {
        most.fetch_max(resident_kb(), Ordering::Relaxed);
    };
    let result = drive::run(&spec, &look, &AtomicBool::new(false)).unwrap();
    let most = most.into_inner();
    println!("{CLIENTS} clients: {most} kB resident, {} orders", result.answered_total);
    assert!(result.answered_total > u64::from(CLIENTS) / 2, "{:?}", result.errors);
    assert!(most < AT_MOST_KB, "{most} kB");
}
