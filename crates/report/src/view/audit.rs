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
    /// What does not hold, each by itself.
    pub(crate) broken: Vec<EntryView>,
    /// What holds with a reservation or is unknown: entries of one kind together.
    pub(crate) uncertain: Vec<EntryView>,
    /// How many of these are shown, the reservations among them; nobody can act on what is unknown.
    pub(crate) reservations: usize,
    /// The summary of `uncertain` where it has so many entries that it is folded; else empty.
    pub(crate) folded: String,
    /// What holds, in short.
    pub(crate) holds: Option<Table>,
}

/// One entry, or several that differ only by case and arm.
#[derive(Debug, Serialize)]
pub(crate) struct EntryView {
    pub(crate) outcome: &'static str,
    pub(crate) class: &'static str,
    /// The check, and what it is about.
    pub(crate) what: String,
    /// The detail of the first.
    pub(crate) detail: String,
    pub(crate) consequence: String,
    /// The others, each in a sentence that begins with what it is about.
    pub(crate) others: Vec<String>,
}

/// Entries, or kinds of them, that are read without being opened.
const OPEN_MAX: usize = 6;

/// The order in which outcomes are reported.
const ORDER: [AuditOutcome; 4] =
    [AuditOutcome::Broken, AuditOutcome::Reservation, AuditOutcome::Unknown, AuditOutcome::Holds];

impl AuditView {
    pub(super) fn new(findings: &Findings, arms: &Arms) -> Option<Self> {
        let entries = &findings.audit;
        if entries.is_empty() {
            return None;
        }
        let broken = entries.iter().filter(|entry| entry.outcome == AuditOutcome::Broken);
        let uncertain: Vec<EntryView> = ORDER[1..3]
            .iter()
            .flat_map(|outcome| alike(entries, *outcome))
            .map(|own| EntryView::new(&own, findings, arms))
            .collect();
        let reservations = alike(entries, AuditOutcome::Reservation).len();
        let soft: Vec<AuditEntry> = entries
            .iter()
            .filter(|entry| matches!(entry.outcome, AuditOutcome::Reservation | AuditOutcome::Unknown))
            .cloned()
            .collect();
        Some(Self {
            summary: summary(entries),
            broken: broken.map(|entry| EntryView::new(&[entry], findings, arms)).collect(),
            reservations,
            folded: if uncertain.len() > OPEN_MAX { words::sentence_case(&counted(&soft)) } else { String::new() },
            uncertain,
            holds: holds(entries, findings, arms),
        })
    }
}

/// The entries of an outcome, those together that are of one check and have one consequence, in the order of the first of each.
/// What is about the whole run stands by itself.
pub(crate) fn alike(entries: &[AuditEntry], outcome: AuditOutcome) -> Vec<Vec<&AuditEntry>> {
    let mut groups: Vec<Vec<&AuditEntry>> = Vec::new();
    let placed = |entry: &AuditEntry| !entry.case.is_empty();
    for entry in entries.iter().filter(|entry| entry.outcome == outcome) {
        let same = |own: &&mut Vec<&AuditEntry>| {
            let first = own[0];
            first.check == entry.check && first.consequence == entry.consequence && placed(first) && placed(entry)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(entry),
            None => groups.push(vec![entry]),
        }
    }
    groups
}

impl EntryView {
    /// Of entries of one kind, one at least.
    fn new(alike: &[&AuditEntry], findings: &Findings, arms: &Arms) -> Self {
        let first = alike[0];
        let (outcome, class) = outcome(first.outcome);
        let about_all = about_all(alike, findings, arms);
        let what = if about_all.is_empty() {
            name(first.check).to_owned()
        } else {
            format!("{} ({about_all})", name(first.check))
        };
        let other = |entry: &&AuditEntry| format!("{}: {}", about(entry, findings, arms), words::ended(&entry.detail));
        Self {
            outcome,
            class,
            what: words::sentence_case(&what),
            detail: words::ended(&words::sentence_case(&first.detail)),
            consequence: words::ended(&first.consequence),
            others: alike[1..].iter().map(other).collect(),
        }
    }

    /// In a paragraph, for outputs without marks.
    pub(crate) fn paragraph(&self) -> String {
        let consequence = if self.consequence.is_empty() { String::new() } else { format!(" {}", self.consequence) };
        format!("{}: {}{consequence}", self.what, self.detail)
    }
}

