//! The raw numbers as typed tables: full precision, stored units, ids instead of labels. CSV and Parquet files hold the same.

use tare_model::findings::{ArmEstimate, Comparison, Estimate, Findings, MetricFindings, Standing, Verdict};
use tare_model::metric::Unit;

/// A value of a table; [`Self::Absent`] where a figure does not exist.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Real(f64),
    Whole(i64),
    Flag(bool),
    Absent,
}

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Real,
    Whole,
    Flag,
}

/// A table: as many values in each row as there are columns.
#[derive(Debug)]
pub(crate) struct RawTable {
    /// Name of its file, without the end.
    pub(crate) name: &'static str,
    pub(crate) columns: Vec<(&'static str, Kind)>,
    pub(crate) rows: Vec<Vec<Value>>,
}

/// The trials over time; long, and drawn in the report.
pub(crate) const SAMPLES: &str = "samples";

/// Four tables:
///
/// - `trials`: every completed trial's value of every metric;
/// - `comparisons`: each metric on each arm, and against the baseline;
/// - `percentiles`: the latency percentiles in seconds, with intervals;
/// - `samples`: the trials that the report draws over time, seconds from the start of load.
///
/// Blocks count from 1, and a verdict has one id, as in `findings.json`. Each row ends with the arm's name, which says so where its
/// figures must not be compared. Figures of a guest over all cases have no case.
pub(crate) fn tables(findings: &Findings) -> Vec<RawTable> {
    vec![trials(findings), comparisons(findings), percentiles(findings), samples(findings)]
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        if value.is_finite() { Self::Real(value) } else { Self::Absent }
    }
}

