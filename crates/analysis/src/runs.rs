//! Two runs side by side.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tare_model::findings::{ArmEstimate, CaseFindings, Comparison, Estimate, Findings, MetricFindings, Verdict};
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::study::{Case, CaseSchedule};

use crate::estimate;
use crate::marked::is_apart;
use crate::words;

/// Why two runs cannot be set side by side.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnalysisError {
    /// They share no case with an arm and a metric.
    #[error(
        "the runs {a} and {b} have no case with an arm and a metric in common: nothing can be compared. \
         Give two runs of one study, or of studies whose case and arm ids agree"
    )]
    NothingInCommon {
        /// First run's id.
        a: String,
        /// Second run's id.
        b: String,
    },
}

/// Two runs side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunComparison {
    /// Id of the first run, which ratios are against.
    pub a: String,
    /// Id of the second run.
    pub b: String,
    /// Whether both ran the same plan.
    pub same_plan: bool,
    /// Warnings of either, then what differs between plan and host of the two, each in a sentence; a difference in
    /// figures may come from it.
    pub differences: Vec<String>,
    /// Values and effects, in the order of the study.
    pub rows: Vec<RunComparisonRow>,
}

/// What a row compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compared {
    /// The values of an arm themselves: they move with the host, the day and the arm.
    Value,
    /// The ratio of an arm to its own run's baseline: what moved the whole host cancels.
    Effect,
}

/// One figure of the two runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunComparisonRow {
    /// Case id.
    pub case: String,
    /// Arm id.
    pub arm: String,
    /// The arm for people: its id, or its name where that says that its figures must not be compared with other arms'.
    pub name: String,
    /// Metric.
    pub metric: MetricSpec,
    /// What is compared.
    pub compared: Compared,
    /// Unit of `a` and `b` (a bare number for effects).
    pub unit: Unit,
    /// The first run's estimate.
    pub a: Estimate,
    /// The second run's estimate.
    pub b: Estimate,
    /// The second over the first, from blocks that are not paired; none, with `n` = 0, where they must not be compared.
    pub ratio: Estimate,
    /// The verdict on the second run.
    pub verdict: Verdict,
    /// The verdict in words.
    pub sentence: String,
}

/// Sets run `b` against run `a`: every arm's values, and the effect of every arm beside the baseline.
///
/// # Errors
/// When they share no case, arm and metric. Runs of different plans are compared, and their differences listed.
pub fn compare(a: &Findings, b: &Findings) -> Result<RunComparison, AnalysisError> {
    let mut rows = Vec::new();
    for case in &a.cases {
        let Some(other) = b.cases.iter().find(|other| other.id == case.id) else { continue };
        for metric in &case.metrics {
            if let Some(beside) =
                other.metrics.iter().find(|m| m.spec.id == metric.spec.id && m.spec.unit == metric.spec.unit)
            {
                rows.extend(metric_rows((a, b), case, metric, beside));
            }
        }
    }
    if rows.is_empty() {
        return Err(AnalysisError::NothingInCommon { a: a.run.id.clone(), b: b.run.id.clone() });
    }
    Ok(RunComparison {
        a: a.run.id.clone(),
        b: b.run.id.clone(),
        same_plan: a.plan.hash == b.plan.hash,
        differences: differences(a, b),
        rows,
    })
}

/// An arm in a sentence: by its id, and where its name bears a mark in one of the runs (emulated), by that name.
fn named(runs: (&Findings, &Findings), arm: &str) -> String {
    let run = [runs.0, runs.1].into_iter().find(|run| is_apart(run, arm));
    let marked = run.and_then(|run| run.plan.study.arms.iter().find(|own| own.id == arm));
    marked.map_or_else(|| arm.to_owned(), |own| own.label.clone())
}

