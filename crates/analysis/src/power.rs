//! What a study of so many blocks detects, by simulation of the rule of the verdict.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::estimate::{ALPHA, POWER, TwoSamples};
use crate::located::RANK_BLOCKS_MIN;
use crate::normals::Normals;
use crate::{rank, student};

/// Studies made up for each rule: the standard error of a power of 80 % is 0.6 %.
const STUDIES: usize = 4000;
/// Most blocks that are simulated; beyond, sizes fall as the standard error does.
const BLOCKS_MAX: usize = 40;
/// What the ranks, and a spread that is itself an estimate, cost beside normal values of known spread, over the number of blocks: fitted
/// to the simulation from 10 blocks on.
const BESIDE_NORMAL: f64 = 1.6;

/// By what a difference is called one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// Blocks.
    pub blocks: usize,
    /// Whether the baseline runs twice, and a difference has to be larger than that of the two runs.
    pub with_floor: bool,
    /// Primary comparisons of the study: an error probability of 5 % is that of all of them together (Holm 1979). Power is that of a
    /// difference that is the only one among them.
    pub comparisons: u32,
}

impl Rule {
    /// Whether any difference, however large, can be called one: few blocks have no p-value that is small enough.
    pub fn can_detect(self) -> bool {
        let least = if self.blocks < RANK_BLOCKS_MIN { 0.0 } else { 2.0 * 0.5f64.powi(self.blocks.min(1000) as i32) };
        self.blocks > 1 && least * f64::from(self.comparisons.max(1)) <= ALPHA
    }

    /// The probability that a difference of so many standard deviations of a block's log ratio is called one.
    pub fn power(self, size: f64) -> f64 {
        if !self.can_detect() {
            return 0.0;
        }
        let scale = beyond(self.blocks);
        let simulated = simulated(self);
        let enough = simulated.needed.partition_point(|needed| *needed * scale <= size);
        enough as f64 / simulated.needed.len().max(1) as f64
    }

    /// The smallest difference that 80 of 100 studies call one, in standard deviations as another such study estimates them. `None` where
    /// none is.
    pub(crate) fn factor(self) -> Option<f64> {
        self.can_detect().then(|| simulated(self).factor * beyond(self.blocks))
    }

    /// About the same in closed form, for finding how many blocks it takes.
    pub(crate) fn about(self) -> Option<f64> {
        let n = self.blocks as f64;
        let alpha = ALPHA / f64::from(self.comparisons.max(1));
        let normal = student::t_quantile(1.0 - alpha / 2.0, n - 1.0) + student::t_quantile(POWER, n - 1.0);
        self.can_detect().then(|| normal / n.sqrt() * (1.0 + BESIDE_NORMAL / n))
    }

    /// The fewest blocks, up to `most`, that detect a difference of so many standard deviations with a power of 80 %.
    pub fn blocks_for(self, size: f64, most: usize) -> Option<usize> {
        let with = |blocks| Self { blocks, ..self };
        // The closed form is near; the simulation has the last word.
        let near = (2..=most).find(|blocks| with(*blocks).about().is_some_and(|about| about <= size))?;
        (near.saturating_sub(near / 5 + 2).max(2)..=most).find(|blocks| with(*blocks).power(size) >= POWER)
    }
}

/// The smallest log ratio that a study with blocks of the spread of `logs` detects with 80 % power. `None` of fewer than two values, and
/// where none is detected.
pub(crate) fn detectable(logs: &[f64], with_floor: bool, comparisons: u32) -> Option<f64> {
    Some(Rule { blocks: logs.len(), with_floor, comparisons }.factor()? * student::deviation(logs)?)
}

/// The same of two samples that are not paired, such as logs of the values of runs: the smallest shift from one to the other. Sides are of
/// one spread there, which is estimated from both together.
pub(crate) fn detectable_shift(of: TwoSamples<'_>) -> Option<f64> {
    let spread = pooled(of.from, of.to)?;
    // Errors fall as the smaller side grows.
    let most = of.from.len().max(of.to.len());
    let capped = |values: &[f64]| (values.len() * RUNS_MAX.min(most)).div_ceil(most).max(1);
    let (from, to) = (capped(of.from), capped(of.to));
    let scale = (from.max(to) as f64 / most as f64).sqrt();
    // A panic while it was locked left nothing half-made.
    let mut made = SHIFTS_MADE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let factor = *made.entry((from, to, of.comparisons)).or_insert_with(|| shift_factor(from, to, of.comparisons));
    Some(factor? * scale * spread)
}

/// Most runs of a side that are simulated; beyond, sizes fall as the standard error does.
const RUNS_MAX: usize = 10;

