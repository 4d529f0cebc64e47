//! An arm against the baseline: ratio, floor, smallest detectable difference, verdict, sentence.

use tare_model::findings::{Comparison, DriverLimited, Estimate, Standing, Verdict};
use tare_model::metric::{Better, MetricSpec};
use tare_model::written::percent;

use crate::estimate::{self, ALPHA, Sample, TwoSamples};
use crate::power::{self, Rule};
use crate::words;

/// A study that sees no difference, and could only see differences larger than this, is called too noisy.
pub(crate) const NOISY_MIN: f64 = 0.20;

/// What an arm is to the baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// To be compared.
    Ordinary,
    /// The baseline once more.
    Replica,
    /// Shown, but not to be compared; why.
    NotComparable(String),
}

/// What a comparison is of, for people.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub spec: &'a MetricSpec,
    /// The arm's label.
    pub arm: &'a str,
    /// The baseline's label.
    pub baseline: &'a str,
}

/// An arm's values beside the baseline's.
#[derive(Debug, Clone)]
pub(crate) struct Paired<'a> {
    pub of: Subject<'a>,
    /// Ids of the arm and of the baseline.
    pub ids: (&'a str, &'a str),
    /// (block, the arm's value, the baseline's), both finite.
    pub pairs: Vec<(u32, f64, f64)>,
    /// Blocks that ran and are not among the pairs.
    pub missing: u32,
    pub planned: u32,
    /// Whether their number followed from the width of the intervals.
    pub by_width: bool,
    /// The baseline against itself.
    pub replica: Option<&'a Comparison>,
    pub margin: Option<f64>,
    pub driver_limited: DriverLimited,
    pub role: Role,
}

/// The noise floor that a replica shows: how far its estimate lies from equality, whichever arm is on top of the
/// fraction. `None` with too few blocks for an interval.
pub(crate) fn floor_of(replica: &Comparison) -> Option<f64> {
    replica.ends()?;
    Some(replica.ratio.value.ln().abs().exp_m1())
}

impl Paired<'_> {
    /// The comparison, as one of a metric that does not answer the study: see [`settle`].
    pub(crate) fn compare(self) -> Comparison {
        let (ordinary, of) = (self.role == Role::Ordinary, self.of);
        let replica = self.replica.filter(|_| ordinary);
        let mut comparison = Comparison {
            arm: self.ids.0.to_owned(),
            baseline: self.ids.1.to_owned(),
            planned: self.planned,
            missing: self.missing,
            floor: replica.and_then(floor_of),
            floor_interval: replica.and_then(Comparison::ends),
            margin: self.margin.filter(|_| ordinary),
            driver_limited: self.driver_limited,
            standing: if self.role == Role::Replica { Standing::Replica } else { Standing::Lead },
            ..Comparison::default()
        };
        let ratio =
            if let Role::NotComparable(why) = &self.role { Err(why.clone()) } else { self.ratio(&mut comparison) };
        match ratio {
            Ok(ratio) => comparison.ratio = ratio,
            Err(why) => {
                comparison.ratio = no_ratio();
                let role = matches!(self.role, Role::NotComparable(_));
                withhold(&mut comparison, if role { Verdict::NotComparable } else { Verdict::CannotSay }, why);
            }
        }
        settle(&mut comparison, of);
        comparison
    }

    /// The ratio and the probabilities that go with it.
    ///
    /// # Errors
    /// Why there is none.
    fn ratio(&self, comparison: &mut Comparison) -> Result<Estimate, String> {
        let positive = self.pairs.iter().all(|&(_, a, b)| a > 0.0 && b > 0.0);
        let equal = self.pairs.len() > 1 && self.pairs.iter().all(|&(_, a, b)| a == b);
        if equal && !positive && self.missing == 0 {
            comparison.blocks = self.pairs.iter().map(|&(block, ..)| (block, 1.0)).collect();
            let (n, method) = (self.pairs.len() as u32, "equal in every block".to_owned());
            return Ok(Estimate { value: 1.0, low: Some(1.0), high: Some(1.0), level: 1.0 - ALPHA, n, method });
        }
        if let Some((block, ..)) = self.pairs.iter().find(|&&(_, a, b)| a <= 0.0 || b <= 0.0) {
            let label = &self.of.spec.label;
            return Err(format!(
                "a ratio of {label} needs values above zero, but block {block} has one of zero or below"
            ));
        }
        let logs: Vec<f64> = self.pairs.iter().map(|&(_, a, b)| (a / b).ln()).collect();
        let sample = Sample { values: &logs, missing: self.missing as usize, by_width: self.by_width };
        let (located, procedure) =
            sample.location().ok_or_else(|| format!("none of {} blocks completed on both", self.planned))?;
        comparison.blocks = self.pairs.iter().map(|&(block, a, b)| (block, a / b)).collect();
        comparison.p_equal = located.ends.and_then(|_| sample.p_zero());
        comparison.p_margin = comparison.margin.and_then(|margin| sample.p_beyond(margin.ln_1p()));
        Ok(estimate::from_logs(located, procedure, logs.len(), "log ratios"))
    }
}

