//! `tare compare`.

use tare_analysis::{Compared, RunComparison};
use tare_model::findings::Findings;
use tare_report::{ComparisonRow, ComparisonTable};

use crate::args::CompareArguments;
use crate::commands::report::{analysed, colour, width};
use crate::exit::{Exit, Failure};
use crate::output;

/// Sets one run against another.
pub fn command(arguments: &CompareArguments) -> Result<Exit, Failure> {
    let before = analysed(&arguments.before, false)?;
    let after = analysed(&arguments.after, false)?;
    let compared = tare_analysis::compare(&before, &after).map_err(|error| Failure::new(error, Exit::Usage))?;
    let table = table(compared, &before);
    let text = if arguments.markdown {
        tare_report::comparison_markdown(&table)
    } else {
        tare_report::comparison_text(&table, width(), colour())
    };
    output::print(&text)?;
    Ok(Exit::Success)
}

/// The comparison as the report prints it, with the names for people that the first run gives.
fn table(compared: RunComparison, names: &Findings) -> ComparisonTable {
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
            ComparisonRow {
                label: format!("{}, {}: {what}", case_label(names, &row.case), row.name),
                unit: row.unit,
                a: Some(row.a.value),
                b: Some(row.b.value),
                // None of what must not be compared.
                ratio: (row.ratio.n > 0).then_some(row.ratio.value),
                low: row.ratio.low,
                high: row.ratio.high,
                verdict: Some(row.verdict),
                sentence: row.sentence,
            }
        })
        .collect();
    let title = format!("{} against {}", compared.b, compared.a);
    ComparisonTable { title, a_label: compared.a, b_label: compared.b, notes, rows }
}

fn case_label<'a>(names: &'a Findings, id: &'a str) -> &'a str {
    names.cases.iter().find(|case| case.id == id).map_or(id, |case| &case.label)
}
