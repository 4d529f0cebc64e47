//! What a study of so many blocks sees: the factors of `power.rs` are made here and checked here.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, StandardNormal};
use tare_model::findings::Verdict;

use super::simulation::verdict_of;
use crate::estimate::{self, POWER};
use crate::power::{self, BLOCKS_MAX};
use crate::student;

/// Studies made up for each number of blocks.
const STUDIES: usize = 40_000;

/// Log ratios of an arm and of the baseline's replica to one baseline: each trial has its own noise, so that the two share
/// half of their variance. Their standard deviation is 1.
fn blocks(n: usize, rng: &mut StdRng) -> (Vec<f64>, Vec<f64>) {
    let mut trial = || -> f64 {
        let noise: f64 = StandardNormal.sample(rng);
        noise / std::f64::consts::SQRT_2
    };
    (0..n)
        .map(|_| {
            let base = trial();
            (trial() - base, trial() - base)
        })
        .unzip()
}

/// For each made-up study, without and with a floor, the multiple of the spread that an earlier study of the kind showed from
/// which a difference would be called one. A difference moves the interval and the estimate with it, so the
/// multiple follows from a study without any; and the factors are a quantile of these multiples.
fn multiples(n: usize, rng: &mut StdRng) -> [Vec<f64>; 2] {
    let mut found = [Vec::with_capacity(STUDIES), Vec::with_capacity(STUDIES)];
    for _ in 0..STUDIES {
        let spread = student::deviation(&blocks(n, rng).0).unwrap();
        let (arm, replica) = blocks(n, rng);
        let located = estimate::location(&arm).unwrap().0;
        let beyond_one = -located.ends.unwrap().0;
        let beyond_floor = estimate::location(&replica).unwrap().0.value.abs() - located.value;
        found[0].push(beyond_one / spread);
        found[1].push(beyond_one.max(beyond_floor) / spread);
    }
    found
}

/// Prints the tables of `power.rs`: `cargo test --release -p tare-analysis factors -- --ignored --nocapture`.
#[test]
#[ignore = "makes the tables anew; takes minutes"]
#[allow(clippy::print_stdout, reason = "its output is the table")]
fn factors_are_made_here() {
    for n in 2..=BLOCKS_MAX {
        let mut rng = StdRng::seed_from_u64(n as u64);
        let [without, with] = multiples(n, &mut rng).map(|mut found| {
            found.sort_by(f64::total_cmp);
            found[(POWER * STUDIES as f64) as usize]
        });
        println!("    ({without:.4}, {with:.4}), // {n}");
    }
}

/// Share of studies that call a difference of the stated size one, where the size is stated by a study before.
fn seen(n: usize, with_floor: bool, studies: usize) -> f64 {
    let mut rng = StdRng::seed_from_u64(4242 + n as u64);
    let noise = 0.01;
    let ratios = |logs: &[f64], shift: f64| -> Vec<f64> { logs.iter().map(|x| (x * noise + shift).exp()).collect() };
    let claims = (0..studies).filter(|_| {
        let before: Vec<f64> = blocks(n, &mut rng).0.iter().map(|x| x * noise).collect();
        let size = power::detectable(&before, with_floor).unwrap();
        let (arm, replica) = blocks(n, &mut rng);
        let floor = with_floor.then(|| estimate::location(&replica).unwrap().0.value.abs() * noise);
        verdict_of(ratios(&arm, size), floor.map(f64::exp_m1)) == Verdict::Worse
    });
    claims.count() as f64 / studies as f64
}

#[test]
fn what_is_said_to_be_seen_is_seen_four_times_in_five() {
    for n in [3, 6, 12] {
        for with_floor in [false, true] {
            let seen = seen(n, with_floor, 4000);
            assert!((seen - POWER).abs() < 0.03, "n = {n}, floor {with_floor}: {seen}");
        }
    }
}

#[test]
fn equal_arms_are_called_different_in_at_most_one_of_twenty_with_a_floor_and_without() {
    for n in [3, 5, 6, 8, 12] {
        let mut rng = StdRng::seed_from_u64(31 + n as u64);
        let mut claims = [0, 0];
        for _ in 0..4000 {
            let (arm, replica) = blocks(n, &mut rng);
            let ratios: Vec<f64> = arm.iter().map(|x| (x * 0.01).exp()).collect();
            let floor = (estimate::location(&replica).unwrap().0.value.abs() * 0.01).exp_m1();
            for (count, floor) in claims.iter_mut().zip([None, Some(floor)]) {
                let claim = matches!(verdict_of(ratios.clone(), floor), Verdict::Better | Verdict::Worse);
                *count += u32::from(claim);
            }
        }
        let [without, with] = claims.map(|count| f64::from(count) / 4000.0);
        assert!(without < 0.05 + 0.012, "n = {n}: {without}");
        assert!(
            with <= without && with > 0.005,
            "n = {n}: {with} of {without}: the floor only takes away, and not all"
        );
    }
}
