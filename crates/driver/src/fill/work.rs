//! What connections do to fill a database: tables cut into chunks, and statements; and how much of it was done.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tare_model::sql::SqlFailure;

use super::crew::{Crew, Job, failed_at};
use crate::pg::Connection;

/// Chunks a connection of a table that is cut.
const CHUNKS_EACH: u64 = 4;

/// What a connection does. `T` names a table.
pub enum Work<T> {
    /// Rows.
    Rows(Chunk<T>),
    /// Statements, each by itself.
    Statements {
        /// What they are about, for the failure's message.
        about: &'static str,
        /// The statements.
        statements: Vec<String>,
    },
}

/// Rows to be loaded.
pub struct Chunk<T> {
    /// Their table.
    pub table: T,
    /// Number of the first.
    pub from: u64,
    /// Number of the last.
    pub to: u64,
    /// All rows of the table: nobody else sees it meanwhile.
    pub whole: bool,
}

/// The rows of all tables: (table, numbers, weight of a number). A table that is more than a connection's share is cut.
pub fn chunks<T: Copy>(tables: &[(T, u64, u64)], connections: u64) -> Vec<Chunk<T>> {
    let total: u64 = tables.iter().map(|(_, numbers, weight)| numbers * weight).sum();
    let mut chunks = Vec::new();
    for (table, numbers, weight) in tables {
        let whole = connections == 1 || weight * numbers * connections * 10 <= total * 11;
        let step = if whole { *numbers } else { numbers.div_ceil(connections * CHUNKS_EACH) };
        let mut from = 1;
        while from <= *numbers {
            let to = (from + step - 1).min(*numbers);
            chunks.push(Chunk { table: *table, from, to, whole });
            from = to + 1;
        }
    }
    chunks
}

/// What was loaded.
pub struct Done<T> {
    /// Table, rows, bytes sent for it.
    pub tables: Vec<(T, u64, u64)>,
    /// From `began` until the last row was there.
    pub rows: Duration,
}

/// Has the jobs done ([`Crew::run`]); `send` loads a chunk and returns rows and bytes.
pub fn run<T: Copy + PartialEq + Send + Sync>(
    crew: &mut Crew,
    jobs: &[Job<Work<T>>],
    tables: &[T],
    (began, cancel): (Instant, &AtomicBool),
    send: impl Fn(&mut Connection, &Chunk<T>, &AtomicBool) -> Result<(u64, u64), SqlFailure> + Sync,
) -> Result<Done<T>, SqlFailure> {
    let none = Done { tables: tables.iter().map(|table| (*table, 0, 0)).collect(), rows: Duration::ZERO };
    let done = Mutex::new(none);
    crew.run(jobs, cancel, |connection, work, stop| match work {
        Work::Rows(chunk) => {
            let (rows, bytes) = send(connection, chunk, stop)?;
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.rows = began.elapsed();
            for (_, all_rows, all_bytes) in done.tables.iter_mut().filter(|(table, ..)| *table == chunk.table) {
                (*all_rows, *all_bytes) = (*all_rows + rows, *all_bytes + bytes);
            }
            Ok(())
        }
        Work::Statements { about, statements } => statements.iter().try_for_each(|sql| {
            connection.simple(sql).map_err(failed_at(&format!("table {about}: `{sql}`")))?;
            Ok(())
        }),
    })?;
    Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner))
}
