//! Rows of a table on their way to the server, in a transaction of their own.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};

use tare_model::sql::SqlFailure;

use super::copy;
use super::crew::{cancelled, failed_at};
use crate::pg::Connection;

/// Bytes of rows that are handed over at once.
const BUFFER: usize = 64 * 1024;

/// Where rows go, and how.
pub struct Batch<'a> {
    /// Their table.
    pub table: &'a str,
    /// Statements that come first in their transaction.
    pub before: Vec<String>,
    /// The table was made or emptied by one of these statements, so that its rows can be written frozen: nobody has to visit them again.
    pub frozen: bool,
}

/// Sends the rows of these numbers and commits. `write` appends those of a number and returns how many there were. Returns rows and
/// bytes.
///
/// # Errors
/// Why the server refuses them, and that nobody wants them any more (`stop`).
pub fn send(
    connection: &mut Connection,
    batch: &Batch<'_>,
    numbers: RangeInclusive<u64>,
    stop: &AtomicBool,
    write: impl Fn(u64, &mut Vec<u8>) -> u64,
) -> Result<(u64, u64), SqlFailure> {
    let table = batch.table;
    let what = format!("table {table}, rows");
    connection.simple("BEGIN").map_err(failed_at(&what))?;
    batch.before.iter().try_for_each(|sql| connection.simple(sql).map(|_| ())).map_err(failed_at(&what))?;
    let freeze = if batch.frozen { ", FREEZE" } else { "" };
    let mut copy = connection
        .copy_in(&format!("COPY {table} FROM STDIN WITH (FORMAT binary{freeze})"))
        .map_err(failed_at(&what))?;
    let mut out = Vec::with_capacity(2 * BUFFER);
    let (mut rows, mut bytes) = (0, 0);
    out.extend_from_slice(copy::HEADER);
    for number in numbers {
        rows += write(number, &mut out);
        if out.len() >= BUFFER {
            if stop.load(Ordering::Relaxed) {
                return Err(cancelled());
            }
            copy.write(&out).map_err(failed_at(&what))?;
            bytes += out.len() as u64;
            out.clear();
        }
    }
    out.extend_from_slice(&copy::TRAILER);
    copy.write(&out).map_err(failed_at(&what))?;
    bytes += out.len() as u64;
    let taken = copy.finish().map_err(failed_at(&what))?;
    if taken != rows {
        let message = format!("{what}: {rows} were sent, and the server says that it took {taken}");
        return Err(SqlFailure { sqlstate: None, message });
    }
    connection.simple("COMMIT").map_err(failed_at(&what))?;
    Ok((rows, bytes))
}
