//! How often does the analysis claim a difference where there is none?
//!
//!     cargo run --release -p tare-analysis --example aa -- NOISE_DIR [RUN_DIR ...]
//!
//! From NOISE_DIR, a run folder of this machine, it takes the noise: what is left of each block's log values when
//! each arm's mean is taken out. With it 100 studies of two equal arms and a replica are made up and sent through the whole
//! analysis; what it calls better or worse is false. RUN_DIRs are real runs: there the baseline and its replica
//! are compared like any two arms.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use tare_analysis::{Run, findings};
use tare_model::findings::{Comparison, Findings, Verdict};
use tare_model::plan::{Plan, PlannedTrial};
use tare_model::trial::{Outcome, TrialRecord};
use tare_record::{RunFacts, RunFolder};

const STUDIES: u32 = 100;
const SEED: u64 = 20_260_101;
/// Width of the smoothing, in standard deviations of the noise: the same pair drawn twice must not be equal to the last
/// digit, as no two measurements are.
const SMOOTHING: f64 = 0.3;

/// What one block leaves of the baseline's and of another arm's log value.
type Residuals = (f64, f64);

fn main() -> Result<(), Box<dyn Error>> {
    let mut dirs = std::env::args().skip(1);
    let noise = dirs.next().ok_or("usage: aa NOISE_DIR [RUN_DIR ...]: name the run folder to take the noise from")?;
    let folder = RunFolder::open(Path::new(&noise))?;
    let trials = folder.trials()?;
    synthetic(&folder, &trials)?;
    let mut real = Tally::default();
    for dir in dirs {
        let found = without_replica_role(&RunFolder::open(Path::new(&dir))?)?;
        real.count(
            found.cases.iter().flat_map(|case| &case.metrics).filter(|m| m.spec.primary).flat_map(|m| &m.comparisons),
        );
    }
    if real.comparisons > 0 {
        println!("real runs: {real}");
    }
    Ok(())
}

/// Counts of comparisons between equal arms.
#[derive(Default)]
struct Tally {
    comparisons: u32,
    excluded: u32,
    claimed: u32,
    unsaid: u32,
}

impl Tally {
    fn count<'a>(&mut self, comparisons: impl Iterator<Item = &'a Comparison>) {
        for comparison in comparisons {
            self.comparisons += 1;
            let excludes = |low: f64, high: f64| low > 1.0 || high < 1.0;
            let (low, high) = (comparison.ratio.low, comparison.ratio.high);
            self.excluded += u32::from(low.zip(high).is_some_and(|(low, high)| excludes(low, high)));
            self.claimed += u32::from(matches!(comparison.verdict, Verdict::Better | Verdict::Worse));
            self.unsaid += u32::from(comparison.verdict == Verdict::CannotSay);
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} comparisons of equal arms; {} intervals excluded equality; {} were called a difference; {} could not be said",
            self.comparisons, self.excluded, self.claimed, self.unsaid
        )
    }
}

fn synthetic(folder: &RunFolder, trials: &[TrialRecord]) -> Result<(), Box<dyn Error>> {
    let plan = folder.plan();
    for case in &plan.study.cases {
        let completed = |t: &&TrialRecord| t.planned.case == case.id && matches!(t.outcome, Outcome::Completed(_));
        let Some(template) = trials.iter().find(completed) else { continue };
        let Some(metric) = template.metrics.first() else { continue };
        let pool = residuals(plan, trials, &case.id, &metric.id);
        if pool.len() < 4 {
            println!("{}: too few completed blocks to take noise from", case.id);
            continue;
        }
        let ratios = (pool.iter().map(|(a, b)| (a - b).powi(2)).sum::<f64>() / pool.len() as f64).sqrt();
        let noise = Noise::of(pool);
        for floor in [false, true] {
            let mut rng = StdRng::seed_from_u64(SEED);
            let mut tally = Tally::default();
            for _ in 0..STUDIES {
                let found = study(folder, template, &noise, floor, &mut rng)?;
                let metrics = found.cases.iter().flat_map(|c| &c.metrics).filter(|m| m.spec.primary);
                tally.count(metrics.flat_map(|m| &m.comparisons).filter(|c| c.arm == "same"));
            }
            let with = if floor { "with a noise floor" } else { "without a noise floor" };
            println!("{} ({}, log ratios spread by {:.2} %), {with}: {tally}", case.id, metric.id, ratios * 100.0);
        }
    }
    Ok(())
}

/// Where pairs of residuals are drawn from.
struct Noise {
    pool: Vec<Residuals>,
    width: f64,
}

impl Noise {
    fn of(pool: Vec<Residuals>) -> Self {
        let sd = (pool.iter().map(|(a, b)| a * a + b * b).sum::<f64>() / (2 * pool.len()) as f64).sqrt();
        Self { pool, width: SMOOTHING * sd }
    }