/// Factors of [`detectable_shift`] by the sizes of both samples and the number of comparisons.
static SHIFTS_MADE: Mutex<BTreeMap<(usize, usize, u32), Option<f64>>> = Mutex::new(BTreeMap::new());

/// See [`Rule::factor`].
fn shift_factor(from: usize, to: usize, comparisons: u32) -> Option<f64> {
    let mut normals = Normals::new((from * 100 + to) as u64);
    let mut runs = |n: usize| -> Vec<f64> { (0..n).map(|_| normals.draw()).collect() };
    let mut stated: Vec<f64> = (0..STUDIES)
        .filter_map(|_| {
            let spread = pooled(&runs(from), &runs(to))?;
            let (from, to) = (runs(from), runs(to));
            let two = TwoSamples { from: &from, to: &to, comparisons };
            let (low, _) = two.shift(ALPHA / f64::from(comparisons.max(1)))?.0.ends?;
            Some(-low / spread)
        })
        .collect();
    stated.sort_by(f64::total_cmp);
    stated.get((POWER * stated.len() as f64) as usize).copied()
}

/// Standard deviation within two samples together; `None` of fewer than three values.
fn pooled(x: &[f64], y: &[f64]) -> Option<f64> {
    let squares = |values: &[f64]| student::deviation(values).map_or(0.0, |sd| sd * sd * (values.len() - 1) as f64);
    let freedom = (x.len() + y.len()).checked_sub(2).filter(|freedom| *freedom > 0)?;
    Some(((squares(x) + squares(y)) / freedom as f64).sqrt())
}

fn beyond(blocks: usize) -> f64 {
    (blocks.min(BLOCKS_MAX) as f64 / blocks as f64).sqrt()
}

/// What the simulation of a rule gives.
#[derive(Debug, Clone)]
struct Simulated {
    /// For each made-up study, the difference from which on it would call one, in true standard deviations; sorted.
    needed: Vec<f64>,
    /// See [`Rule::factor`].
    factor: f64,
}

/// Made once for each rule: reports have hundreds of comparisons of a few rules.
static MADE: Mutex<BTreeMap<Rule, Arc<Simulated>>> = Mutex::new(BTreeMap::new());

fn simulated(rule: Rule) -> Arc<Simulated> {
    let rule = Rule { blocks: rule.blocks.min(BLOCKS_MAX), ..rule };
    // A panic while it was locked left nothing half-made.
    let mut made = MADE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    Arc::clone(made.entry(rule).or_insert_with(|| Arc::new(simulate(rule))))
}

/// A difference moves the interval and the estimate with it, so from which difference on a study calls one follows from a study without any.
/// Noise is normal and of equal spread in every trial.
fn simulate(rule: Rule) -> Simulated {
    let mut normals = Normals::new(rule.blocks as u64);
    let alpha = ALPHA / f64::from(rule.comparisons.max(1));
    let (mut needed, mut stated) = (Vec::with_capacity(STUDIES), Vec::with_capacity(STUDIES));
    for _ in 0..STUDIES {
        let spread = student::deviation(&study(rule.blocks, &mut normals).0);
        let (arm, replica) = study(rule.blocks, &mut normals);
        let Some((value, low)) = low_end(&arm, alpha) else { continue };
        let beyond_floor = if rule.with_floor { floor(&replica) - value } else { f64::NEG_INFINITY };
        let size = (-low).max(beyond_floor);
        needed.push(size);
        stated.extend(spread.map(|spread| size / spread));
    }
    for sizes in [&mut needed, &mut stated] {
        sizes.sort_by(f64::total_cmp);
    }
    let factor = stated.get((POWER * stated.len() as f64) as usize).copied().unwrap_or(f64::INFINITY);
    Simulated { needed, factor }
}

/// Estimate of an arm's log ratio, and the low end of its interval at 1 - `alpha`.
fn low_end(values: &[f64], alpha: f64) -> Option<(f64, f64)> {
    let located = if values.len() < RANK_BLOCKS_MIN {
        student::one_sample(values, alpha)?
    } else {
        rank::signed_rank(values, 0, alpha)?
    };
    Some((located.value, located.ends?.0))
}

fn floor(replica: &[f64]) -> f64 {
    low_end(replica, ALPHA).map_or(0.0, |(value, _)| value.abs())
}

/// Log ratios of an arm and of the baseline's replica to one baseline: each trial has its own noise, so that the two share
/// half of their variance. Their standard deviation is 1.
pub(crate) fn study(blocks: usize, normals: &mut Normals) -> (Vec<f64>, Vec<f64>) {
    let mut trial = || normals.draw() / std::f64::consts::SQRT_2;
    let mut pair = |_| {
        let base = trial();
        (trial() - base, trial() - base)
    };
    (0..blocks).map(&mut pair).unzip()
}
