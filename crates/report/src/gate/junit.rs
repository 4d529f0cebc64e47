//! A gate as JUnit XML, in the form that the readers of continuous integration have in common: a test suite for each run, a test case for
//! each comparison.

use std::io;

use quick_xml::Writer;
use quick_xml::events::BytesText;
use tare_model::findings::{Gate, GateOutcome, GatedComparison, GatedRun};
use tare_model::text::is_unfit;

use super::{difference, said};
use crate::error::ReportError;

/// What a test case is for its reader.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Passed,
    /// A regression is proven.
    Failure,
    /// The gate fails on it, though nothing is proven.
    Error,
    Skipped,
}

impl Case {
    fn of(gate: &Gate, own: &GatedComparison) -> Self {
        match own.outcome {
            GateOutcome::Within => Self::Passed,
            GateOutcome::Worse => Self::Failure,
            outcome if gate.fails_on.contains(&outcome) => Self::Error,
            _ => Self::Skipped,
        }
    }
}

/// The gate as JUnit XML. A proven regression is a failure with its ratio and interval; a comparison without a clear answer is skipped with
/// the reason, or an error where the gate fails on it.
///
/// # Errors
/// When it cannot be written as XML, which would be a defect of this crate.
pub fn junit(gate: &Gate) -> Result<String, ReportError> {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    suites(&mut writer, gate).map_err(ReportError::Xml)?;
    let text = String::from_utf8(writer.into_inner()).map_err(|error| ReportError::Xml(io::Error::other(error)))?;
    Ok(format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{text}\n"))
}

fn suites(writer: &mut Writer<Vec<u8>>, gate: &Gate) -> io::Result<()> {
    let all: Vec<&GatedComparison> = gate.runs.iter().flat_map(|run| &run.comparisons).collect();
    let wall = gate.runs.iter().map(|run| run.wall_s).sum();
    let attributes = [vec![("name", "tare gate".to_owned())], counts(gate, &all, wall)].concat();
    let element = writer.create_element("testsuites").with_attributes(borrowed(&attributes));
    element.write_inner_content(|writer| gate.runs.iter().try_for_each(|run| suite(writer, gate, run)))?;
    Ok(())
}

/// How many test cases there are of each kind, and the time that the run took, seconds.
fn counts(gate: &Gate, all: &[&GatedComparison], wall: f64) -> Vec<(&'static str, String)> {
    let count = |case: Case| all.iter().filter(|own| Case::of(gate, own) == case).count().to_string();
    vec![
        ("tests", all.len().to_string()),
        ("failures", count(Case::Failure)),
        ("errors", count(Case::Error)),
        ("skipped", count(Case::Skipped)),
        ("time", format!("{wall:.3}")),
    ]
}

fn suite(writer: &mut Writer<Vec<u8>>, gate: &Gate, run: &GatedRun) -> io::Result<()> {
    let all: Vec<&GatedComparison> = run.comparisons.iter().collect();
    let named = vec![("name", plain(&run.study)), ("timestamp", plain(&run.started_at))];
    let attributes = [named, counts(gate, &all, run.wall_s)].concat();
    let element = writer.create_element("testsuite").with_attributes(borrowed(&attributes));
    element.write_inner_content(|writer| {
        writer.create_element("properties").write_inner_content(|writer| {
            let properties = [("folder", &run.folder), ("run", &run.run), ("baseline", &run.baseline)];
            properties.iter().try_for_each(|(name, value)| {
                let element = writer.create_element("property").with_attribute(("name", *name));
                element.with_attribute(("value", plain(value).as_str())).write_empty().map(|_| ())
            })
        })?;
        all.iter().try_for_each(|own| test_case(writer, gate, run, own))
    })?;
    Ok(())
}

fn test_case(writer: &mut Writer<Vec<u8>>, gate: &Gate, run: &GatedRun, own: &GatedComparison) -> io::Result<()> {
    // Readers group by class, whose parts are divided by dots.
    let class = [&run.study, own.case.as_ref().unwrap_or(&run.study)].map(|name| plain(name).replace('.', "_"));
    let class = if own.case.is_some() { class.join(".") } else { class[0].clone() };
    let name = [own.arm.as_str(), own.metric.as_str()].into_iter().filter(|part| !part.is_empty());
    let name = plain(&name.collect::<Vec<_>>().join(": "));
    // A comparison has no time of its own: the suite has the time of the run.
    let attributes = [("classname", class.as_str()), ("name", name.as_str()), ("time", "0")];
    let element = writer.create_element("testcase").with_attributes(attributes);
    let case = Case::of(gate, own);
    let (kind, details) = match case {
        Case::Passed => {
            let text = plain(&said(run, own));
            return element
                .write_inner_content(|writer| {
                    writer.create_element("system-out").write_text_content(BytesText::new(&text)).map(|_| ())
                })
                .map(|_| ());
        }
        Case::Failure => ("failure", details(run, own)),
        Case::Error => ("error", details(run, own)),
        Case::Skipped => ("skipped", String::new()),
    };
    let message = plain(&said(run, own));
    element.write_inner_content(|writer| {
        let element = writer.create_element(kind).with_attribute(("message", message.as_str()));
        if case == Case::Skipped {
            return element.write_empty().map(|_| ());
        }
        let named = super::word(own.outcome);
        element.with_attribute(("type", named)).write_text_content(BytesText::new(&details)).map(|_| ())
    })?;
    Ok(())
}

/// The figures of a test case that did not pass, a line each.
fn details(run: &GatedRun, own: &GatedComparison) -> String {
    let ratio = own.ratio.as_ref();
    let interval = ratio.and_then(|ratio| {
        let end = |end: Option<f64>| end.map_or_else(|| "open".to_owned(), |end| end.to_string());
        let level = format!("{:.1} %", ratio.level * 100.0);
        (ratio.low.is_some() || ratio.high.is_some())
            .then(|| format!("{level} interval: {} to {}", end(ratio.low), end(ratio.high)))
    });
    let lines = [
        Some(own.label.clone()),
        difference(own).map(|change| format!("difference to {}: {change}", run.baseline)),
        ratio.map(|ratio| format!("ratio: {}", ratio.value)),
        interval,
        own.p_worse.map(|p| format!("corrected probability by chance: {p:.4}")),
        Some(own.reason.clone()),
    ];
    lines.into_iter().flatten().map(|line| format!("{}\n", plain(&line))).collect()
}

/// Text of characters that XML 1.0 allows, in one line.
fn plain(text: &str) -> String {
    let is_none_of_xml = |c: char| is_unfit(c) || matches!(c, '\u{fffe}' | '\u{ffff}');
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => ' ',
            c if is_none_of_xml(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        })
        .collect()
}

fn borrowed<'a>(attributes: &'a [(&'static str, String)]) -> impl Iterator<Item = (&'a str, &'a str)> {
    attributes.iter().map(|(name, value)| (*name, value.as_str()))
}
