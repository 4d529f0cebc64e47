//! What a study of so many blocks sees: the sizes that `power.rs` states are checked by sending made-up studies through the verdict.

use tare_model::findings::Verdict;

use super::simulation::verdict_of;
use crate::estimate::POWER;
use crate::normals::Normals;
use crate::power::{self, Rule, study};

const NOISE: f64 = 0.01;

fn ratios(logs: &[f64], shift: f64) -> Vec<f64> {
    logs.iter().map(|x| (x * NOISE + shift).exp()).collect()
}

/// Share of studies that call a difference of the stated size one, where the size is stated by a study before.
fn seen(n: usize, with_floor: bool, studies: usize) -> f64 {
    let mut normals = Normals::new(4242 + n as u64);
    let claims = (0..studies).filter(|_| {
        let before: Vec<f64> = study(n, &mut normals).0.iter().map(|x| x * NOISE).collect();
        let size = power::detectable(&before, with_floor, 1).unwrap();
        let (arm, replica) = study(n, &mut normals);
        let replica = with_floor.then(|| ratios(&replica, 0.0));
        verdict_of(&ratios(&arm, size), replica.as_deref()) == Verdict::Worse
    });
    claims.count() as f64 / studies as f64
}

#[test]
fn what_is_said_to_be_seen_is_seen_four_times_in_five() {
    for (n, with_floor) in [(3, false), (6, true), (12, false), (12, true)] {
        let seen = seen(n, with_floor, 2000);
        assert!((seen - POWER).abs() < 0.04, "n = {n}, floor {with_floor}: {seen}");
    }
}

#[test]
fn equal_arms_are_called_different_in_at_most_one_of_twenty_with_a_floor_and_without() {
    const STUDIES: u32 = 1500;
    for n in [3, 6, 12] {
        let mut normals = Normals::new(31 + n as u64);
        let mut claims = [0, 0];
        for _ in 0..STUDIES {
            let (arm, replica) = study(n, &mut normals);
            let replica = ratios(&replica, 0.0);
            for (count, replica) in claims.iter_mut().zip([None, Some(&replica[..])]) {
                let claim = matches!(verdict_of(&ratios(&arm, 0.0), replica), Verdict::Better | Verdict::Worse);
                *count += u32::from(claim);
            }
        }
        let [without, with] = claims.map(|count| f64::from(count) / f64::from(STUDIES));
        assert!(without < 0.05 + 0.02, "n = {n}: {without}");
        assert!(
            with <= without && with > 0.005,
            "n = {n}: {with} of {without}: the floor only takes away, and not all"
        );
    }
}

#[test]
fn the_default_number_of_blocks_finds_two_percent_where_blocks_spread_by_two() {
    // The bar of the review: 84 at 12 blocks for a single comparison without a floor.
    let rule = Rule { blocks: 12, with_floor: false, comparisons: 1 };
    assert!(rule.power(1.0) >= 0.84 - 0.01, "{}", rule.power(1.0));
    let among_many = Rule { comparisons: 5, ..rule };
    assert!(among_many.power(1.0) < rule.power(1.0) - 0.1 && among_many.power(2.0) > 0.99);
    assert_eq!(Rule { blocks: 6, comparisons: 2, ..rule }.power(100.0), 0.0, "six blocks have no p-value below 3 %");
}

#[test]
fn the_closed_form_is_near_the_simulation_and_finds_the_number_of_blocks() {
    for (blocks, comparisons) in [(12, 1), (20, 1), (40, 1), (12, 5), (20, 36)] {
        let rule = Rule { blocks, with_floor: true, comparisons };
        let (about, simulated) = (rule.about().unwrap(), rule.factor().unwrap());
        assert!((about / simulated - 1.0).abs() < 0.12, "{rule:?}: {about} and {simulated}");
    }
    let rule = Rule { blocks: 0, with_floor: true, comparisons: 4 };
    let blocks = rule.blocks_for(1.0, 1000).unwrap();
    assert!(Rule { blocks, ..rule }.power(1.0) >= POWER && Rule { blocks: blocks - 1, ..rule }.power(1.0) < POWER);
    assert_eq!(rule.blocks_for(0.001, 100), None);
}
