//! Why the answer may be believed, and where it may not: parity, deviations, trials without figures or with flags.

use tare_model::findings::{ArmParity, Findings};
use tare_model::guest::ParityRow;

use super::case_label;
use super::primary;
use super::table::{Cell, Column, Table};
use crate::format;
use crate::plot::arms::Arms;

/// A few short phrases for the head of the report.
pub(crate) fn grounds(findings: &Findings, arms: &Arms) -> Vec<String> {
    let study = &findings.plan.study;
    let blocks = u64::from(study.blocks);
    let mut out = vec![
        trials_summary(findings),
        format!("{}, every arm once in each, in random order", format::plural(blocks, "block", "blocks")),
    ];
    let floor = findings.cases.iter().filter_map(primary).flat_map(|m| &m.comparisons).filter_map(|c| c.floor);
    let largest = floor.fold(None, |largest: Option<f64>, floor| Some(largest.map_or(floor, |l| l.max(floor))));
    let replica = arms.iter().find(|arm| arm.is_replica);
    out.push(match (replica, largest) {
        (Some(replica), Some(floor)) => {
            format!("noise floor measured by \u{201c}{}\u{201d}, up to {}", replica.label, format::relative(floor))
        }
        (Some(replica), None) => format!("noise floor not known: \u{201c}{}\u{201d} gave too little", replica.label),
        (None, _) => "noise floor not measured".to_owned(),
    });
    let unequal = findings.parity.iter().flat_map(|p| &p.rows).filter(|row| !row.equal).count();
    if !findings.parity.is_empty() {
        out.push(match unequal {
            0 => "every arm was granted what was asked".to_owned(),
            n => format!("{} not as asked", format::plural(n as u64, "resource", "resources")),
        });
    }
    let deviations = deviations(findings).len() as u64;
    if deviations > 0 {
        out.push(format::plural(deviations, "deviation", "deviations"));
    }
    out.push(format!("{} in all, {} of it load", wall(findings), format::wall_time(findings.run.load_s)));
    out
}

fn wall(findings: &Findings) -> String {
    format::wall_time(findings.run.wall_s)
}

/// How many trials completed, failed and are flagged.
pub(crate) fn trials_summary(findings: &Findings) -> String {
    let run = &findings.run;
    let mut out = format!(
        "{} of {} completed",
        format::count(u64::from(run.completed)),
        format::plural(u64::from(run.planned), "trial", "trials")
    );
    if !findings.flagged.is_empty() {
        out.push_str(&format!(", {} flagged", findings.flagged.len()));
    }
    if run.finished_at.is_none() {
        out.push_str("; the run was cut short");
    }
    out
}

/// Everything that differs from the study as written, once each.
pub(crate) fn deviations(findings: &Findings) -> Vec<String> {
    let mut out = findings.deviations.clone();
    let scale = findings.plan.study.scale;
    if (scale - 1.0).abs() > 1e-9 && !out.iter().any(|sentence| sentence.contains("scale")) {
        out.push(format!("All phases were multiplied by the scale {}.", format::trimmed(scale)));
    }
    for sentence in &findings.plan.deviations {
        if !out.contains(sentence) {
            out.push(sentence.clone());
        }
    }
    out
}

/// Parity in a sentence.
pub(crate) fn parity_summary(findings: &Findings) -> String {
    let rows = || findings.parity.iter().flat_map(|parity| &parity.rows);
    let unequal = rows().filter(|row| !row.equal).count();
    match (rows().count(), unequal) {
        (0, _) => "No parity check was recorded.".to_owned(),
        (all, 0) => {
            let all = format::plural(all as u64, "resource was", "resources were");
            format!("What was asked was granted on every arm and in every case: {all} read back and equal.")
        }
        (all, unequal) => format!(
            "Not as asked: {} of {} read back. They are marked.",
            format::count(unequal as u64),
            format::plural(all as u64, "resource", "resources")
        ),
    }
}

