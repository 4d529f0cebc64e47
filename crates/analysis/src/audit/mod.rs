//! What is looked at before any verdict: whether a run holds together, and whether its arms can be compared.
//!
//! Each check is a pure function of plan and trials. It looks at our own runs as at those that others published. A check with
//! the outcome [`AuditOutcome::Broken`] takes the verdict away from the comparisons that it concerns ([`qualify`]). Every other
//! outcome is reported and changes no verdict. `docs/reference/published.md` describes the checks and argues their limits.

mod bytes;
mod claims;
mod conditions;
mod disclosure;
mod mix;
mod stated;
mod tables;
#[cfg(test)]
mod tests;
mod totals;

use tare_model::audit::{AuditCheck, AuditEntry, AuditOutcome};
use tare_model::findings::{CaseFindings, Comparison, Estimate, Verdict};
use tare_model::plan::Plan;
use tare_model::published::Published;
use tare_model::study::{Arm, Case, Study};
use tare_model::trial::{Measurement, TrialRecord};

use crate::distribution::completed;
use tables::Table;

/// Everything that was looked at, the gravest first, then in the order of checks and cases.
pub(crate) fn entries(plan: &Plan, trials: &[TrialRecord]) -> Vec<AuditEntry> {
    let run = Run { plan, study: &plan.study, trials, tables: tables::of(&plan.study, trials) };
    let mut found = totals::check(&run);
    found.extend(bytes::check(&run));
    found.extend(mix::check(&run));
    found.extend(disclosure::check(&run));
    found.extend(conditions::check(&run));
    let claims = claims::check(&run, &found);
    found.extend(claims);
    let place = |entry: &AuditEntry| plan.study.cases.iter().position(|case| case.id == entry.case);
    found.sort_by_key(|entry| (std::cmp::Reverse(entry.outcome), entry.check, place(entry)));
    found
}

/// What the checks look at.
struct Run<'a> {
    plan: &'a Plan,
    study: &'a Study,
    trials: &'a [TrialRecord],
    /// Requests by type, by case and arm in the order of the study.
    tables: Vec<Table<'a>>,
}

impl<'a> Run<'a> {
    const fn published(&self) -> Option<&'a Published> {
        self.study.published.as_ref()
    }

    fn label(&self, arm: &'a str) -> &'a str {
        self.study.arms.iter().find(|own| own.id == arm).map_or(arm, |own| own.label.as_str())
    }

    /// The completed trials of an arm in a case.
    fn completed(&self, case: &str, arm: &str) -> impl Iterator<Item = (&'a TrialRecord, &'a Measurement)> {
        let (case, arm) = (case.to_owned(), arm.to_owned());
        let own = self.trials.iter().filter(move |own| own.planned.case == case && own.planned.arm == arm);
        own.filter_map(|record| Some((record, completed(record)?)))
    }

    /// The arms that are compared with the baseline, and it.
    fn compared(&self) -> (Option<&'a Arm>, impl Iterator<Item = &'a Arm>) {
        let study = self.study;
        let base = study.arms.iter().find(|arm| arm.id == study.baseline);
        (base, study.arms.iter().filter(|arm| arm.id != study.baseline && arm.replica_of.is_none()))
    }

    /// The request tables of a case on an arm, where it has any.
    fn table(&self, case: &Case, arm: &Arm) -> Option<&Table<'a>> {
        self.tables.iter().find(|table| table.case == case.id && table.arm == arm.id)
    }
}

/// An entry without a consequence. `detail` becomes a sentence with its full stop.
fn entry(check: AuditCheck, outcome: AuditOutcome, case: &str, arms: &[&str], detail: String) -> AuditEntry {
    AuditEntry {
        check,
        outcome,
        case: case.to_owned(),
        arms: arms.iter().map(|arm| (*arm).to_owned()).collect(),
        detail: format!("{}.", detail.trim_end_matches('.')),
        consequence: String::new(),
    }
}

/// An entry from which something follows.
fn with(mut entry: AuditEntry, consequence: impl Into<String>) -> AuditEntry {
    entry.consequence = consequence.into();
    entry
}

/// Takes the verdict from every comparison of a case that something broken concerns, and says why. The noise floor of a
/// replica and what must not be compared already stay.
pub(crate) fn qualify(plan: &Plan, entries: &[AuditEntry], case: &mut CaseFindings) {
    let broken: Vec<&AuditEntry> = entries
        .iter()
        .filter(|entry| entry.outcome == AuditOutcome::Broken && (entry.case.is_empty() || entry.case == case.id))
        .collect();
    for comparison in case.metrics.iter_mut().flat_map(|metric| &mut metric.comparisons) {
        let own: Vec<&&AuditEntry> = broken.iter().filter(|entry| concerns(entry, comparison)).collect();
        let Some(first) = own.first() else { continue };
        if matches!(comparison.verdict, Verdict::NotComparable | Verdict::NoiseFloor) {
            continue;
        }
        let more = if own.len() > 1 { format!("; {} more in the audit", own.len() - 1) } else { String::new() };
        // The reason without what it consists of, which the audit tells.
        let why = first.detail.split_once("; ").map_or(first.detail.as_str(), |(why, _)| why);
        let why = format!("{}{more}", why.trim_end_matches('.'));
        let arm = plan.study.arms.iter().find(|arm| arm.id == comparison.arm);
        let label = arm.map_or(comparison.arm.as_str(), |arm| arm.label.as_str());
        comparison.sentence = format!("{label}: not comparable ({why})");
        (comparison.verdict, comparison.withheld) = (Verdict::NotComparable, Some(why));
        comparison.detectable = None;
        comparison.blocks.clear();
        // As for every arm that must not be compared: a ratio of no values, which nobody may show.
        comparison.ratio = Estimate { value: 1.0, level: comparison.ratio.level, ..Estimate::default() };
    }
}

/// Whether an entry is about the arms of a comparison, or about one of them, or about no arm in particular.
fn concerns(entry: &AuditEntry, comparison: &Comparison) -> bool {
    entry.arms.iter().all(|arm| *arm == comparison.arm || *arm == comparison.baseline)
}

/// A count or a figure for people: whole numbers with commas between thousands, others with so many places.
fn figure(value: f64, places: usize) -> String {
    let text = format!("{:.places$}", value.abs());
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if value < 0.0 { "-" } else { "" };
    rest.map_or_else(|| format!("{sign}{grouped}"), |rest| format!("{sign}{grouped}.{rest}"))
}

/// Names in a row: `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
