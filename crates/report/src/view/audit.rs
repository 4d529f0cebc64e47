//! What was looked at before any verdict: what does not hold first, then what is to be known, then what holds.

use serde::Serialize;
use tare_model::audit::{AuditCheck, AuditEntry, AuditOutcome};
use tare_model::findings::Findings;

use super::case_label;
use super::table::{Cell, Column, Table};
use crate::format;
use crate::plot::arms::Arms;
use crate::words;

/// The audit of a run.
#[derive(Debug, Serialize)]
pub(crate) struct AuditView {
    /// How many checks came out how.
    pub(crate) summary: String,
    /// What does not hold, and what holds with a reservation or could not be told.
    pub(crate) told: Vec<EntryView>,
    /// What holds, in short.
    pub(crate) holds: Option<Table>,
}

/// One entry.
#[derive(Debug, Serialize)]
pub(crate) struct EntryView {
    pub(crate) outcome: &'static str,
    pub(crate) class: &'static str,
    /// The check, and what it is about.
    pub(crate) what: String,
    pub(crate) detail: String,
    pub(crate) consequence: String,
    pub(crate) broken: bool,
}

/// The order in which outcomes are told.
const ORDER: [AuditOutcome; 4] =
    [AuditOutcome::Broken, AuditOutcome::Reservation, AuditOutcome::Unknown, AuditOutcome::Holds];

impl AuditView {
    pub(super) fn new(findings: &Findings, arms: &Arms) -> Option<Self> {
        let entries = &findings.audit;
        if entries.is_empty() {
            return None;
        }
        let told = ORDER[..3].iter().flat_map(|outcome| entries.iter().filter(move |entry| entry.outcome == *outcome));
        Some(Self {
            summary: summary(entries),
            told: told.map(|entry| EntryView::new(entry, findings, arms)).collect(),
            holds: holds(entries, findings, arms),
        })
    }
}

impl EntryView {
    fn new(entry: &AuditEntry, findings: &Findings, arms: &Arms) -> Self {
        let (outcome, class) = outcome(entry.outcome);
        let about = about(entry, findings, arms);
        let what =
            if about.is_empty() { name(entry.check).to_owned() } else { format!("{} ({about})", name(entry.check)) };
        Self {
            outcome,
            class,
            what: words::sentence_case(&what),
            detail: ended(&words::sentence_case(&entry.detail)),
            consequence: ended(&entry.consequence),
            broken: entry.outcome == AuditOutcome::Broken,
        }
    }

    /// In a paragraph, for outputs without marks.
    pub(crate) fn paragraph(&self) -> String {
        let consequence = if self.consequence.is_empty() { String::new() } else { format!(" {}", self.consequence) };
        format!("{}: {}{consequence}", self.what, self.detail)
    }
}

/// A sentence with its full stop; nothing of nothing.
fn ended(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// An outcome in words, and the class of its mark.
const fn outcome(outcome: AuditOutcome) -> (&'static str, &'static str) {
    match outcome {
        AuditOutcome::Broken => ("does not hold", "worse"),
        AuditOutcome::Reservation => ("with a reservation", "unknown"),
        AuditOutcome::Unknown => ("could not be told", "unknown"),
        AuditOutcome::Holds => ("holds", "same"),
    }
}

/// A check in words.
pub(crate) const fn name(check: AuditCheck) -> &'static str {
    match check {
        AuditCheck::Totals => "totals add up",
        AuditCheck::BytesARequest => "a request is the same bytes on every arm",
        AuditCheck::Mix => "mix of requests",
        AuditCheck::Enough => "requests enough of each type",
        AuditCheck::Base => "base of a percentage",
        AuditCheck::PerRun => "figures of a run and of a second",
        AuditCheck::Conditions => "same conditions for every arm",
        AuditCheck::Validation => "wrong answers are few",
        AuditCheck::Score => "score follows from its parts",
        AuditCheck::Instrument => "client and backend were not the limit",
        AuditCheck::Repeated => "arms were repeated",
    }
}

/// The case and arms of an entry.
fn about(entry: &AuditEntry, findings: &Findings, arms: &Arms) -> String {
    let labels: Vec<String> = entry.arms.iter().map(|arm| arms.label(arm)).collect();
    let case = if entry.case.is_empty() { String::new() } else { case_label(findings, &entry.case) };
    [case, labels.join(", ")].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

/// `31 checks: 1 does not hold, 2 with a reservation, 28 hold`.
pub(crate) fn summary(entries: &[AuditEntry]) -> String {
    let count = |outcome: AuditOutcome| entries.iter().filter(|entry| entry.outcome == outcome).count() as u64;
    let said = |outcome: AuditOutcome| {
        let n = count(outcome);
        let one = n == 1;
        let words = match outcome {
            AuditOutcome::Broken if one => "does not hold",
            AuditOutcome::Broken => "do not hold",
            AuditOutcome::Reservation if one => "holds with a reservation",
            AuditOutcome::Reservation => "hold with a reservation",
            AuditOutcome::Unknown => "could not be told",
            AuditOutcome::Holds if one => "holds",
            AuditOutcome::Holds => "hold",
        };
        (n > 0).then(|| format!("{} {words}", format::count(n)))
    };
    let parts: Vec<String> = ORDER.into_iter().filter_map(said).collect();
    format!("{}: {}", format::plural(entries.len() as u64, "check", "checks"), parts.join(", "))
}

/// What holds, a line a check.
fn holds(entries: &[AuditEntry], findings: &Findings, arms: &Arms) -> Option<Table> {
    let columns = ["Check", "Of what", "What was seen"].map(Column::text).to_vec();
    let mut table = Table::new("What holds.", columns);
    let mut known: Vec<&AuditEntry> = entries.iter().filter(|entry| entry.outcome == AuditOutcome::Holds).collect();
    known.sort_by_key(|entry| entry.check);
    for entry in known {
        let about = about(entry, findings, arms);
        let about = if about.is_empty() { "the whole run".to_owned() } else { about };
        table.rows.push(vec![
            Cell::text(words::sentence_case(name(entry.check))),
            Cell::text(about),
            Cell::text(words::sentence_case(&entry.detail)),
        ]);
    }
    table.filled()
}

/// The entries that take verdicts on an arm in a case away.
pub(super) fn broken<'a>(findings: &'a Findings, case: &'a str, arm: &'a str) -> impl Iterator<Item = &'a AuditEntry> {
    let concerns = move |entry: &&AuditEntry| {
        entry.outcome == AuditOutcome::Broken
            && (entry.case.is_empty() || entry.case == case)
            && (entry.arms.is_empty() || entry.arms.iter().any(|own| own == arm))
    };
    findings.audit.iter().filter(concerns)
}
