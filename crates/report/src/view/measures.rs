//! The figures of a case as tables: metrics, comparisons, percentiles, CPU; and start times over all cases.

use tare_model::findings::{ArmCpu, CaseFindings, Comparison, Distribution, Findings, Standing};
use tare_model::metric::{Unit, common};
use tare_model::written::not_reached;

use super::table::{Cell, Column, Table};
use super::{density, exits};
use crate::format;
use crate::plot::arms::{ArmLook, Arms};
use crate::plot::cpu;
use crate::words;

fn estimate_cell(parts: format::Parts, n: u32) -> Cell {
    let blocks = format!("n = {n}");
    Cell::with_note(parts.value, parts.interval.map_or(blocks.clone(), |interval| format!("{interval} {blocks}")))
}

/// Every metric on every arm.
pub(super) fn metrics(case: &CaseFindings, findings: &Findings, arms: &Arms) -> Option<Table> {
    let caption = if findings.plan.study.published.is_some() {
        format!("Metrics, as published.{}", density::at_held(case))
    } else {
        format!(
            "Metrics, with one value per trial. Each cell: the estimate over the trials, its [interval] and the number \
             of completed trials.{}",
            density::at_held(case)
        )
    };
    let mut table = Table::by_arm(caption, "Metric", arms.iter());
    for metric in case.metrics.iter().filter(|metric| !exits::is_reason(metric)) {
        let note = if metric.spec.primary { "primary, " } else { "" };
        let mut row = vec![Cell::with_note(&metric.spec.label, format!("{note}{}", words::better(metric.spec.better)))];
        for arm in arms.iter() {
            let found = metric.arms.iter().find(|estimate| estimate.arm == arm.id);
            let left_out = metric.incomplete.iter().find(|one| one.arm == arm.id).map(|one| one.note.as_str());
            let cell = found.map(|found| {
                estimate_cell(format::estimate_parts(&found.estimate, &metric.spec.unit), found.estimate.n)
            });
            row.push(match (cell, left_out) {
                (Some(cell), Some(note)) => cell.noted(note),
                (Some(cell), None) => cell,
                (None, Some(note)) => Cell::text(note),
                (None, None) => Cell::none(),
            });
        }
        table.rows.push(row);
    }
    table.filled()
}

/// Every metric against the baseline.
pub(super) fn comparisons(case: &CaseFindings, findings: &Findings, arms: &Arms) -> Option<Table> {
    let published = findings.plan.study.published.is_some();
    let mut columns = vec![Column::text("Metric"), Column::text("Arm"), Column::numeric("Against baseline")];
    if !published {
        columns.extend(["Blocks", "p", "Detectable", "Noise floor"].map(Column::numeric));
    }
    columns.push(Column::text("Verdict"));
    let caption = if published {
        "Each arm against the baseline, as published."
    } else {
        "Comparisons with the baseline, paired within blocks. Detectable: the smallest difference that 80 of 100 such \
         studies detect. p: probability of such a difference between equal arms, for the primary metric corrected for the \
         number of primary comparisons. Noise floor: difference between the two runs of the baseline. A lead is a difference in a metric \
         that the study does not ask about: confirm it in a study that does."
    };
    let mut table = Table::new(caption, columns);
    for metric in case.metrics.iter().filter(|metric| !exits::is_reason(metric)) {
        for c in &metric.comparisons {
            let share = |share: Option<f64>| share.map_or_else(Cell::none, |share| Cell::text(format::relative(share)));
            let mut row = vec![
                Cell::text(&metric.spec.label),
                Cell::text(arms.label(&c.arm)),
                if c.ratio.n == 0 { Cell::none() } else { estimate_cell(format::ratio_parts(&c.ratio), c.ratio.n) },
            ];
            if !published {
                row.extend([of_planned(c), p_value(c), share(c.detectable), share(c.floor)]);
            }
            row.push(Cell::chip(words::verdict(c.verdict), words::verdict_class(c.verdict)));
            table.rows.push(row);
        }
    }
    table.filled()
}

