//! Which requests come, and of which keys.
use super::*;

const DRAWS: u64 = 200_000;

fn drawn(keys: u64, share: f64, popularity: Popularity) -> (Vec<u64>, u64) {
    let mix = Mix::new(keys, share, popularity).unwrap();
    let mut chooser = Chooser::new(&mix, 7, 3);
    let (mut counts, mut gets) = (vec![0; keys as usize], 0);
    for _ in 0..DRAWS {
        let (verb, number) = chooser.next();
        counts[number as usize] += 1;
        gets += u64::from(verb == Verb::Get);
    }
    (counts, gets)
}

#[test]
fn gets_have_their_share_and_uniform_keys_are_equal() {
    let (counts, gets) = drawn(100, 0.9, Popularity::Uniform);
    assert!((gets as f64 / DRAWS as f64 - 0.9).abs() < 0.005, "{gets}");
    // Five standard deviations of 2,000.
    assert!(counts.iter().all(|count| count.abs_diff(2_000) < 225), "{counts:?}");
    assert_eq!(drawn(10, 0.0, Popularity::Uniform).1, 0);
    assert_eq!(drawn(10, 1.0, Popularity::Uniform).1, DRAWS);
    assert_eq!(drawn(1, 0.5, Popularity::Uniform).0, [DRAWS]);
}

#[test]
fn the_share_of_a_rank_is_that_of_zipf_and_ranks_are_spread_over_the_keys() {
    for (keys, exponent) in [(1000, 0.99), (1000, 1.0), (50, 2.5)] {
        let (counts, _) = drawn(keys, 0.5, Popularity::Zipf { exponent });
        let all: f64 = (1..=keys).map(|rank| (rank as f64).powf(-exponent)).sum();
        let step = step(keys);
        for rank in [1, 2, 3, 10, 40] {
            let p = (rank as f64).powf(-exponent) / all;
            let seen = counts[((rank - 1) * step % keys) as usize] as f64;
            let (expected, spread) = (p * DRAWS as f64, (p * (1.0 - p) * DRAWS as f64).sqrt());
            assert!((seen - expected).abs() < 5.0 * spread, "{keys} {exponent} {rank}: {seen} {expected}");
        }
    }
    assert_eq!(drawn(1, 0.5, Popularity::Zipf { exponent: 1.0 }).0, [DRAWS]);
}

#[test]
fn every_rank_has_a_key_of_its_own() {
    for keys in [1, 2, 3, 10, 1000, 65_536, 99_991] {
        let step = step(keys);
        let all: std::collections::BTreeSet<u64> = (0..keys).map(|rank| rank * step % keys).collect();
        assert_eq!(all.len() as u64, keys, "{keys}: {step}");
    }
}

#[test]
fn connections_draw_their_own_and_the_same_again() {
    let mix = Mix::new(1 << 20, 0.5, Popularity::Zipf { exponent: 0.8 }).unwrap();
    let of = |seed, connection| {
        let mut chooser = Chooser::new(&mix, seed, connection);
        (0..50).map(|_| chooser.next().1).collect::<Vec<u64>>()
    };
    assert_eq!(of(1, 1), of(1, 1));
    assert!(of(1, 1) != of(1, 2) && of(1, 1) != of(2, 1));
}

#[test]
fn shares_and_exponents_that_are_none_are_refused() {
    for (share, exponent) in
        [(-0.1, 1.0), (1.1, 1.0), (f64::NAN, 1.0), (0.5, 0.0), (0.5, -1.0), (0.5, f64::NAN), (0.5, f64::INFINITY)]
    {
        assert!(Mix::new(10, share, Popularity::Zipf { exponent }).is_err(), "{share} {exponent}");
    }
}
