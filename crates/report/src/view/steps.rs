//! Where the time of an operation goes, and how long each step of it takes, as tables and as lines.

use tare_model::findings::{ArmSteps, CaseFindings, Estimate};
use tare_model::metric::Unit;

use super::table::{Cell, Table};
use crate::format::{self, Scale};
use crate::plot::arms::{ArmLook, Arms};
use crate::plot::steps::{REST, names, step};
use crate::words;

/// `an order`, `a request`, `an operation`.
pub(crate) fn one(case: &CaseFindings) -> String {
    let noun = &case.operation;
    let article = if noun.starts_with(['o', 'a', 'e', 'i']) { "an" } else { "a" };
    format!("{article} {noun}")
}

/// A share of an arm's operation, in whole percent but for what is tiny.
fn share(part: f64, whole: f64) -> String {
    let percent = part / whole * 100.0;
    match percent {
        p if !p.is_finite() => format::NOT_A_NUMBER.to_owned(),
        p if p > 0.0 && p < 1.0 => "under 1 %".to_owned(),
        p => format!("{p:.0} %"),
    }
}

struct Shown<'a> {
    case: &'a CaseFindings,
    arms: Vec<(&'a ArmSteps, ArmLook)>,
    /// Every time on the scale of a whole operation, so that steps can be compared and added up by eye.
    scale: Scale,
}

impl<'a> Shown<'a> {
    fn new(case: &'a CaseFindings, arms: &Arms) -> Self {
        let arms = arms.having(|id| case.steps.iter().find(|own| own.arm == id));
        let whole = |(own, _): &(&ArmSteps, ArmLook)| own.operation_s.as_ref().map(|whole| whole.value);
        let shortest = arms.iter().filter_map(whole).filter(|s| s.is_finite()).reduce(f64::min);
        Self { case, arms, scale: Scale::new(&Unit::Seconds, shortest.unwrap_or(1e-3)) }
    }

    fn table(&self, caption: impl Into<String>, first: &str) -> Table {
        Table::by_arm(caption, first, self.arms.iter().map(|(_, look)| look))
    }

    fn row(&self, name: Cell, of: impl Fn(&ArmSteps) -> Option<Cell>) -> Vec<Cell> {
        let cell = |(own, _): &(&ArmSteps, ArmLook)| of(own).unwrap_or_else(Cell::none);
        std::iter::once(name).chain(self.arms.iter().map(cell)).collect()
    }

    fn time(&self, seconds: f64) -> String {
        if seconds.is_finite() {
            self.scale.with_unit(&self.scale.text(seconds))
        } else {
            format::NOT_A_NUMBER.to_owned()
        }
    }

    fn cell(&self, estimate: &Estimate) -> Cell {
        Cell { text: self.time(estimate.value), ..Cell::parts(self.scale.parts(estimate)) }
    }

    /// How often an operation has a step: one figure, or a range where arms differ.
    fn often(&self, name: &str) -> String {
        let found = || {
            self.arms
                .iter()
                .filter_map(|(own, _)| step(own, name))
                .map(|step| step.per_operation)
                .filter(|n| n.is_finite())
        };
        let (least, most) = (found().fold(f64::INFINITY, f64::min), found().fold(0.0, f64::max));
        if found().next().is_none() {
            return String::new();
        }
        let (least, most) = (format!("{least:.2}"), format!("{most:.2}"));
        let times = if least == most { most } else { format!("{least} to {most}") };
        format!("{times} times {}", one(self.case))
    }
}