fn metric_rows(
    runs: (&Findings, &Findings),
    case: &CaseFindings,
    a: &MetricFindings,
    b: &MetricFindings,
) -> Vec<RunComparisonRow> {
    let spec = &a.spec;
    let mut rows = Vec::new();
    for arm in &a.arms {
        if let Some(beside) = b.arms.iter().find(|other| other.arm == arm.arm) {
            let row = value_row(case, spec, arm, beside, floor(a).max(floor(b)));
            let alike = is_apart(runs.0, &arm.arm) == is_apart(runs.1, &arm.arm);
            rows.extend(row.map(|row| if alike { row } else { of_two_kinds(row) }));
        }
        let of = |m: &MetricFindings| {
            m.comparisons.iter().find(|c| c.arm == arm.arm && c.verdict != Verdict::NoiseFloor).cloned()
        };
        if let (Some(x), Some(y)) = (of(a), of(b)) {
            rows.extend(effect_row(case, spec, &x, &y));
        }
    }
    for row in &mut rows {
        row.name = named(runs, &row.arm);
        row.sentence = format!("{}, {}: {}", case.label, row.name, row.sentence);
    }
    rows
}

/// The same arm once with figures that may be compared and once with such that may not (on a host with KVM, and
/// emulated): both are shown, and no ratio.
fn of_two_kinds(row: RunComparisonRow) -> RunComparisonRow {
    let why = "its figures are of two kinds: those of one run must not be compared with other figures";
    let ratio = Estimate { value: 1.0, low: None, high: None, n: 0, method: why.to_owned(), ..row.ratio };
    let sentence = format!("{}: not comparable ({why})", row.metric.label);
    RunComparisonRow { ratio, sentence, verdict: Verdict::NotComparable, ..row }
}

/// The noise floor that the comparisons of a metric were judged by, 0 without one.
fn floor(metric: &MetricFindings) -> f64 {
    metric.comparisons.iter().filter_map(|comparison| comparison.floor).fold(0.0, f64::max)
}

/// One run's side of a row.
struct Side<'a> {
    estimate: &'a Estimate,
    blocks: &'a [(u32, f64)],
}

impl Side<'_> {
    /// Logarithms of the blocks; `None` when one is not above zero.
    fn logs(&self) -> Option<Vec<f64>> {
        self.blocks.iter().map(|(_, value)| (*value > 0.0).then(|| value.ln())).collect()
    }
}

fn value_row(
    case: &CaseFindings,
    spec: &MetricSpec,
    a: &ArmEstimate,
    b: &ArmEstimate,
    floor: f64,
) -> Option<RunComparisonRow> {
    let [x, y] = [a, b].map(|arm| Side { estimate: &arm.estimate, blocks: &arm.blocks });
    row(case, spec, &a.arm, Compared::Value, &x, &y, floor)
}

fn effect_row(case: &CaseFindings, spec: &MetricSpec, a: &Comparison, b: &Comparison) -> Option<RunComparisonRow> {
    let floor = a.floor.unwrap_or(0.0).max(b.floor.unwrap_or(0.0));
    let [x, y] = [a, b].map(|comparison| Side { estimate: &comparison.ratio, blocks: &comparison.blocks });
    row(case, spec, &a.arm, Compared::Effect, &x, &y, floor)
}

fn row(
    case: &CaseFindings,
    spec: &MetricSpec,
    arm: &str,
    compared: Compared,
    a: &Side<'_>,
    b: &Side<'_>,
    floor: f64,
) -> Option<RunComparisonRow> {
    let (x, y) = (a.logs()?, b.logs()?);
    let (located, procedure) = estimate::shift(&x, &y)?;
    let ratio = estimate::from_logs(located, procedure, x.len().min(y.len()), "logarithms");
    let mut named = spec.clone();
    if compared == Compared::Effect {
        named.label = format!("effect on {}", spec.label);
        named.unit = Unit::Count;
    }
    let (verdict, words) = judge(&named, &ratio, floor);
    let unit = if compared == Compared::Value { spec.unit.clone() } else { Unit::Count };
    Some(RunComparisonRow {
        case: case.id.clone(),
        arm: arm.to_owned(),
        metric: spec.clone(),
        compared,
        unit,
        a: a.estimate.clone(),
        b: b.estimate.clone(),
        ratio,
        verdict,
        name: String::new(),
        sentence: words,
    })
}

