//! The comparisons that answer a study, held against a limit: which are worse by more, proven with the correction of the findings.
//! `docs/adr/0039-gate.md` says what counts as proven and as ruled out, and why.

use tare_model::findings::{
    CaseFindings, Comparison, Estimate, Findings, Gate, GateAnswer, GateOutcome, GatedComparison, GatedRun,
    MetricFindings, Standing, Verdict, verdict_id,
};
use tare_model::metric::{Better, MetricSpec, common};
use tare_model::study::Arm;
use tare_model::written::percent;

use crate::comparison::{detected, holm};
use crate::estimate::{ALPHA, Sample};
use crate::student::{t_quantile, t_tail};

/// What every comparison of a run that answers its study is to a limit, in the order of the study. `limit` is the relative difference up
/// to which an arm may be worse: 0.02 is 2 %. Comparisons that were to be made and were not are among them.
pub fn gated(findings: &Findings, limit: f64) -> Vec<GatedComparison> {
    let study = &findings.plan.study;
    let arms: Vec<&Arm> =
        study.arms.iter().filter(|arm| arm.id != study.baseline && arm.replica_of.is_none()).collect();
    let judged = judged(findings, limit);
    let of = |case: Option<&CaseFindings>, metric: Option<&MetricFindings>, arm: &Arm| {
        let spec = metric.map(|metric| &metric.spec);
        let found = metric.and_then(|metric| metric.comparisons.iter().find(|own| own.arm == arm.id));
        let p = found.and_then(|own| judged.iter().find(|(other, _)| std::ptr::eq(*other, own))?.1);
        Place { case, arm, spec }.held(found, limit, p)
    };
    let is_condition = |id: &str| study.cases.iter().any(|case| case.id == id && case.schedule.condition().is_some());
    let cases: Vec<&CaseFindings> = findings.cases.iter().filter(|case| !is_condition(&case.id)).collect();
    let mut all = Vec::new();
    for &case in &cases {
        let primary = case.metrics.iter().find(|metric| metric.spec.primary);
        all.extend(arms.iter().map(|arm| of(Some(case), primary, arm)));
    }
    let of_guests = findings.across.iter().filter(|metric| common::OF_THE_GUEST.contains(&metric.spec.id.as_str()));
    for metric in of_guests.filter(|_| findings.cases.is_empty() || !cases.is_empty()) {
        // Of an arm whose guests have no such figure there is nothing to compare.
        let compared = arms.iter().filter(|arm| metric.comparisons.iter().any(|own| own.arm == arm.id));
        all.extend(compared.map(|arm| of(None, Some(metric), arm)));
    }
    all.extend(findings.plan.left_out.iter().map(|left| GatedComparison {
        id: left.arm.clone(),
        label: left.label.clone(),
        reason: format!("this host cannot run it: {}", left.reason),
        ..nothing(None, &left.arm)
    }));
    all
}

/// The comparisons that answer a study, each with its corrected probability of being so far beyond the limit by chance. All of them share
/// the error probability, whichever are asked for later: their number was planned.
fn judged(findings: &Findings, limit: f64) -> Vec<(&Comparison, Option<f64>)> {
    let by_width = findings.plan.study.precision.is_some();
    let cases = findings.cases.iter().flat_map(|case| {
        let fitted = case.density.is_some() || !case.capacity.is_empty();
        case.metrics.iter().map(move |metric| (metric, fitted && metric.spec.primary))
    });
    let metrics = cases.chain(findings.across.iter().map(|metric| (metric, false)));
    let asked = metrics.flat_map(|(metric, fitted)| {
        let primary = metric.comparisons.iter().filter(|own| matches!(own.standing, Standing::Primary { .. }));
        primary.map(move |own| (own, Line::of(metric.spec.better, limit).p(own, fitted, by_width)))
    });
    let (comparisons, p): (Vec<&Comparison>, Vec<Option<f64>>) = asked.unzip();
    comparisons.into_iter().zip(holm(&p)).collect()
}

