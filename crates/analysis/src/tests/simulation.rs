//! Coverage, false positives and power, by simulation with fixed seeds. Tolerances are about four standard errors.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal, StudentT};
use tare_model::findings::{DriverLimited, Verdict};
use tare_model::metric::{Better, MetricSpec, Unit};

use crate::comparison::{Paired, Role, Subject, settle_primary};
use crate::estimate;

const RUNS: u32 = 4000;

/// Share of intervals over `n` values that hold the centre, 0.
fn coverage(n: usize, seed: u64, noise: impl Distribution<f64>) -> f64 {
    let mut rng = StdRng::seed_from_u64(seed);
    let held = (0..RUNS).filter(|_| {
        let values: Vec<f64> = (0..n).map(|_| noise.sample(&mut rng)).collect();
        let (low, high) = estimate::location(&values).unwrap().0.ends.unwrap();
        low <= 0.0 && 0.0 <= high
    });
    held.count() as f64 / f64::from(RUNS)
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    // Attained levels: t 0.95; signed ranks 0.96875 at n = 6 and 0.951 at n = 10.
    for (n, level) in [(3, 0.95), (5, 0.95), (6, 0.96875), (10, 0.9512)] {
        let held = coverage(n, 11 + n as u64, Normal::new(0.0, 0.01).unwrap());
        assert!((held - level).abs() < 0.014, "n = {n}: {held} of {level}");
    }
}

#[test]
fn signed_ranks_hold_under_heavy_tails_as_well() {
    for n in [6, 10, 20] {
        let held = coverage(n, 5, StudentT::new(2.0).unwrap());
        assert!(held > 0.95 - 0.014, "n = {n}: {held}");
    }
}

/// The verdict on ratios, as on the only comparison that answers a study, beside those of the baseline's replica.
pub(super) fn verdict_of(ratios: &[f64], replica: Option<&[f64]>) -> Verdict {
    let spec = MetricSpec::new("p50", "response time", Unit::Seconds, Better::Lower);
    let of = Subject { spec: &spec, arm: "a", baseline: "b" };
    let paired = |ratios: &[f64], role| {
        let pairs = ratios.iter().enumerate().map(|(block, ratio)| (block as u32, *ratio, 1.0)).collect();
        let (planned, ids) = (ratios.len() as u32, ("a", "b"));
        let (missing, by_width, replica, margin, driver_limited) = (0, false, None, None, DriverLimited::default());
        Paired { of, ids, pairs, missing, planned, by_width, replica, margin, driver_limited, role }
    };
    let replica = replica.map(|ratios| paired(ratios, Role::Replica).compare());
    let mut comparison = Paired { replica: replica.as_ref(), ..paired(ratios, Role::Ordinary) }.compare();
    settle_primary(vec![(&mut comparison, of)]);
    comparison.verdict
}

#[test]
fn the_same_arm_twice_is_called_different_in_at_most_one_of_twenty() {
    for (n, noise) in [(5, 0.01), (6, 0.01), (8, 0.05), (10, 0.002)] {
        let mut rng = StdRng::seed_from_u64(97 + n);
        let normal = Normal::new(0.0, noise).unwrap();
        let claims = (0..1000)
            .filter(|_| {
                // A block's own level is in both values and cancels; each has its own noise, skewed by a slow tail.
                let mut one =
                    || f64::exp(normal.sample(&mut rng) + if rng.random_bool(0.1) { noise * 3.0 } else { 0.0 });
                let ratios: Vec<f64> = (0..n).map(|_| one() / one()).collect();
                matches!(verdict_of(&ratios, None), Verdict::Better | Verdict::Worse)
            })
            .count();
        assert!(claims <= 50 + 24, "n = {n}: {claims} of 1000");
        assert!(claims >= 5, "n = {n}: {claims} of 1000: an interval this careful sees nothing");
    }
}
