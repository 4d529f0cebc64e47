//! All arms in one table: what each costs to start, in memory, and in every case, against the baseline.

use serde::Serialize;
use tare_model::findings::{Comparison, Findings, MetricFindings, Verdict};
use tare_model::metric::{Better, Unit, common};

use super::table::{Cell, Column, Table};
use super::{fold, primary, several};
use crate::format;
use crate::plot::arms::{ArmLook, Arms};
use crate::words;

/// The table, and beside it what must not be read with it.
#[derive(Debug, Serialize)]
pub(crate) struct Glance {
    /// Whether the table stands in place of the sentences, which are too many to be read one by one.
    pub(crate) instead: bool,
    /// The baseline, and every arm that may be compared with it.
    pub(crate) compared: Table,
    /// Arms whose figures must not be compared; `None` where there is none.
    pub(crate) apart: Option<Table>,
    /// Why not, a sentence an arm.
    pub(crate) why_apart: Vec<String>,
    /// Arms that this host cannot run, each with the reason and the remedy.
    pub(crate) left_out: Vec<LeftOutView>,
}

/// An arm that was not measured.
#[derive(Debug, Serialize)]
pub(crate) struct LeftOutView {
    pub(crate) label: String,
    pub(crate) reason: String,
    pub(crate) remedy: String,
}

/// A metric of the table, under a heading that tells it from the others.
struct Measure<'a> {
    title: String,
    /// Said under the title.
    note: String,
    metric: &'a MetricFindings,
}

/// Most columns of figures that a page has room for.
const COLUMNS: usize = 8;

/// Findings that are read more easily as sentences than as a table.
const FINDINGS: usize = 16;

/// Most arms, beside the baseline, of which sentences are read more easily than a table.
const FEW: usize = 3;

impl Glance {
    /// The table of a study that has several arms and cases, many arms, or arms that were left out. Other studies need none.
    pub(crate) fn new(findings: &Findings, arms: &Arms) -> Option<Self> {
        let compared = arms.iter().filter(|arm| !arm.is_baseline && !arm.is_replica).count();
        // An arm that is never compared has nothing to say in sentences, case by case.
        let apart = arms.iter().any(|arm| stands_apart(findings, &arm.id));
        let large = compared > FEW || (several(arms) && (apart || findings.answer.len() > FINDINGS));
        let measures = measures(findings);
        if measures.is_empty() || (!large && findings.plan.left_out.is_empty()) {
            return None;
        }
        // The replica has its say as the floor that every verdict was judged by.
        let shown: Vec<&ArmLook> = arms.iter().filter(|arm| !arm.is_replica).collect();
        let (apart, compared): (Vec<&ArmLook>, _) = shown.into_iter().partition(|arm| stands_apart(findings, &arm.id));
        let baseline = arms.label(&findings.plan.study.baseline);
        let caption = format!(
            "Each cell: the estimate over the blocks; below it the difference to {baseline} within blocks, with its \
             verdict and [interval]. \u{2193} less is better, \u{2191} more is better. \u{201c}None detected\u{201d}: \
             no difference was detected. \u{201c}Within floor\u{201d}: {baseline} differs from itself by as much. \
             \u{201c}Too noisy\u{201d}: this study would detect only a large difference."
        );
        let apart_caption = "Each cell: the estimate and its [interval]. Differences are left out, because they would \
                             not show what such a layer costs. The reason is below the table.";
        let sentences = apart.iter().filter_map(|arm| comparisons(findings, &arm.id).next());
        let left_out = findings.plan.left_out.iter().map(|left| LeftOutView {
            label: left.label.clone(),
            reason: words::ended(&left.reason),
            remedy: words::ended(&left.remedy),
        });
        Some(Self {
            instead: large,
            compared: table(caption, &measures, &compared).filled()?,
            why_apart: sentences.map(|comparison| comparison.sentence.clone()).collect(),
            apart: table(apart_caption.to_owned(), &measures, &apart).filled(),
            left_out: left_out.collect(),
        })
    }
}

