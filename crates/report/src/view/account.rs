//! What qualifies the figures of a case: operations that are missing or late, rates, facts of the arms.

use tare_model::findings::{ArmAccount, CaseFindings, Findings};
use tare_model::metric::Unit;
use tare_model::{count, fact};

use super::table::{Cell, Column, Table};
use crate::format;
use crate::plot::arms::{ArmLook, Arms};

/// Columns of the table of operations that stand in every report, also when all of them are zero.
const MISSING: [(&str, &str); 3] =
    [(count::ERRORS, "Failed"), (count::LOST, "Lost"), (count::UNFINISHED, "Unfinished")];

/// A line an arm: operations, failed, lost, unfinished and late ones, offered and achieved rate.
pub(crate) fn operations(case: &CaseFindings, arms: &Arms) -> Option<Table> {
    let open = case.accounts.iter().any(|account| account.offered_per_s.is_some());
    let counted = |name: &str| case.accounts.iter().any(|account| account.counts.get(name).is_some_and(|n| *n > 0));
    // Bulk transfer has no operations: what it carried stands in their place.
    let bulk = counted(count::BYTES) && !counted(count::OPERATIONS);
    let mut columns = vec![Column::text("Arm")];
    columns.push(Column::numeric(if bulk { "Bytes" } else { "Operations" }));
    columns.extend(MISSING.iter().map(|(_, title)| Column::numeric(title)));
    if open {
        columns.extend(["Late by, p50", "Late by, p99", "Waiting at most", "Offered"].map(Column::numeric));
    }
    if !bulk {
        columns.push(Column::numeric("Achieved"));
    }
    let late = if bulk {
        ""
    } else if open {
        " Late by: time from when an operation was due to its start. Waiting at most: largest number of operations \
         that were due and not started at the same time."
    } else {
        " In a closed loop no operation starts late: a client starts its next operation when the last one has ended."
    };
    let caption = format!(
        "Operations of all completed trials together: those in the figures, and those left out. Failed, Lost: in all \
         phases. Unfinished: due in the window, but not done when the load stopped.{late}{}",
        super::density::at_held(case)
    );
    let mut table = Table::new(caption, columns);
    for account in &case.accounts {
        table.rows.push(row(account, arms, open, bulk));
    }
    table.filled()
}

/// What is offered and achieved: operations, or sessions of many operations each.
pub(crate) fn arrivals(account: &ArmAccount) -> Unit {
    let sessions = account.offered_per_s.is_some() && account.counts.contains_key(count::SESSIONS_BEGAN);
    if sessions { Unit::Other("sessions/s".to_owned()) } else { Unit::OperationsPerSecond }
}

fn row(account: &ArmAccount, arms: &Arms, open: bool, bulk: bool) -> Vec<Cell> {
    let count = |name: &str| account.counts.get(name).map_or_else(Cell::none, |n| Cell::text(format::count(*n)));
    let mut cells = vec![Cell::text(arms.label(&account.arm))];
    cells.push(if bulk {
        let bytes = account.counts.get(count::BYTES).copied().unwrap_or(0);
        Cell::text(format::value(bytes as f64, &Unit::Bytes))
    } else {
        count(count::OPERATIONS)
    });
    for (name, _) in MISSING {
        let mut cell = count(name);
        if name == count::ERRORS {
            cell.note = reasons(account);
        }
        cells.push(cell);
    }
    if open {
        for q in [0.5, 0.99] {
            let found = account.lateness.iter().find(|(own, _)| (own - q).abs() < 1e-9);
            cells.push(found.map_or_else(Cell::none, |(_, e)| Cell::text(format::value(e.value, &Unit::Seconds))));
        }
        cells.push(count(count::BACKLOG_MAX));
        let rate = |rate: f64| Cell::text(format::value(rate, &arrivals(account)));
        cells.push(account.offered_per_s.map_or_else(Cell::none, rate));
    }
    if bulk {
        return cells;
    }
    cells.push(
        account
            .achieved_per_s
            .as_ref()
            .map_or_else(Cell::none, |achieved| Cell::estimate(achieved, &arrivals(account))),
    );
    cells
}

