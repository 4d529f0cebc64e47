//! Searches on servers that are made up: sharp ones, noisy ones, lucky ones and broken ones.
use tare_model::Span;
use tare_model::load::Arrivals;

use super::*;

pub(super) const CLOSED: LoadKind = LoadKind::Closed { think_time: Span::ZERO };
const OPEN: LoadKind = LoadKind::Open { arrivals: Arrivals::Poisson, connections: 4 };

pub(super) fn spec(kind: LoadKind, from: f64, most: f64, precision: f64) -> CapacitySpec {
    CapacitySpec { kind, from, most, precision, iterations: 3, drivers: 1 }
}

/// SplitMix64: numbers from 0 to 1 that look random and are the same every time.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

pub(super) fn missed() -> Outcome {
    Outcome::Missed("the response time was 3 and should be at most 2".to_owned())
}

/// Searches on a server; all that was tried, and what it came to.
pub(super) fn searched(spec: &CapacitySpec, mut server: impl FnMut(f64) -> Outcome) -> (Vec<(Try, Outcome)>, Found) {
    let mut search = Search::new(spec);
    let mut log = Vec::new();
    while let Some(next) = search.next() {
        assert_eq!(search.next(), Some(next), "asked twice, it says the same");
        let outcome = server(next.load);
        search.record(outcome.clone());
        search.record(Outcome::Held);
        log.push((next, outcome));
        assert_eq!(search.tries() as usize, log.len(), "what nobody asked for is not heard");
        assert!(search.tries() <= search.at_most(), "{log:?}");
    }
    assert_eq!(search.next(), None);
    (log, search.end())
}

/// Searches on a server that serves so much and no more.
fn sharp(spec: &CapacitySpec, capacity: f64) -> (Vec<(Try, Outcome)>, Found) {
    searched(spec, |load| if load <= capacity { Outcome::Held } else { missed() })
}

fn loads(log: &[(Try, Outcome)]) -> Vec<f64> {
    log.iter().map(|(tried, _)| tried.load).collect()
}

#[test]
fn what_a_server_serves_is_found_to_the_step_and_confirmed() {
    let (log, found) = sharp(&spec(CLOSED, 50.0, 400.0, 0.1), 180.0);
    let grid = spec(CLOSED, 50.0, 400.0, 0.1).grid();
    let at = grid.partition_point(|&load| load <= 180.0);
    assert_eq!((found.held, found.missed), (grid[at - 1], Some(grid[at])));
    let purposes: Vec<ProbePurpose> = log.iter().map(|(tried, _)| tried.purpose).collect();
    use ProbePurpose::{Bisect, Bracket, Confirm};
    assert_eq!(purposes, [Bracket, Bracket, Bracket, Bracket, Bisect, Bisect, Confirm, Confirm], "{:?}", loads(&log));
    assert!(found.ended.contains("held in 3 instances") && found.ended.contains("should be at most 2"), "{found:?}");
    // The largest that may be tried.
    let (log, found) = sharp(&spec(CLOSED, 50.0, 400.0, 0.1), 9999.0);
    assert_eq!((found.held, found.missed, log.len()), (400.0, None, 5 + 2), "{:?}", loads(&log));
    assert!(found.ended.contains("more were not to be tried"), "{found:?}");
}

#[test]
fn every_capacity_is_found_from_every_first_load_within_the_precision() {
    // Arrivals are rounded to five digits.
    for (kind, precision) in [(CLOSED, 0.05), (CLOSED, 0.3), (OPEN, 0.02)] {
        for from in [1.0, 7.0, 100.0, 900.0] {
            let spec = spec(kind, from, 1000.0, precision);
            for capacity in (1..=1000).step_by(7).map(f64::from) {
                let (log, found) = sharp(&spec, capacity);
                let most = (found.held * (1.0 + precision) * (1.0 + 1.1e-4)).max(found.held + 1.0);
                assert!(found.held <= capacity && capacity <= most.max(found.missed.unwrap_or(1000.0)), "{found:?}");
                assert!(found.missed.is_none_or(|missed| missed > capacity && missed <= most), "{found:?}");
                let confirmed = log.iter().filter(|(tried, _)| tried.load == found.held).count();
                assert_eq!(confirmed, 3, "from {from}, capacity {capacity}: {:?}", loads(&log));
            }
        }
    }
}

#[test]
fn a_first_load_that_is_too_much_is_halved_and_nothing_that_holds_is_no_capacity() {
    let (log, found) = sharp(&spec(CLOSED, 1000.0, 2000.0, 0.5), 90.0);
    assert_eq!(loads(&log)[0], 1000.0);
    assert!(loads(&log).windows(2).take(3).all(|pair| pair[1] <= pair[0] / 2.0), "{:?}", loads(&log));
    assert!(found.held <= 90.0 && found.held > 60.0, "{found:?}");
    let (log, found) = sharp(&spec(CLOSED, 1000.0, 2000.0, 0.05), 0.0);
    assert_eq!((found.held, found.missed, *loads(&log).last().unwrap()), (0.0, Some(1.0), 1.0));
    assert!(found.ended.starts_with("not even 1 client held: the response time"), "{found:?}");
    let (_, found) = sharp(&spec(OPEN, 10.0, 20.0, 0.05), 0.0);
    assert!(found.ended.starts_with("not even 0.01 arrivals/s held"), "{found:?}");
}