/// Everything that is said of an arm against the baseline, the primary metrics first.
fn comparisons<'a>(findings: &'a Findings, arm: &'a str) -> impl Iterator<Item = &'a Comparison> {
    let metrics = findings.cases.iter().filter_map(primary).chain(&findings.across);
    metrics.flat_map(|metric| &metric.comparisons).filter(move |comparison| comparison.arm == arm)
}

/// Whether the figures of an arm must not be compared, whatever the case. An arm of which an audit took the verdict away in some
/// stays among the others.
fn stands_apart(findings: &Findings, arm: &str) -> bool {
    let mut own = comparisons(findings, arm).peekable();
    own.peek().is_some() && own.all(|comparison| comparison.verdict == Verdict::NotComparable)
}

/// What the guests take, then of each case its primary metric and the CPU for one unit of its work.
fn measures(findings: &Findings) -> Vec<Measure<'_>> {
    let mut measures = Vec::new();
    // What a machine's start was made of has its place in the section on starts.
    for metric in findings.across.iter().filter(|metric| !common::START_PARTS.contains(&metric.spec.id.as_str())) {
        let (title, note) = match metric.spec.id.as_str() {
            common::START_TIME => ("Start", "create to first answer"),
            common::IDLE_MEMORY => ("Memory, idle", "without page cache"),
            _ => (metric.spec.label.as_str(), ""),
        };
        measures.push(Measure { title: title.to_owned(), note: note.to_owned(), metric });
    }
    for case in findings.cases.iter().filter(|case| !fold::is_folded(findings, &case.id)) {
        let Some(metric) = primary(case) else { continue };
        let note = if metric.spec.label == case.label { String::new() } else { metric.spec.label.clone() };
        measures.push(Measure { title: case.label.clone(), note, metric });
        if let Some(metric) = case.metrics.iter().find(|metric| metric.spec.id == common::SERVICE_DEMAND) {
            let per = if metric.spec.unit == Unit::CpuSecondsPerByte { "KiB" } else { &case.operation };
            measures.push(Measure { title: format!("CPU for one {per}"), note: case.label.clone(), metric });
        }
    }
    // Where there is no room for all, the CPU for one unit of work is left to the cases.
    if measures.len() > COLUMNS {
        measures.retain(|measure| measure.metric.spec.id != common::SERVICE_DEMAND);
    }
    measures
}

/// A row an arm, a column a metric: the estimate, and the difference to the baseline where there may be one.
fn table(caption: String, measures: &[Measure<'_>], shown: &[&ArmLook]) -> Table {
    let heads = measures.iter().map(|measure| {
        let arrow = if measure.metric.spec.better == Better::Lower { "\u{2193}" } else { "\u{2191}" };
        Column { note: measure.note.clone(), ..Column::numeric(&format!("{}\u{a0}{arrow}", measure.title)) }
    });
    let mut table = Table::new(caption, std::iter::once(Column::text("Arm")).chain(heads).collect());
    for arm in shown {
        let mut first = Cell::arm(arm);
        if arm.is_baseline {
            first.note = "baseline".to_owned();
        }
        let compared = |c: &Comparison| c.arm == arm.id && c.verdict != Verdict::NotComparable;
        let mixed = measures.iter().flat_map(|measure| &measure.metric.comparisons).any(compared);
        let cells = measures.iter().map(|measure| cell(measure.metric, &arm.id, mixed));
        table.rows.push(std::iter::once(first).chain(cells).collect());
    }
    table
}

/// The estimate of a metric on one arm, and how it compares where it may be compared. `mixed`: it may be in other metrics, so that it is to
/// be said where it may not.
fn cell(metric: &MetricFindings, arm: &str, mixed: bool) -> Cell {
    let Some(found) = metric.arms.iter().find(|estimate| estimate.arm == arm) else { return Cell::none() };
    let value = format::estimate_parts(&found.estimate, &metric.spec.unit);
    let shown = |c: &&Comparison| c.arm == arm && (mixed || c.verdict != Verdict::NotComparable);
    let comparison = metric.comparisons.iter().find(shown);
    let Some(comparison) = comparison else {
        return Cell::parts(value);
    };
    Cell::text(value.value).compared(comparison, words::verdict_short(comparison.verdict))
}

#[cfg(test)]
#[path = "glance_tests.rs"]
mod tests;