/// JSON has no word for "no number": the ratio is 1 with n = 0 and no ends, and nobody may show it.
pub(crate) fn no_ratio() -> Estimate {
    Estimate { value: 1.0, level: 1.0 - ALPHA, ..Estimate::default() }
}

/// Takes the verdict from a comparison, whatever its figures are.
pub(crate) fn withhold(comparison: &mut Comparison, verdict: Verdict, why: String) {
    if comparison.withheld.is_none() {
        (comparison.verdict, comparison.withheld) = (verdict, Some(why));
    }
}

/// The verdict and its words, which follow from all else that a comparison holds.
pub(crate) fn settle(comparison: &mut Comparison, of: Subject<'_>) {
    if comparison.withheld.is_none() && comparison.ends().is_none() {
        let why = too_few(comparison);
        withhold(comparison, Verdict::CannotSay, why);
    }
    comparison.detectable = if comparison.withheld.is_some() { None } else { detectable(comparison) };
    if comparison.withheld.is_none() {
        comparison.verdict = verdict(comparison, of.spec.better);
        if let Some(why) = limited_by_driver(comparison, of) {
            withhold(comparison, Verdict::CannotSay, why);
        }
    }
    comparison.sentence = format!("{}{}", sentence(comparison, of), completeness(comparison));
}

/// Why one run on a side has no verdict.
pub(crate) const ONE_RUN: &str = "how much runs differ by themselves is unknown from one run on a side";

/// What a comparison has several of.
const fn unit(comparison: &Comparison) -> &'static str {
    if comparison.runs.is_some() { "run" } else { "block" }
}

/// What chance is counted over.
const fn whole(comparison: &Comparison) -> &'static str {
    if comparison.runs.is_some() { "comparisons" } else { "studies" }
}

fn too_few(comparison: &Comparison) -> String {
    let (n, planned, missing) = (comparison.ratio.n, comparison.planned, comparison.missing);
    match n {
        _ if comparison.runs.is_some() => ONE_RUN.to_owned(),
        0 => format!("none of {planned} blocks completed on both"),
        1 if planned == 1 => "a single block has no interval".to_owned(),
        1 => format!("only 1 of {planned} blocks completed on both"),
        _ => format!(
            "{missing} of {planned} blocks have no figure on one of the two, and what they would have shown may reverse any difference"
        ),
    }
}

/// What a study like this detects. What lies below the floor would not be called a difference, however narrow the interval.
fn detectable(comparison: &Comparison) -> Option<f64> {
    if let Some(runs) = &comparison.runs {
        let [from, to] =
            [&runs.baseline, &runs.arm].map(|side| side.iter().map(|value| value.ln()).collect::<Vec<_>>());
        let two = TwoSamples { from: &from, to: &to, comparisons: family(comparison) };
        return power::detectable_shift(two).filter(|size| *size > 0.0).map(f64::exp_m1);
    }
    let logs: Vec<f64> = comparison.blocks.iter().map(|(_, ratio)| ratio.ln()).collect();
    let size = power::detectable(&logs, comparison.floor.is_some(), family(comparison)).filter(|size| *size > 0.0)?;
    // An interval that allows for more than chance is wider, and what is detected grows as it does.
    let fixed = estimate::location(&logs).and_then(|(fixed, _)| fixed.breadth());
    let own = comparison.ends().map(|(low, high)| high.ln() - low.ln());
    let wider = own.zip(fixed).map_or(1.0, |(own, fixed)| own / fixed);
    Some((size * wider).exp_m1().max(comparison.floor.unwrap_or(0.0)))
}

