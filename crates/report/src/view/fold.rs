//! What a study of dozens of cases says first, and what it folds away.

use serde::Serialize;
use tare_model::findings::Findings;

use super::{consolidation, isolation, sizing};
use crate::format;
use crate::plot::arms::Arms;

/// Most cases that each stand for themselves where a section sums them up.
const CASES: usize = 6;

/// Answers that are shown where there are dozens.
const ANSWERS: usize = 4;

/// The cases that are folded away.
#[derive(Debug, Serialize)]
pub(crate) struct Folded {
    /// `40 cases`.
    pub(crate) count: String,
    /// What sums them up, and how they are opened.
    pub(crate) about: String,
    /// Whether there are cases that are not.
    pub(crate) others: bool,
}

impl Folded {
    pub(crate) fn new(findings: &Findings) -> Option<Self> {
        let folded = findings.cases.iter().filter(|case| is_folded(findings, &case.id)).count();
        (folded > 0).then(|| {
            let count = format::plural(folded as u64, "case", "cases");
            Self {
                about: format!(
                    "{count} are summarised in the sections above; each is folded here, with its own \
                                figures and tables."
                ),
                count,
                others: folded < findings.cases.len(),
            }
        })
    }
}

/// Whether a case is a condition of a victim, or one of dozens that a section sums up.
pub(crate) fn is_folded(findings: &Findings, case: &str) -> bool {
    isolation::covers(findings, case) || (findings.cases.len() > CASES && consolidation::covers(findings, case))
}

/// How many of the answers are shown before the others are folded away.
pub(super) fn shown(findings: &Findings) -> usize {
    if Folded::new(findings).is_some() { ANSWERS } else { findings.answer.len() }
}

/// What the study says of neighbours, of several instances and of sizing, in a few sentences.
pub(super) fn headlines(findings: &Findings, arms: &Arms) -> Vec<String> {
    let mut out = isolation::headlines(findings);
    out.extend(consolidation::headlines(findings, arms));
    out.extend(sizing::headlines(findings, arms));
    out
}
