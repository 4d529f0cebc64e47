//! `tare compare`.

use std::path::Path;

use tare_analysis::{Compared, RunComparison};
use tare_model::findings::Findings;
use tare_report::{ComparisonRow, ComparisonTable};

use crate::args::{CompareArguments, Format};
use crate::commands::report::{analysed, colour, width};
use crate::exit::{Exit, Failure};
use crate::output;

/// Sets one run against another.
pub fn command(arguments: &CompareArguments) -> Result<Exit, Failure> {
    let before = analysed(&arguments.before, false)?;
    let after = analysed(&arguments.after, false)?;
    let compared = tare_analysis::compare(&before, &after).map_err(|error| Failure::new(error, Exit::Usage))?;
    let labels = labels((&arguments.before, &before), (&arguments.after, &after));
    let table = table(compared, &before, labels);
    let failed = |error: tare_report::ReportError| Failure::new(error, Exit::Failure);
    let text = match arguments.format {
        Format::Html => tare_report::comparison_html(&table).map_err(failed)?,
        Format::Markdown => tare_report::comparison_markdown(&table),
        Format::Json => serde_json::to_string_pretty(&table).map_err(|error| Failure::new(error, Exit::Failure))?,
        Format::Text => tare_report::comparison_text(&table, width(), colour()),
    };
    output::print(&text)?;
    Ok(Exit::Success)
}

/// The comparison as the report prints it, with the names for people that the first run gives.
fn table(compared: RunComparison, names: &Findings, (a_label, b_label): (String, String)) -> ComparisonTable {
    let mut notes = compared.differences;
    if !compared.same_plan {
        notes.insert(0, "the two runs are of different plans".to_owned());
    }
    let rows = compared
        .rows
        .into_iter()
        .map(|row| {
            let what = match row.compared {
                Compared::Value => row.metric.label,
                Compared::Effect => format!("{} against its own baseline", row.metric.label),
            };
            let place = format!("{}, {}: ", case_label(names, &row.case), row.name);
            // The sentence stands below the label, which names the place.
            let sentence = row.sentence.strip_prefix(place.as_str()).unwrap_or(&row.sentence);
            // The verdict is not repeated, either.
            let sentence = sentence.split_once(": cannot say: ").map_or(sentence, |(_, why)| why).to_owned();
            ComparisonRow {
                label: format!("{place}{what}"),
                unit: row.unit,
                a: Some(row.a.value),
                b: Some(row.b.value),
                // None of what must not be compared.
                ratio: (row.ratio.n > 0).then_some(row.ratio.value),
                low: row.ratio.low,
                high: row.ratio.high,
                verdict: Some(row.verdict),
                sentence,
            }
        })
        .collect();
    let title = format!("{b_label} against {a_label}");
    ComparisonTable { title, a_label, b_label, notes, rows }
}

/// What the two runs are called: by their folders; where those are of one name, as their paths were given; where it is the same run
/// twice, by their place.
fn labels((a, before): (&Path, &Findings), (b, after): (&Path, &Findings)) -> (String, String) {
    let folder = |path: &Path, findings: &Findings| {
        let name =
            std::fs::canonicalize(path).ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        name.unwrap_or_else(|| findings.run.id.clone())
    };
    let (first, second) = (folder(a, before), folder(b, after));
    if first != second {
        return (first, second);
    }
    if a != b {
        return (a.display().to_string(), b.display().to_string());
    }
    (format!("{first} (first)"), format!("{second} (second)"))
}

fn case_label<'a>(names: &'a Findings, id: &'a str) -> &'a str {
    names.cases.iter().find(|case| case.id == id).map_or(id, |case| &case.label)
}
