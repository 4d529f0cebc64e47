//! What neighbours do to each victim: one matrix, neighbour by layer.

use serde::Serialize;
use tare_model::findings::{Estimate, Findings, IsolationCell, IsolationFindings, Survival};
use tare_model::metric::Unit;

use super::table::{Cell, Table};
use crate::format;
use crate::plot::arms::{ArmLook, Arms};

/// Ratios from which on a cell has the next darker shade.
const SHADES: [f64; 4] = [1.05, 1.25, 2.0, 5.0];
/// Classes of the style sheet, from the lightest to the darkest.
const CLASSES: [&str; 5] = ["", "harm-1", "harm-2", "harm-3", "harm-4"];
/// Largest ratio that is written out.
const MOST: f64 = 100.0;
/// In front of a ratio whose interval lies above 1, and below.
const SLOWER: &str = "\u{25b2}";
const FASTER: &str = "\u{25bc}";

/// The section.
#[derive(Debug, Serialize)]
pub(crate) struct IsolationView {
    pub(crate) victims: Vec<VictimView>,
}

/// One victim.
#[derive(Debug, Serialize)]
pub(crate) struct VictimView {
    pub(crate) title: String,
    /// What each neighbour does to it on each layer.
    pub(crate) matrix: Table,
    /// What the neighbours achieved, and how all came through it.
    pub(crate) survival: Table,
}

impl IsolationView {
    pub(super) fn new(findings: &Findings, arms: &Arms) -> Option<Self> {
        let victims: Vec<VictimView> = findings.isolation.iter().map(|found| victim(findings, found, arms)).collect();
        (!victims.is_empty()).then_some(Self { victims })
    }
}

/// Whether a case is a condition of a victim, of which the matrix speaks.
pub(crate) fn covers(findings: &Findings, case: &str) -> bool {
    let cells = findings.isolation.iter().flat_map(|found| &found.arms).flat_map(|arm| &arm.cells);
    let is_idle =
        |found: &IsolationFindings| case.strip_prefix(&found.victim).is_some_and(|rest| rest.starts_with('@'));
    cells.map(|cell| cell.case.as_str()).any(|own| own == case) || findings.isolation.iter().any(is_idle)
}

/// What the study says of neighbours, in a few sentences.
pub(super) fn headlines(findings: &Findings) -> Vec<String> {
    findings.isolation.iter().flat_map(|found| found.sentences.clone()).collect()
}

/// The matrices for a terminal: a heading, and a line for each neighbour.
pub(crate) fn lines(findings: &Findings, arms: &Arms) -> Vec<(String, Vec<String>)> {
    let of = |found: &IsolationFindings| {
        let line = |row: usize| {
            let cells = found.arms.iter().filter_map(|own| {
                let cell = own.cells.get(row)?;
                let starved = if cell.starved { ", starved" } else { "" };
                Some(format!("{} {}{starved}", arms.label(&own.arm), marked(cell)))
            });
            let cells: Vec<String> = cells.collect();
            found.works.get(row).map(|work| format!("{}: {}", work.name(), cells.join("; ")))
        };
        let heading = format!("{}: {} over that with the neighbours idle", found.label, found.time);
        (heading, (0..found.works.len()).filter_map(line).collect())
    };
    findings.isolation.iter().map(of).collect()
}

fn victim(findings: &Findings, found: &IsolationFindings, arms: &Arms) -> VictimView {
    let looks: Vec<&ArmLook> = found.arms.iter().filter_map(|own| arms.iter().find(|arm| arm.id == own.arm)).collect();
    let baseline = arms.label(&findings.plan.study.baseline);
    let caption = format!(
        "{}: the {} beside each neighbour over that of the same guest beside idle neighbours, with its [interval]; below it the same of the {} \
         (\u{201c}speed\u{201d}), and what the neighbour achieved as a share of what it does on {baseline}. {SLOWER} the interval lies above 1, \
         {FASTER} below; the darker the cell, the larger such a ratio. \
         Of 20 intervals one misses the truth by chance. \u{201c}Starved\u{201d}: the neighbour was kept from its work, so that a small \
         ratio is no credit to the layer.",
        found.label, found.time, found.speed
    );
    let mut matrix = Table::by_arm(caption, "Neighbour", looks.iter().copied());
    let about = format!(
        "{}: what the neighbours achieved in a second of their turns, and how neighbours, victim and host came through them.",
        found.label
    );
    let mut survival = Table::by_arm(about, "Neighbour", looks.iter().copied());
    survival.columns.iter_mut().for_each(|column| column.numeric = false);
    for (row, work) in found.works.iter().enumerate() {
        let cells = || found.arms.iter().filter_map(|own| own.cells.get(row));
        let name = Cell::with_note(work.name(), work.says());
        matrix.rows.push(std::iter::once(name.clone()).chain(cells().map(ratio)).collect());
        survival.rows.push(std::iter::once(name).chain(cells().map(came_through)).collect());
    }
    VictimView { title: format!("What neighbours do to {}", found.label), matrix, survival }
}

/// A ratio with two decimals: a victim that is twice as slow is 2.00. Beyond a hundred, either way, nobody asks by how much.
fn number(ratio: f64) -> String {
    match ratio {
        ratio if ratio > MOST => format!("> {MOST}"),
        ratio if ratio < 1.0 / MOST => format!("< {}", 1.0 / MOST),
        ratio => format!("{ratio:.2}"),
    }
}

fn interval(ratio: &Estimate) -> Option<String> {
    Some(format!("[{}, {}]", number(ratio.low?), number(ratio.high?)))
}