/// Why the verdict would be one on the driver: it was at its limit in most blocks of the arm that does worse, or of either where they are
/// found alike. Where it limits the one that does better, the true difference is larger, and the verdict stays.
fn limited_by_driver(comparison: &Comparison, of: Subject<'_>) -> Option<String> {
    let n = comparison.ratio.n;
    let DriverLimited { arm, baseline } = comparison.driver_limited;
    let counts = match comparison.verdict {
        Verdict::Worse => [Some((of.arm, arm)), None],
        Verdict::Better => [None, Some((of.baseline, baseline))],
        Verdict::Lead | Verdict::NoiseFloor | Verdict::CannotSay | Verdict::NotComparable => [None, None],
        Verdict::Equivalent | Verdict::WithinFloor | Verdict::NoDifferenceSeen | Verdict::TooNoisy => {
            [Some((of.arm, arm)), Some((of.baseline, baseline))]
        }
    };
    let (label, blocks) = counts.into_iter().flatten().find(|(_, blocks)| 2 * blocks > n)?;
    Some(format!("the driver was at its limit with {label} in {blocks} of {n} blocks, and may be what was measured"))
}

/// Over how many comparisons the error probability is shared.
pub(crate) const fn family(comparison: &Comparison) -> u32 {
    if let Standing::Primary { of, .. } = comparison.standing { of } else { 1 }
}

/// Whether a difference from equality is proven: it answers the study, and is so after the correction.
pub(crate) fn proven(comparison: &Comparison) -> bool {
    matches!(comparison.standing, Standing::Primary { p_equal: Some(p), .. } if p <= ALPHA)
}

fn verdict(comparison: &Comparison, better: Better) -> Verdict {
    match comparison.standing {
        Standing::Replica => return Verdict::NoiseFloor,
        Standing::Primary { p_margin: Some(p), .. } if p <= ALPHA => return Verdict::Equivalent,
        Standing::Primary { .. } | Standing::Lead => {}
    }
    if !comparison.excludes_equality() {
        let noisy = comparison.detectable.is_some_and(|size| size > NOISY_MIN);
        return if noisy { Verdict::TooNoisy } else { Verdict::NoDifferenceSeen };
    }
    let size = comparison.ratio.value.ln().abs();
    if comparison.floor.is_some_and(|floor| size <= floor.ln_1p()) {
        return Verdict::WithinFloor;
    }
    match (proven(comparison), (comparison.ratio.value > 1.0) == (better == Better::Higher)) {
        (false, _) => Verdict::Lead,
        (true, true) => Verdict::Better,
        (true, false) => Verdict::Worse,
    }
}

fn sentence(comparison: &Comparison, Subject { spec, arm, baseline }: Subject<'_>) -> String {
    let ratio = &comparison.ratio;
    let (both, noun, change) = ((arm, baseline), words::noun(spec), words::change(ratio));
    let said = words::difference(spec, ratio, both);
    let why = comparison.withheld.as_deref().unwrap_or_default();
    match comparison.verdict {
        Verdict::NotComparable => format!("{arm}: not comparable ({why})"),
        Verdict::CannotSay if ratio.n == 0 => format!("{arm}, {noun}: cannot say: {why}"),
        Verdict::CannotSay => {
            format!("{arm}, {noun}: {change} against {baseline}, but cannot say whether they differ: {why}")
        }
        Verdict::NoiseFloor => {
            let odd = if comparison.excludes_equality() { "; the interval excludes equality" } else { "" };
            format!("{baseline} against itself, {noun}: {change}{odd}")
        }
        Verdict::Better | Verdict::Worse => format!("{said}{}", at_least(comparison)),
        Verdict::Equivalent => {
            let margin = percent(comparison.margin.unwrap_or(0.0));
            format!("{}, within the margin of {margin}", words::alike(spec, ratio, both))
        }
        Verdict::Lead => format!("{said}{}", why_a_lead(comparison)),
        Verdict::WithinFloor => {
            let floor = words::change(&floor_as_ratio(comparison));
            format!("{said}, but {baseline} differs as much from itself ({floor})")
        }
        Verdict::NoDifferenceSeen if ratio.low == ratio.high => {
            format!("{arm}, {noun}: the same as {baseline} in every {}", unit(comparison))
        }
        Verdict::NoDifferenceSeen => {
            format!("{arm}, {noun}: no difference from {baseline} detected: {change}{}", power_words(comparison, ""))
        }
        Verdict::TooNoisy => {
            format!("{arm}, {noun}: too noisy to tell from {baseline}: {change}{}", power_words(comparison, "only "))
        }
    }
}

