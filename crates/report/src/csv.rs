//! The raw numbers as CSV (RFC 4180): full precision, stored units, ids instead of labels.

mod instances;
mod serving;

use std::borrow::Cow;

use tare_model::findings::{CaseFindings, Estimate, Findings, MetricFindings};
use tare_model::metric::Unit;
use tare_model::text::{is_unfit, readable};

use crate::words;

/// One file a kind of number, as file name and content.
///
/// - `blocks.csv`: every completed trial's value of every metric;
/// - `estimates.csv`: each metric on each arm with its interval;
/// - `comparisons.csv`: each arm against the baseline;
/// - `percentiles.csv`: the latency percentiles in seconds, with intervals;
/// - `parts.csv`, where trials have several guests or drivers: what each contributed and, without a guest, the sum; a
///   whole guest has no driver;
/// - `steps.csv`, where operations have steps: the seconds that an operation spends in each, and percentiles of one
///   such step; the whole operation has no step;
/// - `levels.csv`, where guests were added: every metric at each number of guests, in how many repeats that number was tried,
///   and in how many it held;
/// - `searches.csv`, where the largest load was looked for: every try in order, whether it held, and why not;
/// - `requests.csv`, where the workload has request types: each type of each iteration, and all of them together;
/// - `resources.csv`, beside these: what was used of host and guest;
/// - `consolidation.csv`, where several instances share a guest: every point of every series; a loss of throughput is in per cent,
///   a gain of CPU in points, for each instance more;
/// - `sizing.csv`, where models could be made or were refused: advice, models, checks of what was held out, and what was measured;
/// - `holds.csv`, where the CPU was held: every load that was tried, the last of a block being the measurement;
/// - `score.csv`, where the study has one; `audit.csv`, where there was an audit.
///
/// Blocks count from 0, as in `findings.json`. A figure that does not exist is an empty field. Each record ends with the
/// arm's name, which says so where its figures must not be compared. Figures of a guest over all cases have no case.
pub fn csv(findings: &Findings) -> Vec<(String, String)> {
    let mut files = vec![
        ("blocks.csv".to_owned(), blocks(findings)),
        ("estimates.csv".to_owned(), estimates(findings)),
        ("comparisons.csv".to_owned(), comparisons(findings)),
        ("percentiles.csv".to_owned(), percentiles(findings)),
    ];
    if findings.cases.iter().any(|case| !case.parts.is_empty()) {
        files.push(("parts.csv".to_owned(), parts(findings)));
    }
    if findings.cases.iter().any(|case| !case.steps.is_empty()) {
        files.push(("steps.csv".to_owned(), steps(findings)));
    }
    if findings.cases.iter().any(|case| case.density.is_some()) {
        files.push(("levels.csv".to_owned(), levels(findings)));
    }
    files.extend(serving::files(findings));
    files.extend(instances::files(findings));
    files
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
        Unit::Count => "1".to_owned(),
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

fn blocks(findings: &Findings) -> String {
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

fn estimates(findings: &Findings) -> String {
    let mut out = Writer::new(&[
        "case", "arm", "metric", "unit", "primary", "value", "low", "high", "level", "n", "method", "label",
    ]);
    for (case, metric) in metrics(findings) {
        for arm in &metric.arms {
            let spec = &metric.spec;
            let mut fields = vec![case.to_owned(), arm.arm.clone(), spec.id.clone(), unit(&spec.unit)];
            fields.push(spec.primary.to_string());
            fields.extend(interval(&arm.estimate));
            fields.extend([arm.estimate.method.clone(), label(findings, &arm.arm)]);
            out.record(fields);
        }
    }
    out.0
}

fn comparisons(findings: &Findings) -> String {
    let mut out = Writer::new(&[
        "case",
        "arm",
        "baseline",
        "metric",
        "ratio",
        "low",
        "high",
        "level",
        "n",
        "detectable",
        "floor",
        "verdict",
        "method",
        "sentence",
        "label",
    ]);
    for (case, metric) in metrics(findings) {
        for comparison in &metric.comparisons {
            let mut fields = vec![case.to_owned(), comparison.arm.clone(), comparison.baseline.clone()];
            fields.push(metric.spec.id.clone());
            fields.extend(ratio(&comparison.ratio));
            fields.extend([optional(comparison.detectable), optional(comparison.floor)]);
            fields.push(words::verdict(comparison.verdict).to_owned());
            fields.extend([comparison.ratio.method.clone(), comparison.sentence.clone()]);
            fields.push(label(findings, &comparison.arm));
            out.record(fields);
        }
    }
    out.0
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
    ]);
    for CaseFindings { id, distributions, .. } in &findings.cases {
        for distribution in distributions {
            for (q, estimate) in &distribution.quantiles {
                let mut fields = vec![id.clone(), distribution.arm.clone(), distribution.name.clone()];
                fields.extend([distribution.operations.to_string(), q.to_string()]);
                fields.extend(interval(estimate));
                fields.extend([estimate.method.clone(), label(findings, &distribution.arm)]);
                out.record(fields);
            }
        }
    }
    out.0
}

