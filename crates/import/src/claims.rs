//! What reports say of their figures: of those that are known, and of those that a user describes.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use tare_model::published::{Claim, ClaimKind, PrintedTotal, Published};
use tare_model::study::Study;

use crate::error::ImportError;
use crate::table::{Format, Table};

/// Name of the file beside the tables in which a user tells what their report says.
pub const FILE: &str = "claims.toml";

/// The reports that tare knows.
const KNOWN: &str = include_str!("claims.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    report: Vec<Report>,
}

/// What one report says.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Report {
    /// Format of the table that it is known by.
    format: Format,
    /// SHA-256 of that table; without it, any of this format.
    sha256: Option<String>,
    /// Number or short name: letters, digits and `-`.
    name: String,
    title: String,
    /// The arm that others are compared with; without it, the first in the table.
    baseline: Option<String>,
    /// Names of arms for people, by id.
    #[serde(default)]
    arms: BTreeMap<String, String>,
    #[serde(default)]
    printed: Vec<PrintedTotal>,
    #[serde(default)]
    claims: Vec<Claim>,
    #[serde(default)]
    conditions: Vec<String>,
}

/// What is known of the report that some tables are from.
pub(crate) struct KnownReport {
    pub published: Published,
    /// The arm that others are compared with.
    baseline: Option<String>,
    /// Names of arms for people, by id.
    arms: BTreeMap<String, String>,
    /// Whether anything is known beside the tables.
    pub known: bool,
}

impl KnownReport {
    /// Gives the study the baseline and the names of the report.
    pub(crate) fn name(&self, study: &mut Study) {
        if let Some(baseline) = &self.baseline {
            study.baseline.clone_from(baseline);
            study.arms.sort_by_key(|arm| arm.id != *baseline);
        }
        for arm in &mut study.arms {
            if let Some(label) = self.arms.get(&arm.id) {
                arm.label.clone_from(label);
            }
        }
    }
}

/// What is known of the report that these tables are from.
pub(crate) fn of(tables: &[&Table], beside: Option<(&Path, &str)>) -> Result<KnownReport, ImportError> {
    let own = match beside {
        Some((file, text)) => parsed(file, text)?,
        None => Vec::new(),
    };
    let known = parsed(Path::new(FILE), KNOWN)?;
    let is_of = |report: &&Report| {
        tables.iter().any(|table| {
            table.format == report.format && report.sha256.as_ref().is_none_or(|sha256| *sha256 == table.sha256)
        })
    };
    // What a user says of their own tables goes before what is known of them.
    let found = own.iter().chain(&known).find(is_of);
    let mut published = Published {
        files: tables.iter().map(|table| (table.name(), table.sha256.clone())).collect(),
        ..Published::default()
    };
    match found {
        Some(report) => {
            published.report.clone_from(&report.name);
            published.title.clone_from(&report.title);
            published.printed.clone_from(&report.printed);
            published.claims.clone_from(&report.claims);
            published.conditions.clone_from(&report.conditions);
        }
        None => {
            published.report = subject(tables).to_owned();
            published.title = format!("Figures of a report that is not named, from {}", names(tables));
        }
    }
    let arms = found.map(|report| report.arms.clone()).unwrap_or_default();
    let baseline = found.and_then(|report| report.baseline.clone());
    Ok(KnownReport { published, baseline, arms, known: found.is_some() })
}

const fn subject_of(format: Format) -> &'static str {
    match format {
        Format::Density => "density",
        Format::WebIterations | Format::WebLatency | Format::WebThroughput => "web",
        Format::Store => "store",
    }
}

fn subject(tables: &[&Table]) -> &'static str {
    tables.first().map_or("report", |table| subject_of(table.format))
}

fn names(tables: &[&Table]) -> String {
    tables.iter().map(|table| table.name()).collect::<Vec<_>>().join(", ")
}

fn parsed(file: &Path, text: &str) -> Result<Vec<Report>, ImportError> {
    let wrong = |what: String| ImportError::Claims { file: file.to_owned(), what };
    let claims: Claims = toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
    for report in &claims.report {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if report.name.is_empty() || report.name.len() > 32 || !report.name.chars().all(fits) {
            return Err(wrong(format!(
                "`{}` is not the name of a report: use 1 to 32 letters, digits and `-`",
                report.name
            )));
        }
    }
    Ok(claims.report)
}

/// Refuses a baseline and claims of cases and arms that the tables do not have.
pub(crate) fn check(study: &Study, beside: Option<&Path>) -> Result<(), ImportError> {
    let (Some(published), Some(file)) = (&study.published, beside) else { return Ok(()) };
    let claimed = published.claims.iter().flat_map(|claim| match &claim.kind {
        ClaimKind::Percent { case, arm, than, .. } => vec![(case.as_str(), arm), (case.as_str(), than)],
        ClaimKind::Rate { case, arm, .. } => vec![(case.as_str(), arm)],
        // Of all cases.
        ClaimKind::Score { arm, .. } => vec![("", arm)],
    });
    let printed = published.printed.iter().map(|total| (total.case.as_str(), &total.arm));
    let compared = std::iter::once(("", &study.baseline));
    let cases: Vec<&str> = study.cases.iter().map(|case| case.id.as_str()).collect();
    let arms: Vec<&str> = study.arms.iter().map(|arm| arm.id.as_str()).collect();
    for (case, arm) in compared.chain(claimed).chain(printed) {
        let strange = if !case.is_empty() && !cases.contains(&case) {
            format!("it names the case `{case}`")
        } else if !arms.contains(&arm.as_str()) {
            format!("it names the arm `{arm}`")
        } else {
            continue;
        };
        let (cases, arms) = (cases.join(", "), arms.join(", "));
        let what = format!("{strange}, which the tables do not have: there are the cases {cases} and the arms {arms}");
        return Err(ImportError::Claims { file: file.to_owned(), what });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_reads() {
        let known = parsed(Path::new(FILE), KNOWN).unwrap();
        assert_eq!(known.iter().map(|report| report.name.as_str()).collect::<Vec<_>>(), ["000", "002", "004"]);
        assert!(known.iter().all(|report| report.sha256.as_ref().is_some_and(|sha256| sha256.len() == 64)));
    }
}
