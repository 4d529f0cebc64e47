//! Whether intervals hold what they state though their own width ended a case, and what the rule says of made-up runs.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, StandardNormal, StudentT};
use tare_model::plan::Plan;
use tare_model::precision::{Judged, WhyEnded};
use tare_model::study::Precision;
use tare_model::trial::{Flag, Outcome, TrialRecord};
use tare_record::testing;

use crate::precision::IN_A_ROW;
use crate::{judge, sequential};

/// A kind of noise: log ratios of blocks of standard deviation 1 about 0, and the autocorrelation of neighbours.
struct Kind {
    name: &'static str,
    heavy: bool,
    rho: f64,
}

const KINDS: [Kind; 6] = [
    Kind { name: "normal", heavy: false, rho: 0.0 },
    Kind { name: "t, 3 degrees of freedom", heavy: true, rho: 0.0 },
    Kind { name: "AR(1), 0.3", heavy: false, rho: 0.3 },
    Kind { name: "AR(1), 0.4", heavy: false, rho: 0.4 },
    Kind { name: "AR(1), 0.5", heavy: false, rho: 0.5 },
    Kind { name: "AR(1) of t, 0.3", heavy: true, rho: 0.3 },
];

impl Kind {
    fn series(&self, blocks: usize, rng: &mut StdRng) -> Vec<f64> {
        let heavy = StudentT::new(3.0).unwrap();
        let mut last: Option<f64> = None;
        let next = |_| {
            // Its variance is 3.
            let own: f64 = if self.heavy { heavy.sample(rng) / 3f64.sqrt() } else { StandardNormal.sample(rng) };
            let value = last.map_or(own, |last| self.rho * last + (1.0 - self.rho * self.rho).sqrt() * own);
            last = Some(value);
            value
        };
        (0..blocks).map(next).collect()
    }
}

/// How far the interval of the first `blocks` values reaches, and whether it holds the centre.
fn interval(series: &[f64], blocks: usize) -> (f64, bool) {
    let located = sequential::signed_rank(&series[..blocks], 0).unwrap();
    let (low, high) = located.ends.unwrap();
    ((located.value - low).max(high - located.value), low <= 0.0 && 0.0 <= high)
}

/// For each of the widths that are asked for, the mean number of blocks at which series end by the rule, and the share of their
/// intervals that hold the centre.
fn ended(kind: &Kind, (least, most): (usize, usize), asked: &[f64], series: usize, seed: u64) -> Vec<(f64, f64)> {
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut blocks, mut held) = (vec![0; asked.len()], vec![0; asked.len()]);
    for _ in 0..series {
        let values = kind.series(most, &mut rng);
        let first = least + 1 - IN_A_ROW as usize;
        let all: Vec<(f64, bool)> = (first..=most).map(|n| interval(&values, n)).collect();
        for (at, asked) in asked.iter().enumerate() {
            let narrow = |last: &[(f64, bool)]| last.iter().all(|(reach, _)| reach <= asked);
            let end =
                all.windows(IN_A_ROW as usize).position(narrow).map_or(all.len(), |start| start + IN_A_ROW as usize);
            blocks[at] += first + end - 1;
            held[at] += usize::from(all[end - 1].1);
        }
    }
    let share = |sum: &usize| *sum as f64 / series as f64;
    blocks.iter().map(share).zip(held.iter().map(share)).collect()
}

/// The reach that so many independent normal values have.
fn reach_of(blocks: f64) -> f64 {
    1.96 / blocks.sqrt()
}

#[test]
fn an_interval_that_ended_its_case_holds_the_centre() {
    // Tolerance: three and a half standard errors beside the range that the whole simulation shows.
    let asked = [4.0, 12.0, 40.0].map(reach_of);
    for (seed, kind) in KINDS.iter().enumerate() {
        for (blocks, held) in ended(kind, (12, 30), &asked, 600, seed as u64) {
            assert!((0.91..=0.997).contains(&held), "{}: {held} at {blocks} blocks", kind.name);
        }
    }
}

/// Prints the table of ADR 0025: `cargo test --release -p tare-analysis coverage_of_the_rule -- --ignored --nocapture`.
#[test]
#[ignore = "makes the table of ADR 0025 anew; takes minutes"]
#[allow(clippy::print_stdout, reason = "its output is the table")]
fn coverage_of_the_rule() {
    let asked = [0.2, 2.0, 4.0, 7.0, 12.0, 18.0, 23.0, 29.0, 36.0, 45.0, 56.0, 90.0].map(reach_of);
    for (seed, kind) in KINDS.iter().enumerate() {
        let found = ended(kind, (12, 60), &asked, 10_000, 17 + seed as u64);
        let cells: Vec<String> =
            found.iter().map(|(blocks, held)| format!("{:.1} at {blocks:.0}", held * 100.0)).collect();
        println!("| {} | {} |", kind.name, cells.join(" | "));
        assert!(found.iter().all(|(_, held)| (0.935..=0.983).contains(held)), "{}: {found:?}", kind.name);
    }
}

