//! The score: one figure over several cases.

use serde::Serialize;
use tare_model::findings::{Estimate, Findings};
use tare_model::metric::Unit;

use super::{audit, case_label};
use crate::format;
use crate::plot::arms::Arms;
use crate::plot::bars;

/// The score of a study.
#[derive(Debug, Serialize)]
pub(crate) struct ScoreView {
    /// What it is made of.
    pub(crate) what: String,
    /// A line an arm.
    pub(crate) arms: Vec<ScoreLine>,
    /// What a reader must know, in sentences.
    pub(crate) notes: Vec<String>,
}

/// One arm.
#[derive(Debug, Serialize)]
pub(crate) struct ScoreLine {
    pub(crate) arm: String,
    /// Markup of the arm's mark.
    pub(crate) key: String,
    /// `1,940 [1,900, 1,980]`.
    pub(crate) score: String,
    /// `0.84 times native's [0.82, 0.86]`; empty for the baseline.
    pub(crate) ratio: String,
}

impl ScoreLine {
    /// In a line, for outputs without marks.
    pub(crate) fn line(&self) -> String {
        let ratio = if self.ratio.is_empty() { String::new() } else { format!(", {}", self.ratio) };
        format!("{}: {}{ratio}", self.arm, self.score)
    }
}

impl ScoreView {
    pub(super) fn new(findings: &Findings, arms: &Arms) -> Option<Self> {
        let score = findings.score.as_ref()?;
        let references: Vec<String> = score
            .references
            .iter()
            .map(|(case, reference)| format!("{}: {}", case_label(findings, case), format::trimmed(*reference)))
            .collect();
        let what =
            format!("Score: 100 times the geometric mean of capacity over reference ({})", references.join("; "));
        let baseline = arms.label(&findings.plan.study.baseline);
        let line = |look: &crate::plot::arms::ArmLook| {
            let (_, estimate) = score.arms.iter().find(|(arm, _)| *arm == look.id)?;
            let ratio = score.ratios.iter().find(|(arm, _)| *arm == look.id);
            Some(ScoreLine {
                arm: look.label.clone(),
                key: look.key(),
                score: bars::figure(estimate, &Unit::Count),
                ratio: ratio.map_or_else(String::new, |(_, ratio)| times(ratio, &baseline)),
            })
        };
        Some(Self { what, arms: arms.iter().filter_map(line).collect(), notes: notes(findings, arms) })
    }
}

fn notes(findings: &Findings, arms: &Arms) -> Vec<String> {
    let Some(score) = &findings.score else { return Vec::new() };
    let mut notes = Vec::new();
    if score.arms.is_empty() {
        notes.push("No arm has a capacity in every case of one block, so there is no score.".to_owned());
    }
    let without: Vec<String> = arms
        .iter()
        .filter(|look| !score.arms.is_empty() && score.arms.iter().all(|(arm, _)| *arm != look.id))
        .map(|look| look.label.clone())
        .collect();
    if !without.is_empty() {
        notes.push(format!("No score, because no block has a capacity in every case: {}.", without.join("; ")));
    }
    let taken: Vec<String> = score
        .references
        .iter()
        .filter(|(case, _)| score.ratios.iter().any(|(arm, _)| audit::broken(findings, case, arm).next().is_some()))
        .map(|(case, _)| case_label(findings, case))
        .collect();
    if !taken.is_empty() {
        notes.push(format!(
            "Do not rely on the ratio: the audit found that a figure in it does not hold or cannot be compared ({}).",
            taken.join("; ")
        ));
    }
    if score.arms.iter().any(|(_, estimate)| estimate.n == 1) {
        let once = if findings.plan.study.published.is_some() { "Published once" } else { "From a single block" };
        notes.push(format!("{once}, so there is no interval."));
    }
    notes
}

fn times(ratio: &Estimate, baseline: &str) -> String {
    let parts = format::fixed_parts(ratio, 2);
    format::Parts { value: format!("{} times that of {baseline}", parts.value), ..parts }.joined()
}