/// The chance that a server with a capacity passes at a load: half at the capacity, and falling over some percent around it.
fn chance(load: f64, capacity: f64) -> f64 {
    1.0 / (1.0 + ((load / capacity - 1.0) / 0.02).exp())
}

#[test]
fn noisy_servers_are_found_near_their_capacity_and_never_far_above() {
    let spec = spec(CLOSED, 50.0, 4000.0, 0.05);
    let (mut near, mut total, mut dice) = (0_u32, 0_u32, Dice(1));
    for capacity in [60.0, 333.0, 1234.0, 3000.0] {
        for _ in 0..2500 {
            let outcome = |load: f64| if dice.roll() < chance(load, capacity) { Outcome::Held } else { missed() };
            let (log, found) = searched(&spec, outcome);
            assert!(log.len() <= spec.tries_at_most() as usize);
            // Three passes out of three with one chance in fifty are eight in a million.
            assert!(found.held == 0.0 || chance(found.held, capacity) > 0.02, "{found:?} of {capacity}: {log:?}");
            total += 1;
            near += u32::from((found.held / capacity - 1.0).abs() <= 0.05 + 3.0 * 0.02);
        }
    }
    // The precision, and three widths of the noise beside it.
    assert!(f64::from(near) / f64::from(total) > 0.97, "{near} of {total}");
}

#[test]
fn luck_is_not_taken_for_capacity() {
    // 400 clients pass one time in five, and nothing else above 210 passes.
    let spec = spec(CLOSED, 50.0, 3200.0, 1.0);
    assert_eq!(spec.grid(), [50.0, 100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0]);
    let (searches, mut lucky, mut dice) = (20_000_u32, 0_u32, Dice(7));
    for _ in 0..searches {
        let outcome = |load: f64| {
            let held = load <= 210.0 || (load <= 400.0 && dice.roll() < 0.2);
            if held { Outcome::Held } else { missed() }
        };
        let (log, found) = searched(&spec, outcome);
        assert!([200.0, 400.0].contains(&found.held), "{log:?}");
        lucky += u32::from(found.held > 210.0);
    }
    // 0.2 cubed: 160 are to be expected, with a standard deviation of 12.6.
    assert!((97..=223).contains(&lucky), "{lucky} of {searches}");
}

#[test]
fn what_is_refuted_is_a_miss_and_what_had_held_above_it_is_forgotten() {
    // 200 and 100 hold once; 200 is then refuted, and 100 as well; 75 holds.
    let mut seen = BTreeMap::new();
    let (log, found) = searched(&spec(CLOSED, 25.0, 400.0, 0.5), |load| {
        let times = seen.entry(load.to_bits()).or_insert(0_u32);
        *times += 1;
        if load <= 56.0 || (load < 200.0 && *times == 1) { Outcome::Held } else { missed() }
    });
    assert_eq!((found.held, found.missed), (55.0, Some(82.0)), "{:?}", loads(&log));
    let refuted =
        log.iter().position(|(tried, outcome)| tried.purpose == ProbePurpose::Confirm && *outcome != Outcome::Held);
    let least = |at: usize| loads(&log)[..=at].last().copied().unwrap();
    assert!(refuted.is_some_and(|at| loads(&log)[at + 1..].iter().all(|&load| load < least(at))), "{log:?}");
}

#[test]
fn what_does_not_show_anything_is_repeated_once_and_is_a_miss_the_second_time() {
    let invalid = || Outcome::Invalid("pages of another user".to_owned());
    let mut first = true;
    let (log, found) =
        searched(
            &spec(CLOSED, 10.0, 20.0, 1.0),
            |_| {
                if std::mem::take(&mut first) { invalid() } else { Outcome::Held }
            },
        );
    assert_eq!((loads(&log)[..3].to_vec(), found.held), (vec![10.0, 10.0, 20.0], 20.0));
    let (log, found) = searched(&spec(CLOSED, 10.0, 20.0, 1.0), |load| {
        if load < 20.0 { Outcome::Held } else { Outcome::Failed("the guest is gone".to_owned()) }
    });
    assert_eq!(loads(&log), [10.0, 20.0, 20.0, 10.0, 10.0]);
    assert!(
        found.held == 10.0 && found.ended.contains("did not run to its end, twice: the guest is gone"),
        "{found:?}"
    );
    let (log, found) = searched(&spec(CLOSED, 1.0, 20.0, 1.0), |_| invalid());
    assert_eq!((log.len(), found.held, found.missed), (2, 0.0, Some(1.0)));
    assert!(found.ended.contains("its work was wrong, twice: pages of another user"), "{found:?}");
}