fn written(ratio: &Estimate) -> String {
    let value = number(ratio.value);
    interval(ratio).map_or(value.clone(), |interval| format!("{value} {interval}"))
}

/// Which way the interval excludes 1.
fn mark(cell: &IsolationCell) -> &'static str {
    let slower = cell.time.as_ref().is_some_and(|time| time.value > 1.0);
    match (cell.is_clear(), slower) {
        (false, _) => "",
        (true, true) => SLOWER,
        (true, false) => FASTER,
    }
}

fn marked(cell: &IsolationCell) -> String {
    match &cell.time {
        Some(time) => format!("{} {}", mark(cell), written(time)).trim().to_owned(),
        None => "no figure".to_owned(),
    }
}

fn ratio(cell: &IsolationCell) -> Cell {
    let Some(time) = &cell.time else { return Cell::none() };
    // What may as well be nothing has none.
    let shade = if cell.is_clear() { SHADES.iter().filter(|least| time.value >= **least).count() } else { 0 };
    let speed = cell.speed.as_ref().map(|speed| format!("speed {}", written(speed)));
    let starved = if cell.starved { ", starved" } else { "" };
    let share = cell.achieved_share.as_ref().map(|share| format!("neighbour at {:.0} %{starved}", share.value * 100.0));
    let Survival { contained, trials, .. } = cell.survival;
    let ended = (contained > 0).then(|| format!("neighbour ended in {contained} of {trials} trials"));
    let notes: Vec<String> = interval(time).into_iter().chain(speed).chain(share).chain(ended).collect();
    let text = format!("{} {}", mark(cell), number(time.value));
    Cell { shade: CLASSES[shade], ..Cell::with_note(text.trim(), notes.join("; ")) }
}

/// What the neighbours achieved, and how all came through it.
fn came_through(cell: &IsolationCell) -> Cell {
    let survival = &cell.survival;
    if survival.trials == 0 {
        return Cell::none();
    }
    let unit = Unit::Other(format!("{}/s", cell.work.unit()));
    let achieved = cell.achieved_per_s.as_ref().map(|own| format::estimate_parts(own, &unit).value);
    let mut said = Vec::new();
    said.push(match (survival.victim_lost, survival.failed_share) {
        (0, failed) if failed <= 0.0 => "the victim answered all".to_owned(),
        (0, failed) => format!("{:.2} % of the victim's operations failed", failed * 100.0),
        (lost, _) => format!("the victim was lost in {lost} of {} trials", survival.trials),
    });
    if survival.contained > 0 {
        said.push(format!(
            "the neighbour ended in {} of {} trials and was contained",
            survival.contained, survival.trials
        ));
    }
    if survival.refused > 0 {
        said.push(format!("the system refused it {} times", survival.refused));
    }
    said.push(format!("host answered within {:.1} ms", survival.host_delay_max_s * 1e3));
    Cell::with_note(achieved.unwrap_or_else(|| "nothing".to_owned()), said.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::aggressor::Aggressor;

    fn cell(value: f64, low: f64, high: f64) -> IsolationCell {
        let time = Estimate { value, low: Some(low), high: Some(high), level: 0.95, n: 8, method: String::new() };
        IsolationCell {
            case: "rr@cache".to_owned(),
            work: Aggressor::Cache,
            time: Some(time.clone()),
            speed: Some(Estimate { value: 1.0 / value, low: Some(1.0 / high), high: Some(1.0 / low), ..time.clone() }),
            achieved_per_s: Some(Estimate { value: 5e7, ..time.clone() }),
            achieved_share: Some(Estimate { value: 0.4, low: Some(0.38), high: Some(0.42), ..time }),
            starved: true,
            survival: Survival { trials: 8, host_delay_max_s: 0.0012, ..Survival::default() },
        }
    }

    #[test]
    fn a_cell_has_its_figures_a_mark_where_it_is_clear_and_a_shade() {
        let clear = ratio(&cell(1.3, 1.25, 1.35));
        assert_eq!((clear.text.as_str(), clear.shade), ("\u{25b2} 1.30", "harm-2"));
        assert_eq!(clear.note, "[1.25, 1.35]; speed 0.77 [0.74, 0.80]; neighbour at 40 %, starved");
        let unclear = ratio(&cell(1.02, 0.97, 1.08));
        assert_eq!((unclear.text.as_str(), unclear.shade), ("1.02", ""));
        assert!(ratio(&cell(0.9, 0.85, 0.95)).text.starts_with(FASTER));
        assert_eq!(ratio(&cell(9.0, 8.0, 10.0)).shade, "harm-4");
        assert_eq!(ratio(&IsolationCell { time: None, ..cell(1.0, 1.0, 1.0) }), Cell::none());
    }

    #[test]
    fn survival_names_what_was_lost_refused_and_contained() {
        let seen = Survival { contained: 2, refused: 7, ..cell(1.0, 0.9, 1.1).survival };
        let said = came_through(&IsolationCell { survival: seen, ..cell(1.0, 0.9, 1.1) });
        assert!(said.text.starts_with("50"), "{}", said.text);
        let expected = "the victim answered all; the neighbour ended in 2 of 8 trials and was contained; the system refused it 7 times; host \
                        answered within 1.2 ms";
        assert_eq!(said.note, expected);
        let lost = Survival { victim_lost: 1, ..seen };
        let said = came_through(&IsolationCell { survival: lost, ..cell(1.0, 0.9, 1.1) });
        assert!(said.note.starts_with("the victim was lost in 1 of 8 trials"), "{}", said.note);
    }
}