/// A driver at its limit with the arm that does better hides a part of the difference.
fn at_least(comparison: &Comparison) -> &'static str {
    let DriverLimited { arm, baseline } = comparison.driver_limited;
    let limited = if comparison.verdict == Verdict::Better { arm } else { baseline };
    if 2 * limited > comparison.ratio.n { ", or more: the driver was at its limit" } else { "" }
}

/// The floor with the interval of the two runs that it is from: one draw of it bounds nothing.
fn floor_as_ratio(comparison: &Comparison) -> Estimate {
    let (low, high) = comparison.floor_interval.unzip();
    // The floor has no sign; the interval tells which way the second run lay.
    let up = low.zip(high).is_none_or(|(low, high)| low * high >= 1.0);
    let floor = 1.0 + comparison.floor.unwrap_or(0.0);
    Estimate { value: if up { floor } else { 1.0 / floor }, low, high, ..Estimate::default() }
}

/// What makes a difference a lead and no verdict.
pub(crate) fn why_a_lead(comparison: &Comparison) -> String {
    match comparison.standing {
        Standing::Primary { of, p_equal: Some(p), .. } => {
            let chance = format!("{:.0} of 100 {}", p * 100.0, whole(comparison));
            format!("; a lead: among {of} comparisons chance shows as much in {chance}")
        }
        _ => "; a lead: the study does not ask about it".to_owned(),
    }
}

/// What the study would have detected.
fn power_words(comparison: &Comparison, only: &str) -> String {
    let (blocks, comparisons) = (comparison.ratio.n, family(comparison));
    let rule = Rule { blocks: blocks as usize, with_floor: comparison.floor.is_some(), comparisons };
    match comparison.detectable {
        Some(size) => format!("; {}", detected(only, size)),
        None if comparison.runs.is_none() && !rule.can_detect() => {
            format!("; {blocks} blocks cannot confirm any of {comparisons} comparisons")
        }
        None => String::new(),
    }
}

/// `only 12 % or more is detected, 4 times in 5`.
pub(crate) fn detected(only: &str, size: f64) -> String {
    format!("{only}{} or more is detected, 4 times in 5", words::size(size))
}

/// How many of the planned blocks a figure is from, where that is not all.
fn completeness(comparison: &Comparison) -> String {
    let (n, planned, missing) = (comparison.ratio.n, comparison.planned, comparison.missing);
    if comparison.withheld.is_some() || n == 0 || n >= planned {
        return String::new();
    }
    let worst =
        if missing > 0 { format!(", with {missing} that failed counted as the worst possible") } else { String::new() };
    format!("; from {n} of {planned} blocks{worst}")
}

/// Settles the comparisons that answer the study, whose error probability is 5 % for all of them together: p-values are corrected for
/// their number by Holm's method (Holm 1979). Those that are withheld count among them: what was planned decides their number.
pub(crate) fn settle_primary<'a>(mut all: Vec<(&'a mut Comparison, Subject<'a>)>) {
    let of = all.len() as u32;
    let corrected =
        |of_one: fn(&Comparison) -> Option<f64>| holm(&all.iter().map(|(own, _)| of_one(own)).collect::<Vec<_>>());
    let (equal, margin) = (corrected(|own| own.p_equal), corrected(|own| own.p_margin));
    for (((comparison, subject), p_equal), p_margin) in all.iter_mut().zip(equal).zip(margin) {
        comparison.standing = Standing::Primary { of, p_equal, p_margin };
        settle(comparison, *subject);
    }
}

/// Holm's corrected p-values; what has none counts as 1.
pub(crate) fn holm(p: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    let value = |at: usize| p[at].unwrap_or(1.0);
    order.sort_by(|a, b| value(*a).total_cmp(&value(*b)));
    let (mut corrected, mut largest) = (vec![None; p.len()], 0.0f64);
    for (rank, at) in order.into_iter().enumerate() {
        largest = largest.max(value(at) * (p.len() - rank) as f64).min(1.0);
        corrected[at] = p[at].map(|_| largest);
    }
    corrected
}

#[cfg(test)]
mod tests;
