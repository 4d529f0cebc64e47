//! What instances hold, from what was tried to figures, verdicts and sentences: searches for a capacity and scale-ups alike.

use tare_model::findings::{Comparison, Estimate, Standing, ThresholdRatio, Thresholds, Verdict};

use crate::comparison::{NOISY_MIN, detected, floor_of, proven, why_a_lead};
use crate::estimate::{ALPHA, POWER};
use crate::student::{normal_below, t_quantile};
use crate::threshold::{Fit, Ranged, SURE, Seen, shift};
use crate::words;

/// How distributions are fitted and compared, for the method of a report.
pub(crate) const METHOD: &str = "a normal distribution of the logarithms of what instances hold (probit regression), by \
     maximum likelihood, with a part of the variance that the instances of a block have in common, and a wide prior on the spread (5 %, \
     within 0.6 to 43 % in 95 of 100). Intervals are of the profile likelihood with Student's t by the number of blocks. Arms are \
     compared by the ratio of these loads; each arm has a spread of its own, so noise alone makes no arm smaller";

/// One block in so many may end without a result on either arm before nothing is said: the fit cannot bound what they would have shown.
const LOST_MAX: u32 = 4;
/// Points of a curve for drawing, to either side of its middle.
const DRAWN: i32 = 24;
/// Standard deviations to which it is drawn.
const DRAWN_TO: f64 = 3.0;

/// One arm's tries.
pub(crate) struct Tried<'a> {
    pub arm: &'a str,
    pub seen: Vec<Seen>,
    /// Guests of which whole multiples are counted; `None` of a load.
    pub unit: Option<f64>,
}

impl Tried<'_> {
    /// A logarithm as a figure.
    fn figure(&self, ln: f64) -> f64 {
        match self.unit {
            // A hair below a whole number is that number.
            Some(unit) => ((ln + 1e-9).exp() / unit).floor() * unit,
            None => ln.exp(),
        }
    }

    fn estimate(&self, of: Ranged, n: usize, method: &str) -> Estimate {
        let end = |ln: f64| ln.is_finite().then(|| self.figure(ln));
        Estimate {
            value: self.figure(of.value),
            low: end(of.low),
            high: end(of.high),
            level: 1.0 - ALPHA,
            n: n as u32,
            method: method.to_owned(),
        }
    }

    /// Logarithm of the largest load that held.
    fn largest(&self) -> Option<f64> {
        self.seen.iter().map(|seen| seen.low).filter(|low| low.is_finite()).reduce(f64::max)
    }

    fn thresholds(&self, fit: &Fit) -> Thresholds {
        let n = fit.blocks();
        let mut half = fit.quantile(0.0, ALPHA);
        let mut most = Ranged { high: f64::INFINITY, ..fit.quantile(SURE, 2.0 * ALPHA) };
        if let (true, Some(largest)) = (fit.open_above() || n < 2, self.largest()) {
            half.value = largest;
            most.value = most.value.min(largest);
        }
        let mut half =
            self.estimate(half, n, "the load that half of the instances hold: probit fit, profile likelihood");
        let mut most = self.estimate(most, n, "the load that 95 of 100 instances hold: the same, one-sided bound");
        if fit.open_below() {
            (half.value, most.value) = (0.0, 0.0);
        }
        let at = |i: i32| DRAWN_TO * f64::from(i) / f64::from(DRAWN);
        let point = |i: i32| ((fit.mu + at(i) * fit.sigma).exp(), normal_below(-at(i)));
        let open = fit.open_above() || fit.open_below();
        Thresholds {
            half,
            most,
            spread: fit.sigma,
            tries: self.seen.len() as u32,
            all_held: fit.open_above(),
            none_held: fit.open_below(),
            curve: if open { Vec::new() } else { (-DRAWN..=DRAWN).map(point).collect() },
            against: None,
        }
    }
}

