//! The raw numbers as CSV (RFC 4180): full precision, stored units, ids instead of labels.

use std::borrow::Cow;

use tare_model::findings::{ArmEstimate, Comparison, Estimate, Findings, MetricFindings, Standing};
use tare_model::metric::Unit;
use tare_model::text::{is_unfit, readable};

use crate::words;

/// The trials over time; long, and drawn in the report.
pub(crate) const SAMPLES: &str = "samples.csv";

/// Four files, as file name and content.
///
/// - `trials.csv`: every completed trial's value of every metric;
/// - `comparisons.csv`: each metric on each arm, and against the baseline;
/// - `percentiles.csv`: the latency percentiles in seconds, with intervals;
/// - `samples.csv`: the trials that the report draws over time, seconds from the start of load.
///
/// All else is in `findings.json`, of which these are extracts, and in `results.sqlite`; `docs/method.md` says what is where.
///
/// Blocks count from 0, as in `findings.json`. A figure that does not exist is an empty field. Each record ends with the
/// arm's name, which says so where its figures must not be compared. Figures of a guest over all cases have no case.
pub fn csv(findings: &Findings) -> Vec<(String, String)> {
    vec![
        ("trials.csv".to_owned(), trials(findings)),
        ("comparisons.csv".to_owned(), comparisons(findings)),
        ("percentiles.csv".to_owned(), percentiles(findings)),
        (SAMPLES.to_owned(), samples(findings)),
    ]
}

/// Name of a stored unit in files.
fn unit(unit: &Unit) -> String {
    match unit {
        Unit::Seconds => "s".to_owned(),
        Unit::OperationsPerSecond => "operations/s".to_owned(),
        Unit::BitsPerSecond => "bit/s".to_owned(),
        Unit::CpuSecondsPerOperation => "CPU s/operation".to_owned(),
        Unit::CpuSecondsPerByte => "CPU s/byte".to_owned(),
        Unit::Bytes => "bytes".to_owned(),
        Unit::Share | Unit::Count => "1".to_owned(),
        Unit::Other(name) => name.clone(),
    }
}

/// Records joined by CRLF, fields quoted where they must be.
struct Writer(String);

impl Writer {
    fn new(head: &[&str]) -> Self {
        let mut writer = Self(String::new());
        writer.record(head.iter().map(|name| (*name).to_owned()).collect());
        writer
    }

    fn record(&mut self, fields: Vec<String>) {
        for (i, field) in fields.iter().enumerate() {
            if i > 0 {
                self.0.push(',');
            }
            let field = inert(field);
            if field.contains(['"', ',', '\r', '\n']) {
                self.0.push('"');
                self.0.push_str(&field.replace('"', "\"\""));
                self.0.push('"');
            } else {
                self.0.push_str(&field);
            }
        }
        self.0.push_str("\r\n");
    }
}

/// A field that a spreadsheet takes for text or a number, and never for a formula: names and reasons may come from
/// strangers.
fn inert(field: &str) -> Cow<'_, str> {
    let field = if field.contains(is_unfit) { Cow::Owned(readable(field)) } else { Cow::Borrowed(field) };
    let begins = field.starts_with(['=', '+', '-', '@', '\t', '\r', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}']);
    if begins && field.parse::<f64>().is_err() { Cow::Owned(format!("'{field}")) } else { field }
}

fn optional(value: Option<f64>) -> String {
    value.map_or_else(String::new, number)
}

