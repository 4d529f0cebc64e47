//! What a report discloses of its conditions: what it says twice and differently, and what differs between its arms.

use tare_model::audit::{AuditCheck, AuditEntry, AuditOutcome};
use tare_model::published::{ClaimKind, Condition, Published};
use tare_model::study::Study;

use super::{Run, entry, listed, with};

/// What follows where one thing has two values.
const CONTRADICTED: &str = "The report contradicts itself: which of them was measured is unknown.";
/// What follows where the arms differ.
const DIFFERENT: &str = "Its effect on the difference between the arms is unknown.";

/// One property of one subject: everything that the report discloses of it.
pub(super) struct Group<'a> {
    pub rows: Vec<&'a Condition>,
}

impl<'a> Group<'a> {
    pub(super) fn first(&self) -> &'a Condition {
        self.rows[0]
    }

    /// What holds for an arm.
    fn of_arm(&self, arm: &str) -> impl Iterator<Item = &'a Condition> {
        self.rows.iter().copied().filter(move |row| row.arm.is_empty() || row.arm == arm)
    }

    /// Whether the report gives one arm two values.
    fn contradicts(&self, study: &Study) -> bool {
        study.arms.iter().any(|arm| !agree(self.of_arm(&arm.id)))
    }

    /// Whether all that is disclosed is the same.
    pub(super) fn agrees(&self) -> bool {
        agree(self.rows.iter().copied())
    }

    /// Labels of the arms of which nothing is disclosed.
    pub(super) fn missing(&self, study: &'a Study) -> Vec<&'a str> {
        let arms = study.arms.iter().filter(|arm| self.of_arm(&arm.id).next().is_none());
        arms.map(|arm| arm.label.as_str()).collect()
    }

    /// `10 GB (line 87); 6 GB on KVM (line 570)`.
    pub(super) fn words(&self, run: &Run<'_>) -> String {
        let mut said: Vec<(String, Vec<&str>, Vec<&str>)> = Vec::new();
        for row in &self.rows {
            let value = row.printed();
            let at = said.iter().position(|(known, ..)| *known == value).unwrap_or_else(|| {
                said.push((value, Vec::new(), Vec::new()));
                said.len() - 1
            });
            let (_, arms, sources) = &mut said[at];
            let arm = run.label(&row.arm);
            if !row.arm.is_empty() && !arms.contains(&arm) {
                arms.push(arm);
            }
            if !sources.contains(&row.source.as_str()) {
                sources.push(&row.source);
            }
        }
        let one = |(value, arms, sources): &(String, Vec<&str>, Vec<&str>)| {
            let arms = if arms.is_empty() { String::new() } else { format!(" on {}", listed(arms)) };
            format!("{value}{arms} ({})", listed(sources))
        };
        said.iter().map(one).collect::<Vec<_>>().join("; ")
    }
}

fn agree<'a>(mut rows: impl Iterator<Item = &'a Condition>) -> bool {
    let Some(first) = rows.next() else { return true };
    rows.all(|row| row.agrees_with(first))
}

/// Everything that is disclosed, by case, subject and property, in the order in which each first stands.
pub(super) fn groups(published: &Published) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for row in &published.conditions {
        let key = |own: &Condition| (own.case.clone(), own.subject.clone(), own.what.clone());
        match groups.iter_mut().find(|group| key(group.first()) == key(row)) {
            Some(group) => group.rows.push(row),
            None => groups.push(Group { rows: vec![row] }),
        }
    }
    groups
}

/// One entry for each property that has several values, and one a case for all that are the same.
pub(super) fn check(run: &Run<'_>) -> Vec<AuditEntry> {
    let Some(published) = run.published() else { return Vec::new() };
    let mut found = Vec::new();
    // (case, how many properties are the same)
    let mut same: Vec<(&str, usize)> = Vec::new();
    for group in groups(published) {
        let first = group.first();
        if group.agrees() {
            if group.rows.len() > 1 {
                match same.iter_mut().find(|(case, _)| *case == first.case) {
                    Some((_, number)) => *number += 1,
                    None => same.push((&first.case, 1)),
                }
            }
            continue;
        }
        let contradicts = group.contradicts(run.study);
        if !contradicts && claimed_same(published, first) {
            // The claim's own entry names it.
            continue;
        }
        let detail = format!("{}, {}: {}", first.subject, first.what, group.words(run));
        let reserved = entry(AuditCheck::Conditions, AuditOutcome::Reservation, &first.case, &[], detail);
        found.push(with(reserved, if contradicts { CONTRADICTED } else { DIFFERENT }));
    }
    found.extend(same.into_iter().map(|(case, number)| {
        let conditions = if number == 1 { "1 condition that is" } else { &format!("{number} conditions that are") };
        let detail = format!("{conditions} disclosed more than once: always the same");
        entry(AuditCheck::Conditions, AuditOutcome::Holds, case, &[], detail)
    }));
    found
}

/// Whether the report claims that this was the same on every arm.
fn claimed_same(published: &Published, condition: &Condition) -> bool {
    published.claims.iter().any(|claim| match &claim.kind {
        ClaimKind::Same { subjects } => subjects.contains(&condition.subject),
        _ => false,
    })
}