fn judge(spec: &MetricSpec, ratio: &Estimate, floor: f64) -> (Verdict, String) {
    const FIRST: &str = "in the first run";
    let Some((low, high)) = ratio.low.zip(ratio.high) else {
        let words = format!("{}: cannot say: a run has fewer than 2 blocks", spec.label);
        return (Verdict::CannotSay, words);
    };
    if low <= 1.0 && high >= 1.0 {
        let said = format!("{}, no difference detected (ratio {:.3} [{low:.3}, {high:.3}])", spec.label, ratio.value);
        return (Verdict::NoDifferenceSeen, said);
    }
    let said = words::difference(spec, ratio, FIRST);
    if ratio.value.ln().abs() <= floor.ln_1p() {
        return (Verdict::WithinFloor, format!("{said}, within the noise floor of {}", words::size(floor)));
    }
    let better = (ratio.value > 1.0) == (spec.better == Better::Higher);
    (if better { Verdict::Better } else { Verdict::Worse }, said)
}

fn differences(a: &Findings, b: &Findings) -> Vec<String> {
    let mut differences = warnings(a, b);
    let mut report = |what: &str, a: String, b: String| {
        if a != b {
            differences.push(format!("{what}: {a} in the first run, {b} in the second."));
        }
    };
    let (x, y) = (&a.plan.study, &b.plan.study);
    report("Version of tare", a.run.tare_version.clone(), b.run.tare_version.clone());
    report("Study", x.name.clone(), y.name.clone());
    report("Blocks", x.blocks.to_string(), y.blocks.to_string());
    report("Seed", x.seed.to_string(), y.seed.to_string());
    report("Scale of the phases", x.scale.to_string(), y.scale.to_string());
    report("Baseline", x.baseline.clone(), y.baseline.clone());
    report("CPU placement", a.plan.cpus.note.clone(), b.plan.cpus.note.clone());
    if x.lab != y.lab {
        report("Lab", format!("{:?}", x.lab), format!("{:?}", y.lab));
    }
    for arm in &x.arms {
        if y.arms.iter().find(|other| other.id == arm.id).is_none_or(|other| other != arm) {
            differences.push(format!("Arm {} is not the same in the second run.", arm.id));
        }
    }
    for case in &x.cases {
        if y.cases.iter().find(|other| other.id == case.id).is_none_or(|other| alike(other) != alike(case)) {
            differences.push(format!("Case {} is not the same in the second run.", case.id));
        }
    }
    differences.extend(environment(a, b));
    differences
}

/// A case without the reason for its schedule, which names what was free on the host at the time.
fn alike(case: &Case) -> Case {
    let mut case = case.clone();
    if let CaseSchedule::Pairs { why, .. } | CaseSchedule::Trials { why } = &mut case.schedule {
        why.clear();
    }
    case
}

/// What must be read before the figures of either run, or of both.
fn warnings(a: &Findings, b: &Findings) -> Vec<String> {
    let of = |warning: &&String| match (a.warnings.contains(warning), b.warnings.contains(warning)) {
        (true, true) => format!("In both runs: {warning}"),
        (true, false) => format!("In the first run: {warning}"),
        _ => format!("In the second run: {warning}"),
    };
    let second = b.warnings.iter().filter(|warning| !a.warnings.contains(warning));
    a.warnings.iter().chain(second).map(|warning| of(&warning)).collect()
}

/// Facts about the host that are not the same.
fn environment(a: &Findings, b: &Findings) -> Vec<String> {
    let facts = |findings: &Findings| -> BTreeMap<(String, String), String> {
        let sections = findings.environment.sections.iter();
        sections
            .flat_map(|s| s.facts.iter().map(|(name, value)| ((s.title.clone(), name.clone()), value.clone())))
            .collect()
    };
    let (x, y) = (facts(a), facts(b));
    let names: std::collections::BTreeSet<_> = x.keys().chain(y.keys()).collect();
    let value = |facts: &BTreeMap<_, String>, key| facts.get(key).cloned().unwrap_or_else(|| "not known".to_owned());
    let differing = names.into_iter().filter(|key| x.get(*key) != y.get(*key));
    differing
        .map(|key| {
            format!("{}, {}: {} in the first run, {} in the second.", key.0, key.1, value(&x, key), value(&y, key))
        })
        .collect()
}