/// A plan of this rule, and its trials: the arm `container` is 5 % slower, with this much noise in each of its trials.
fn made_up(rule: (u32, u32, f64), noise: f64) -> (Plan, Vec<TrialRecord>) {
    let (at_least, at_most, until) = rule;
    let mut plan = testing::plan(at_most);
    plan.study.precision = Some(Precision { at_least, until });
    let mut trials: Vec<TrialRecord> =
        (0..plan.trials.len() as u32).map(|index| testing::trial(&plan, index)).collect();
    for record in &mut trials {
        let seed = u64::from(record.planned.index);
        let factor = if record.planned.arm == "container" { 1.05 } else { 1.0 };
        let primary = record.metrics.iter().find(|spec| spec.primary).unwrap().id.clone();
        let Outcome::Completed(measurement) = &mut record.outcome else { panic!("it completed") };
        measurement.metrics.insert(primary, 20e-6 * factor * (noise * testing::noise(seed)).exp());
    }
    (plan, trials)
}

fn judged(plan: &Plan, blocks: u32, trials: &[TrialRecord]) -> Judged {
    judge(plan, "idle", blocks, trials).unwrap()
}

#[test]
fn a_quiet_case_ends_at_the_least_and_a_noisy_one_at_the_most() {
    let (plan, quiet) = made_up((12, 40, 0.02), 0.003);
    assert_eq!(judged(&plan, 11, &quiet).ended, None, "narrow, and too early");
    let at = judged(&plan, 12, &quiet);
    assert_eq!(at.ended, Some(WhyEnded::Precise));
    assert!(at.width.unwrap() < 0.02 && at.likely == 12, "{at:?}");
    let (plan, noisy) = made_up((12, 40, 0.02), 0.5);
    let (early, last) = (judged(&plan, 12, &noisy), judged(&plan, 40, &noisy));
    assert_eq!((early.ended, early.likely), (None, 40));
    assert_eq!((last.ended, last.width.unwrap() > 0.02), (Some(WhyEnded::AtMost), true));
    let fixed = testing::plan(6);
    assert_eq!(judge(&fixed, "idle", 6, &noisy), None, "a fixed number has no rule");
}

#[test]
fn an_interval_must_be_narrow_three_times_in_a_row_and_the_middle_is_foreseen() {
    let (plan, trials) = made_up((12, 60, 0.02), 0.05);
    let all: Vec<Judged> = (9..=60).map(|blocks| judged(&plan, blocks, &trials)).collect();
    let end = all.iter().position(|own| own.ended.is_some()).unwrap();
    assert_eq!(all[end].ended, Some(WhyEnded::Precise));
    assert!(all[end - 2..=end].iter().all(|own| own.width.unwrap() <= 0.02), "{all:?}");
    let blocks = all[end].blocks;
    assert!((15..60).contains(&blocks), "{blocks}");
    let foreseen = all.iter().find(|own| own.blocks == 14).unwrap().likely;
    assert!((blocks / 2..=blocks * 2).contains(&foreseen), "{foreseen} foreseen, {blocks} taken");
}

#[test]
fn what_can_have_no_ratio_holds_nobody_up() {
    let (plan, mut trials) = made_up((12, 40, 0.02), 0.003);
    let before = judged(&plan, 12, &trials);
    for record in trials.iter_mut().filter(|record| record.planned.arm == "container") {
        record.outcome = Outcome::Invalid { reason: "wrong".into() };
    }
    assert_eq!(judged(&plan, 12, &trials).ended, Some(WhyEnded::Precise), "the replica is compared");
    for record in trials.iter_mut().filter(|record| record.planned.arm == testing::ARMS[2]) {
        record.outcome = Outcome::Invalid { reason: "wrong".into() };
    }
    let nothing = judged(&plan, 12, &trials);
    assert_eq!((nothing.ended, nothing.width), (Some(WhyEnded::NothingCompared), None));
    let (_, mut trials) = made_up((12, 40, 0.02), 0.003);
    for record in trials.iter_mut().filter(|record| record.planned.arm == "container") {
        record.flags.push(Flag { kind: "not-comparable".into(), detail: "emulated: no KVM here".into() });
        let Outcome::Completed(measurement) = &mut record.outcome else { panic!("it completed") };
        measurement.metrics.values_mut().for_each(|value| *value *= f64::from(1 + (record.planned.block - 1) % 5));
    }
    let apart = judged(&plan, 12, &trials);
    assert_eq!(apart.ended, Some(WhyEnded::Precise));
    assert!(apart.width <= before.width, "the arm that is not compared is not looked at");
}

#[test]
fn the_report_shows_the_interval_that_decided() {
    let (plan, trials) = made_up((12, 40, 0.02), 0.01);
    let found = super::of(&plan, &trials);
    let comparison = found.cases[0].metrics[0].comparisons.iter().find(|own| own.arm == "container").unwrap();
    let (low, high) = comparison.ratio.low.zip(comparison.ratio.high).unwrap();
    let reach = (high / comparison.ratio.value).max(comparison.ratio.value / low) - 1.0;
    assert!(comparison.ratio.method.contains("widened") && (comparison.ratio.level - 0.95).abs() < 1e-12);
    assert!(reach <= judged(&plan, 40, &trials).width.unwrap() + 1e-12);
    assert!(found.method.iter().any(|text| text.contains("at least 12 blocks and at most 40")), "{:?}", found.method);
}
