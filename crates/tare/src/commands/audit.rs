//! `tare audit`.

use std::path::Path;

use serde_json::json;
use tare_model::audit::{AuditEntry, AuditOutcome};
use tare_model::findings::Findings;
use tare_report::Page;

use crate::args::AuditArguments;
use crate::commands::report::analysed;
use crate::commands::wrapped;
use crate::exit::{Exit, Failure};
use crate::forms::{self, Terminal};

/// The outcomes, the gravest first: name in colour, heading, colour.
const OUTCOMES: [(AuditOutcome, &str, &str); 4] = [
    (AuditOutcome::Broken, "broken: do not base a verdict on it", "31"),
    (AuditOutcome::Reservation, "with a reservation", "33"),
    (AuditOutcome::Unknown, "unknown", "36"),
    (AuditOutcome::Holds, "holds", "32"),
];

/// Entries of one kind that hold and are listed one by one.
const HOLDS_MAX: usize = 2;

/// Looks at runs and prints what was found.
pub fn command(arguments: &AuditArguments) -> Result<Exit, Failure> {
    let mut runs = Vec::new();
    for run in &arguments.runs {
        runs.push((run.as_path(), analysed(run, false)?));
    }
    let all: Vec<_> = runs.iter().map(|(run, findings)| in_json(run, findings)).collect();
    forms::print(arguments.shown.format, &json!({ "runs": all }), |terminal| {
        let texts = runs.iter().map(|(run, findings)| text(run, findings, terminal));
        Page::of_lines("Audit", texts.collect::<Vec<_>>().join("\n"))
    })?;
    let broken =
        runs.iter().flat_map(|(_, findings)| &findings.audit).any(|entry| entry.outcome == AuditOutcome::Broken);
    Ok(if broken { Exit::Broken } else { Exit::Success })
}

fn in_json(run: &Path, findings: &Findings) -> serde_json::Value {
    json!({
        "run": run.display().to_string(),
        "study": findings.plan.study.name,
        "published": findings.plan.study.published.as_ref().map(|published| &published.report),
        "entries": findings.audit,
    })
}

fn text(run: &Path, findings: &Findings, terminal: Terminal) -> String {
    let Terminal { width, colour } = terminal;
    let study = &findings.plan.study;
    let mut text = format!("{}: {}\n", run.display(), study.question);
    for (outcome, heading, code) in OUTCOMES {
        let own: Vec<&AuditEntry> = findings.audit.iter().filter(|entry| entry.outcome == outcome).collect();
        if own.is_empty() {
            continue;
        }
        let heading = format!("{heading} ({})", own.len());
        let heading = if colour { format!("\u{1b}[{code}m{heading}\u{1b}[0m") } else { heading };
        text.push_str(&format!("\n{heading}\n"));
        for alike in alike(&own) {
            text.push_str(&lines(findings, &alike, outcome, width));
        }
    }
    if findings.audit.is_empty() {
        text.push_str("\nthere is nothing to check\n");
    }
    text
}

/// Entries of one check with one consequence, in the order of the first of each.
fn alike<'a>(entries: &[&'a AuditEntry]) -> Vec<Vec<&'a AuditEntry>> {
    let mut groups: Vec<Vec<&AuditEntry>> = Vec::new();
    for entry in entries {
        let same = |own: &&mut Vec<&AuditEntry>| own[0].check == entry.check && own[0].consequence == entry.consequence;
        match groups.iter_mut().find(same) {
            Some(group) => group.push(entry),
            None => groups.push(vec![entry]),
        }
    }
    groups
}

/// `  check, case, arms: detail`, a line an entry, and what follows from them below. Of what holds the first of many is enough.
fn lines(findings: &Findings, alike: &[&AuditEntry], outcome: AuditOutcome, width: usize) -> String {
    let shown = if outcome == AuditOutcome::Holds && alike.len() > HOLDS_MAX { 1 } else { alike.len() };
    let mut text = String::new();
    for (at, entry) in alike[..shown].iter().enumerate() {
        let more = if at + 1 == shown && shown < alike.len() {
            format!(" And {} more of the same kind (all: --format json).", alike.len() - shown)
        } else {
            String::new()
        };
        let line = format!("{}: {}{more}", place(findings, entry), entry.detail);
        text.push_str(&wrapped(&line, width, "  ", "      "));
    }
    if !alike[0].consequence.is_empty() {
        text.push_str(&wrapped(&format!("-> {}", alike[0].consequence), width, "      ", "         "));
    }
    text
}

/// `check, case, arms`.
fn place(findings: &Findings, entry: &AuditEntry) -> String {
    let named = &findings.plan.study.arms;
    let arms: Vec<&str> = entry
        .arms
        .iter()
        .map(|id| named.iter().find(|arm| arm.id == *id).map_or(id.as_str(), |arm| arm.label.as_str()))
        .collect();
    let arms = arms.join(" and ");
    let mut place = vec![entry.check.name(), &entry.case, &arms];
    place.retain(|part| !part.is_empty());
    place.join(", ")
}
