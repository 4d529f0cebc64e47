//! What limits the precision of the cases in turns, and what more effort would buy.

use serde::Serialize;
use tare_model::findings::{CaseFindings, Effort, Findings, PrecisionLimits, TurnFigure};
use tare_model::metric::Unit;

use super::table::{Cell, Column, Table};
use super::{primary, short_label};
use crate::format;
use crate::plot::arms::Arms;

/// The limits of all cases that have any.
#[derive(Debug, Serialize)]
pub(crate) struct LimitsView {
    /// What the table shows, in a few sentences.
    pub(crate) about: Vec<String>,
    pub(crate) table: Table,
}

impl LimitsView {
    pub(crate) fn new(findings: &Findings, arms: &Arms) -> Option<Self> {
        let with_limits = || findings.cases.iter().filter(|case| !case.limits.is_empty());
        let columns = [
            Column::text("Case"),
            Column::numeric("Detectable now"),
            Column::numeric("Spread: instances"),
            Column::numeric("Spread: turns"),
            Column::numeric("Half: more blocks"),
            Column::numeric("Half: longer steady state"),
            Column::numeric("Half: least time"),
            Column::numeric("On a quiet host"),
        ];
        let caption = "Detectable: the smallest detectable difference. Spread: standard deviation of one block\u{2019}s ratio, and share of \
                       its variance. Half: blocks, steady state of each arm in a block, and wall time of the case with all its arms; not \
                       possible where the instances alone spread too much.";
        let mut table = Table::new(caption, columns.to_vec());
        for case in with_limits() {
            table.rows.extend(case.limits.iter().map(|limits| row(case, limits, arms)));
        }
        let mut about = vec![
            "The ratio of an arm to the baseline differs from block to block for two reasons. Each block has fresh instances, and no two \
             are quite alike; only more blocks average that out. And the host changes from turn to turn; a longer steady state averages that \
             out, too. The table shows what half of the smallest detectable difference would cost."
                .to_owned(),
        ];
        about.extend(with_limits().filter_map(stand_in));
        let table = table.filled()?;
        Some(Self { about, table })
    }
}

fn row(case: &CaseFindings, limits: &PrecisionLimits, arms: &Arms) -> Vec<Cell> {
    let blocks = |effort: &Effort| format::plural(effort.blocks.into(), "block", "blocks");
    let steady = |effort: &Effort| format::value(effort.steady_s, &Unit::Seconds);
    let way = |found: Option<&Effort>, text: &dyn Fn(&Effort) -> String, more: &dyn Fn(&Effort) -> String| match found {
        Some(found) => Cell::with_note(text(found), format!("{}{}", more(found), about(found.minutes))),
        None => Cell::text("not possible"),
    };
    let nothing = |_: &Effort| String::new();
    let all = limits.instances + limits.turns;
    let spread = |variance: f64, seen: bool| {
        let share = if all > 0.0 { variance / all } else { 0.0 };
        let share = format::share((100.0 * share).round() / 100.0);
        if seen { Cell::with_note(format::relative(variance.sqrt().exp_m1()), share) } else { Cell::text("none seen") }
    };
    vec![
        Cell::with_note(&case.label, arms.label(&limits.arm)),
        Cell::with_note(format::relative(limits.detectable), format!("in {}", about(limits.spent.minutes))),
        spread(limits.instances, limits.instances_seen),
        spread(limits.turns, limits.turns > 0.0),
        way(limits.by_blocks.as_ref(), &blocks, &nothing),
        way(limits.by_length.as_ref(), &steady, &nothing),
        way(limits.least.as_ref(), &blocks, &|effort| format!("of {}: ", steady(effort))),
        Cell::with_note(format::relative(limits.quiet_host), "at best"),
    ]
}

/// A wall time that is no more than an estimate.
fn about(minutes: f64) -> String {
    match minutes {
        m if m < 10.0 => format!("{} min", format::fixed(m, 1)),
        m if m < 120.0 => format!("{} min", format::fixed(m, 0)),
        m => format!("{} h", format::fixed(m / 60.0, 1)),
    }
}

/// What stands for the primary metric of a case where turns do not hold it.
fn stand_in(case: &CaseFindings) -> Option<String> {
    let limits = case.limits.first().filter(|limits| !limits.of_primary)?;
    let figure = match limits.figure {
        TurnFigure::MeanResponse => "the mean response time",
        TurnFigure::Operations => "operations a second",
        TurnFigure::Bytes => "bytes a second",
    };
    let metric = short_label(&primary(case)?.spec);
    Some(format!("{}: turns hold no percentiles, so {figure} stands for \u{201c}{metric}\u{201d}.", case.label))
}