/// An outcome in words, and the class of its mark.
const fn outcome(outcome: AuditOutcome) -> (&'static str, &'static str) {
    match outcome {
        AuditOutcome::Broken => ("does not hold", "worse"),
        AuditOutcome::Reservation => ("with a reservation", "unknown"),
        AuditOutcome::Unknown => ("unknown", "unknown"),
        AuditOutcome::Holds => ("holds", "same"),
    }
}

/// A check in words that go with every outcome.
pub(crate) const fn name(check: AuditCheck) -> &'static str {
    match check {
        AuditCheck::Totals => "totals",
        AuditCheck::BytesARequest => "bytes a request on every arm",
        AuditCheck::Mix => "mix of requests",
        AuditCheck::Enough => "number of requests of each type",
        AuditCheck::Base => "base of a percentage",
        AuditCheck::PerRun => "figures of a run and of a second",
        AuditCheck::Conditions => "conditions of every arm",
        AuditCheck::Validation => "wrong answers",
        AuditCheck::Score => "score from its parts",
        AuditCheck::Claims => "claims from the conditions",
        AuditCheck::Instrument => "client and backend as a limit",
        AuditCheck::Repeated => "repetition of every arm",
    }
}

/// The case and arms of an entry.
fn about(entry: &AuditEntry, findings: &Findings, arms: &Arms) -> String {
    let labels: Vec<String> = entry.arms.iter().map(|arm| arms.label(arm)).collect();
    let case = if entry.case.is_empty() { String::new() } else { case_label(findings, &entry.case) };
    [case, labels.join(", ")].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

/// The cases and arms of several entries: `banking, support; native, sandbox`, and by case where the arms differ from one to another.
fn about_all(entries: &[&AuditEntry], findings: &Findings, arms: &Arms) -> String {
    let mut cases: Vec<(&str, Vec<&str>)> = Vec::new();
    for entry in entries {
        let at = cases.iter().position(|(case, _)| *case == entry.case).unwrap_or_else(|| {
            cases.push((&entry.case, Vec::new()));
            cases.len() - 1
        });
        for arm in &entry.arms {
            if !cases[at].1.contains(&arm.as_str()) {
                cases[at].1.push(arm);
            }
        }
    }
    let everywhere = cases.iter().all(|(case, _)| case.is_empty());
    let labels = |own: &[&str]| {
        if everywhere && arms.iter().all(|arm| own.contains(&arm.id.as_str())) {
            String::new()
        } else {
            own.iter().map(|arm| arms.label(arm)).collect::<Vec<_>>().join(", ")
        }
    };
    let case = |id: &str| if id.is_empty() { String::new() } else { case_label(findings, id) };
    let said = |parts: [String; 2], between: &str| {
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(between)
    };
    let first = &cases[0].1;
    if cases.iter().all(|(_, own)| own == first) {
        let cases: Vec<String> = cases.iter().map(|(id, _)| case(id)).collect();
        return said([cases.join(", "), labels(first)], "; ");
    }
    cases.iter().map(|(id, own)| said([case(id), labels(own)], ": ")).collect::<Vec<_>>().join("; ")
}

/// `31 checks: 1 does not hold, 2 hold with a reservation, 28 hold`.
pub(crate) fn summary(entries: &[AuditEntry]) -> String {
    format!("{}: {}", format::plural(entries.len() as u64, "check", "checks"), counted(entries))
}

/// `1 does not hold, 2 hold with a reservation, 28 hold`.
fn counted(entries: &[AuditEntry]) -> String {
    let said = |outcome: AuditOutcome| {
        let n = entries.iter().filter(|entry| entry.outcome == outcome).count() as u64;
        let one = n == 1;
        let words = match outcome {
            AuditOutcome::Broken if one => "does not hold",
            AuditOutcome::Broken => "do not hold",
            AuditOutcome::Reservation if one => "holds with a reservation",
            AuditOutcome::Reservation => "hold with a reservation",
            AuditOutcome::Unknown if one => "is unknown",
            AuditOutcome::Unknown => "are unknown",
            AuditOutcome::Holds if one => "holds",
            AuditOutcome::Holds => "hold",
        };
        (n > 0).then(|| format!("{} {words}", format::count(n)))
    };
    ORDER.into_iter().filter_map(said).collect::<Vec<_>>().join(", ")
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
