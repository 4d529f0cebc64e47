//! Outcomes of the orders, and what the server counted meanwhile: a line a count, a column an arm.

use std::collections::BTreeSet;

use tare_model::findings::{ArmAccount, CaseFindings};

use super::table::{Cell, Column, Table};
use crate::format;
use crate::plot::arms::{ArmLook, Arms};

/// Orders that ended in the measured window.
const ORDERS: &str = "operations";
/// Those of them that were rolled back for want of stock. Where it is counted, operations are orders.
const ROLLED_BACK: &str = "rolled_back";
/// What the name of a count of failed orders begins with; the SQLSTATE follows.
const ERRORS: &str = "errors: ";
/// Blocks of tables and indexes that the server found in its own memory, and those that it asked the system for.
const BLOCKS: [&str; 2] = ["server: blocks found in shared buffers", "server: blocks read"];

/// Counts that are always shown, in order, each with its name for people and over which time it was counted.
const ALWAYS: [(&str, &str, &str); 3] = [
    ("deadlocks tried again", "deadlocks (SQLSTATE 40P01), retried", "all phases"),
    ("clients that gave up", "clients that gave up after too many failures", "all phases"),
    ("errors", "orders that failed", "all phases"),
];

/// Counts that are shown only where an arm has some.
const WHERE_ANY: [(&str, &str, &str); 5] = [
    ("orders in doubt", "orders whose commit was never answered", "all phases"),
    ("reconnects", "connections that were lost and made again", "all phases"),
    ("names tried again", "new customers whose name was taken, retried", "all phases"),
    ("products reordered in all phases", "products reordered by the trigger", "all phases"),
    ("server: checkpoints", "checkpoints of the servers", "in the window"),
];

/// The table; `None` where a case counts no orders.
pub(crate) fn table(case: &CaseFindings, arms: &Arms) -> Option<Table> {
    let of = |arm: &ArmLook| Some((case.accounts.iter().find(|own| own.arm == arm.id)?, arm.clone()));
    let shown: Vec<(&ArmAccount, ArmLook)> = arms.iter().filter_map(of).collect();
    if !shown.iter().any(|(own, _)| own.counts.contains_key(ROLLED_BACK)) {
        return None;
    }
    let heads = shown.iter().map(|(_, arm)| Column { key: arms.key(&arm.id), ..Column::numeric(&arm.label) });
    let caption = "Outcomes of the orders: all completed trials, guests and drivers of an arm together. Failed orders \
                   are listed by SQLSTATE and the first line of the server's message. An order that met a deadlock is \
                   retried and does not count as failed. After each trial the rows in the database were counted and \
                   agreed with these numbers.";
    let mut table = Table::new(caption, std::iter::once(Column::text("Orders")).chain(heads).collect());
    let mut row = |name: Cell, of: &dyn Fn(&ArmAccount) -> Cell| {
        table.rows.push(std::iter::once(name).chain(shown.iter().map(|(own, _)| of(own))).collect());
    };
    let number =
        |own: &ArmAccount, name: &str| own.counts.get(name).map_or_else(Cell::none, |n| Cell::text(format::count(*n)));
    row(Cell::with_note("orders", "in the window"), &|own| number(own, ORDERS));
    row(Cell::with_note("of them rolled back, because stock was short", "in the window"), &|own| Cell {
        note: share(own, ROLLED_BACK, &[ORDERS]),
        ..number(own, ROLLED_BACK)
    });
    for (name, label, when) in ALWAYS {
        row(Cell::with_note(label, when), &|own| number(own, name));
    }
    let errors: BTreeSet<&str> =
        shown.iter().flat_map(|(own, _)| own.counts.keys()).filter_map(|name| name.strip_prefix(ERRORS)).collect();
    // What an arm has no count of never happened there.
    let or_none = |own: &ArmAccount, name: &str| Cell::text(format::count(own.counts.get(name).copied().unwrap_or(0)));
    for reason in errors {
        row(Cell::with_note(format!("failed: {reason}"), "all phases"), &|own| {
            or_none(own, &format!("{ERRORS}{reason}"))
        });
    }
    let any = |name: &str| shown.iter().any(|(own, _)| own.counts.get(name).is_some_and(|n| *n > 0));
    for (name, label, when) in WHERE_ANY.into_iter().filter(|(name, ..)| any(name)) {
        // What a server counts is known only where it could be watched.
        let of = |own: &ArmAccount| if name.starts_with("server: ") { number(own, name) } else { or_none(own, name) };
        row(Cell::with_note(label, when), &of);
    }
    if BLOCKS.iter().any(|name| any(name)) {
        row(Cell::with_note("blocks that the servers found in shared buffers", "in the window"), &|own| {
            Cell::text(share(own, BLOCKS[0], &BLOCKS))
        });
    }
    table.filled()
}

/// A count as a share of several, for people; a dash where one of them is not known.
fn share(own: &ArmAccount, part: &str, whole: &[&str]) -> String {
    let whole: Option<u64> = whole.iter().map(|name| own.counts.get(*name).copied()).sum();
    match (own.counts.get(part), whole) {
        (Some(part), Some(whole)) if whole > 0 => format!("{:.1} %", *part as f64 / whole as f64 * 100.0),
        _ => format::NOTHING.to_owned(),
    }
}
