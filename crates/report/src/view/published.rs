//! Figures that others published: where they are from, and what is claimed of them beside what they come to.

use serde::Serialize;
use tare_model::audit::AuditOutcome;
use tare_model::findings::Findings;
use tare_model::published::{ClaimKind, Published};

use super::case_label;
use super::table::{Cell, Column, Table};
use crate::format;
use crate::words;

/// The banner's words.
pub(crate) const MARK: &str = "Figures published by others, not measured by tare";

/// Where the figures are from.
#[derive(Debug, Serialize)]
pub(crate) struct PublishedView {
    pub(crate) mark: &'static str,
    /// `report 002: ...`.
    pub(crate) source: String,
    /// What this report does not say, and why.
    pub(crate) note: &'static str,
    pub(crate) claims: Option<Table>,
    pub(crate) conditions: Option<Table>,
    pub(crate) files: Option<Table>,
}

impl PublishedView {
    pub(super) fn new(findings: &Findings) -> Option<Self> {
        let source = findings.plan.study.published.as_ref()?;
        Some(Self {
            mark: MARK,
            source: format!("Report {}: {}", source.report, source.title),
            note: "They went through the same analysis as figures measured by tare. What only their authors can know \
                   (fresh instances, the order of runs, the host, what was granted) is unknown here and is left out.",
            claims: claims(source, findings),
            conditions: conditions(source, findings),
            files: files(source),
        })
    }
}

fn files(source: &Published) -> Option<Table> {
    let mut table = Table::new("The files that were read.", ["File", "SHA-256"].map(Column::text).to_vec());
    table.rows = source.files.iter().map(|(name, digest)| vec![Cell::text(name), Cell::code(digest)]).collect();
    table.filled()
}

/// What the report discloses of its conditions. What differs, and what contradicts what, the audit says.
fn conditions(source: &Published, findings: &Findings) -> Option<Table> {
    let columns = ["Case", "Arm", "Of what", "Condition", "As printed", "Where"].map(Column::text).to_vec();
    let mut table = Table::new("Conditions that the report discloses.", columns);
    let arms = &findings.plan.study.arms;
    let label = |id: &str| arms.iter().find(|arm| arm.id == id).map_or_else(|| id.to_owned(), |arm| arm.label.clone());
    for own in &source.conditions {
        let case = if own.case.is_empty() { "every case".to_owned() } else { case_label(findings, &own.case) };
        let arm = if own.arm.is_empty() { "every arm".to_owned() } else { label(&own.arm) };
        let cells = [case.as_str(), arm.as_str(), &own.subject, &own.what, &own.printed(), &own.source].map(Cell::text);
        table.rows.push(cells.to_vec());
    }
    table.filled()
}

/// What the audit made of each claim: it is judged there alone.
fn claims(source: &Published, findings: &Findings) -> Option<Table> {
    let columns = ["Claim", "As published", "Recomputed from the figures", "Verdict"].map(Column::text).to_vec();
    let mut table = Table::new("Claims of the report, and the same recomputed from its figures.", columns);
    for claim in &source.claims {
        let judged = tare_model::audit::of_claim(&findings.audit, claim);
        let (text, outcome) = judged.map_or(("", AuditOutcome::Unknown), |(entry, text)| (text, entry.outcome));
        let verdict = match outcome {
            AuditOutcome::Holds => Cell::chip("follows", "same"),
            AuditOutcome::Reservation => Cell::chip("with a reservation", "unknown"),
            AuditOutcome::Broken => Cell::chip("does not follow", "worse"),
            AuditOutcome::Unknown => Cell::chip("unknown", "unknown"),
        };
        let text = words::sentence_case(text.trim_end_matches('.'));
        let text = if text.is_empty() { Cell::none() } else { Cell::text(text) };
        let consequence = judged.map_or("", |(entry, _)| entry.consequence.as_str());
        let text = Cell { note: consequence.to_owned(), ..text };
        table.rows.push(vec![Cell::text(&claim.text), Cell::text(printed(&claim.kind)), text, verdict]);
    }
    table.filled()
}

fn printed(kind: &ClaimKind) -> String {
    match kind {
        ClaimKind::Percent { percent, .. } => format!("{} %", format::trimmed(*percent)),
        ClaimKind::Rate { per_s, .. } => format!("{} a second", format::trimmed(*per_s)),
        ClaimKind::Score { score, .. } => format::trimmed(*score),
        ClaimKind::Times { times, .. } => format!("{} times", format::trimmed(*times)),
        ClaimKind::Share { percent, .. } => format!("{} %", format::trimmed(*percent)),
        ClaimKind::Best { .. } => "best of all".to_owned(),
        ClaimKind::Same { .. } => "the same".to_owned(),
        ClaimKind::Product { .. } => String::new(),
    }
}
