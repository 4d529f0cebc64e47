//! Whole studies of equal arms: how many of them claim any difference, by simulation with fixed seeds.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, StandardNormal, StudentT};
use tare_model::findings::{Comparison, DriverLimited, Verdict};
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::random::MirroredOrders;

use crate::comparison::{Paired, Role, Subject, settle_primary};

/// Arms with the baseline; the replica comes on top.
const ARMS: usize = 7;
const CASES: usize = 6;
/// Metrics of a case, of which the first answers the study.
const METRICS: usize = 5;

/// What a trial's logarithm moves by.
#[derive(Debug, Clone, Copy)]
enum Noise {
    Normal,
    /// Student's t with 3 degrees of freedom.
    Heavy,
    /// Exponential: a floor, and now and then much more.
    Skewed,
    /// What the host does changes slowly: autocorrelation 0.95 from one trial to the next, one after another in time.
    Drifting,
    /// Each instance differs by 1 %, beside 0.3 % of noise.
    Instances,
}

struct Host {
    noise: Noise,
    drift: f64,
}

impl Host {
    fn next(&mut self, rng: &mut StdRng) -> f64 {
        let mut normal = || -> f64 { StandardNormal.sample(rng) };
        match self.noise {
            Noise::Normal => 0.02 * normal(),
            Noise::Instances => 0.01 * normal() + 0.003 * normal(),
            Noise::Drifting => {
                self.drift = 0.95 * self.drift + (1.0f64 - 0.95 * 0.95).sqrt() * 0.05 * normal();
                self.drift + 0.002 * normal()
            }
            Noise::Heavy => 0.02 * StudentT::new(3.0).map_or(0.0, |heavy| heavy.sample(rng)),
            Noise::Skewed => {
                let slow: f64 = Exp1.sample(rng);
                0.02 * slow
            }
        }
    }
}

/// Values of each arm by block, the last arm the replica: the arms of a block one after another, in the order that a plan gives them.
fn case(blocks: usize, noise: Noise, rng: &mut StdRng) -> Vec<Vec<f64>> {
    let mut host = Host { noise, drift: 0.0 };
    let mut orders = MirroredOrders::new(ARMS + 1, rng.random());
    let mut values = vec![Vec::new(); ARMS + 1];
    for _ in 0..blocks {
        for &arm in orders.draw() {
            values[arm].push(host.next(rng).exp());
        }
    }
    values
}

/// The verdicts of a study of equal arms.
fn study(blocks: usize, noise: Noise, rng: &mut StdRng) -> Vec<Comparison> {
    let spec = MetricSpec::new("p50", "response time", Unit::Seconds, Better::Lower);
    let of = Subject { spec: &spec, arm: "a", baseline: "b" };
    let mut asked = Vec::new();
    let mut others = Vec::new();
    for metric in 0..CASES * METRICS {
        let values = case(blocks, noise, rng);
        let paired = |arm: usize, role, replica| {
            let pairs = (0..blocks).map(|block| (block as u32, values[arm][block], values[0][block])).collect();
            let (planned, driver_limited) = (blocks as u32, DriverLimited::default());
            let (ids, missing, by_width, margin) = (("a", "b"), 0, false, None);
            Paired { of, ids, pairs, missing, planned, by_width, replica, margin, driver_limited, role }.compare()
        };
        let replica = paired(ARMS, Role::Replica, None);
        let compared = (1..ARMS).map(|arm| paired(arm, Role::Ordinary, Some(&replica)));
        if metric.is_multiple_of(METRICS) { asked.extend(compared) } else { others.extend(compared) }
    }
    settle_primary(asked.iter_mut().map(|own| (own, of)).collect());
    asked.into_iter().chain(others).collect()
}

/// Share of studies with any false verdict, and of comparisons that are leads.
fn claims(blocks: usize, noise: Noise, studies: u32) -> (f64, f64) {
    let mut rng = StdRng::seed_from_u64(u64::from(studies) + blocks as u64);
    let (mut false_studies, mut leads, mut all) = (0u32, 0, 0);
    for _ in 0..studies {
        let found = study(blocks, noise, &mut rng);
        let claimed = |own: &Comparison| matches!(own.verdict, Verdict::Better | Verdict::Worse | Verdict::Equivalent);
        false_studies += u32::from(found.iter().any(claimed));
        leads += found.iter().filter(|own| own.verdict == Verdict::Lead).count();
        all += found.len();
    }
    (f64::from(false_studies) / f64::from(studies), leads as f64 / all as f64)
}

const ALL: [Noise; 5] = [Noise::Normal, Noise::Heavy, Noise::Skewed, Noise::Drifting, Noise::Instances];

#[test]
fn few_studies_of_equal_arms_claim_any_difference() {
    const STUDIES: u32 = 40;
    let mut wrong = 0.0;
    for noise in ALL {
        let (share, leads) = claims(12, noise, STUDIES);
        wrong += share;
        assert!(leads > 0.005, "{noise:?}: {leads}: without the correction there would be some");
    }
    // Of 200 studies: 10 expected at most, and 3.1 standard errors.
    assert!(wrong / ALL.len() as f64 <= 0.05 + 0.048, "{wrong}");
}

/// Prints the table of ADR 0004: `cargo test --release -p tare-analysis family -- --ignored --nocapture` (`make bench` runs it).
#[test]
#[ignore = "takes minutes"]
#[allow(clippy::print_stdout, reason = "its output is the table")]
fn false_verdicts_of_whole_studies() {
    for blocks in [12, 20] {
        for noise in ALL {
            let (wrong, leads) = claims(blocks, noise, 1000);
            println!(
                "{blocks} blocks, {noise:?}: {:.1} % of studies with a false verdict, {:.1} % of comparisons leads",
                wrong * 100.0,
                leads * 100.0
            );
            // Four standard errors.
            assert!(wrong <= 0.05 + 0.028, "{blocks} {noise:?}: {wrong}");
        }
    }
}
