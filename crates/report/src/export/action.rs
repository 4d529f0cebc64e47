//! The custom benchmarks of github-action-benchmark (<https://github.com/benchmark-action/github-action-benchmark>): a JSON array that its
//! `customSmallerIsBetter` or its `customBiggerIsBetter` reads. A file has metrics of one direction.

use serde_json::{Value, json};
use tare_model::findings::Estimate;
use tare_model::metric::Better;

use super::Figure;
use crate::error::ReportError;
use crate::{format, tables};

/// The figures as custom benchmarks, and the tool that reads them.
///
/// # Errors
/// When some figures are better lower and others higher.
pub fn action(figures: &[Figure<'_>]) -> Result<(String, &'static str), ReportError> {
    let first = figures.first().map_or(Better::Lower, |figure| figure.spec.better);
    if figures.iter().any(|figure| figure.spec.better != first) {
        return Err(ReportError::MixedDirections);
    }
    let entries: Vec<Value> = figures.iter().flat_map(entries).collect();
    let text = serde_json::to_string_pretty(&entries).map_err(ReportError::Json)?;
    Ok((text, if first == Better::Lower { "customSmallerIsBetter" } else { "customBiggerIsBetter" }))
}

fn entries(figure: &Figure<'_>) -> impl Iterator<Item = Value> {
    let (place, spec) = (figure.place(), &figure.spec);
    let value = figure.value.map(|own| entry(&format!("{place}/{}", spec.id), tables::unit(&spec.unit), own));
    let effect = figure.effect.map(|own| entry(&format!("{place}/{} (effect)", spec.id), "ratio to baseline", own));
    value.into_iter().chain(effect)
}

fn entry(name: &str, unit: &str, estimate: &Estimate) -> Value {
    let mut entry = json!({ "name": name, "unit": unit, "value": estimate.value });
    if let (Value::Object(fields), Some((low, high))) = (&mut entry, estimate.low.zip(estimate.high)) {
        // Charts have one number for both sides: the farther end, so that the range holds the interval.
        let range = (high - estimate.value).max(estimate.value - low);
        fields.insert("range".to_owned(), format!("\u{b1} {range:?}").into());
        let level = format::share(estimate.level);
        let extra = format!("{level} interval: {low} to {high}\nvalues: {}", estimate.n);
        fields.insert("extra".to_owned(), extra.into());
    }
    entry
}
