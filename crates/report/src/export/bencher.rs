//! Bencher Metric Format, JSON (<https://bencher.dev/docs/reference/bencher-metric-format/>): benchmark, then measure, then a value with
//! its lower and upper value.

use serde_json::{Map, Value, json};
use tare_model::findings::Estimate;

use super::Figure;
use crate::error::ReportError;

/// Longest slug of a measure.
const SLUG_MAX: usize = 64;
/// What marks the ratio of a measure to the baseline.
const EFFECT: &str = "-effect";

/// The figures as Bencher Metric Format: a benchmark is `CASE/ARM`, a measure the metric in its stored unit, and `METRIC-effect` its ratio to
/// the baseline.
///
/// # Errors
/// When it cannot be written as JSON, which would be a defect of this crate.
pub fn bencher(figures: &[Figure<'_>]) -> Result<String, ReportError> {
    let mut benchmarks: Map<String, Value> = Map::new();
    for figure in figures {
        for (estimate, end) in [(figure.value, ""), (figure.effect, EFFECT)] {
            let Some(estimate) = estimate else { continue };
            let measures = benchmarks.entry(figure.place()).or_insert_with(|| json!({}));
            if let Value::Object(measures) = measures {
                let slug = unused(measures, &figure.spec.id, end);
                measures.insert(slug, metric(estimate));
            }
        }
    }
    serde_json::to_string_pretty(&benchmarks).map_err(ReportError::Json)
}

fn metric(estimate: &Estimate) -> Value {
    let ends = [("lower_value", estimate.low), ("upper_value", estimate.high)];
    let mut metric = Map::from_iter([("value".to_owned(), estimate.value.into())]);
    metric.extend(ends.into_iter().filter_map(|(name, end)| Some((name.to_owned(), end?.into()))));
    metric.into()
}

/// The slug of a metric: lower-case letters, digits and single hyphens, 64 of them at most. Names that would be the same are numbered.
fn unused(taken: &Map<String, Value>, id: &str, end: &str) -> String {
    let lower = id.to_ascii_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let stem = words.join("-");
    let stem = if stem.is_empty() { "metric" } else { &stem };
    let numbered = |n: u32| {
        let end = if n > 1 { format!("-{n}{end}") } else { end.to_owned() };
        let kept: String = stem.chars().take(SLUG_MAX - end.len()).collect();
        format!("{}{end}", kept.trim_end_matches('-'))
    };
    (1..).map(numbered).find(|slug| !taken.contains_key(slug)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_what_bencher_takes_and_never_the_same() {
        let mut taken = Map::new();
        let long = format!("{}_s", "x".repeat(80));
        for (id, end, slug) in [
            ("response_time_p50_s", "", "response-time-p50-s".to_owned()),
            ("response_time_p50_s", EFFECT, "response-time-p50-s-effect".to_owned()),
            ("Response Time (p50), s", "", "response-time-p50-s-2".to_owned()),
            ("$.jobs[0].iops", "", "jobs-0-iops".to_owned()),
            ("\u{65e5}\u{672c}", "", "metric".to_owned()),
            (&long, EFFECT, format!("{}-effect", "x".repeat(57))),
        ] {
            assert_eq!(unused(&taken, id, end), slug);
            taken.insert(slug, Value::Null);
        }
    }
}
