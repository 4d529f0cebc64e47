//! What a report says of order entry: outcomes of the orders, the data and the server on each arm, and what the server's processes did.

use std::collections::BTreeSet;

use tare_model::count;
use tare_model::fact;
use tare_model::findings::section::{Block, Cell, Column, Place, Section, Table, Value};
use tare_model::findings::{ArmAccount, CaseFindings};
use tare_model::study::Case;

use super::figures::{DEADLOCKS, GAVE_UP, IN_DOUBT, NAMES_TAKEN, RECONNECTS, ROLLED_BACK};
use super::ready::{LOADED_IN, STARTED_IN};
use super::running::{RECOVERED_IN, REORDERED};
use super::watch::{BLOCKS_FOUND, BLOCKS_READ, CHECKPOINTS, PROCESSES};
use crate::View;
use crate::postgres::facts;

/// The view of order entry.
pub(super) struct Orders;

impl View for Orders {
    fn operation(&self) -> Option<&'static str> {
        Some("order")
    }

    fn of_case(&self, _: &Case, found: &CaseFindings) -> Vec<Section> {
        // Where guests are added, the trials have them in different numbers, and their counts are no sum of anything.
        let fixed = found.density.is_none();
        let outcomes = fixed.then(|| outcomes(found)).flatten().map(Block::Table);
        let server = fixed.then(|| server(found)).flatten();
        let server = [server, processes(found)].map(|table| table.map(Block::Table));
        let sections = [
            Section::of("Outcomes of the orders", Place::Detail, [outcomes]),
            Section::of("Data and server", Place::Detail, server),
        ];
        sections.into_iter().flatten().collect()
    }
}

/// Phases over which something was counted.
const ALL: &str = "all phases";
const WINDOW: &str = "in the window";

/// Counts that are always shown, with their names for people.
const ALWAYS: [(&str, &str); 3] = [
    (DEADLOCKS, "deadlocks (SQLSTATE 40P01), retried"),
    (GAVE_UP, "clients that gave up after too many failures"),
    (count::ERRORS, "orders that failed"),
];

/// Counts that are shown where an arm has some, with the phases.
const WHERE_ANY: [(&str, &str, &str); 5] = [
    (IN_DOUBT, "orders whose commit was never answered", ALL),
    (RECONNECTS, "connections that were lost and made again", ALL),
    (NAMES_TAKEN, "new customers whose name was taken, retried", ALL),
    (REORDERED, "products reordered by the trigger", ALL),
    (CHECKPOINTS, "checkpoints of the servers", WINDOW),
];

/// A line a count, a column an arm; `None` where no orders were counted.
fn outcomes(found: &CaseFindings) -> Option<Table> {
    let arms = &found.accounts;
    let any = |name: &str| arms.iter().any(|own| own.counts.get(name).is_some_and(|n| *n > 0));
    if !arms.iter().any(|own| own.counts.contains_key(ROLLED_BACK)) {
        return None;
    }
    let caption = "All completed trials, guests and drivers of an arm together. Failed orders are listed by SQLSTATE and \
                   the first line of the server\u{2019}s message. An order that met a deadlock is retried and does not \
                   count as failed. After each trial the rows in the database were counted and agreed with these numbers.";
    let mut table = by_arm(caption, "Orders", found);
    let mut row = |name: &str, when: &str, of: &dyn Fn(&ArmAccount) -> Cell| {
        table.rows.push(std::iter::once(Cell::text(name).noted(when)).chain(arms.iter().map(of)).collect());
    };
    let number = |own: &ArmAccount, name: &str| Cell::count(own.counts.get(name).copied());
    row("orders", WINDOW, &|own| number(own, count::OPERATIONS));
    row("of them rolled back, because stock was short", WINDOW, &|own| {
        let share = share(own, ROLLED_BACK, &[count::OPERATIONS]);
        let share = share.map_or_else(String::new, |share| format!("{:.1} %", share * 100.0));
        number(own, ROLLED_BACK).noted(share)
    });
    for (name, label) in ALWAYS {
        row(label, ALL, &|own| number(own, name));
    }
    // What an arm has no count of never happened there, save what only a server that was watched could tell.
    let or_none = |own: &ArmAccount, name: &str| match own.counts.get(name) {
        None if name == CHECKPOINTS => Cell::count(None),
        n => Cell::count(Some(n.copied().unwrap_or(0))),
    };
    let reasons: BTreeSet<&str> =
        arms.iter().flat_map(|own| own.counts.keys()).filter_map(|name| count::reason(name)).collect();
    for reason in reasons {
        row(&format!("failed: {reason}"), ALL, &|own| or_none(own, &count::error(reason)));
    }
    for (name, label, when) in WHERE_ANY.into_iter().filter(|(name, ..)| any(name)) {
        row(label, when, &|own| or_none(own, name));
    }
    if any(BLOCKS_FOUND) || any(BLOCKS_READ) {
        row("blocks that the servers found in shared buffers", WINDOW, &|own| {
            share(own, BLOCKS_FOUND, &[BLOCKS_FOUND, BLOCKS_READ]).map_or(Value::Unknown, Value::Share).into()
        });
    }
    table.filled()
}

