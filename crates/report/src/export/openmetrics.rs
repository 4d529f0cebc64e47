//! OpenMetrics 1.0 text (<https://github.com/OpenObservability/OpenMetrics>, `specification/OpenMetrics.md`), such as for the textfile collector
//! of a Prometheus node exporter.

use std::fmt::Write as _;

use tare_model::findings::{Estimate, Findings};
use tare_model::metric::Unit;
use tare_model::text::readable;

use super::Figure;

/// What the name of a family has in its middle, what its help adds, and the figure of an estimate.
type Part = (&'static str, &'static str, fn(&Estimate) -> Option<f64>);

/// The families of one unit: what their names begin with, the unit that they end in, what they are, and the samples.
struct Families<'a> {
    stem: &'static str,
    unit: &'static str,
    help: &'static str,
    samples: Vec<(String, &'a Estimate)>,
}

/// The figures as gauges with the labels study, case, arm and metric: `tare_effect_ratio` and by unit `tare_value_...`, each with families of
/// its own for both ends of the interval.
pub fn openmetrics(findings: &Findings, figures: &[Figure<'_>]) -> String {
    let study = &findings.plan.study;
    let labels = |figure: &Figure<'_>, more: &[(&str, &str)]| {
        let own = [("study", study.name.as_str()), ("case", figure.case.unwrap_or("")), ("arm", figure.arm)];
        labels(&[&own[..], &[("metric", figure.spec.id.as_str())], more].concat())
    };
    let against = [("baseline", study.baseline.as_str())];
    let effects = figures.iter().filter_map(|own| Some((labels(own, &against), own.effect?)));
    let effects = Families {
        stem: "tare_effect",
        unit: "ratio",
        help: "Value of the arm over the value of the baseline of the same run",
        samples: effects.collect(),
    };
    let mut families = vec![effects];
    for figure in figures {
        let Some(value) = figure.value else { continue };
        let unit = unit(&figure.spec.unit);
        let more = match &figure.spec.unit {
            Unit::Other(name) => vec![("unit", name.as_str())],
            _ => Vec::new(),
        };
        let sample = (labels(figure, &more), value);
        match families.iter_mut().find(|own| own.stem == "tare_value" && own.unit == unit) {
            Some(family) => family.samples.push(sample),
            None => families.push(Families {
                stem: "tare_value",
                unit,
                help: "Value of the metric on the arm",
                samples: vec![sample],
            }),
        }
    }
    let mut out = String::new();
    families.iter().for_each(|family| family.write(&mut out));
    if let Ok(started) = findings.run.started_at.parse::<jiff::Timestamp>() {
        let sample = (labels_of_run(findings), started.as_second() as f64);
        let name = "tare_run_start_seconds";
        head(&mut out, name, "seconds", "When the run began, Unix time");
        let _ = writeln!(out, "{name}{} {:?}", sample.0, sample.1);
    }
    out.push_str("# EOF\n");
    out
}

impl Families<'_> {
    /// The estimates, and both ends of their intervals as far as there are any.
    fn write(&self, out: &mut String) {
        let Self { stem, unit, help, samples } = self;
        let parts: [Part; 3] = [
            ("", "", |own| Some(own.value)),
            ("_low", ", lower end of its interval", |own| own.low),
            ("_high", ", upper end of its interval", |own| own.high),
        ];
        for (part, which, of) in parts {
            let found: Vec<(&String, f64)> =
                samples.iter().filter_map(|(labels, own)| Some((labels, of(own)?))).collect();
            if found.is_empty() {
                continue;
            }
            let end = if unit.is_empty() { String::new() } else { format!("_{unit}") };
            let name = format!("{stem}{part}{end}");
            head(out, &name, unit, &format!("{help}{which}"));
            for (labels, value) in found {
                let _ = writeln!(out, "{name}{labels} {value:?}");
            }
        }
    }
}

fn head(out: &mut String, name: &str, unit: &str, help: &str) {
    let _ = writeln!(out, "# TYPE {name} gauge");
    if !unit.is_empty() {
        let _ = writeln!(out, "# UNIT {name} {unit}");
    }
    let _ = writeln!(out, "# HELP {name} {}.", escaped(help));
}

fn labels_of_run(findings: &Findings) -> String {
    let run = &findings.run;
    let own = [("study", findings.plan.study.name.as_str()), ("run", &run.id), ("tare_version", &run.tare_version)];
    labels(&own)
}

/// An empty label is the same as none.
fn labels(all: &[(&str, &str)]) -> String {
    let present = all.iter().filter(|(_, value)| !value.is_empty());
    let written: Vec<String> = present.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", written.join(","))
}

/// Text as the format has it: line feeds, quotes and backslashes escaped, and no carriage return.
fn escaped(text: &str) -> String {
    readable(text).replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"")
}

/// The unit with which the name of a family ends; a bare number and a unit of the user's own have none.
const fn unit(unit: &Unit) -> &'static str {
    match unit {
        Unit::Seconds => "seconds",
        Unit::OperationsPerSecond => "operations_per_second",
        Unit::BitsPerSecond => "bits_per_second",
        Unit::CpuSecondsPerOperation => "cpu_seconds_per_operation",
        Unit::CpuSecondsPerByte => "cpu_seconds_per_byte",
        Unit::Bytes => "bytes",
        Unit::Share => "ratio",
        Unit::Count | Unit::Other(_) => "",
    }
}