/// Blocks with a ratio, of those that were planned.
fn of_planned(comparison: &Comparison) -> Cell {
    Cell::text(format!("{} of {}", comparison.ratio.n, comparison.planned))
}

/// The p-value that the verdict rests on: corrected for their number where the comparison answers the study.
fn p_value(comparison: &Comparison) -> Cell {
    let p = match comparison.standing {
        Standing::Primary { p_equal, .. } => p_equal,
        Standing::Lead | Standing::Replica => comparison.p_equal,
    };
    p.map_or_else(Cell::none, |p| Cell::text(format::p_value(p)))
}

/// The percentiles of a distribution.
pub(super) fn percentiles(case: &CaseFindings, name: &str, arms: &Arms) -> Option<Table> {
    let of_name: Vec<&Distribution> = case.distributions.iter().filter(|d| d.name == name).collect();
    let all = |d: &&Distribution| {
        d.quantiles.iter().map(|(q, _)| *q).chain(d.incomplete.iter().map(|(q, _)| *q)).collect::<Vec<_>>()
    };
    let mut quantiles: Vec<f64> = of_name.iter().flat_map(all).collect();
    quantiles.sort_by(f64::total_cmp);
    quantiles.dedup();
    let mut table = Table::by_arm(
        format!(
            "Percentiles of the {name} time over all operations. Blocks are merged with equal weight; the [interval] \
             comes from the percentiles of the single blocks. The table of metrics shows a different figure: the \
             estimate over the percentiles of the blocks.{}",
            density::at_held(case)
        ),
        "Percentile",
        arms.iter(),
    );
    let mut operations = vec![Cell::text("operations")];
    for arm in arms.iter() {
        let found = of_name.iter().find(|d| d.arm == arm.id);
        operations.push(found.map_or_else(Cell::none, |d| {
            let cell = Cell::text(format::count(d.operations));
            let gone = || format!("{} did not complete", format::count(d.not_completed));
            if d.not_completed > 0 { cell.noted(&gone()) } else { cell }
        }));
    }
    for q in &quantiles {
        let mut row = vec![Cell::text(format::quantile(*q))];
        for arm in arms.iter() {
            row.push(of_name.iter().find(|d| d.arm == arm.id).map_or_else(Cell::none, |d| percentile(d, *q)));
        }
        table.rows.push(row);
    }
    if !table.rows.is_empty() {
        table.rows.push(operations);
    }
    table.filled()
}

/// A percentile of an arm, with what the completed operations alone would show where that is another one.
fn percentile(distribution: &Distribution, q: f64) -> Cell {
    let found = distribution.quantiles.iter().find(|(own, _)| *own == q).map(|(_, estimate)| estimate);
    let Some((_, one)) = distribution.incomplete.iter().find(|(own, _)| *own == q) else {
        return Cell::known(found, &Unit::Seconds);
    };
    let cell =
        found.map_or_else(|| Cell::text(not_reached(one.missing)), |found| Cell::estimate(found, &Unit::Seconds));
    match one.completed_only {
        Some(seconds) => cell.noted(&format!("completed only: {}", format::value(seconds, &Unit::Seconds))),
        None => cell,
    }
}

