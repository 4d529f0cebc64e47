//! Why the answer may be believed, and where it may not: parity, deviations, trials without figures or with flags.

use tare_model::audit::{AuditCheck, AuditOutcome};
use tare_model::findings::{ArmParity, Findings};
use tare_model::flag;
use tare_model::guest::ParityRow;
use tare_model::study::{CaseSchedule, Study};
use tare_model::written;

use super::case_label;
use super::primary;
use super::table::{Cell, Column, Table};
use crate::format;
use crate::plot::arms::Arms;
use crate::words;

/// A few short phrases for the head of the report.
pub(crate) fn grounds(findings: &Findings, arms: &Arms) -> Vec<String> {
    let study = &findings.plan.study;
    let audited = (!findings.audit.is_empty()).then(|| format!("audit of {}", super::audit::summary(&findings.audit)));
    if let Some(source) = &study.published {
        let once = (study.blocks == 1).then(|| "published once each, so no intervals and no verdicts".to_owned());
        let from = format!("figures of report {}, measured by others", source.report);
        return std::iter::once(from).chain(once).chain(audited).collect();
    }
    let mut out = vec![trials_summary(findings), format!("{}, {}", blocks(findings), shared(study))];
    let floor = findings.cases.iter().filter_map(primary).flat_map(|m| &m.comparisons).filter_map(|c| c.floor);
    let largest = floor.fold(None, |largest: Option<f64>, floor| Some(largest.map_or(floor, |l| l.max(floor))));
    let replica = arms.iter().find(|arm| arm.is_replica);
    out.push(match (replica, largest) {
        (Some(replica), Some(floor)) => {
            format!("noise floor measured by \u{201c}{}\u{201d}, up to {}", replica.label, format::relative(floor))
        }
        (Some(replica), None) => {
            format!("noise floor unknown: too few trials of \u{201c}{}\u{201d} completed", replica.label)
        }
        (None, _) => "noise floor not measured".to_owned(),
    });
    let unequal = findings.parity.iter().flat_map(|p| &p.rows).filter(|row| !row.equal).count();
    if !findings.parity.is_empty() {
        out.push(match unequal {
            0 => "every arm was granted what was asked".to_owned(),
            n => format!("{} not as asked", format::plural(n as u64, "resource", "resources")),
        });
    }
    let differences = differences(findings).len() as u64;
    if differences > 0 {
        out.push(format::plural(differences, "difference from the study", "differences from the study"));
    }
    let deviations = findings.deviations.len() as u64;
    // A study that repeats no publication has none to be measured by.
    if deviations > 0 && study.original.is_some() {
        let deviations = format::plural(deviations, "deviation", "deviations");
        out.push(format!("{deviations} from {}", original(findings)));
    }
    out.extend(audited);
    out.push(format!("{} in all, {} of it load", wall(findings), format::wall_time(findings.run.load_s)));
    out
}

/// How the arms shared the time of a block.
fn shared(study: &Study) -> &'static str {
    let in_turns = study.cases.iter().filter(|case| case.schedule.turns().is_some()).count();
    let pairs = study.cases.iter().filter(|case| matches!(case.schedule, CaseSchedule::Pairs { .. })).count();
    match (in_turns, pairs) {
        (0, _) => "every arm once in each, in random order",
        (_, n) if n == study.cases.len() => "the arms of each in turns, in pairs with the baseline, in random order",
        (_, 1..) => "the arms of each in turns, in pairs with the baseline, or one after another, in random order",
        (n, 0) if n == study.cases.len() => "all arms of each in turns, in random order",
        _ => "every arm once in each, in turns or one after another, in random order",
    }
}

