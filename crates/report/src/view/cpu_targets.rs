//! How well the guests' CPUs were held busy to a share: what was asked, what was held, and the loads that were tried on the way.

use tare_model::cpu_target::{CpuSearch, CpuSearchStep, CpuTarget};
use tare_model::findings::{CaseFindings, Findings};
use tare_model::metric::Unit;
use tare_model::study::Case;

use super::capacity::{load_text, noun};
use super::case::{FigureView, Titled};
use super::table::{Cell, Column, Table};
use crate::format;
use crate::plot::arms::{ArmLook, Arms};
use crate::plot::curves::{Chart, Line, Panel, Point};

/// Trials in the order of the arms.
fn shown<'a>(case: &'a CaseFindings, arms: &'a Arms) -> impl Iterator<Item = (ArmLook, u32, &'a CpuSearch)> {
    let own = arms.having(|id| case.cpu_searches.iter().find(|(arm, _)| arm == id)).into_iter();
    own.flat_map(|((_, blocks), look)| blocks.iter().map(move |(block, search)| (look.clone(), *block, search)))
}

/// A share to a tenth of a per cent.
fn share(share: f64) -> String {
    if share.is_finite() { format!("{} %", format::fixed(share * 100.0, 1)) } else { format::NOT_A_NUMBER.to_owned() }
}

/// `200: 22.0 %`.
fn step(step: &CpuSearchStep) -> String {
    format!("{}: {}", load_text(step.load), share(step.share))
}

/// How load is offered where it is looked for by the CPU that it takes.
pub(super) fn load(planned: &Case, target: &CpuTarget, findings: &Findings) -> String {
    let noun = findings.cases.iter().find(|own| own.id == planned.id).map_or("clients", |own| noun(own, findings));
    format!(
        "the load that keeps the guest\u{2019}s CPUs {} busy, to within {} points: searched from {} {noun} up to {}, \
         in at most {}",
        format::share(target.share),
        format::trimmed(target.tolerance * 100.0),
        load_text(target.from),
        load_text(target.most),
        format::plural(u64::from(target.steps), "step", "steps")
    )
}

/// The table that belongs to the answer.
pub(super) fn lead(case: &CaseFindings, findings: &Findings, arms: &Arms) -> Option<Titled> {
    let noun = noun(case, findings);
    let columns = vec![
        Column::text("Arm"),
        Column::numeric("Block"),
        Column::numeric("Asked"),
        Column { note: "in the measured window".to_owned(), ..Column::numeric("Held") },
        Column { note: "standard deviation, points".to_owned(), ..Column::numeric("Spread") },
        Column::numeric(&crate::words::sentence_case(noun)),
        Column::text(&format!("Tried, in order ({noun}: CPU)")),
    ];
    let caption = "The load was changed while the instances ran, until the guest\u{2019}s CPUs were busy to the \
                   requested share. The last try is the measurement. The host counts the CPU; of a machine elsewhere \
                   its own kernel does.";
    let mut table = Table::new(caption, columns);
    for (look, block, search) in shown(case, arms) {
        let within = (search.share - search.target).abs() <= search.tolerance;
        let tolerance = format!("\u{b1} {} points", format::trimmed(search.tolerance * 100.0));
        let steps: Vec<String> = search.steps.iter().map(step).collect();
        let held = Cell {
            note: if within { String::new() } else { "beyond the tolerance".to_owned() },
            ..Cell::text(share(search.share))
        };
        table.rows.push(vec![
            Cell::arm(&look),
            Cell::text(block.to_string()),
            Cell::with_note(format::share(search.target), tolerance),
            held.strong(),
            search.spread.map_or_else(Cell::none, |spread| Cell::text(format::fixed(spread * 100.0, 1))),
            Cell::text(load_text(search.load)),
            Cell::text(steps.join(", ")),
        ]);
    }
    let table = table.filled()?;
    Some(Titled { title: "How well the CPU was held".to_owned(), table })
}

/// The share over the measured window of each arm's trial that was furthest off.
pub(super) fn figure(anchor: &str, case: &CaseFindings, arms: &Arms) -> Option<FigureView> {
    let off = |search: &CpuSearch| (search.share - search.target).abs();
    let worst = |look: &ArmLook| {
        let (_, blocks) = case.cpu_searches.iter().find(|(arm, _)| *arm == look.id)?;
        let (_, search) = blocks.iter().max_by(|a, b| off(&a.1).total_cmp(&off(&b.1)))?;
        Some((look.clone(), search))
    };
    let trials: Vec<(ArmLook, &CpuSearch)> = arms.iter().filter_map(worst).collect();
    let (_, first) = trials.first()?;
    let (low, high) = (first.target - first.tolerance, first.target + first.tolerance);
    let name =
        format!("asked: {} \u{b1} {} points", format::share(first.target), format::trimmed(first.tolerance * 100.0));
    let lines = trials.iter().map(|(look, search)| {
        let points = search.course.iter().map(|(at, share)| Point::at(*at, *share)).collect();
        Line { marked: false, ..Line::new(look.clone(), points) }
    });
    let title = "The held CPU over the measured window".to_owned();
    let panel = Panel { band: Some((low, high, name)), ..Panel::new("CPU of the guest", Unit::Share, lines.collect()) };
    let x_title = "time since the start of the window, s".to_owned();
    let chart = Chart { title: title.clone(), x_title, x_marked: Vec::new(), height: 200.0, panels: vec![panel] };
    let caption = "For each arm the trial that was furthest off. Band: the requested share. The CPU was held where the \
                   line stays near the band; the spread of the line shows how much the load varies.";
    FigureView::new(title, caption, chart.figure(&format!("fig-{anchor}-hold")))
}

/// Each arm in a line, for a terminal.
pub(crate) fn lines(case: &CaseFindings, findings: &Findings, arms: &Arms) -> Vec<String> {
    let noun = noun(case, findings);
    let line = |(look, block, search): (ArmLook, u32, &CpuSearch)| {
        let spread = search.spread.map(|spread| format!(", spread {} points", format::fixed(spread * 100.0, 1)));
        let rate = search
            .steps
            .last()
            .map(|last| format!(", {}", format::value(last.operations_per_s, &Unit::OperationsPerSecond)));
        format!(
            "{}, block {}: CPU held at {} (asked {}){} by {} {noun}{} after {}",
            look.label,
            block,
            share(search.share),
            format::share(search.target),
            spread.unwrap_or_default(),
            load_text(search.load),
            rate.unwrap_or_default(),
            format::plural(search.steps.len() as u64, "try", "tries")
        )
    };
    shown(case, arms).map(line).collect()
}
