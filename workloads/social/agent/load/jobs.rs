//! What is done to fill a database, and what each step waits for.
//!
//! Nothing waits for a whole phase: a key begins when the rows of its table are there, the other indexes when its key is. Steps that lock
//! a table in ways that exclude each other wait for each other here, so that no connection waits in the server.

use crate::social::spec::Scale;
use tare_model::sql::SqlFailure;

use super::script::Script;
use crate::fill::crew::Job;
use crate::fill::work::{self, chunks};
use crate::social::data::Table;

type Work = work::Work<Table>;

/// How a database is filled.
pub struct Plan {
    /// The jobs, what should begin early first.
    pub jobs: Vec<Job<Work>>,
    /// Tables that must be there before.
    pub tables: Vec<Table>,
}

/// How a database is filled over so many connections.
///
/// # Errors
/// Statements that are missing: a defect of this program.
pub fn plan(scale: &Scale, connections: u64, script: &Script) -> Result<Plan, SqlFailure> {
    let weight = |table: Table| table.weight() * table.numbers(scale);
    let mut rows = chunks(&Table::ALL.map(|table| (table, table.numbers(scale), table.weight())), connections);
    // First what takes longest.
    rows.sort_by_key(|chunk| std::cmp::Reverse(weight(chunk.table)));
    let mut cut: Vec<Table> = rows.iter().filter(|chunk| !chunk.whole).map(|chunk| chunk.table).collect();
    cut.dedup();
    let mut jobs: Vec<Job<Work>> = rows
        .into_iter()
        .map(|chunk| Job { makes: rows_of(chunk.table), needs: Vec::new(), work: Work::Rows(chunk) })
        .collect();
    let mut tables = Table::ALL;
    tables.sort_by_key(|table| std::cmp::Reverse(weight(*table)));
    let statements = |table: Table, statements| Work::Statements { about: table.name(), statements };
    for table in tables {
        let keys = script.keys(table).map(str::to_owned).collect();
        jobs.push(Job { makes: key_of(table), needs: vec![rows_of(table)], work: statements(table, keys) });
    }
    for table in tables {
        for index in script.indexes(table) {
            let work = statements(table, vec![index.to_owned()]);
            jobs.push(Job { makes: indexes_of(table), needs: vec![key_of(table)], work });
        }
    }
    jobs.extend(tables.into_iter().map(|table| end(table, !cut.is_empty())));
    for table in &cut {
        script.create(*table)?;
    }
    Ok(Plan { jobs, tables: cut })
}

fn rows_of(table: Table) -> String {
    format!("rows {}", table.name())
}

fn key_of(table: Table) -> String {
    format!("key {}", table.name())
}

fn indexes_of(table: Table) -> String {
    format!("indexes {}", table.name())
}

/// What ends a table: visibility and statistics. The rows of tables that were cut are not frozen yet, and cannot be while a transaction
/// goes on that is older: then all else comes first.
fn end(table: Table, cut: bool) -> Job<Work> {
    let all = Table::ALL;
    let others: &[Table] = if cut { &all } else { &[table] };
    let needs = others.iter().flat_map(|table| [rows_of(*table), key_of(*table), indexes_of(*table)]).collect();
    // A row is not marked as visible to all while its commit, or one that was numbered about the same time, may not be on disk.
    // The next statements' commits wait for the disk, and so have all before them there.
    let wait = cut.then(|| "SET synchronous_commit = on".to_owned());
    let statements = wait.into_iter().chain([format!("VACUUM (FREEZE, ANALYZE) {}", table.name())]).collect();
    Job { makes: format!("end {}", table.name()), needs, work: Work::Statements { about: table.name(), statements } }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_row_is_in_one_chunk_and_no_step_waits_for_ever() {
        let scale = Scale::of(30);
        for connections in [1, 2, 3, 4, 16] {
            let plan = plan(&scale, connections, &Script::ours().unwrap()).unwrap();
            let mut numbers = Table::ALL.map(|_| 0);
            for job in &plan.jobs {
                if let Work::Rows(chunk) = &job.work {
                    assert_eq!(chunk.whole, !plan.tables.contains(&chunk.table));
                    numbers[chunk.table as usize] += chunk.to + 1 - chunk.from;
                }
            }
            assert_eq!(numbers, Table::ALL.map(|table| table.numbers(&scale)));
            let (mut left, mut there): (Vec<_>, HashSet<String>) = (plan.jobs.iter().collect(), HashSet::new());
            while !left.is_empty() {
                let pending: HashSet<String> = left.iter().map(|job| job.makes.clone()).collect();
                let before = left.len();
                left.retain(|job| {
                    let ready = job.needs.iter().all(|need| !pending.contains(need));
                    there.extend(ready.then(|| job.makes.clone()));
                    !ready
                });
                assert!(left.len() < before, "{connections}: {:?}", left.iter().map(|j| &j.makes).collect::<Vec<_>>());
            }
            assert!(Table::ALL.iter().all(|table| there.contains(&format!("end {}", table.name()))));
        }
    }
}