/// Where the CPU went.
pub(super) fn cpu(case: &CaseFindings, arms: &Arms) -> Option<Table> {
    let accounts = &case.cpu;
    if accounts.is_empty() {
        return None;
    }
    let by_work = accounts.iter().any(|cpu| cpu::parts(cpu).is_some());
    let caption = if by_work {
        "CPU time for one unit of work, by where it was spent. Rows with \u{201c}in the window\u{201d}: CPU time in \
         the whole measured window."
    } else {
        "CPU seconds in the measured window, by where they were spent. CPU for one unit of work is unknown: \
         driver and guests share CPUs, the measured guest also ran busy loops, or no work was counted."
    };
    let mut table = Table::by_arm(format!("{caption}{}", density::at_held(case)), "CPU", arms.iter());
    let mut row = |name: &str, of: &dyn Fn(&ArmCpu) -> Option<String>| {
        let cell = |arm: &ArmLook| {
            let text = accounts.iter().find(|cpu| cpu.arm == arm.id).and_then(of);
            text.map_or_else(Cell::none, Cell::text)
        };
        table.rows.push(std::iter::once(Cell::text(name)).chain(arms.iter().map(cell)).collect());
    };
    let part = |cpu: &ArmCpu, of: &dyn Fn([f64; 5]) -> f64| {
        if by_work {
            cpu::parts(cpu).map(|parts| format::value(of(parts), &cpu::unit(cpu)))
        } else {
            Some(format::value(of(cpu::seconds(cpu)), &Unit::Seconds))
        }
    };
    for (i, (name, _, _)) in cpu::PARTS.iter().enumerate() {
        row(name, &|cpu| part(cpu, &|parts| parts[i]));
    }
    row("total, without neighbours and foreign tasks", &|cpu| part(cpu, &|parts| parts.iter().sum()));
    let seconds = |s: f64| Some(format::value(s, &Unit::Seconds));
    row("neighbours, in the window", &|cpu| seconds(cpu.account.neighbours_s));
    row("foreign tasks, in the window", &|cpu| seconds(cpu.account.foreign_s));
    row("steal, in the window", &|cpu| seconds(cpu.account.steal_s));
    row("probe, in the window", &|cpu| seconds(cpu.account.probe_s));
    row("measured window and CPUs", &|cpu| {
        let cpus = format::plural(u64::from(cpu.account.cpus), "CPU", "CPUs");
        Some(format!("{} on {cpus}", format::value(cpu.account.window_s, &Unit::Seconds)))
    });
    Some(table)
}

/// Parts of a machine's start, as the rows of a table name them.
const PARTS_OF_START: [(&str, &str); 3] = [
    (common::START_FIRMWARE, "of which host, hypervisor and firmware"),
    (common::START_KERNEL, "of which the guest's kernel"),
    (common::START_AGENT, "of which init and agent"),
];

/// Guest start time on every arm and in every case, and of machines the parts that it has.
pub(crate) fn start_times(findings: &Findings, arms: &Arms) -> Option<Table> {
    let split = findings.across.iter().any(|metric| common::START_PARTS.contains(&metric.spec.id.as_str()));
    let whole = "Time from the request to create the guest to the first answer of its agent. Each cell: estimate, \
                 [interval] and number of completed trials.";
    let parts = " For a virtual machine the clock of the guest's kernel splits it into three parts: until the kernel \
                 starts, until user space starts, until the answer.";
    let caption = if split { format!("{whole}{parts}") } else { whole.to_owned() };
    let mut table = Table::by_arm(caption, "Case", arms.iter());
    for case in &findings.cases {
        let rows = std::iter::once((common::START_TIME, case.label.as_str())).chain(PARTS_OF_START);
        table.rows.extend(rows.filter_map(|(id, name)| start_row(case, id, name, arms)));
    }
    table.filled()
}

fn start_row(case: &CaseFindings, id: &str, name: &str, arms: &Arms) -> Option<Vec<Cell>> {
    let metric = case.metrics.iter().find(|metric| metric.spec.id == id && !metric.arms.is_empty())?;
    let mut row = vec![Cell::text(name)];
    for arm in arms.iter() {
        let found = metric.arms.iter().find(|estimate| estimate.arm == arm.id);
        row.push(found.map_or_else(Cell::none, |found| {
            estimate_cell(format::estimate_parts(&found.estimate, &metric.spec.unit), found.estimate.n)
        }));
    }
    Some(row)
}