/// The ratio up to which an arm may be worse.
#[derive(Debug, Clone, Copy)]
struct Line {
    ratio: f64,
    better: Better,
}

impl Line {
    fn of(better: Better, limit: f64) -> Self {
        // As changes are shown: 2 % less of what should be more is a ratio of 0.98.
        Self { ratio: if better == Better::Lower { 1.0 + limit } else { 1.0 - limit }, better }
    }

    /// An end on the line has not passed it; ends have been through a logarithm and back.
    fn is_passed_by(self, ratio: f64) -> bool {
        const HAIR: f64 = 1e-9;
        if self.better == Better::Lower { ratio > self.ratio * (1.0 + HAIR) } else { ratio < self.ratio * (1.0 - HAIR) }
    }

    /// The ends of an interval: the one nearer to better, and the one nearer to worse.
    fn ends(self, ratio: &Estimate) -> (Option<f64>, Option<f64>) {
        if self.better == Better::Lower { (ratio.low, ratio.high) } else { (ratio.high, ratio.low) }
    }

    /// Probability of a ratio so far beyond the line, if the true one lay on it. `None` where the verdict is withheld.
    fn p(self, comparison: &Comparison, fitted: bool, by_width: bool) -> Option<f64> {
        if comparison.withheld.is_some() {
            return None;
        }
        if fitted {
            return Some(self.p_of_interval(&comparison.ratio));
        }
        let logs: Vec<f64> = comparison.blocks.iter().map(|(_, ratio)| ratio.ln()).collect();
        let sample = Sample { values: &logs, missing: comparison.missing as usize, by_width };
        sample.p_past(self.ratio.ln(), self.better == Better::Higher)
    }

    /// The same of a ratio that was fitted, from its interval: Student's t in proportion to the logarithms, so that it is 5 % where the
    /// interval ends on the line.
    fn p_of_interval(self, ratio: &Estimate) -> f64 {
        let Some(end) = self.ends(ratio).0.filter(|_| self.is_passed_by(ratio.value)) else { return 1.0 };
        let freedom = f64::from(ratio.n) - 1.0;
        let (beyond, half) = ((ratio.value / self.ratio).ln().abs(), (ratio.value / end).ln().abs());
        match half > 0.0 {
            true => t_tail(beyond / half * t_quantile(1.0 - ALPHA / 2.0, freedom), freedom),
            false => 0.0,
        }
    }

    /// What a comparison is to the line, and why.
    fn judge(self, comparison: &Comparison, limit: f64, p: Option<f64>) -> (GateOutcome, String) {
        if let Some(why) = &comparison.withheld {
            return (GateOutcome::NoVerdict, why.clone());
        }
        let limit = percent(limit);
        let (near, far) = self.ends(&comparison.ratio);
        if far.is_some_and(|far| !self.is_passed_by(far)) {
            return (GateOutcome::Within, format!("a regression of more than {limit} is ruled out"));
        }
        if !near.is_some_and(|near| self.is_passed_by(near)) {
            let power = comparison.detectable.map(|size| format!("; {}", detected("", size))).unwrap_or_default();
            return (GateOutcome::Unsure, format!("too noisy: the interval reaches beyond {limit}{power}"));
        }
        match p {
            _ if comparison.verdict == Verdict::WithinFloor => {
                let why = format!("the interval lies beyond {limit}, but the baseline differs as much from itself");
                (GateOutcome::Unsure, why)
            }
            Some(p) if p <= ALPHA => (GateOutcome::Worse, format!("proven worse by more than {limit}")),
            p => {
                let chance = format!("{:.0} of 100 studies", p.unwrap_or(1.0) * 100.0);
                let why = format!(
                    "the interval lies beyond {limit}, but chance shows as much in {chance} of so many comparisons"
                );
                (GateOutcome::Unsure, why)
            }
        }
    }
}

/// What a comparison is of.
#[derive(Clone, Copy)]
struct Place<'a> {
    case: Option<&'a CaseFindings>,
    arm: &'a Arm,
    spec: Option<&'a MetricSpec>,
}