/// One table for all cases with the same parity.
pub(crate) fn parity(findings: &Findings, arms: &Arms) -> Vec<Table> {
    type Rows<'a> = Vec<(&'a str, &'a [ParityRow])>;
    let mut groups: Vec<(Vec<String>, Rows<'_>)> = Vec::new();
    let mut cases: Vec<&str> = Vec::new();
    for parity in &findings.parity {
        if !cases.contains(&parity.case.as_str()) {
            cases.push(&parity.case);
        }
    }
    for case in cases {
        let rows: Rows<'_> = arms
            .iter()
            .filter_map(|arm| {
                let found =
                    findings.parity.iter().find(|ArmParity { arm: id, case: of, .. }| *id == arm.id && of == case)?;
                Some((found.arm.as_str(), found.rows.as_slice()))
            })
            .collect();
        let label = case_label(findings, case);
        match groups.iter_mut().find(|(_, same)| *same == rows) {
            Some((labels, _)) => labels.push(label),
            None => groups.push((vec![label], rows)),
        }
    }
    groups.iter().map(|(labels, rows)| parity_table(labels, rows, arms)).collect()
}

fn parity_table(labels: &[String], rows: &[(&str, &[ParityRow])], arms: &Arms) -> Table {
    let caption = format!("Asked and granted: {}.", labels.join("; "));
    let mut columns = vec![Column::text("Resource"), Column::text("Asked")];
    columns.extend(rows.iter().map(|(arm, _)| Column { key: arms.key(arm), ..Column::text(&arms.label(arm)) }));
    let mut table = Table::new(caption, columns);
    let mut resources: Vec<(&str, &str)> = Vec::new();
    for row in rows.iter().flat_map(|(_, rows)| *rows) {
        if !resources.contains(&(row.resource.as_str(), row.asked.as_str())) {
            resources.push((&row.resource, &row.asked));
        }
    }
    for (resource, asked) in resources {
        let mut cells = vec![Cell::text(resource), Cell::text(asked)];
        for (_, rows) in rows {
            let found = rows.iter().find(|row| row.resource == resource && row.asked == asked);
            cells.push(found.map_or_else(Cell::none, granted));
        }
        table.rows.push(cells);
    }
    table
}

fn granted(row: &ParityRow) -> Cell {
    let text = row.granted.clone().unwrap_or_else(|| "not granted".to_owned());
    if row.equal {
        return Cell::with_note(text, row.note.clone());
    }
    Cell { chip: "worse", note: row.note.clone(), ..Cell::text(format!("{text}, not equal")) }
}

/// Trials without figures.
pub(crate) fn not_completed(findings: &Findings, arms: &Arms) -> Option<Table> {
    let columns = ["Case", "Arm", "Block", "How", "Why"].map(Column::text).to_vec();
    let mut table = Table::new("Trials without figures. None of them counts as a zero.", columns);
    for trial in &findings.not_completed {
        table.rows.push(vec![
            Cell::text(case_label(findings, &trial.case)),
            Cell::text(arms.label(&trial.arm)),
            Cell::text((trial.block + 1).to_string()),
            Cell::text(&trial.how),
            Cell::text(&trial.reason),
        ]);
    }
    table.filled()
}

/// Trials with flags.
pub(crate) fn flagged(findings: &Findings, arms: &Arms) -> Option<Table> {
    let columns = ["Case", "Arm", "Block", "Flag", "What was seen"].map(Column::text).to_vec();
    let mut table = Table::new("Trials that completed and count, with something that a reader should know.", columns);
    for trial in &findings.flagged {
        for flag in &trial.flags {
            table.rows.push(vec![
                Cell::text(case_label(findings, &trial.case)),
                Cell::text(arms.label(&trial.arm)),
                Cell::text((trial.block + 1).to_string()),
                Cell::text(&flag.kind),
                Cell::text(&flag.detail),
            ]);
        }
    }
    table.filled()
}