/// A table with a column an arm.
fn by_arm(caption: &str, first: &str, found: &CaseFindings) -> Table {
    let arms = found.accounts.iter().map(|own| Column::arm(&own.arm));
    Table::new(caption, std::iter::once(Column::text(first)).chain(arms).collect())
}

/// A count as a share of several; `None` where one of them is not known.
fn share(own: &ArmAccount, part: &str, whole: &[&str]) -> Option<f64> {
    let whole: u64 = whole.iter().map(|name| own.counts.get(*name).copied()).sum::<Option<u64>>()?;
    (whole > 0).then_some(*own.counts.get(part)? as f64 / whole as f64)
}

/// Where the data lie and how they got there, which server works on them, and the settings in which arms differ.
fn server(found: &CaseFindings) -> Option<Table> {
    let columns = [
        (fact::DATA_ON, "Data on"),
        (fact::DATA_RESTORED_BY, "Restored by"),
        (fact::DATA_RESTORED_IN, "Restored in"),
        (fact::LOG_ON, "Log on"),
        (fact::LOG_RESTORED_IN, "Log restored in"),
        (LOADED_IN, "Loaded in"),
        (facts::VERSION, "PostgreSQL"),
        (STARTED_IN, "Server started in"),
        (facts::CHECKPOINT, "CHECKPOINT in"),
        (RECOVERED_IN, "Killed on purpose, recovered in"),
    ];
    let restored = found.accounts.iter().any(|own| own.facts.contains_key(fact::DATA_RESTORED_BY));
    let about = if restored {
        "Data and server on each arm. Before every trial the data of each guest are restored to their state at the start of the run, and \
         the server is restarted. Neither is part of the measured time."
    } else {
        "Data and server on each arm."
    };
    facts::table(found, &columns, about)
}

/// Least share that a state must have on some arm to be shown.
const SHARE_MIN: f64 = 0.01;

/// What the processes that serve clients did: a line a state, the most frequent first, a column an arm.
fn processes(found: &CaseFindings) -> Option<Table> {
    let seen = |own: &ArmAccount| -> Vec<(String, u64)> {
        own.counts.iter().filter_map(|(name, n)| Some((name.strip_prefix(PROCESSES)?.to_owned(), *n))).collect()
    };
    let arms: Vec<Vec<(String, u64)>> = found.accounts.iter().map(seen).collect();
    let share = |own: &[(String, u64)], state: &str| {
        let all: u64 = own.iter().map(|(_, n)| n).sum();
        let n = own.iter().find(|(name, _)| name == state).map_or(0, |(_, n)| *n);
        (all > 0).then_some(n as f64 / all as f64)
    };
    let states: BTreeSet<&str> = arms.iter().flatten().map(|(name, _)| name.as_str()).collect();
    let most = |state: &str| arms.iter().filter_map(|own| share(own, state)).fold(0.0, f64::max);
    let mut shown: Vec<(&str, f64)> = states.into_iter().map(|state| (state, most(state))).collect();
    shown.retain(|(_, most)| *most >= SHARE_MIN);
    shown.sort_by(|a, b| b.1.total_cmp(&a.1));
    let caption = "States of the server\u{2019}s client processes under load: shares of all samples. States under 1 % on every arm are \
                   left out. LWLock, Lock and IO are PostgreSQL\u{2019}s names for what a process waits for.";
    let mut table = by_arm(caption, "State", found);
    for (state, _) in shown {
        let cells = arms.iter().map(|own| share(own, state).map_or(Value::Unknown, Value::Share).into());
        table.rows.push(std::iter::once(Cell::text(state)).chain(cells).collect());
    }
    table.filled()
}

#[cfg(test)]
mod tests;
