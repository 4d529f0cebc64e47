//! Figures that others published: where they are from, and what is claimed of them beside what they come to.

use serde::Serialize;
use tare_model::density::metric;
use tare_model::findings::Findings;
use tare_model::published::{Claim, ClaimKind, Published};

use super::primary;
use super::table::{Cell, Column, Table};
use crate::format;
use crate::plot::arms::Arms;

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
    pub(crate) conditions: Vec<String>,
    pub(crate) files: Option<Table>,
}

impl PublishedView {
    pub(super) fn new(findings: &Findings, arms: &Arms) -> Option<Self> {
        let source = findings.plan.study.published.as_ref()?;
        Some(Self {
            mark: MARK,
            source: format!("Report {}: {}", source.report, source.title),
            note: "They went through the same analysis as figures of our own. What only those who measured can know (fresh instances, the order of runs, \
                   the host, what was granted) is not known here, and nothing is said of it.",
            claims: claims(source, findings, arms),
            conditions: source.conditions.clone(),
            files: files(source),
        })
    }
}

fn files(source: &Published) -> Option<Table> {
    let mut table = Table::new("The files that were read.", ["File", "SHA-256"].map(Column::text).to_vec());
    table.rows = source.files.iter().map(|(name, digest)| vec![Cell::text(name), Cell::code(digest)]).collect();
    table.filled()
}

fn claims(source: &Published, findings: &Findings, arms: &Arms) -> Option<Table> {
    let columns = ["Claim", "As published", "What the figures come to", "Verdict"].map(Column::text).to_vec();
    let mut table = Table::new("What the report says of its figures, beside what they come to.", columns);
    for claim in &source.claims {
        let recomputed = recomputed(claim, findings, arms);
        let verdict = match recomputed.agrees {
            Some(true) => Cell::chip("follows", "same"),
            Some(false) => Cell::chip("does not follow", "worse"),
            None => Cell::chip("cannot be told", "unknown"),
        };
        table.rows.push(vec![
            Cell::text(&claim.text),
            Cell::text(printed(&claim.kind)),
            Cell::text(recomputed.text),
            verdict,
        ]);
    }
    table.filled()
}

fn printed(kind: &ClaimKind) -> String {
    match kind {
        ClaimKind::Percent { percent, .. } => format!("{} %", format::trimmed(*percent)),
        ClaimKind::Rate { per_s, .. } => format!("{} a second", format::trimmed(*per_s)),
        ClaimKind::Score { score, .. } => format::trimmed(*score),
    }
}

/// What a claim comes to.
struct Recomputed {
    text: String,
    agrees: Option<bool>,
}

fn recomputed(claim: &Claim, findings: &Findings, arms: &Arms) -> Recomputed {
    let untold = || Recomputed { text: "the figures that it is about are not in the tables".to_owned(), agrees: None };
    match &claim.kind {
        ClaimKind::Percent { case, arm, than, percent, rounding } => {
            let both =
                value(findings, case, arm).zip(value(findings, case, than)).filter(|(a, b)| *a > 0.0 && *b > 0.0);
            both.map_or_else(untold, |(a, b)| of_percent((a, b), (*percent, *rounding), arms, (arm, than)))
        }
        ClaimKind::Rate { case, arm, guests, per_s } => rate(findings, case, arm, *guests).map_or_else(untold, |own| {
            let text = format!("{} a second", format::count(own.round() as u64));
            Recomputed { text, agrees: Some((own - per_s).abs() <= 0.5e-3 * per_s.abs()) }
        }),
        ClaimKind::Score { arm, score } => score_of(findings, arm).map_or_else(untold, |own| Recomputed {
            text: format::fixed(own, 1),
            agrees: Some((own - score).abs() <= 0.5),
        }),
    }
}

/// How much larger one figure is, in percent of the other and, where that is what was printed, of the larger.
fn of_percent(
    (a, b): (f64, f64),
    (percent, rounding): (f64, f64),
    arms: &Arms,
    (arm, than): (&str, &str),
) -> Recomputed {
    let near = |own: f64| (own - percent).abs() <= rounding * (1.0 + 1e-9) + 1e-9;
    let (of_than, of_arm) = ((a - b) / b * 100.0, (a - b) / a * 100.0);
    let figures = format!("{} against {}", format::trimmed(round(a)), format::trimmed(round(b)));
    let more = if of_than < 0.0 { "less" } else { "more" };
    let text = format!("{figures}: {} % {more} than {}", format::fixed(of_than.abs(), 2), arms.label(than));
    if near(of_than) || !near(of_arm) {
        return Recomputed { text, agrees: Some(near(of_than)) };
    }
    let other = format!("{} % of {}", format::fixed(of_arm.abs(), 2), arms.label(arm));
    Recomputed {
        text: format!("{text}; as published only with the larger figure as its base: {other}"),
        agrees: Some(false),
    }
}

fn round(value: f64) -> f64 {
    if value.abs() >= 100.0 { value.round() } else { value }
}

/// The figure that a case is about on an arm; without a case the score.
fn value(findings: &Findings, case: &str, arm: &str) -> Option<f64> {
    if case.is_empty() {
        return score_of(findings, arm);
    }
    let metric = primary(findings.cases.iter().find(|own| own.id == case)?)?;
    metric.arms.iter().find(|own| own.arm == arm).map(|own| own.estimate.value)
}

fn score_of(findings: &Findings, arm: &str) -> Option<f64> {
    findings.score.as_ref()?.arms.iter().find(|(own, _)| own == arm).map(|(_, estimate)| estimate.value)
}

/// Operations a second at a number of guests.
fn rate(findings: &Findings, case: &str, arm: &str, guests: u32) -> Option<f64> {
    let density = findings.cases.iter().find(|own| own.id == case)?.density.as_ref()?;
    let level = density.arms.iter().find(|own| own.arm == arm)?.levels.iter().find(|level| level.guests == guests)?;
    level.metrics.get(metric::OPERATIONS).map(|estimate| estimate.value)
}
