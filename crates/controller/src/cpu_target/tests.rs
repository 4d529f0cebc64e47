#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]
use tare_model::Span;
use tare_model::load::{Arrivals, LoadKind};

use super::*;

const CLOSED: LoadKind = LoadKind::Closed { think_time: Span::ZERO };
const OPEN: LoadKind = LoadKind::Open { arrivals: Arrivals::Poisson, connections: 4 };

fn target(kind: LoadKind, share: f64, from: f64, most: f64) -> CpuTarget {
    CpuTarget { kind, share, tolerance: 0.02, from, most, step: Span::from_secs(30), steps: 8 }
}

/// What a search comes to in guests that take a share of their CPUs at a load: the loads that were tried, and how it ended.
fn search(spec: &CpuTarget, mut takes: impl FnMut(f64) -> f64) -> (Vec<f64>, Next) {
    let mut search = Search::new(spec, 1);
    loop {
        match search.next() {
            Next::Try(load) => {
                assert!(search.tries() < spec.steps, "it does not end");
                search.record(load, takes(load));
            }
            end => return (search.tried.iter().map(|(load, _)| *load).collect(), end),
        }
    }
}

fn why(end: &Next) -> &str {
    match end {
        Next::GiveUp(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn in_proportion_two_loads_are_enough() {
    let (tried, end) = search(&target(CLOSED, 0.4, 50.0, 2000.0), |load| load / 200.0);
    assert_eq!((tried, end), (vec![50.0, 80.0], Next::Measure(80.0)));
    let (tried, end) = search(&target(CLOSED, 0.1, 50.0, 2000.0), |load| load / 200.0);
    assert_eq!((tried, end), (vec![50.0, 20.0], Next::Measure(20.0)), "downward as well");
    let (tried, end) = search(&target(OPEN, 0.7, 100.0, 2e4), |load| load / 1e3 * 2.0);
    assert_eq!((tried, end), (vec![100.0, 200.0, 350.0], Next::Measure(350.0)), "a load is at most doubled");
    let (tried, end) = search(&target(CLOSED, 0.4, 80.0, 2000.0), |load| load / 200.0);
    assert_eq!((tried, end), (vec![80.0], Next::Measure(80.0)));
}

#[test]
fn what_is_idle_takes_its_part() {
    // Ten instances take a tenth of the CPUs with nothing to do.
    let (tried, end) = search(&target(CLOSED, 0.4, 10.0, 2000.0), |load| 0.1 + load / 1000.0);
    let Next::Measure(load) = end else { panic!("{end:?}") };
    assert!((load - 300.0).abs() <= 8.0, "{tried:?} {load}");
    let (_, end) = search(&target(CLOSED, 0.05, 10.0, 2000.0), |load| 0.1 + load / 1000.0);
    assert!(why(&end).contains("1 client, the least that can be offered, took 10.1 % of the guests' CPUs"), "{end:?}");
    let mut many = Search::new(&target(CLOSED, 0.05, 40.0, 2000.0), 10);
    many.record(40.0, 0.14);
    many.record(10.0, 0.11);
    assert!(why(&many.next()).starts_with("10 clients, the least"), "one for each instance");
}

#[test]
fn what_cannot_be_reached_is_reported_with_the_figures() {
    let (tried, end) = search(&target(CLOSED, 0.7, 10.0, 100.0), |load| load / 200.0);
    assert_eq!(tried, [10.0, 20.0, 40.0, 80.0, 100.0]);
    assert!(why(&end).contains("even 100 clients, the most that `cpu-target.most` allows, took 50.0 %"), "{end:?}");
    // Near enough at the very end is near enough.
    let (_, end) = search(&target(CLOSED, 0.515, 60.0, 100.0), |load| load / 200.0);
    assert_eq!(end, Next::Measure(100.0));
    // A client takes six points.
    let (tried, end) = search(&target(CLOSED, 0.45, 1.0, 100.0), |load| load * 0.06);
    assert_eq!(tried, [1.0, 2.0, 4.0, 8.0, 7.0]);
    assert!(why(&end).contains("between two that are one client apart there is no other"), "{end:?}");
    // Nothing that is offered changes anything.
    let (tried, end) = search(&target(CLOSED, 0.5, 10.0, 60_000.0), |_| 0.2);
    assert_eq!(tried.len(), 8);
    assert!(why(&end).contains("no load was found at which 50.0 %") && why(&end).contains("10 clients took 20.0 %"));
    let (tried, _) = search(&target(CLOSED, 0.5, 10.0, 60_000.0), |_| 0.0);
    assert_eq!(tried[..3], [10.0, 20.0, 40.0]);
}

#[test]
fn older_readings_give_way_where_they_contradict() {
    let mut search = Search::new(&target(CLOSED, 0.4, 50.0, 2000.0), 1);
    // The first was cold.
    search.record(50.0, 0.45);
    search.record(60.0, 0.3);
    assert_eq!(search.bracket(), (Some(60.0), None));
    let Next::Try(next) = search.next() else { panic!("{:?}", search.next()) };
    assert!(next > 60.0 && next <= 120.0, "{next}");
}

#[test]
fn an_end_that_was_read_long_ago_is_read_again_before_the_search_is_given_up() {
    let mut search = Search::new(&target(CLOSED, 0.2, 150.0, 400.0), 2);
    // The second was read while a virtual machine compiled.
    for (load, share) in [(150.0, 0.132), (227.0, 0.238), (200.0, 0.123), (222.0, 0.127), (226.0, 0.146)] {
        search.record(load, share);
    }
    assert_eq!(search.next(), Next::Try(227.0));
    search.record(227.0, 0.147);
    assert!(matches!(search.next(), Next::Try(load) if load > 227.0), "{:?}", search.next());
}

/// Uniform and normal numbers from a seed: SplitMix64 and the method of Box and Muller.
struct Chance(u64);

impl Chance {
    fn uniform(&mut self, from: f64, to: f64) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        from + (to - from) * ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (one, other) = (self.uniform(f64::MIN_POSITIVE, 1.0), self.uniform(0.0, std::f64::consts::TAU));
        (-2.0 * one.ln()).sqrt() * other.cos()
    }
}

/// Of 10,000 guests, each with a demand, an idle share, a knee and a target of its own: the part in which the share that is measured in
/// the end is within the tolerance, and the mean number of loads that were tried. `noise`: standard deviation of one reading;
/// `cold`: what the first load takes more, as a part.
fn held(noise: f64, cold: f64, seed: u64) -> (f64, f64) {
    let mut chance = Chance(seed);
    let (mut right, mut steps) = (0, 0);
    for _ in 0..10_000 {
        let share = chance.uniform(0.1, 0.9);
        let idle = chance.uniform(0.0, share / 4.0);
        // Between a straight line and one that is half as steep at the target as at the start.
        let bend = chance.uniform(0.0, 0.5);
        let at = chance.uniform(100.0, 1500.0);
        let takes = |load: f64| {
            let part = load / at;
            (idle + (share - idle) * part * (1.0 + bend) / (1.0 + bend * part)).min(1.0)
        };
        let most = at * chance.uniform(1.2, 8.0);
        let spec = target(CLOSED, share, (most / 16.0).ceil(), most.ceil());
        let mut first = true;
        let (tried, end) = search(&spec, |load| {
            let warm = if std::mem::take(&mut first) { 1.0 + cold } else { 1.0 };
            (takes(load) * warm + noise * chance.normal()).clamp(0.0, 1.0)
        });
        steps += tried.len();
        if let Next::Measure(load) = end {
            // It is measured four times as long.
            right += u32::from((takes(load) + noise / 2.0 * chance.normal() - share).abs() <= spec.tolerance);
        }
    }
    (f64::from(right) / 1e4, steps as f64 / 1e4)
}

#[test]
fn ten_thousand_searches_hold_as_often_as_their_noise_allows() {
    // Noise of a reading in points, what the first load takes more: the least part that must search, the most loads on average.
    for (noise, cold, least, most) in [
        (0.0, 0.0, 0.999, 5.0),
        (0.003, 0.0, 0.999, 5.0),
        (0.005, 0.2, 0.99, 5.5),
        (0.01, 0.2, 0.95, 6.0),
        (0.02, 0.2, 0.7, 7.0),
    ] {
        let (held, steps) = held(noise, cold, 7);
        println!(
            "noise {:.1} points, first {:.0} % more: {:.2} % search, {steps:.2} loads",
            noise * 100.0,
            cold * 100.0,
            held * 100.0
        );
        assert!(held >= least && steps <= most, "{held} {steps}");
    }
}
