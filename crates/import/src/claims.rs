//! What reports say of their figures: of those that are known, and of those that a user describes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tare_model::published::{Claim, ClaimKind, ConditionName, PrintedTotal, Published};
use tare_model::study::Study;
use toml::Spanned;

use crate::error::ImportError;
use crate::figures::{CaseText, Described, FigureText};
use crate::table::{Format, Table};

/// Name of the file beside the tables in which a user tells what their report says.
pub const FILE: &str = "claims.toml";

/// The reports that tare knows.
const KNOWN: &str = include_str!("claims.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    report: Vec<Spanned<Report>>,
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
    /// Cases of a report whose figures stand in its text alone.
    #[serde(default)]
    cases: Vec<CaseText>,
    /// Its figures, by id.
    #[serde(default)]
    figures: BTreeMap<String, FigureText>,
    #[serde(default)]
    printed: Vec<Spanned<PrintedTotal>>,
    /// Read one by one, so that each is refused by its line.
    #[serde(default)]
    claims: Vec<Spanned<toml::Table>>,
}

/// What is known of the report that some tables are from.
pub(crate) struct KnownReport {
    pub published: Published,
    /// Whether anything is known beside the tables.
    pub known: bool,
    /// Whether a user tells it, beside the tables.
    beside: bool,
    /// The file that tells it.
    file: PathBuf,
    /// Line of the report in it, and of each claim.
    line: u64,
    claim_lines: Vec<u64>,
    report: Option<Report>,
}

impl KnownReport {
    /// Gives the study the baseline and the names of the report.
    pub(crate) fn name(&self, study: &mut Study) {
        let Some(report) = &self.report else { return };
        if let Some(baseline) = &report.baseline {
            study.baseline.clone_from(baseline);
            study.arms.sort_by_key(|arm| arm.id != *baseline);
        }
        for arm in &mut study.arms {
            if let Some(label) = report.arms.get(&arm.id) {
                arm.label.clone_from(label);
            }
        }
    }

    /// What is described of figures that have no table.
    pub(crate) fn described(&self) -> Described<'_> {
        static NONE: (Vec<CaseText>, BTreeMap<String, FigureText>, BTreeMap<String, String>) =
            (Vec::new(), BTreeMap::new(), BTreeMap::new());
        match &self.report {
            Some(report) => Described { cases: &report.cases, figures: &report.figures, arms: &report.arms },
            None => Described { cases: &NONE.0, figures: &NONE.1, arms: &NONE.2 },
        }
    }

    fn wrong(&self, line: u64, field: &str, what: String, remedy: String) -> ImportError {
        ImportError::Claim { file: self.file.clone(), line, field: field.to_owned(), what, remedy }
    }
}

/// What is known of the report that these tables are from. `name`: what the tables themselves call it.
pub(crate) fn of(
    tables: &[&Table],
    name: Option<&str>,
    beside: Option<(&Path, &str)>,
) -> Result<KnownReport, ImportError> {
    let is_of = |report: &Report| {
        name.is_none_or(|name| name == report.name)
            && tables.iter().any(|table| {
                table.format == report.format && report.sha256.as_ref().is_none_or(|sha256| *sha256 == table.sha256)
            })
    };
    // What a user says of their own tables goes before what is known of them.
    for (file, text) in beside.into_iter().chain([(Path::new(FILE), KNOWN)]) {
        if let Some(report) = parsed(file, text)?.into_iter().find(|report| is_of(report.get_ref())) {
            return Ok(KnownReport {
                beside: beside.is_some_and(|own| own.0 == file),
                ..known(tables, report, (file, text))?
            });
        }
    }
    let published = Published {
        report: name.unwrap_or_else(|| subject(tables)).to_owned(),
        title: format!("Figures of a report that is not named, from {}", names(tables)),
        files: files(tables),
        ..Published::default()
    };
    let file = PathBuf::from(FILE);
    Ok(KnownReport { published, known: false, beside: false, file, line: 1, claim_lines: Vec::new(), report: None })
}

fn known(tables: &[&Table], report: Spanned<Report>, (file, text): (&Path, &str)) -> Result<KnownReport, ImportError> {
    let line = line_at(text, report.span().start);
    let report = report.into_inner();
    let (mut claims, mut claim_lines) = (Vec::new(), Vec::new());
    for own in &report.claims {
        let line = line_at(text, own.span().start);
        claims.push(claim(own.get_ref(), file, line)?);
        claim_lines.push(line);
    }
    let published = Published {
        report: report.name.clone(),
        title: report.title.clone(),
        files: files(tables),
        printed: report.printed.iter().map(|own| own.get_ref().clone()).collect(),
        claims,
        ..Published::default()
    };
    Ok(KnownReport {
        published,
        known: true,
        beside: false,
        file: file.to_owned(),
        line,
        claim_lines,
        report: Some(report),
    })
}

/// One claim. A percentage or a multiple says of what it is.
fn claim(table: &toml::Table, file: &Path, line: u64) -> Result<Claim, ImportError> {
    let wrong = |field: &str, what: String, remedy: &str| {
        let (field, remedy) = (field.to_owned(), remedy.to_owned());
        ImportError::Claim { file: file.to_owned(), line, field, what, remedy }
    };
    let kind = table.get("kind").and_then(toml::Value::as_table);
    for (name, own) in kind.into_iter().flatten() {
        let of = own.get("than");
        let empty = of.is_none_or(|of| of.as_str() == Some("") || of.as_table().is_some_and(toml::Table::is_empty));
        if ["percent", "times", "share"].contains(&name.as_str()) && empty {
            let what = format!("the claim is a `{name}` without a base");
            return Err(wrong(
                "than",
                what,
                "Name what it is of: the arm that the figure is compared with, or the whole",
            ));
        }
    }
    Claim::deserialize(table.clone()).map_err(|error| {
        // The message names the field in backquotes.
        let field = error.message().split('`').nth(1).unwrap_or("kind").to_owned();
        wrong(
            &field,
            error.message().to_owned(),
            "docs/reference/published.md has the kinds of claims and their fields",
        )
    })
}

