//! Whether a server can hold what is to be filled, and holds none yet; and dropping what a failed load made.

use std::time::Duration;

use tare_model::sql::{SqlFailure, SqlServer};

use super::crew::connect;
use crate::pg::Connection;

/// Oldest server: generated statements and procedures that end transactions are of version 11, `COPY FREEZE` with visibility, `REINDEX`
/// and what else an administrator expects of version 12.
const OLDEST: u32 = 120_000;
/// Longest that dropping what a failed load made may take.
const DROP_TIMEOUT: Duration = Duration::from_secs(10);

/// Settings of the connections that load. A commit need not wait for the disk, since the last one does and its place in the log is
/// behind all others. As many processes work as there are connections, and none more.
pub const SETTINGS: &str = "SET client_min_messages = warning; SET synchronous_commit = off; \
    SET maintenance_work_mem = '128MB'; SET max_parallel_maintenance_workers = 0; \
    SET max_parallel_workers_per_gather = 0; SET jit = off; SET statement_timeout = 0; SET lock_timeout = 0";

/// Has a database filled that holds none of `tables` yet, and by nobody else meanwhile. What was made is dropped when `fill` fails.
/// `noun` says what it is, such as `store`.
///
/// # Errors
/// Those of `fill`, with what was tried; and that the server is too old, has no such schema, is being filled, or has such tables.
pub fn guarded<T>(
    server: &SqlServer,
    noun: &str,
    tables: &[&str],
    fill: impl FnOnce(&mut Connection) -> Result<T, SqlFailure>,
) -> Result<T, SqlFailure> {
    let mut keeper = connect(server)?;
    keeper.simple(SETTINGS)?;
    let result = check(&mut keeper, server, noun, tables).and_then(|()| {
        let filled = fill(&mut keeper);
        if filled.is_err() {
            drop_tables(server, tables);
        }
        filled.map_err(|mut failure| {
            failure.message = format!("cannot fill the {noun} in {server}: {}", failure.message);
            failure
        })
    });
    // The lock goes with the session, but somewhat later than this returns.
    let _ = keeper.simple("SELECT pg_advisory_unlock_all()");
    result
}

/// Whether the server can hold the tables, and holds none of them yet. Takes a lock that lasts as long as the session, so that two loads
/// do not meet.
fn check(keeper: &mut Connection, server: &SqlServer, noun: &str, tables: &[&str]) -> Result<(), SqlFailure> {
    let refuse = |sqlstate: Option<&str>, why: String| {
        Err(SqlFailure { sqlstate: sqlstate.map(str::to_owned), message: format!("{server}: {why}") })
    };
    let version = ask(keeper, "SHOW server_version_num")?;
    let number: u32 = version.parse().unwrap_or(0);
    if number < OLDEST {
        let (major, oldest) = (number / 10_000, OLDEST / 10_000);
        return refuse(None, format!("PostgreSQL {major} is too old; the {noun} needs {oldest} or later"));
    }
    let schema = ask(keeper, "SELECT coalesce(current_schema(), '')")?;
    if schema.is_empty() {
        let name = server.schema.as_deref().unwrap_or("public");
        return refuse(Some("3F000"), format!("there is no schema {name}; create it, or name another"));
    }
    let lock = ask(keeper, "SELECT pg_try_advisory_lock(1952543333, hashtext(current_schema()))")?;
    if lock != "t" {
        return refuse(Some("55006"), format!("somebody else is filling a {noun} in schema {schema}"));
    }
    let names = tables.iter().map(|t| format!("'{t}'")).collect::<Vec<_>>().join(", ");
    let there = ask(
        keeper,
        &format!(
            "SELECT coalesce(string_agg(relname, ', ' ORDER BY relname), '') FROM pg_class \
             WHERE relnamespace = current_schema()::regnamespace AND relname IN ({names})"
        ),
    )?;
    if !there.is_empty() {
        return refuse(
            Some("42P07"),
            format!(
                "schema already there: schema {schema} has {there}, and nothing of it was touched; name a database or schema \
                 without a {noun}, or drop these first"
            ),
        );
    }
    Ok(())
}

/// The one value that a query gives.
pub fn ask(connection: &mut Connection, sql: &str) -> Result<String, SqlFailure> {
    let said = connection.simple(sql)?;
    Ok(said.first().and_then(|r| r.rows.first()?.first()?.clone()).unwrap_or_default())
}

/// Drops what a load made that failed. The failure that led here, or the next load, reports what cannot be dropped.
fn drop_tables(server: &SqlServer, tables: &[&str]) {
    if let Ok(mut connection) = Connection::connect(server, DROP_TIMEOUT)
        && connection.bound(Some(DROP_TIMEOUT)).is_ok()
    {
        let _ = connection.simple("SET client_min_messages = warning");
        let _ = connection.simple(&format!("DROP TABLE IF EXISTS {} CASCADE", tables.join(", ")));
    }
}