/// How many blocks there were: the study's number, or where it followed from intervals those of the cases.
pub(crate) fn blocks(findings: &Findings) -> String {
    let study = &findings.plan.study;
    let taken = || findings.cases.iter().map(|case| case.blocks.as_ref().map_or(study.blocks, |ended| ended.blocks));
    let (Some(rule), Some(least), Some(most)) = (study.precision, taken().min(), taken().max()) else {
        let blocks = format::plural(u64::from(study.blocks), "block", "blocks");
        // Trials of blocks that do not count are among those that ran.
        let replaced: usize = findings.cases.iter().map(|case| case.replaced.len()).sum();
        return match replaced {
            0 => blocks,
            n => format!(
                "{blocks} a case, and {} that do not count",
                format::plural(n as u64, "disturbed one", "disturbed ones")
            ),
        };
    };
    let range = if least == most { String::new() } else { format!("{least} to ") };
    let most = format::plural(u64::from(most), "block", "blocks");
    let (at_least, until) = (rule.at_least, written::percent(rule.until));
    format!("{range}{most} a case (at least {at_least}, at most {}, until {until})", study.blocks)
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

/// What was flagged, a line a kind, the most frequent first. What the audit reports as a limit of the instrument is left out.
pub(crate) fn flags(findings: &Findings) -> Vec<String> {
    let audited = findings
        .audit
        .iter()
        .any(|entry| entry.check == AuditCheck::Instrument && entry.outcome == AuditOutcome::Reservation);
    let mut kinds: Vec<(&str, Vec<(&str, &str)>)> = Vec::new();
    for trial in &findings.flagged {
        for flag in trial.flags.iter().filter(|flag| !audited || !flag::LIMITED.contains(&flag.kind.as_str())) {
            let seen = (trial.case.as_str(), flag.detail.as_str());
            match kinds.iter_mut().find(|(kind, _)| *kind == flag.kind) {
                Some((_, all)) => all.push(seen),
                None => kinds.push((&flag.kind, vec![seen])),
            }
        }
    }
    kinds.sort_by_key(|(_, all)| std::cmp::Reverse(all.len()));
    let line = |(kind, all): &(&str, Vec<(&str, &str)>)| {
        let of = |case: &str| all.iter().filter(|(own, _)| *own == case).count();
        let most = findings.cases.iter().max_by_key(|case| of(&case.id));
        let place = most.filter(|_| findings.cases.len() > 1).map_or_else(String::new, |case| {
            let (n, label) = (of(&case.id), &case.label);
            if n == all.len() {
                format!(", all in \u{201c}{label}\u{201d}")
            } else {
                format!(", most in \u{201c}{label}\u{201d} ({n})")
            }
        });
        let ran = format::plural(u64::from(findings.run.completed), "trial", "trials");
        format!("{kind}: {} of {ran}{place}, such as: {}", all.len(), words::ended(all[0].1))
    };
    kinds.iter().map(line).collect()
}

/// What the deviations are from.
pub(crate) fn original(findings: &Findings) -> String {
    let original = findings.plan.study.original.as_ref();
    original.map_or_else(|| "the published workloads".to_owned(), |original| format!("report {}", original.report))
}

/// What is otherwise than in the published original.
pub(crate) fn deviations(findings: &Findings, arms: &Arms) -> Option<Table> {
    let columns = ["What", "Published", "Here", "Why", "Likely effect", "Concerns"].map(Column::text).to_vec();
    let mut table = Table::new(format!("What is otherwise than in {}.", original(findings)), columns);
    for own in &findings.deviations {
        let cases = own.cases.iter().map(|id| case_label(findings, id));
        let concerns: Vec<String> = cases.chain(own.arms.iter().map(|id| arms.label(id))).collect();
        let concerns = if concerns.is_empty() { Cell::text("all") } else { Cell::text(concerns.join("; ")) };
        let texts = [&own.what, &own.published, &own.here, &own.why, &own.effect];
        table.rows.push(texts.into_iter().map(Cell::text).chain([concerns]).collect());
    }
    table.filled()
}

/// Everything that differs from the study as written, once each.
pub(crate) fn differences(findings: &Findings) -> Vec<String> {
    let mut out = findings.differences.clone();
    let scale = findings.plan.study.scale;
    if (scale - 1.0).abs() > 1e-9 && !out.iter().any(|sentence| sentence.contains("scale")) {
        out.push(format!("All phases were multiplied by the scale {}.", format::trimmed(scale)));
    }
    for sentence in &findings.plan.differences {
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
            format!("Every arm was granted what was asked in every case: {all} read back and equal.")
        }
        (all, unequal) => format!(
            "Not as asked: {} of {} read back; they are marked in the table.",
            format::count(unequal as u64),
            format::plural(all as u64, "resource", "resources")
        ),
    }
}