fn number(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

fn interval(estimate: &Estimate) -> Vec<String> {
    vec![
        number(estimate.value),
        optional(estimate.low),
        optional(estimate.high),
        number(estimate.level),
        estimate.n.to_string(),
    ]
}

/// A ratio, whose value is no figure where nothing was compared.
fn ratio(ratio: &Estimate) -> Vec<String> {
    let mut fields = interval(ratio);
    if ratio.n == 0 {
        fields[0].clear();
    }
    fields
}

fn trials(findings: &Findings) -> String {
    let mut out = Writer::new(&["case", "arm", "metric", "unit", "block", "value", "label"]);
    for (case, metric) in metrics(findings) {
        for arm in &metric.arms {
            for (block, value) in &arm.blocks {
                let (id, unit) = (metric.spec.id.clone(), unit(&metric.spec.unit));
                let mut fields = vec![case.to_owned(), arm.arm.clone(), id, unit, block.to_string(), number(*value)];
                fields.push(label(findings, &arm.arm));
                out.record(fields);
            }
        }
    }
    out.0
}

/// Every metric with the id of its case, which is empty for those over all cases.
fn metrics(findings: &Findings) -> impl Iterator<Item = (&str, &MetricFindings)> {
    let across = findings.across.iter().map(|metric| ("", metric));
    let cases = findings.cases.iter();
    cases.flat_map(|case| case.metrics.iter().map(|metric| (case.id.as_str(), metric))).chain(across)
}

/// Name of an arm for people.
fn label(findings: &Findings, arm: &str) -> String {
    let found = findings.plan.study.arms.iter().find(|own| own.id == arm);
    found.map_or_else(|| arm.to_owned(), |own| own.label.clone())
}

fn comparisons(findings: &Findings) -> String {
    let mut out = Writer::new(&[
        "case",
        "arm",
        "metric",
        "unit",
        "primary",
        "value",
        "value_low",
        "value_high",
        "value_level",
        "value_n",
        "baseline",
        "ratio",
        "ratio_low",
        "ratio_high",
        "ratio_level",
        "ratio_n",
        "blocks_planned",
        "blocks_missing",
        "p_equal",
        "p_corrected",
        "detectable",
        "floor",
        "verdict",
        "value_method",
        "ratio_method",
        "sentence",
        "label",
    ]);
    for (case, metric) in metrics(findings) {
        for arm in &metric.arms {
            let mut against = metric.comparisons.iter().filter(|own| own.arm == arm.arm).peekable();
            // The baseline itself is compared with nothing.
            let alone = against.peek().is_none().then_some(None);
            for comparison in against.map(Some).chain(alone) {
                out.record(compared(findings, case, metric, arm, comparison));
            }
        }
    }
    out.0
}

fn compared(
    findings: &Findings,
    case: &str,
    metric: &MetricFindings,
    arm: &ArmEstimate,
    comparison: Option<&Comparison>,
) -> Vec<String> {
    let mut fields = vec![case.to_owned(), arm.arm.clone(), metric.spec.id.clone(), unit(&metric.spec.unit)];
    fields.push(metric.spec.primary.to_string());
    fields.extend(interval(&arm.estimate));
    let Some(own) = comparison else {
        fields.extend(vec![String::new(); 13]);
        fields.extend([arm.estimate.method.clone(), String::new(), String::new(), label(findings, &arm.arm)]);
        return fields;
    };
    fields.push(own.baseline.clone());
    fields.extend(ratio(&own.ratio));
    let corrected = if let Standing::Primary { p_equal, .. } = own.standing { p_equal } else { None };
    fields.extend([own.planned.to_string(), own.missing.to_string(), optional(own.p_equal), optional(corrected)]);
    fields.extend([optional(own.detectable), optional(own.floor), words::verdict(own.verdict).to_owned()]);
    fields.extend([arm.estimate.method.clone(), own.ratio.method.clone(), own.sentence.clone()]);
    fields.push(label(findings, &arm.arm));
    fields
}

fn percentiles(findings: &Findings) -> String {
    let mut out = Writer::new(&[
        "case",
        "arm",
        "distribution",
        "operations",
        "quantile",
        "value_s",
        "low_s",
        "high_s",
        "level",
        "n",
        "method",
        "label",
        "not_completed",
        "completed_only_s",
    ]);
    for case in &findings.cases {
        for distribution in &case.distributions {
            let beside = |q: f64| distribution.incomplete.iter().find(|(own, _)| *own == q).map(|(_, one)| one);
            let mut row = |q: f64, interval: Vec<String>, method: &str| {
                let mut fields = vec![case.id.clone(), distribution.arm.clone(), distribution.name.clone()];
                fields.extend([distribution.operations.to_string(), q.to_string()]);
                fields.extend(interval);
                fields.extend([method.to_owned(), label(findings, &distribution.arm)]);
                let completed_only = beside(q).and_then(|one| one.completed_only).map_or_else(String::new, number);
                fields.extend([distribution.not_completed.to_string(), completed_only]);
                out.record(fields);
            };
            for (q, estimate) in &distribution.quantiles {
                row(*q, interval(estimate), &estimate.method);
            }
            let reached = |q: f64| distribution.quantiles.iter().any(|(own, _)| *own == q);
            for (q, _) in distribution.incomplete.iter().filter(|(q, _)| !reached(*q)) {
                row(*q, vec![String::new(); 5], "not reached");
            }
        }
    }
    out.0
}

fn samples(findings: &Findings) -> String {
    let mut out = Writer::new(&["case", "arm", "block", "series", "at_s", "value", "label"]);
    for (case, trial) in findings.cases.iter().flat_map(|case| case.timelines.iter().map(move |own| (case, own))) {
        for (series, (at_s, value)) in
            trial.series.iter().flat_map(|(name, all)| all.iter().map(move |one| (name, one)))
        {
            let mut fields = vec![case.id.clone(), trial.arm.clone(), trial.block.to_string(), series.clone()];
            fields.extend([number(*at_s), number(*value), label(findings, &trial.arm)]);
            out.record(fields);
        }
    }
    out.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_field_is_a_formula_and_numbers_stay_numbers() {
        for formula in ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "\u{ff1d}1", "-", "=HYPERLINK(\"x\")"]
        {
            assert_eq!(inert(formula), format!("'{formula}"));
        }
        for plain in ["-1.5", "+2", "-1e-9", "native", "a=b", "", "'=1"] {
            assert_eq!(inert(plain), plain);
        }
        assert_eq!(inert("\u{1b}[2J\u{202e}"), "\u{fffd}[2J\u{fffd}");
    }

    #[test]
    fn fields_that_need_quotes_get_them() {
        let mut writer = Writer::new(&["a", "b"]);
        writer.record(vec!["plain".into(), "with \"quotes\", comma\nand line".into()]);
        assert_eq!(writer.0, "a,b\r\nplain,\"with \"\"quotes\"\", comma\nand line\"\r\n");
    }
}
