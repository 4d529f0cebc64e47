//! What is done to fill a store, and what each step waits for.
//!
//! Nothing waits for a whole phase: lines and history begin when the keys that they refer to are there, indexes when their rows are. Steps
//! that lock a table in ways that exclude each other wait for each other here, so that no connection waits in the server.

use crate::store::spec::StoreSize;

use crate::fill::crew::Job;
use crate::fill::work::{self, chunks};
use crate::store::data::Table;
use crate::store::schema::{self, FOREIGN_KEYS, ForeignKey, INDEXES, Index, TABLES};

/// What a connection does.
pub type Work = work::Work<Table>;
/// Rows to be loaded.
pub type Chunk = work::Chunk<Table>;

/// How a store is filled.
pub struct Plan {
    /// The jobs, what should begin early first.
    pub jobs: Vec<Job<Work>>,
    /// Tables that must be there before.
    pub tables: Vec<&'static str>,
    /// One connection loads all of the history, so that its pages are filled one after the other.
    pub history_in_order: bool,
}

/// A table whose foreign key is there before its rows, which come unchecked.
pub fn is_late(table: &str) -> bool {
    table == "orderlines" || table == "cust_hist"
}

/// How a store is filled over so many connections. With `unchecked`, the server takes rows without holding each against the
/// foreign keys: the two large tables then have them from the beginning, and the rows are held against them
/// as a whole in the end.
pub fn plan(size: &StoreSize, connections: u64, unchecked: bool) -> Plan {
    let mut rows = chunks(&Table::ALL.map(|table| (table, table.numbers(size), table.weight())), connections);
    // First what others wait for.
    rows.sort_by_key(|chunk| {
        (is_late(chunk.table.name()), !is_referred_to(chunk.table.name()), chunk.table.numbers(size))
    });
    let whole = |name: &str| rows.iter().any(|c| c.whole && c.table.name() == name);
    let history_in_order = whole(Table::CustHist.name());
    let cut: Vec<&'static str> = rows.iter().filter(|c| !c.whole).map(|c| c.table.name()).collect();
    let early = |name: &&str| !(whole(name) || unchecked && is_late(name));
    let tables = TABLES.into_iter().filter(early).collect();
    let (mut first, mut later): (Vec<_>, Vec<_>) =
        rows.into_iter().map(|chunk| row_job(chunk, unchecked)).partition(|(is_first, _)| *is_first);
    let mut jobs: Vec<Job<Work>> = first.drain(..).map(|(_, job)| job).collect();
    jobs.extend(INDEXES.iter().filter(|i| i.primary && is_referred_to(i.table)).map(|i| index(i, unchecked)));
    if unchecked {
        jobs.extend(FOREIGN_KEYS.iter().filter(|key| is_late(key.table)).map(make));
    }
    jobs.extend(later.drain(..).map(|(_, job)| job));
    let mut others: Vec<&Index> = INDEXES.iter().filter(|i| !(i.primary && is_referred_to(i.table))).collect();
    others.sort_by_key(|index| std::cmp::Reverse(cost(index, size)));
    jobs.extend(others.into_iter().map(|i| index(i, unchecked)));
    let open: Vec<&ForeignKey> = FOREIGN_KEYS.iter().filter(|key| !(unchecked && is_late(key.table))).collect();
    jobs.push(keys(&open));
    jobs.extend(ends(size, &open, &cut));
    Plan { jobs, tables, history_in_order }
}

fn is_referred_to(table: &str) -> bool {
    FOREIGN_KEYS.iter().any(|key| key.to == table)
}

/// Rows, and whether others wait for them.
fn row_job(chunk: Chunk, unchecked: bool) -> (bool, Job<Work>) {
    let table = chunk.table.name();
    let needs = if unchecked && is_late(table) { vec![format!("table {table}")] } else { Vec::new() };
    (is_referred_to(table), Job { makes: format!("rows {table}"), needs, work: Work::Rows(chunk) })
}

/// A table that has its foreign key before its rows.
fn make(key: &ForeignKey) -> Job<Work> {
    let table = schema::create_table(key.table).unwrap_or_default().to_owned();
    Job {
        makes: format!("table {}", key.table),
        needs: vec![format!("key {}", key.to)],
        work: Work::Statements { about: key.table, statements: vec![table, key.add()] },
    }
}