#[test]
fn loads_that_are_too_small_to_be_judged_send_the_search_up() {
    let few = || Outcome::TooFew("the 99th percentile has no figure".to_owned());
    // Slow from 90 on, and below 60 there are too few operations.
    let server = |load: f64| match load {
        load if load < 60.0 => few(),
        load if load < 90.0 => Outcome::Held,
        _ => missed(),
    };
    for from in [5.0, 59.0, 70.0, 100.0, 200.0] {
        let (log, found) = searched(&spec(CLOSED, from, 200.0, 0.1), server);
        assert!(found.held < 90.0 && found.held * 1.1 >= 90.0, "{found:?} {log:?}");
        assert!(log.windows(2).all(|pair| pair[0].1 != few() || pair[1].0.load > pair[0].0.load), "{log:?}");
    }
    // Even the largest is too small.
    let (log, found) = searched(&spec(CLOSED, 10.0, 40.0, 0.5), |_| few());
    assert_eq!((loads(&log), found.held, found.missed), (vec![10.0, 15.0, 22.0, 40.0], 0.0, None));
    assert!(found.ended.starts_with("up to 40 clients, which is the largest that was tried, the 99th"), "{found:?}");
    assert!(found.ended.contains("Longer phases"), "{found:?}");
    // What is large enough to be judged is slow already.
    let server = |load: f64| if load < 90.0 { few() } else { missed() };
    for from in [10.0, 100.0] {
        let (_, found) = searched(&spec(CLOSED, from, 200.0, 0.1), server);
        assert!(found.held == 0.0 && found.missed.is_some_and(|missed| missed < 100.0), "{found:?}");
        assert!(found.ended.contains("did not hold: the response time was 3"), "{found:?}");
    }
    // More load that does less: what is not judged above a load that held has not held.
    let server = |load: f64| if load <= 50.0 { Outcome::Held } else { few() };
    let (_, found) = searched(&spec(CLOSED, 10.0, 200.0, 1.0), server);
    assert_eq!((found.held, found.missed), (40.0, Some(80.0)), "{found:?}");
}

#[test]
fn even_where_every_try_is_repeated_a_search_is_ended() {
    for (kind, from, most) in [(CLOSED, 50.0, 4000.0), (CLOSED, 2000.0, 2000.0), (OPEN, 0.5, 70.0)] {
        let spec = spec(kind, from, most, 0.05);
        for capacity in spec.below().into_iter().chain(spec.grid()) {
            let mut first = false;
            let (log, found) = searched(&spec, |load| {
                first = !first;
                match (first, load <= capacity) {
                    (true, _) => Outcome::Failed("the network".to_owned()),
                    (false, true) => Outcome::Held,
                    (false, false) => missed(),
                }
            });
            assert_eq!(found.held, capacity, "{} tries of {}", log.len(), spec.tries_at_most());
        }
    }
}

#[test]
fn whatever_happens_it_ends_and_reports_only_what_held_often_enough_and_was_never_refuted() {
    let mut dice = Dice(42);
    let mut cut_short = 0_u32;
    for round in 0..20_000_u32 {
        let iterations = 1 + round % 4;
        let precision = [0.02, 0.1, 1.0][round as usize % 3];
        let (from, most) = ([1.0, 30.0, 500.0][round as usize / 3 % 3], 800.0);
        let kind = if round % 2 == 0 { CLOSED } else { OPEN };
        let spec = CapacitySpec { kind, from, most, precision, iterations, drivers: 1 };
        let held = dice.roll();
        let (log, found) = searched(&spec, |_| match dice.roll() {
            roll if roll < held => Outcome::Held,
            roll if roll < held + (1.0 - held) * 0.6 => missed(),
            roll if roll < held + (1.0 - held) * 0.8 => Outcome::Invalid("wrong".to_owned()),
            _ => Outcome::Failed("gone".to_owned()),
        });
        cut_short += u32::from(found.ended.contains("were too few"));
        if found.held == 0.0 {
            continue;
        }
        let at = |load: f64| log.iter().filter(move |(tried, _)| tried.load == load);
        let times = at(found.held).filter(|(_, outcome)| *outcome == Outcome::Held).count();
        assert!(times >= iterations as usize, "{found:?}: {log:?}");
        let refuted =
            log.iter().any(|(tried, outcome)| tried.load <= found.held && matches!(outcome, Outcome::Missed(_)));
        assert!(!refuted, "{found:?}: {log:?}");
        assert!(found.missed.is_none_or(|missed| missed > found.held), "{found:?}");
    }
    assert!(cut_short > 10, "the bound was reached {cut_short} times");
}

#[test]
fn loads_are_written_in_words() {
    let shown = [words(CLOSED, 1.0), words(CLOSED, 120.0), words(OPEN, 120.0), words(OPEN, 0.525)];
    assert_eq!(shown, ["1 client", "120 clients", "120 arrivals/s", "0.525 arrivals/s"]);
    let shown = [200_000.0, 10_319.561, 5971.968, 964.506, 20.0].map(|load| words(OPEN, load));
    assert_eq!(shown, ["200000", "10320", "5972", "964.51", "20"].map(|digits| format!("{digits} arrivals/s")));
}