/// The distribution of each arm, in the order of the arms, with its ratio to the baseline's.
pub(crate) fn thresholds(arms: &[Tried<'_>], baseline: &str) -> Vec<Option<Thresholds>> {
    let fits: Vec<Option<Fit>> = arms.iter().map(|own| Fit::of(&own.seen)).collect();
    let mut found: Vec<Option<Thresholds>> =
        arms.iter().zip(&fits).map(|(own, fit)| fit.as_ref().map(|fit| own.thresholds(fit))).collect();
    let Some(at) = arms.iter().position(|own| own.arm == baseline) else { return found };
    let Some((base, beside)) = fits[at].as_ref().zip(found[at].clone()) else { return found };
    for (n, fit) in fits.iter().enumerate().filter(|(n, _)| *n != at) {
        if let (Some(fit), Some(found)) = (fit, &mut found[n]) {
            found.against = Some(against((fit, found), (base, &beside)));
        }
    }
    found
}

fn against((fit, own): (&Fit, &Thresholds), (base, beside): (&Fit, &Thresholds)) -> ThresholdRatio {
    let shift = shift(fit, base, ALPHA);
    let counted = !own.none_held && !beside.none_held;
    // Where a list ended, the figure is what it ended at; the fit has none.
    let open = own.all_held || beside.all_held;
    let value = if open { own.half.value / beside.half.value } else { shift.of.value.exp() };
    let end = |ln: f64| ln.is_finite().then(|| ln.exp());
    let ratio = Estimate {
        value: if counted { value } else { 1.0 },
        low: end(shift.of.low),
        high: end(shift.of.high),
        level: 1.0 - ALPHA,
        n: fit.blocks().min(base.blocks()) as u32,
        method: "ratio of the loads that half of the instances hold: probit fits, profile likelihood".to_owned(),
    };
    ThresholdRatio { ratio, p: shift.p }
}

/// Whether a side of a comparison has a figure.
#[derive(Clone, Copy)]
pub(crate) struct Ends {
    /// No load held.
    pub none_held: bool,
    /// Every load that was tried held.
    pub all_held: bool,
}

/// What a comparison rests on beside its ratio.
pub(crate) struct Ground<'a> {
    pub arm: Ends,
    pub base: Ends,
    /// Name of the baseline.
    pub label: &'a str,
    /// Whether others published it.
    pub published: bool,
    /// `serves`, or `carries`.
    pub verb: &'a str,
    /// Why an arm that held everything shows no more: `held the largest load allowed`.
    pub capped: &'a str,
}

/// Puts the fitted ratios, their p-values and the noise floor that follows from them into comparisons.
pub(crate) fn put_in(comparisons: &mut [Comparison], of: impl Fn(&str) -> Option<ThresholdRatio>) {
    for comparison in comparisons.iter_mut().filter(|own| own.verdict != Verdict::NotComparable) {
        if let Some(found) = of(&comparison.arm) {
            (comparison.ratio, comparison.p_equal) = (found.ratio, Some(found.p));
            // What was withheld was so for the ranks, and the margin is judged by them alone.
            (comparison.p_margin, comparison.withheld) = (None, None);
        }
    }
    let Some(replica) = comparisons.iter().find(|own| own.standing == Standing::Replica) else { return };
    let (floor, ends) = (floor_of(replica), replica.ends());
    for own in comparisons.iter_mut().filter(|own| own.standing != Standing::Replica) {
        (own.floor, own.floor_interval) = (floor, ends);
    }
}

/// Sets the verdict of a comparison, and returns the end of its sentence, which says the same.
pub(crate) fn judge(comparison: &mut Comparison, on: &Ground<'_>) -> String {
    let (verdict, detectable, tail) = judged(comparison, on);
    (comparison.verdict, comparison.detectable) = (verdict, detectable);
    let why = || tail.trim_start_matches([':', ';', ' ']).to_owned();
    comparison.withheld = (verdict == Verdict::CannotSay).then(why);
    tail
}

