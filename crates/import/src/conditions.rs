//! What reports disclose of their conditions.

use std::collections::BTreeSet;

use tare_model::published::Condition;
use tare_model::study::Study;

use crate::error::ImportError;
use crate::table::Table;

/// The conditions that these tables have of a report, in the order of files and lines. A line of the same source that tells
/// the same a second time is refused; two sources may, and may contradict each other: the audit finds that.
pub(crate) fn of(tables: &[&Table], report: &str, study: &Study) -> Result<Vec<Condition>, ImportError> {
    let cases: BTreeSet<&str> = study.cases.iter().map(|case| case.id.as_str()).collect();
    let arms: BTreeSet<&str> = study.arms.iter().map(|arm| arm.id.as_str()).collect();
    let mut found = Vec::new();
    for table in tables {
        table.unique(&["report", "case", "arm", "subject", "what", "source"])?;
        for row in table.of_report(report) {
            let named = |column: &str, known: &BTreeSet<&str>| {
                let name = table.name_or_all(row, column)?;
                if name.is_empty() || known.contains(name) {
                    return Ok(name.to_owned());
                }
                let known: Vec<&str> = known.iter().copied().collect();
                let what = format!("report {report} has no {column} `{name}`");
                let remedy = format!("There are {}; leave the cell empty for all", known.join(", "));
                Err(table.wrong(row, column, what, &remedy))
            };
            let words = |column: &str| table.words(row, column).map(str::to_owned);
            found.push(Condition {
                case: named("case", &cases)?,
                arm: named("arm", &arms)?,
                subject: words("subject")?,
                what: words("what")?,
                value: words("value")?,
                unit: table.unit(row)?.0.to_owned(),
                source: source(&words("source")?),
            });
        }
    }
    Ok(found)
}

/// A bare number is a line of the report.
fn source(text: &str) -> String {
    if text.chars().all(|c| c.is_ascii_digit()) { format!("line {text}") } else { text.to_owned() }
}

/// Refuses lines of a report that no other file is of.
pub(crate) fn check(tables: &[&Table], reports: &[String]) -> Result<(), ImportError> {
    for (table, row) in tables.iter().flat_map(|table| table.rows.iter().map(move |row| (table, row))) {
        let report = table.name_in(row, "report")?;
        if !reports.iter().any(|known| known == report) {
            let what = format!("there are no figures of a report `{report}`");
            let remedy =
                format!("Name the file of its figures as well; of those that were read: {}", reports.join(", "));
            return Err(table.wrong(row, "report", what, &remedy));
        }
    }
    Ok(())
}