/// The time that an operation spends in each step on each arm, with its share of the whole.
pub(crate) fn shares(case: &CaseFindings, arms: &Arms) -> Option<Table> {
    let shown = Shown::new(case, arms);
    let (noun, one) = (&case.operation, one(case));
    let caption = format!(
        "Where the time of {one} goes: mean time of one {noun} in each step, with [interval] and share. A step that \
         occurs several times counts with the sum of its times. The driver times a step from sending to the end of the \
         answer, so it includes network, guest and database. \u{201c}{}\u{201d}: time outside all steps, such as the \
         driver\u{2019}s own.",
        words::sentence_case(REST)
    );
    let mut table = shown.table(caption, "Step");
    for name in names(&case.steps, true) {
        table.rows.push(shown.row(Cell::with_note(name, shown.often(name)), |own| {
            let found = step(own, name)?;
            let whole = own.operation_s.as_ref().map_or(f64::NAN, |whole| whole.value);
            let mut cell = shown.cell(&found.of_operation_s);
            cell.note = format!("{} {}", share(found.of_operation_s.value, whole), cell.note).trim_end().to_owned();
            Some(cell)
        }));
    }
    table.rows.push(shown.row(Cell::text(words::sentence_case(REST)), |own| {
        let (rest, whole) = (own.rest_s?, own.operation_s.as_ref()?.value);
        Some(Cell::with_note(shown.time(rest), share(rest, whole)))
    }));
    let whole = Cell::with_note(format!("One {noun} as a whole"), "mean").strong();
    table.rows.push(shown.row(whole, |own| own.operation_s.as_ref().map(|whole| shown.cell(whole).strong())));
    for name in names(&case.steps, false) {
        let often = format!("{}; outside the time of {one}", shown.often(name));
        table.rows.push(
            shown.row(Cell::with_note(name, often), |own| {
                step(own, name).map(|found| shown.cell(&found.of_operation_s))
            }),
        );
    }
    (!shown.arms.is_empty()).then_some(table)
}

/// How long each step takes each time: its percentiles on each arm.
pub(crate) fn percentiles(case: &CaseFindings, arms: &Arms) -> Option<Table> {
    let shown = Shown::new(case, arms);
    let caption = "Time of a single step: the median, and below it p99 and p99.9 where enough steps were timed. Trials \
                   are merged with equal weight. Intervals and p90 are in findings.json.";
    let mut table = shown.table(caption, "Step, each time");
    let ordered = names(&case.steps, true).into_iter().chain(names(&case.steps, false));
    for name in ordered {
        table.rows.push(shown.row(Cell::text(name), |own| {
            let quantiles = &step(own, name)?.quantiles;
            let at = |wanted: f64| {
                quantiles.iter().find(|(q, _)| (q - wanted).abs() < 1e-9).map(|(_, e)| shown.time(e.value))
            };
            let tails = [("p99", at(0.99)), ("p99.9", at(0.999))];
            let tails = tails.into_iter().filter_map(|(name, tail)| Some(format!("{name} {}", tail?)));
            Some(Cell::with_note(at(0.5)?, tails.collect::<Vec<_>>().join(", ")))
        }));
    }
    table.rows.retain(|row| row.iter().skip(1).any(|cell| *cell != Cell::none()));
    table.filled()
}

/// Steps that a terminal names; the tables have all.
const LARGEST: usize = 3;

/// Each arm in a line, for a terminal: the largest steps first.
pub(crate) fn lines(case: &CaseFindings, arms: &Arms) -> Vec<String> {
    let shown = Shown::new(case, arms);
    let line = |(own, look): &(&ArmSteps, ArmLook)| {
        let whole = own.operation_s.as_ref()?.value;
        let within = own.steps.iter().filter(|step| step.within);
        let mut parts: Vec<(f64, &str)> = within.map(|step| (step.of_operation_s.value, step.name.as_str())).collect();
        parts.extend(own.rest_s.map(|rest| (rest, REST)));
        parts.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut said: Vec<String> =
            parts.iter().map(|(time, name)| format!("{name} {}", share(*time, whole))).collect();
        // One other would take as much room by its name.
        if parts.len() > LARGEST + 1 {
            let others: f64 = parts[LARGEST..].iter().map(|(time, _)| time).sum();
            said.truncate(LARGEST);
            said.push(format!("the other {} together {}", parts.len() - LARGEST, share(others, whole)));
        }
        let whole = format::value(whole, &Unit::Seconds);
        Some(format!("time of {} on {}: {whole}, of which {}", one(case), look.label, said.join("; ")))
    };
    shown.arms.iter().filter_map(line).collect()
}
