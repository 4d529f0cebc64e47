//! A figure out of what a command printed.

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json_path::JsonPath;
use tare_model::field::FieldError;
use tare_model::metric::{Better, MetricSpec, Unit};

/// How a metric is taken from standard output. Exactly one of `regex` and `json` is given.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MetricParameters {
    /// Regular expression; its first group is the figure. The last match counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// JSON path (RFC 9535) into the output, which must be one JSON document, such as `$.jobs[0].read.iops`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<String>,
    /// Unit, as it shall be shown.
    pub unit: String,
    /// Whether `lower` or `higher` is better.
    pub better: Better,
    /// Name for people; absent: the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

impl MetricParameters {
    /// The metric as analysis and report know it.
    pub fn spec(&self, id: &str) -> MetricSpec {
        let unit = match self.unit.as_str() {
            "s" => Unit::Seconds,
            "bit/s" => Unit::BitsPerSecond,
            "B" => Unit::Bytes,
            other => Unit::Other(other.to_owned()),
        };
        MetricSpec::new(id, self.label.as_deref().unwrap_or(id), unit, self.better)
    }
}

/// A checked way to take a figure.
#[derive(Debug, Clone)]
pub enum Extractor {
    /// By the first group of the last match.
    Regex(Regex),
    /// By the one value at a path.
    Json(JsonPath),
}

impl Extractor {
    /// Checks what the study says.
    pub fn new(parameters: &MetricParameters) -> Result<Self, FieldError> {
        match (&parameters.regex, &parameters.json) {
            (Some(pattern), None) => {
                let regex = Regex::new(pattern)
                    .map_err(|error| FieldError::new(&["regex"], format!("not a regular expression: {error}")))?;
                if regex.captures_len() < 2 {
                    return Err(FieldError::new(&["regex"], "it has no group, so it is not said where the figure is")
                        .help("put the figure in parentheses: \"events per second: +([0-9.]+)\""));
                }
                Ok(Self::Regex(regex))
            }
            (None, Some(path)) => JsonPath::parse(path)
                .map(Self::Json)
                .map_err(|error| FieldError::new(&["json"], format!("not a JSON path: {error}"))),
            _ => Err(FieldError::new(&[], "a metric is taken by `regex` or by `json`, one of the two")),
        }
    }

    /// The figure, or why there is none.
    pub fn extract(&self, output: &str) -> Result<f64, String> {
        let text = match self {
            Self::Regex(regex) => regex
                .captures_iter(output)
                .last()
                .and_then(|captures| captures.get(1).map(|group| group.as_str().to_owned()))
                .ok_or_else(|| format!("the regular expression `{regex}` matches nowhere"))?,
            Self::Json(path) => {
                let document: serde_json::Value =
                    serde_json::from_str(output).map_err(|error| format!("the output is not JSON: {error}"))?;
                let found = path.query(&document).exactly_one().map_err(|error| error.to_string())?;
                found.as_str().map_or_else(|| found.to_string(), str::to_owned)
            }
        };
        match text.trim().parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(value),
            _ => Err(format!("`{text}` is not a number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(regex: Option<&str>, json: Option<&str>) -> Result<Extractor, FieldError> {
        Extractor::new(&MetricParameters {
            regex: regex.map(str::to_owned),
            json: json.map(str::to_owned),
            unit: "events/s".into(),
            better: Better::Higher,
            label: None,
        })
    }

    #[test]
    fn the_last_match_and_the_one_value_at_a_path_count() {
        let events = by(Some(r"events: +([0-9.]+)"), None).unwrap();
        assert_eq!(events.extract("events: 1\nevents:  2.5\n"), Ok(2.5));
        let iops = by(None, Some("$.jobs[0].read.iops")).unwrap();
        assert_eq!(iops.extract(r#"{"jobs":[{"read":{"iops":12.5}}]}"#), Ok(12.5));
        let text = by(None, Some("$.rate")).unwrap();
        assert_eq!(text.extract(r#"{"rate":"7"}"#), Ok(7.0));
    }

    #[test]
    fn no_figure_is_an_error_that_says_why_never_a_zero() {
        let events = by(Some("events: (.*)"), None).unwrap();
        assert!(events.extract("nothing here").unwrap_err().contains("matches nowhere"));
        assert!(events.extract("events: many").unwrap_err().contains("`many` is not a number"));
        assert!(events.extract("events: nan").unwrap_err().contains("not a number"));
        let iops = by(None, Some("$.jobs[*].iops")).unwrap();
        assert!(iops.extract("not json").unwrap_err().contains("not JSON"));
        assert!(iops.extract(r#"{"jobs":[{"iops":1},{"iops":2}]}"#).is_err());
    }

    #[test]
    fn ways_that_lead_nowhere_are_refused_before_anything_runs() {
        assert!(by(Some("no group"), None).unwrap_err().message.contains("no group"));
        assert!(by(Some("("), None).is_err());
        assert!(by(Some("(a)"), Some("$.a")).is_err());
        assert!(by(None, None).is_err());
        assert!(by(None, Some("jobs[")).is_err());
    }
}