    /// One pair, either way round, smoothed so that its spread stays what it was (Silverman and Young 1987).
    fn draw(&self, rng: &mut StdRng) -> Result<Residuals, &'static str> {
        let &(a, b) = self.pool.choose(rng).ok_or("no noise")?;
        let (a, b) = if rng.random_bool(0.5) { (a, b) } else { (b, a) };
        let mut smooth = |value: f64| {
            let jitter: f64 = StandardNormal.sample(rng);
            (value + self.width * jitter) / (1.0 + SMOOTHING * SMOOTHING).sqrt()
        };
        Ok((smooth(a), smooth(b)))
    }
}

/// Pairs of residuals, one a block and arm beside the baseline.
fn residuals(plan: &Plan, trials: &[TrialRecord], case: &str, metric: &str) -> Vec<Residuals> {
    let mut logs: BTreeMap<&str, BTreeMap<u32, f64>> = BTreeMap::new();
    for record in trials.iter().filter(|record| record.planned.case == case) {
        if let Outcome::Completed(m) = &record.outcome
            && let Some(value) = m.metrics.get(metric).filter(|value| value.is_finite() && **value > 0.0)
        {
            logs.entry(&record.planned.arm).or_default().insert(record.planned.block, value.ln());
        }
    }
    for blocks in logs.values_mut() {
        let n = blocks.len() as f64;
        let mean = blocks.values().sum::<f64>() / n;
        // Taking the mean out of n values shrinks what is left by sqrt((n - 1) / n).
        let grow = if n > 1.0 { (n / (n - 1.0)).sqrt() } else { 0.0 };
        blocks.values_mut().for_each(|log| *log = (*log - mean) * grow);
    }
    let Some(baseline) = logs.get(plan.study.baseline.as_str()) else { return Vec::new() };
    let others = logs.iter().filter(|(arm, _)| **arm != plan.study.baseline);
    others.flat_map(|(_, arm)| arm.iter().filter_map(|(block, log)| Some((*baseline.get(block)?, *log)))).collect()
}

/// One made-up study through the whole analysis: the baseline, an arm that is the same, and, for a floor, a replica.
fn study(
    folder: &RunFolder,
    template: &TrialRecord,
    noise: &Noise,
    floor: bool,
    rng: &mut StdRng,
) -> Result<Findings, Box<dyn Error>> {
    let mut plan = folder.plan().clone();
    let case = &template.planned.case;
    plan.study.cases.retain(|c| c.id == *case);
    let baseline =
        plan.study.arms.iter().find(|arm| arm.id == plan.study.baseline).ok_or("the plan has no baseline")?.clone();
    let arm = |id: &str, replica: bool| {
        let mut arm = baseline.clone();
        id.clone_into(&mut arm.id);
        arm.replica_of = replica.then(|| baseline.id.clone());
        arm
    };
    plan.study.arms = vec![baseline.clone(), arm("same", false)];
    plan.study.arms.extend(floor.then(|| arm("again", true)));
    let mut trials = Vec::new();
    for block in 0..plan.study.blocks {
        let (base, same) = noise.draw(rng)?;
        let (beside, again) = noise.draw(rng)?;
        // The replica keeps the difference that it had to its own neighbour in the block.
        for (arm, log) in plan.study.arms.iter().zip([base, same, base + again - beside]) {
            let index = trials.len() as u32;
            let planned = PlannedTrial { index, block, case: case.clone(), arm: arm.id.clone() };
            trials.push(made_up(template, planned, log));
        }
    }
    plan.study.precision = None;
    plan.trials = trials.iter().map(|record| record.planned.clone()).collect();
    let facts = RunFacts {
        run_id: "made-up".to_owned(),
        tare_version: "0".to_owned(),
        finished: true,
        root_hash: String::new(),
        ended: Vec::new(),
    };
    Ok(findings(&Run { facts: &facts, plan: &plan, environment: folder.environment(), trials: &trials, problems: &[] }))
}

fn made_up(template: &TrialRecord, planned: PlannedTrial, log: f64) -> TrialRecord {
    let mut record = TrialRecord { planned, ..template.clone() };
    record.samples.clear();
    let primary = record.metrics.first().map(|spec| spec.id.clone());
    if let Outcome::Completed(measurement) = &mut record.outcome {
        measurement.histograms.clear();
        measurement.metrics = primary.into_iter().map(|id| (id, log.exp())).collect();
    }
    record
}

/// A real run's findings in which the replica is an arm like any other, and all other arms are left out.
fn without_replica_role(folder: &RunFolder) -> Result<Findings, Box<dyn Error>> {
    let mut plan = folder.plan().clone();
    let baseline = plan.study.baseline.clone();
    plan.study.arms.retain(|arm| arm.id == baseline || arm.replica_of.as_ref() == Some(&baseline));
    if plan.study.arms.len() < 2 {
        return Err(format!("{} has no replica of its baseline", folder.dir().display()).into());
    }
    plan.study.arms.iter_mut().for_each(|arm| arm.replica_of = None);
    let trials = folder.trials()?;
    let run =
        Run { facts: folder.facts(), plan: &plan, environment: folder.environment(), trials: &trials, problems: &[] };
    Ok(findings(&run))
}