fn parts(findings: &Findings) -> String {
    let mut out = Writer::new(&[
        "case", "arm", "metric", "unit", "guest", "driver", "value", "low", "high", "level", "n", "method", "label",
    ]);
    for (case, arm) in findings.cases.iter().flat_map(|case| case.parts.iter().map(move |arm| (case, arm))) {
        let spec = case.metrics.iter().find(|metric| metric.spec.id == arm.metric).map(|metric| &metric.spec.unit);
        let mut record = |guest: Option<u32>, driver: Option<u32>, estimate: &Estimate| {
            let number = |n: Option<u32>| n.map_or_else(String::new, |n| n.to_string());
            let unit = spec.map(unit).unwrap_or_default();
            let mut fields = vec![case.id.clone(), arm.arm.clone(), arm.metric.clone(), unit];
            fields.extend([number(guest), number(driver)]);
            fields.extend(interval(estimate));
            fields.extend([estimate.method.clone(), label(findings, &arm.arm)]);
            out.record(fields);
        };
        arm.parts.iter().for_each(|part| record(Some(part.guest), part.driver, &part.estimate));
        record(None, None, &arm.total);
    }
    out.0
}

fn steps(findings: &Findings) -> String {
    let mut out = Writer::new(&[
        "case",
        "arm",
        "step",
        "within",
        "per_operation",
        "figure",
        "value_s",
        "low_s",
        "high_s",
        "level",
        "n",
        "method",
        "label",
    ]);
    for (case, arm) in findings.cases.iter().flat_map(|case| case.steps.iter().map(move |arm| (case, arm))) {
        let mut record = |step: [String; 3], figure: String, estimate: &Estimate| {
            let mut fields = vec![case.id.clone(), arm.arm.clone()];
            fields.extend(step);
            fields.push(figure);
            fields.extend(interval(estimate));
            fields.extend([estimate.method.clone(), label(findings, &arm.arm)]);
            out.record(fields);
        };
        for step in &arm.steps {
            let head = [step.name.clone(), step.within.to_string(), number(step.per_operation)];
            record(head.clone(), "of an operation".to_owned(), &step.of_operation_s);
            for (q, estimate) in &step.quantiles {
                record(head.clone(), format!("quantile {q} of one"), estimate);
            }
        }
        if let Some(whole) = &arm.operation_s {
            record([String::new(), "true".to_owned(), "1".to_owned()], "of an operation".to_owned(), whole);
        }
    }
    out.0
}

fn levels(findings: &Findings) -> String {
    let mut out = Writer::new(&[
        "case", "arm", "guests", "tried", "held", "metric", "unit", "value", "low", "high", "level", "n", "method",
        "label",
    ]);
    let specs = tare_model::density::metric_specs();
    for case in &findings.cases {
        let arms = case.density.iter().flat_map(|density| &density.arms);
        for (arm, level) in arms.flat_map(|arm| arm.levels.iter().map(move |level| (arm, level))) {
            for (id, estimate) in &level.metrics {
                let known =
                    specs.iter().chain(case.metrics.iter().map(|metric| &metric.spec)).find(|spec| &spec.id == id);
                let mut fields = vec![case.id.clone(), arm.arm.clone(), level.guests.to_string()];
                fields.extend([level.tried.to_string(), level.held.to_string(), id.clone()]);
                fields.push(known.map(|spec| unit(&spec.unit)).unwrap_or_default());
                fields.extend(interval(estimate));
                fields.extend([estimate.method.clone(), label(findings, &arm.arm)]);
                out.record(fields);
            }
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
