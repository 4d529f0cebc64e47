//! Tests of what needs no server.
use super::*;
use crate::store::spec::StoreSize;
use tare_model::load::Phases;
use tare_model::packed::Packed;
use tare_model::units::Span;

pub(super) fn drive() -> StoreDrive {
    let server = SqlServer::of("127.0.0.1:1".parse().unwrap(), "store", "store");
    let size = StoreSize { customers: 100, orders_per_month: 10, products: 100 };
    StoreDrive { start_jitter_ns: 10_000_000_000, ramp_rate_per_s: 10.0, ..StoreDrive::of(server, size) }
}

fn spec(drive: &StoreDrive, warm_s: u64) -> DriveSpec {
    let targets = vec!["127.0.0.1:1".parse().unwrap()];
    let load = LoadModel::Closed { clients: 21, think_time: Span::ZERO };
    let phases = Phases { warm_up: Span::from_secs(warm_s), ..Phases::measuring(Span::from_secs(1)) };
    DriveSpec { seed: 3, ..DriveSpec::new(Packed::of(drive).unwrap(), targets, load, phases) }
}

#[test]
fn clients_start_after_jitter_and_ramp_within_the_warm_up() {
    let drive = drive();
    let whole = Start::new(&spec(&drive, 60), &drive);
    let delays: Vec<f64> = (0..21).map(|i| whole.delay_ns(i) as f64 / 1e9).collect();
    for (index, delay) in delays.iter().enumerate() {
        let ramp = index as f64 / 10.0;
        assert!((ramp..ramp + 10.0).contains(delay), "client {index} after {delay} s");
    }
    assert!(whole.description.contains("12.0 s in all"), "{}", whole.description);
    let halved = Start::new(&spec(&drive, 6), &drive);
    assert!((0..21).all(|i| (halved.delay_ns(i) as f64 / 1e9 - delays[i as usize] / 2.0).abs() < 1e-6));
    assert!(halved.description.contains("compressed into the warm-up of 6.0 s"), "{}", halved.description);
    let none = Start::new(&spec(&drive, 0), &drive);
    assert!((0..21).all(|i| none.delay_ns(i) == 0));
    assert!(none.description.starts_with("all at once"), "{}", none.description);
    let mut open = spec(&drive, 60);
    open.load = LoadModel::Open {
        rate: tare_model::units::Rate(10.0),
        arrivals: tare_model::load::Arrivals::Poisson,
        connections: 21,
    };
    assert_eq!(Start::new(&open, &drive).delay_ns(20), 0);
}

#[test]
fn what_no_store_can_be_is_refused() {
    assert!(check(&drive()).is_ok());
    let refuse: [fn(&mut StoreDrive); 8] = [
        |d| d.new_customers = 1.5,
        |d| d.new_customers = f64::NAN,
        |d| d.size.customers = 0,
        |d| d.size.products = 1 << 31,
        |d| d.searches = 0,
        |d| d.line_items = 0,
        |d| d.ramp_rate_per_s = f64::INFINITY,
        |d| d.connect_timeout_ns = 0,
    ];
    for change in refuse {
        let mut bad = drive();
        change(&mut bad);
        assert!(matches!(check(&bad), Err(DriverError::Invalid { .. })), "{bad:?}");
    }
}

#[test]
fn clients_are_dealt_to_the_targets_in_turn() {
    let drive = drive();
    let mut spec = spec(&drive, 0);
    spec.targets = vec!["127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap()];
    let fleet = Fleet::new(&spec, &drive);
    assert_eq!([0, 1, 2].map(|i| fleet.server(i).address.port()), [1, 2, 1]);
}