/// Why operations failed, with counts.
pub(crate) fn reasons(account: &ArmAccount) -> String {
    let named = account.counts.iter().filter(|(_, n)| **n > 0);
    let reasons: Vec<String> =
        named.filter_map(|(name, n)| Some(format!("{} {}", format::count(*n), count::reason(name)?))).collect();
    if reasons.is_empty() { String::new() } else { format!("({})", reasons.join("; ")) }
}

/// What driver and guest said of themselves: what holds in every case in one table, the rest case by case.
pub(crate) fn facts(findings: &Findings, arms: &Arms) -> Vec<Table> {
    const WHO: &str = "Driver and guest, first completed trial of each arm";
    let mut tables: Vec<(&str, Table)> =
        findings.cases.iter().filter_map(|case| Some((case.label.as_str(), facts_of(case, arms)?))).collect();
    let Some((_, first)) = tables.first() else { return Vec::new() };
    let same = |table: &Table| table.columns.len() == first.columns.len();
    let everywhere = |row: &&Vec<Cell>| tables.iter().all(|(_, table)| same(table) && table.rows.contains(row));
    let shared: Vec<Vec<Cell>> = first.rows.iter().filter(everywhere).cloned().collect();
    let cases = if tables.len() == 1 { tables[0].0 } else { "the same in every case" };
    let common = Table { caption: format!("{WHO}: {cases}."), rows: shared, ..first.clone() };
    for (label, table) in &mut tables {
        table.rows.retain(|row| !common.rows.contains(row));
        table.caption = format!("{WHO}: {label}.");
    }
    let own = tables.into_iter().map(|(_, table)| table);
    std::iter::once(common).chain(own).flat_map(parted).filter_map(Table::filled).collect()
}

/// A table of facts in two: what is the same on every arm, said once, and what is not.
fn parted(table: Table) -> [Table; 2] {
    let values = |row: &Vec<Cell>| row.iter().skip(1).cloned().collect::<Vec<Cell>>();
    let same = |row: &Vec<Cell>| values(row).windows(2).all(|pair| pair[0] == pair[1]);
    let (same, apart): (Vec<_>, Vec<_>) = table.rows.into_iter().partition(|row| table.columns.len() > 2 && same(row));
    let caption = |what: &str| format!("{}{what}.", table.caption.trim_end_matches('.'));
    let mut once = Table::new(caption(", the same on every arm"), vec![Column::text("Fact"), Column::text("Value")]);
    once.rows = same.into_iter().map(|row| row.into_iter().take(2).collect()).collect();
    let caption = if once.rows.is_empty() { caption("") } else { caption(", where arms differ") };
    [once, Table { caption, columns: table.columns, rows: apart }]
}

fn facts_of(case: &CaseFindings, arms: &Arms) -> Option<Table> {
    let of = |arm: &ArmLook| case.accounts.iter().find(|account| account.arm == arm.id);
    let shown: Vec<(&ArmLook, &ArmAccount)> = arms.iter().filter_map(|arm| Some((arm, of(arm)?))).collect();
    let names: std::collections::BTreeSet<&String> =
        shown.iter().flat_map(|(_, account)| account.facts.keys()).filter(|name| !is_momentary(name)).collect();
    let head = shown.iter().map(|(arm, _)| Column { numeric: false, ..Column::arm(arm) });
    let mut table = Table::new("", std::iter::once(Column::text("Fact")).chain(head).collect());
    for name in names {
        // A further guest tells what is not as in the first.
        let first = |account: &'_ ArmAccount| match fact::plain(name) {
            (plain, Some(_)) => account.facts.get(plain).cloned(),
            _ => None,
        };
        let value = |(_, account): &(&ArmLook, &ArmAccount)| {
            let fact = account.facts.get(name).cloned().or_else(|| first(account));
            fact.map_or_else(Cell::none, Cell::text)
        };
        table.rows.push(std::iter::once(Cell::text(name)).chain(shown.iter().map(value)).collect());
    }
    table.filled()
}

/// Facts of one moment, which tell a reader nothing; `findings.json` has them.
fn is_momentary(name: &str) -> bool {
    ["clock monotonic ns", "process id", "control groups"].iter().any(|end| name.ends_with(end))
}