fn judged(comparison: &Comparison, on: &Ground<'_>) -> (Verdict, Option<f64>, String) {
    let ratio = &comparison.ratio;
    let cannot = |why: String| (Verdict::CannotSay, None, why);
    let replica = comparison.standing == Standing::Replica;
    if on.arm.all_held && on.base.all_held {
        return cannot(format!(": cannot say which {} more, because both {}", on.verb, on.capped));
    }
    if on.arm.none_held && on.base.none_held || ratio.n == 0 {
        return cannot(String::new());
    }
    let times = times(ratio, on);
    let Comparison { missing, planned, .. } = comparison;
    if missing * LOST_MAX > *planned {
        return cannot(format!(
            "{times}; cannot say: {missing} of {planned} blocks ended without a result on one of the two"
        ));
    }
    if ratio.low.is_none() && ratio.high.is_none() {
        let once = if on.published { "published once" } else { "from a single block" };
        return cannot(format!("{times}, {once}, so there is no interval"));
    }
    let differs = ratio.low.is_some_and(|low| low > 1.0) || ratio.high.is_some_and(|high| high < 1.0);
    if replica {
        let odd = if differs { "; the interval excludes equality, which happens by chance" } else { "" };
        return (Verdict::NoiseFloor, None, format!("{times}{odd}"));
    }
    let detectable = detectable(ratio).map(|size| size.max(comparison.floor.unwrap_or(0.0)));
    if !differs {
        return undetected(detectable, on, &times);
    }
    let both_held = !on.arm.none_held && !on.base.none_held;
    if let Some(floor) = comparison.floor.filter(|floor| both_held && ratio.value.ln().abs() <= floor.ln_1p()) {
        let floor = words::size(floor);
        return (Verdict::WithinFloor, detectable, format!("{times}, but {} differs from itself by {floor}", on.label));
    }
    if !proven(comparison) {
        return (Verdict::Lead, detectable, format!("{times}{}", why_a_lead(comparison)));
    }
    let better = ratio.low.is_some_and(|low| low > 1.0);
    (if better { Verdict::Better } else { Verdict::Worse }, detectable, times)
}

fn undetected(detectable: Option<f64>, on: &Ground<'_>, times: &str) -> (Verdict, Option<f64>, String) {
    if on.arm.all_held || on.base.all_held {
        let why = format!("{times}; cannot say which {} more, because one of them {}", on.verb, on.capped);
        return (Verdict::CannotSay, None, why);
    }
    match detectable {
        Some(size) if size <= NOISY_MIN => {
            let said = format!("{times}: no difference detected; {}", detected("", size));
            (Verdict::NoDifferenceSeen, detectable, said)
        }
        _ => {
            let size = detectable.map_or_else(String::new, |size| format!("; {}", detected("only ", size)));
            (Verdict::TooNoisy, detectable, format!("{times}: too noisy to tell{size}"))
        }
    }
}

/// The smallest relative difference that is detected with 80 % power: the half width of the interval on logarithms, scaled from Student's t
/// of the interval to that and the one of the power. `None` where an end is open.
fn detectable(ratio: &Estimate) -> Option<f64> {
    let half = (ratio.high?.ln() - ratio.low?.ln()) / 2.0;
    let freedom = f64::from(ratio.n) - 1.0;
    let of = |p: f64| t_quantile(p, freedom);
    let sized = half * (1.0 + of(POWER) / of(1.0 - ALPHA / 2.0));
    sized.is_finite().then(|| sized.exp_m1())
}

/// `: at least 1.9 times as many (95 % interval from 1.7)`; nothing where an arm held nothing.
fn times(ratio: &Estimate, on: &Ground<'_>) -> String {
    if on.arm.none_held || on.base.none_held {
        return String::new();
    }
    let bound = match (on.arm.all_held, on.base.all_held) {
        (true, _) => "at least ",
        (_, true) => "at most ",
        _ => "",
    };
    let level = (ratio.level * 100.0).round();
    let interval = match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!(" ({level:.0} % interval {} to {})", multiple(low), multiple(high)),
        (Some(low), None) => format!(" ({level:.0} % interval from {})", multiple(low)),
        (None, Some(high)) => format!(" ({level:.0} % interval up to {})", multiple(high)),
        (None, None) => String::new(),
    };
    format!(": {bound}{} times as many{interval}", multiple(ratio.value))
}

/// A multiple with the digits that count: `0.63`, `1.9`, `12`.
fn multiple(ratio: f64) -> String {
    match ratio {
        r if r > 100.0 => "over 100".to_owned(),
        r if r < 0.01 => "under 0.01".to_owned(),
        r if r >= 9.95 => format!("{r:.0}"),
        r if r >= 2.0 => format!("{r:.1}"),
        r => format!("{r:.2}"),
    }
}
