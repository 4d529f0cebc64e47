//! A row for Apache Otava's CSV import (<https://github.com/apache/otava>, `docs/CSV.md`): a time, attributes, and a number in every column of
//! a metric. Otava reads no empty number, so a run has columns for the figures that it has, and rows are appended under the same columns.

use std::borrow::Cow;

use tare_model::findings::Findings;

use super::Figure;
use crate::csv::{inert, record};

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtavaRow {
    /// The line of the columns' names, with its end.
    pub header: String,
    /// The line of the run, with its end.
    pub row: String,
}

/// The run as a row: `time`, the attributes `study`, `run`, `tare_version` and those that are given, then `effect/...` and `value/...` with
/// the name of each figure. A name as in `findings.json`: `CASE/ARM/METRIC`.
pub fn otava(findings: &Findings, figures: &[Figure<'_>], attributes: &[(String, String)]) -> OtavaRow {
    let run = &findings.run;
    let own = [
        ("time", run.started_at.as_str()),
        ("study", &findings.plan.study.name),
        ("run", &run.id),
        ("tare_version", &run.tare_version),
    ];
    let given = attributes.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut fields: Vec<(String, String)> =
        own.into_iter().chain(given).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let name = |figure: &Figure<'_>, what: &str| format!("{what}/{}/{}", figure.place(), figure.spec.id);
    let effects = figures.iter().filter_map(|own| Some((name(own, "effect"), own.effect?.value.to_string())));
    let values = figures.iter().filter_map(|own| Some((name(own, "value"), own.value?.value.to_string())));
    fields.extend(effects.chain(values));
    let (names, values): (Vec<String>, Vec<String>) = fields.into_iter().unzip();
    OtavaRow { header: line(&names), row: line(&values) }
}

fn line(fields: &[String]) -> String {
    let mut out = String::new();
    record(&mut out, fields.iter().map(|field| one_line(&inert(field))));
    out
}

/// A row is one line: whoever appends compares the first.
fn one_line(field: &str) -> Cow<'static, str> {
    field.replace(['\n', '\t'], " ").into()
}