fn index(index: &Index, unchecked: bool) -> Job<Work> {
    let rows = format!("rows {}", index.table);
    let mut statements = vec![index.sql.to_owned()];
    statements.extend(index.make_primary());
    let work = Work::Statements { about: index.table, statements };
    if index.primary {
        return Job { makes: format!("key {}", index.table), needs: vec![rows], work };
    }
    let mut needs = vec![rows];
    // A primary key, and a table that refers to it, want the table to themselves for a moment.
    needs.extend(INDEXES.iter().any(|i| i.primary && i.table == index.table).then(|| format!("key {}", index.table)));
    if unchecked {
        let referring = FOREIGN_KEYS.iter().filter(|key| key.to == index.table && is_late(key.table));
        needs.extend(referring.map(|key| format!("table {}", key.table)));
    }
    Job { makes: format!("indexes {}", index.table), needs, work }
}

/// The foreign keys that are not there yet, for rows to come.
fn keys(open: &[&ForeignKey]) -> Job<Work> {
    let tables = open.iter().flat_map(|key| [key.table, key.to]);
    Job {
        makes: "keys".to_owned(),
        needs: tables.flat_map(|t| [format!("key {t}"), format!("indexes {t}"), format!("rows {t}")]).collect(),
        work: Work::Statements { about: "keys", statements: open.iter().map(|key| key.add_unchecked()).collect() },
    }
}

/// What ends each table: rows held against foreign keys, visibility, statistics. The rows of tables that were cut are not frozen yet,
/// and cannot be while a transaction goes on that is older: then all else comes first.
fn ends(size: &StoreSize, open: &[&ForeignKey], cut: &[&str]) -> Vec<Job<Work>> {
    let weight = |name: &str| {
        let table = Table::ALL.into_iter().find(|t| t.name() == name);
        table.map_or(0, |t| t.weight() * t.numbers(size))
    };
    let mut tables = TABLES;
    tables.sort_by_key(|table| std::cmp::Reverse(weight(table)));
    let end = |table: &&'static str| {
        let others: &[&str] = if cut.is_empty() { &[table] } else { &TABLES };
        let made = |table: &&str| ["key", "indexes", "rows"].map(|what| format!("{what} {table}"));
        let mut needs: Vec<String> = others.iter().flat_map(made).collect();
        if open.iter().any(|key| key.table == *table || key.to == *table) {
            needs.push("keys".to_owned());
        }
        // A row is not marked as visible to all while its commit, or one that was numbered about the same time, may not be on disk.
        // The next statements' commits wait for the disk, and so have all before them there.
        let wait = (!cut.is_empty()).then(|| "SET synchronous_commit = on".to_owned());
        let mut statements: Vec<String> = wait.into_iter().chain(schema::statistics(table)).collect();
        statements.extend(open.iter().filter(|key| key.table == *table).map(|key| key.validate()));
        statements.push(format!("VACUUM (FREEZE, ANALYZE) {table}"));
        Job { makes: format!("end {table}"), needs, work: Work::Statements { about: table, statements } }
    };
    tables.iter().map(end).collect()
}

/// What making an index costs, in no unit.
fn cost(index: &Index, size: &StoreSize) -> u64 {
    let rows = match Table::ALL.into_iter().find(|t| t.name() == index.table) {
        Some(table @ (Table::Orderlines | Table::CustHist)) => 5 * table.numbers(size),
        Some(table) => table.numbers(size),
        None => 0,
    };
    let each = if index.is_full_text() {
        5
    } else if index.table == "customers" {
        2
    } else {
        1
    };
    rows * each
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_row_is_in_one_chunk_and_no_step_waits_for_ever() {
        let size = StoreSize { customers: 20_001, orders_per_month: 1_003, products: 10_007 };
        for connections in [1, 2, 3, 4, 16] {
            for unchecked in [false, true] {
                let plan = plan(&size, connections, unchecked);
                let mut numbers = Table::ALL.map(|_| 0);
                for job in &plan.jobs {
                    if let Work::Rows(chunk) = &job.work {
                        let place = Table::ALL.iter().position(|t| *t == chunk.table).unwrap_or_default();
                        numbers[place] += chunk.to + 1 - chunk.from;
                    }
                }
                assert_eq!(numbers, Table::ALL.map(|t| t.numbers(&size)));
                let (mut left, mut there): (Vec<_>, _) = (plan.jobs.iter().collect(), HashSet::new());
                while !left.is_empty() {
                    let pending: HashSet<String> = left.iter().map(|j| j.makes.clone()).collect();
                    let before = left.len();
                    left.retain(|job| {
                        let ready = job.needs.iter().all(|need| !pending.contains(need));
                        there.extend(ready.then(|| job.makes.clone()));
                        !ready
                    });
                    assert!(
                        left.len() < before,
                        "{connections}: {:?}",
                        left.iter().map(|j| &j.makes).collect::<Vec<_>>()
                    );
                }
                assert!(TABLES.iter().all(|table| there.contains(&format!("end {table}"))));
            }
        }
    }
}