impl From<Option<f64>> for Value {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::Absent, Self::from)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Whole(value.into())
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Whole(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

/// A row of values of several types.
macro_rules! row {
    ($($value:expr),* $(,)?) => { vec![$(Value::from($value)),*] };
}

/// Name of a stored unit in files.
pub(crate) fn unit(unit: &Unit) -> &str {
    match unit {
        Unit::Seconds => "s",
        Unit::OperationsPerSecond => "operations/s",
        Unit::BitsPerSecond => "bit/s",
        Unit::CpuSecondsPerOperation => "CPU s/operation",
        Unit::CpuSecondsPerByte => "CPU s/byte",
        Unit::Bytes => "bytes",
        Unit::Share | Unit::Count => "1",
        Unit::Other(name) => name,
    }
}

/// A verdict as `findings.json` writes it.
pub(crate) fn id(verdict: Verdict) -> Value {
    let id = serde_json::to_value(verdict).ok();
    id.and_then(|id| id.as_str().map(Value::from)).unwrap_or(Value::Absent)
}

pub(crate) fn interval(estimate: &Estimate) -> Vec<Value> {
    row![estimate.value, estimate.low, estimate.high, estimate.level, estimate.n]
}

/// A ratio, whose value is no figure where nothing was compared.
fn ratio(ratio: &Estimate) -> Vec<Value> {
    let mut values = interval(ratio);
    if ratio.n == 0 {
        values[0] = Value::Absent;
    }
    values
}

fn trials(findings: &Findings) -> RawTable {
    use Kind::{Real, Text, Whole};
    let columns = vec![
        ("case", Text),
        ("arm", Text),
        ("metric", Text),
        ("unit", Text),
        ("block", Whole),
        ("value", Real),
        ("label", Text),
    ];
    let mut rows = Vec::new();
    for (case, metric) in metrics(findings) {
        for arm in &metric.arms {
            let (id, unit, label) = (metric.spec.id.as_str(), unit(&metric.spec.unit), label(findings, &arm.arm));
            let row = |(block, value): &(u32, f64)| row![case, arm.arm.as_str(), id, unit, *block, *value, label];
            rows.extend(arm.blocks.iter().map(row));
        }
    }
    RawTable { name: "trials", columns, rows }
}

/// Every metric with the id of its case, which is empty for those over all cases.
fn metrics(findings: &Findings) -> impl Iterator<Item = (&str, &MetricFindings)> {
    let across = findings.across.iter().map(|metric| ("", metric));
    let cases = findings.cases.iter();
    cases.flat_map(|case| case.metrics.iter().map(|metric| (case.id.as_str(), metric))).chain(across)
}

/// Name of an arm for people.
fn label<'f>(findings: &'f Findings, arm: &'f str) -> &'f str {
    findings.plan.study.arms.iter().find(|own| own.id == arm).map_or(arm, |own| own.label.as_str())
}

fn comparisons(findings: &Findings) -> RawTable {
    use Kind::{Flag, Real, Text, Whole};
    let columns = vec![
        ("case", Text),
        ("arm", Text),
        ("metric", Text),
        ("unit", Text),
        ("primary", Flag),
        ("value", Real),
        ("value_low", Real),
        ("value_high", Real),
        ("value_level", Real),
        ("value_n", Whole),
        ("baseline", Text),
        ("ratio", Real),
        ("ratio_low", Real),
        ("ratio_high", Real),
        ("ratio_level", Real),
        ("ratio_n", Whole),
        ("blocks_planned", Whole),
        ("blocks_missing", Whole),
        ("p_equal", Real),
        ("p_corrected", Real),
        ("detectable", Real),
        ("floor", Real),
        ("verdict", Text),
        ("value_method", Text),
        ("ratio_method", Text),
        ("sentence", Text),
        ("label", Text),
    ];
    let mut rows = Vec::new();
    for (case, metric) in metrics(findings) {
        for arm in &metric.arms {
            let mut against = metric.comparisons.iter().filter(|own| own.arm == arm.arm).peekable();
            // The baseline itself is compared with nothing.
            let alone = against.peek().is_none().then_some(None);
            rows.extend(against.map(Some).chain(alone).map(|own| compared(findings, (case, metric), arm, own)));
        }
    }
    RawTable { name: "comparisons", columns, rows }
}

fn compared(
    findings: &Findings,
    (case, metric): (&str, &MetricFindings),
    arm: &ArmEstimate,
    comparison: Option<&Comparison>,
) -> Vec<Value> {
    let (id_of, unit) = (metric.spec.id.as_str(), unit(&metric.spec.unit));
    let (name, label) = (arm.arm.as_str(), label(findings, &arm.arm));
    let mut row = row![case, name, id_of, unit, metric.spec.primary];
    row.extend(interval(&arm.estimate));
    let method = arm.estimate.method.as_str();
    let Some(own) = comparison else {
        row.extend(vec![Value::Absent; 13]);
        row.extend([method.into(), Value::Absent, Value::Absent, label.into()]);
        return row;
    };
    row.push(own.baseline.as_str().into());
    row.extend(ratio(&own.ratio));
    let corrected = if let Standing::Primary { p_equal, .. } = own.standing { p_equal } else { None };
    row.extend(row![own.planned, own.missing, own.p_equal, corrected, own.detectable, own.floor]);
    row.push(id(own.verdict));
    row.extend(row![method, own.ratio.method.as_str(), own.sentence.as_str(), label]);
    row
}

fn percentiles(findings: &Findings) -> RawTable {
    use Kind::{Real, Text, Whole};
    let columns = vec![
        ("case", Text),
        ("arm", Text),
        ("distribution", Text),
        ("operations", Whole),
        ("quantile", Real),
        ("value_s", Real),
        ("low_s", Real),
        ("high_s", Real),
        ("level", Real),
        ("n", Whole),
        ("method", Text),
        ("label", Text),
        ("not_completed", Whole),
        ("completed_only_s", Real),
    ];
    let mut rows = Vec::new();
    for case in &findings.cases {
        for own in &case.distributions {
            let beside = |q: f64| own.incomplete.iter().find(|(other, _)| *other == q).map(|(_, one)| one);
            let mut row = |q: f64, interval: Vec<Value>, method: &str| {
                let mut row = row![case.id.as_str(), own.arm.as_str(), own.name.as_str(), own.operations, q];
                row.extend(interval);
                let completed_only = beside(q).and_then(|one| one.completed_only);
                row.extend(row![method, label(findings, &own.arm), own.not_completed, completed_only]);
                rows.push(row);
            };
            for (q, estimate) in &own.quantiles {
                row(*q, interval(estimate), &estimate.method);
            }
            let reached = |q: f64| own.quantiles.iter().any(|(other, _)| *other == q);
            for (q, _) in own.incomplete.iter().filter(|(q, _)| !reached(*q)) {
                row(*q, vec![Value::Absent; 5], "not reached");
            }
        }
    }
    RawTable { name: "percentiles", columns, rows }
}

fn samples(findings: &Findings) -> RawTable {
    use Kind::{Real, Text, Whole};
    let columns = vec![
        ("case", Text),
        ("arm", Text),
        ("block", Whole),
        ("series", Text),
        ("at_s", Real),
        ("value", Real),
        ("label", Text),
    ];
    let mut rows = Vec::new();
    for (case, trial) in findings.cases.iter().flat_map(|case| case.timelines.iter().map(move |own| (case, own))) {
        let label = label(findings, &trial.arm);
        for (series, values) in &trial.series {
            let row = |(at_s, value): &(f64, f64)| {
                row![case.id.as_str(), trial.arm.as_str(), trial.block, series.as_str(), *at_s, *value, label]
            };
            rows.extend(values.iter().map(row));
        }
    }
    RawTable { name: SAMPLES, columns, rows }
}