/// Line of a place in a text, from 1.
fn line_at(text: &str, at: usize) -> u64 {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count() as u64
}

fn files(tables: &[&Table]) -> Vec<(String, String)> {
    tables.iter().map(|table| (table.name(), table.sha256.clone())).collect()
}

const fn subject_of(format: Format) -> &'static str {
    match format {
        Format::Density => "density",
        Format::WebIterations | Format::WebLatency | Format::WebThroughput | Format::WebErrors => "web",
        Format::Store => "store",
        Format::Figures | Format::Conditions => "figures",
    }
}

fn subject(tables: &[&Table]) -> &'static str {
    tables.first().map_or("report", |table| subject_of(table.format))
}

fn names(tables: &[&Table]) -> String {
    tables.iter().map(|table| table.name()).collect::<Vec<_>>().join(", ")
}

fn parsed(file: &Path, text: &str) -> Result<Vec<Spanned<Report>>, ImportError> {
    let wrong = |at: usize, what: String| ImportError::Claims { file: file.to_owned(), line: line_at(text, at), what };
    let claims: Claims = toml::from_str(text)
        .map_err(|error| wrong(error.span().map_or(0, |span| span.start), error.message().to_owned()))?;
    for report in &claims.report {
        let (at, name) = (report.span().start, &report.get_ref().name);
        if !is_name(name) {
            return Err(wrong(at, format!("`{name}` is not the name of a report: use {NAME_FITS}")));
        }
    }
    Ok(claims.report)
}

/// What the name of a report may be.
pub(crate) const NAME_FITS: &str = "1 to 32 letters, digits and `-`";

/// Whether it may name a report, and the study and the folder that are made of it.
pub(crate) fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
    !name.is_empty() && name.len() <= 32 && name.chars().all(fits)
}

/// Refuses a baseline, totals and claims of cases, arms and conditions that the tables do not have.
pub(crate) fn check(study: &Study, known: &KnownReport) -> Result<(), ImportError> {
    // Of a report that tare knows a user may have some of the tables alone.
    let (Some(published), true) = (&study.published, known.beside) else { return Ok(()) };
    let cases: Vec<&str> = study.cases.iter().map(|case| case.id.as_str()).collect();
    let arms: Vec<&str> = study.arms.iter().map(|arm| arm.id.as_str()).collect();
    let there = |line: u64, field: &str, name: &str, all: &[&str], of: &str| {
        if name.is_empty() || all.contains(&name) {
            return Ok(());
        }
        let what = format!("it names the {of} `{name}`, which the tables do not have");
        Err(known.wrong(line, field, what, format!("There are {}", all.join(", "))))
    };
    there(known.line, "baseline", &study.baseline, &arms, "arm")?;
    // Those of the tables are of their own cases and arms.
    for total in published.printed.iter().filter(|total| total.place.is_none()) {
        there(known.line, "printed.case", &total.case, &cases, "case")?;
        there(known.line, "printed.arm", &total.arm, &arms, "arm")?;
    }
    for (claim, line) in published.claims.iter().zip(&known.claim_lines) {
        let (case, own, than) = named(&claim.kind);
        there(*line, "case", case, &cases, "case")?;
        there(*line, "arm", own, &arms, "arm")?;
        there(*line, "than", than, &arms, "arm")?;
        for name in conditions(&claim.kind) {
            if !published.conditions.iter().any(|own| name.is_of(own)) {
                let what =
                    format!("there is no condition `{}` of `{}` in this case and on this arm", name.what, name.subject);
                return Err(known.wrong(*line, "what", what, "Name it as the file of conditions does".to_owned()));
            }
        }
    }
    Ok(())
}

/// Case, arm and base of a claim, as far as it must name those that the tables have.
fn named(kind: &ClaimKind) -> (&str, &str, &str) {
    match kind {
        ClaimKind::Percent { case, arm, than, .. } | ClaimKind::Times { case, arm, than, .. } => (case, arm, than),
        ClaimKind::Rate { case, arm, .. } => (case, arm, ""),
        // Of all cases, or of one that has no figures.
        ClaimKind::Score { arm, .. } | ClaimKind::Best { arm, .. } => ("", arm, ""),
        ClaimKind::Same { .. } | ClaimKind::Product { .. } | ClaimKind::Share { .. } => ("", "", ""),
    }
}

/// The conditions that a claim names.
fn conditions(kind: &ClaimKind) -> Vec<&ConditionName> {
    match kind {
        ClaimKind::Product { factors, whole, .. } => factors.iter().chain([whole]).collect(),
        ClaimKind::Share { part, than, .. } => vec![part, than],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_reads() {
        let known = parsed(Path::new(FILE), KNOWN).unwrap();
        assert_eq!(
            known.iter().map(|report| report.get_ref().name.as_str()).collect::<Vec<_>>(),
            ["000", "001", "002", "003", "004"]
        );
        assert!(known.iter().all(|report| report.get_ref().sha256.as_ref().is_some_and(|sha256| sha256.len() == 64)));
    }
}