impl Place<'_> {
    fn held(self, found: Option<&Comparison>, limit: f64, p: Option<f64>) -> GatedComparison {
        let Self { case, arm, spec } = self;
        let metric = spec.map_or("", |spec| spec.id.as_str());
        let parts = [case.map(|case| case.label.as_str()), Some(&arm.label), spec.map(|spec| spec.label.as_str())];
        let place = GatedComparison {
            id: verdict_id(case.map(|case| case.id.as_str()), &arm.id, metric),
            metric: metric.to_owned(),
            label: parts.into_iter().flatten().collect::<Vec<_>>().join(", "),
            unit: spec.map(|spec| spec.unit.clone()),
            better: spec.map(|spec| spec.better),
            ..nothing(case, &arm.id)
        };
        let Some((comparison, spec)) = found.zip(spec) else { return place };
        let (outcome, reason) = Line::of(spec.better, limit).judge(comparison, limit, p);
        let ratio = Some(&comparison.ratio).filter(|ratio| ratio.n > 0).cloned();
        GatedComparison { ratio, p_worse: p, verdict: comparison.verdict, outcome, reason, ..place }
    }
}

/// A comparison that was not made.
fn nothing(case: Option<&CaseFindings>, arm: &str) -> GatedComparison {
    GatedComparison {
        id: String::new(),
        case: case.map(|case| case.id.clone()),
        arm: arm.to_owned(),
        metric: String::new(),
        label: String::new(),
        unit: None,
        better: None,
        ratio: None,
        p_worse: None,
        verdict: Verdict::CannotSay,
        outcome: GateOutcome::NoVerdict,
        reason: "no trial of it was run".to_owned(),
    }
}

/// The answer over all runs. `doubts` are the outcomes on which it fails besides [`GateOutcome::Worse`]. A gate that judged nothing says so,
/// whatever it was asked.
pub fn gate(runs: Vec<GatedRun>, limit: f64, doubts: &[GateOutcome]) -> Gate {
    let all = || runs.iter().flat_map(|run| &run.comparisons);
    let count = |outcome: GateOutcome| all().filter(|own| own.outcome == outcome).count();
    let doubtful = all().any(|own| doubts.contains(&own.outcome));
    let answer = match count(GateOutcome::Worse) {
        1.. => GateAnswer::Regression,
        0 if doubtful || all().all(|own| own.outcome == GateOutcome::NoVerdict) => GateAnswer::CannotSay,
        0 => GateAnswer::Pass,
    };
    let sentence = sentence(answer, limit, &all().collect::<Vec<_>>());
    let mut fails_on: Vec<GateOutcome> = doubts.iter().copied().chain([GateOutcome::Worse]).collect();
    fails_on.sort();
    fails_on.dedup();
    Gate { limit, fails_on, answer, sentence, runs }
}

fn sentence(answer: GateAnswer, limit: f64, all: &[&GatedComparison]) -> String {
    let limit = percent(limit);
    let count = |outcome: GateOutcome| all.iter().filter(|own| own.outcome == outcome).count();
    let comparisons = if all.len() == 1 { "1 comparison".to_owned() } else { format!("{} comparisons", all.len()) };
    let parts = [
        (GateOutcome::Within, "ruled out"),
        (GateOutcome::Unsure, "neither proven nor ruled out"),
        (GateOutcome::NoVerdict, "no verdict"),
    ];
    let others = parts.map(|(outcome, what)| (count(outcome), what)).into_iter().filter(|(n, _)| *n > 0);
    let others = others.map(|(n, what)| format!("; {what} in {n}")).collect::<String>();
    match answer {
        GateAnswer::Regression => {
            let n = count(GateOutcome::Worse);
            format!("Regression: one of more than {limit} is proven in {n} of {comparisons}{others}.")
        }
        GateAnswer::CannotSay => {
            format!("Cannot say: no regression of more than {limit} is proven in {comparisons}{others}.")
        }
        GateAnswer::Pass => format!("Pass: no regression of more than {limit} is proven in {comparisons}{others}."),
    }
}

#[cfg(test)]
mod tests;