/// One table for all cases with the same parity.
pub(crate) fn parity(findings: &Findings, arms: &Arms) -> Vec<Table> {
    let mut groups: Vec<(Vec<String>, Table)> = Vec::new();
    let mut cases: Vec<&str> = Vec::new();
    for parity in &findings.parity {
        if !cases.contains(&parity.case.as_str()) {
            cases.push(&parity.case);
        }
    }
    for case in cases {
        let of = |id: &str| findings.parity.iter().find(|ArmParity { arm, case: of, .. }| arm == id && of == case);
        let rows: Vec<(&str, &[ParityRow])> = arms
            .iter()
            .filter_map(|arm| of(&arm.id))
            .map(|found| (found.arm.as_str(), found.rows.as_slice()))
            .collect();
        let (label, table) = (case_label(findings, case), parity_table(&rows, arms));
        let same = |known: &Table| known.rows == table.rows && known.columns.len() == table.columns.len();
        match groups.iter_mut().find(|(_, known)| same(known)) {
            Some((labels, _)) => labels.push(label),
            None => groups.push((vec![label], table)),
        }
    }
    let captioned = groups
        .into_iter()
        .map(|(labels, table)| Table { caption: format!("Asked and granted: {}.", labels.join("; ")), ..table });
    captioned.collect()
}

fn parity_table(rows: &[(&str, &[ParityRow])], arms: &Arms) -> Table {
    let mut columns = vec![Column::text("Resource"), Column::text("Asked")];
    columns.extend(rows.iter().map(|(arm, _)| Column { numeric: false, ..Column::arm(&arms.get(arm)) }));
    let mut table = Table::new("", columns);
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
    let note = without_folders(&row.note);
    if row.equal {
        return Cell::with_note(text, note);
    }
    Cell { chip: "worse", note, ..Cell::text(format!("{text}, not equal")) }
}

/// A note whose absolute paths have lost their folders: they name the trial, and only the file tells what was read.
fn without_folders(note: &str) -> String {
    let words = note.split(' ').map(|word| match word.rsplit_once('/') {
        Some((_, file)) if word.starts_with('/') && !file.is_empty() => file,
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Trials without figures.
pub(crate) fn not_completed(findings: &Findings, arms: &Arms) -> Option<Table> {
    let columns = ["Case", "Arm", "Block", "How", "Why"].map(Column::text).to_vec();
    let mut table = Table::new("Trials without figures. They are left out, and do not count as zero.", columns);
    for trial in &findings.not_completed {
        table.rows.push(vec![
            Cell::text(case_label(findings, &trial.case)),
            Cell::text(arms.label(&trial.arm)),
            Cell::text(trial.block.to_string()),
            Cell::text(&trial.how),
            Cell::text(&trial.reason),
        ]);
    }
    table.filled()
}

/// Trials with flags.
pub(crate) fn flagged(findings: &Findings, arms: &Arms) -> Option<Table> {
    let columns = ["Case", "Arm", "Block", "Flag", "What was seen"].map(Column::text).to_vec();
    let mut table = Table::new("Flagged trials: they completed, and their figures count.", columns);
    for trial in &findings.flagged {
        for flag in &trial.flags {
            table.rows.push(vec![
                Cell::text(case_label(findings, &trial.case)),
                Cell::text(arms.label(&trial.arm)),
                Cell::text(trial.block.to_string()),
                Cell::text(&flag.kind),
                Cell::text(&flag.detail),
            ]);
        }
    }
    table.filled()
}

#[cfg(test)]
mod tests {
    use super::without_folders;

    #[test]
    fn a_note_keeps_the_file_and_loses_the_folders_of_the_trial() {
        let note = "read from /sys/fs/cgroup/cpu/run-7/t2/cpu.cfs_quota_us; time in CPUs and/or periods";
        assert_eq!(without_folders(note), "read from cpu.cfs_quota_us; time in CPUs and/or periods");
    }
}
