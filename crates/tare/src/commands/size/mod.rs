//! `tare size`.

mod text;

use serde_json::json;
use tare_analysis::{Sizing, qos_metric};
use tare_model::findings::{Findings, SizeCheck, SizeQuestion};
use tare_model::units::Span;
use tare_report::Page;

use crate::args::SizeArguments;
use crate::commands::report::analysed;
use crate::exit::{Exit, Failure};
use crate::forms::{self, Terminal};

/// Sizes by a run and prints what comes of it.
pub fn command(arguments: &SizeArguments) -> Result<Exit, Failure> {
    let wrong = |message: String| Failure::new(message, Exit::Usage);
    // Faults of the command line are reported before anything is read.
    let headroom = share(&arguments.headroom).map_err(wrong)?;
    let asked = arguments.qos.as_deref().map(pair).transpose().map_err(wrong)?;
    let findings = analysed(&arguments.run, false)?;
    let question = SizeQuestion {
        qos: asked.map(|asked| objective(&findings, asked)).transpose().map_err(wrong)?,
        headroom,
        load_per_instance: arguments.load_per_instance,
        total_load: arguments.total,
    };
    let sizing = tare_analysis::size(&findings, &question, arguments.arm.as_deref())
        .map_err(|error| Failure::new(error, Exit::Usage))?;
    let answer = json!({ "run": arguments.run.display().to_string(), "sizing": sizing });
    forms::print(arguments.shown.format, &answer, |Terminal { width, colour }| {
        let title = format!("Sizing by {}", arguments.run.display());
        Page::of_lines(title, text::text(&arguments.run, &findings, &sizing, width, colour))
    })?;
    Ok(exit(&sizing, arguments.check))
}

/// 0, because a refusal with its reason is an answer; with `--check` 5 where a held-out case was not predicted, or there is none, or an
/// arm has no models that could be checked.
fn exit(sizing: &Sizing, check: bool) -> Exit {
    let arms = || sizing.models.iter().flat_map(|group| &group.arms);
    let mut checks = arms().flat_map(|arm| &arm.checks).peekable();
    let unproved = checks.peek().is_none() || arms().any(|arm| arm.refused.is_some());
    if check && (unproved || checks.any(|own| !holds(own))) { Exit::Broken } else { Exit::Success }
}

/// Whether a held-out case was predicted as closely as it is asked to be.
fn holds(check: &SizeCheck) -> bool {
    check.refused.is_none() && check.cpu_within && check.response_within != Some(false)
}

/// The name of a metric, and its largest value as it is written.
type Asked<'a> = (&'a str, &'a str);

fn pair(text: &str) -> Result<Asked<'_>, String> {
    let parts = text.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
    parts.filter(|(name, value)| !name.is_empty() && !value.is_empty()).ok_or_else(|| {
        format!("--qos `{text}` is not METRIC=VALUE: write a metric and its largest value, such as p90=1s")
    })
}

/// The objective that is meant, in seconds.
fn objective(findings: &Findings, (name, value): Asked<'_>) -> Result<(String, f64), String> {
    let metric = qos_metric(findings, name).map_err(|error| format!("--qos: {error}"))?;
    let bound: Span = value.parse().map_err(|error| format!("--qos {name}: {error}"))?;
    if bound == Span::ZERO {
        return Err(format!("--qos {name}: `{value}` must be above 0, such as 1s"));
    }
    Ok((metric.id.clone(), bound.as_secs_f64()))
}

/// `25%`, `25 %` or `0.25`.
fn share(text: &str) -> Result<f64, String> {
    let (number, of) = text.trim().strip_suffix('%').map_or((text.trim(), 1.0), |number| (number.trim_end(), 100.0));
    let value = number.parse::<f64>().ok().map(|value| value / of);
    // A quarter is meant by 25% and by 0.25; whoever writes 25, or 5, means per cent, and would get 26 times the load, or 6.
    value.filter(|value| value.is_finite() && *value >= 0.0 && (of > 1.0 || *value < 1.0)).ok_or_else(|| {
        format!("--headroom `{text}` is neither a share from 0 to 1 nor per cent: write a quarter as 25% or 0.25, and as much again as 100%")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_as_people_write_them() {
        for (text, expected) in [("25%", 0.25), ("25 %", 0.25), (" 0.25 ", 0.25), ("0", 0.0), ("150%", 1.5)] {
            assert!((share(text).unwrap() - expected).abs() < 1e-12, "{text}");
        }
        for bad in ["", "%", "25", "5", "1", "-1%", "nan", "inf%", "a quarter", "25%%"] {
            assert!(share(bad).unwrap_err().contains("25%"), "{bad}");
        }
    }

    #[test]
    fn an_objective_is_a_metric_and_a_value() {
        assert_eq!(pair("p90 = 1s").unwrap(), ("p90", "1s"));
        for bad in ["p90", "=1s", "p90=", "", "="] {
            assert!(pair(bad).unwrap_err().contains("p90=1s"), "{bad}");
        }
    }
}
