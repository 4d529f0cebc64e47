//! Runs of studies over time, in one SQLite file of their own.
//!
//! A writer takes the file for itself for the time of one transaction, and others wait for it: `docs/adr/0040-history.md`.

mod rows;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, TransactionBehavior, ffi, params};
use tare_model::history::RunEffects;

use crate::error::{RecordError, Result};
use crate::results::{self, Object};

/// Newest schema of a history that this tare reads (`PRAGMA user_version`).
pub const HISTORY_SCHEMA: u32 = 1;

/// How long one writer waits for another.
const WAIT: Duration = Duration::from_secs(60);
const ANOTHER_FILE: &str = "Name another file, or make a new one with `tare history add --into FILE`";

/// Adds runs to a history, all or none, and makes the file where there is none; gives of each run whether it was new. A run that is there
/// already is left as it is.
///
/// # Errors
/// When the file is no history, was written by a newer tare, or cannot be written; when it holds another run of the same id; when another
/// writer holds it for more than a minute.
pub fn add(file: &Path, runs: &[RunEffects]) -> Result<Vec<bool>> {
    let path = real(file)?;
    let failed = |e| unusable(file, "writing the history", e);
    let mut db = open(&path).map_err(failed)?;
    // At once for writing: two that read first and then write could not wait for each other.
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let objects = results::objects(&transaction).map_err(failed)?;
    if objects.is_empty() && version(&transaction).map_err(failed)? == 0 {
        create(&transaction).map_err(failed)?;
    }
    checked(&transaction, file)?;
    let mut added = Vec::with_capacity(runs.len());
    for run in runs {
        let known = known(&transaction, run).map_err(failed)?;
        if let Some(root_hash) = known.as_ref().filter(|known| **known != run.root_hash) {
            let (run, root_hash, given) = (run.run.clone(), root_hash.clone(), run.root_hash.clone());
            return Err(RecordError::OtherRun { file: file.to_owned(), run, root_hash, given });
        }
        if known.is_none() {
            rows::insert(&transaction, run).map_err(failed)?;
        }
        added.push(known.is_none());
    }
    transaction.commit().map_err(failed)?;
    Ok(added)
}

/// All runs of a history, in the order in which they were added.
///
/// # Errors
/// When there is no such file, it is no history, was written by a newer tare, or cannot be read.
pub fn read(file: &Path) -> Result<Vec<RunEffects>> {
    let length = match std::fs::metadata(file) {
        Ok(found) => found.len(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(RecordError::NoHistory { file: file.to_owned() });
        }
        Err(e) => return Err(RecordError::io("reading the history", file, e)),
    };
    let failed = |e| unusable(file, "reading the history", e);
    let mut db = results::connect(&real(file)?, false, length).map_err(failed)?;
    db.busy_timeout(WAIT).map_err(failed)?;
    // One view of the file, whoever writes meanwhile.
    let transaction = db.transaction().map_err(failed)?;
    checked(&transaction, file)?;
    rows::read(&transaction).map_err(failed)
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(WAIT)?;
    results::defend(&db)?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "foreign_keys", true)?;
    Ok(db)
}

/// The file without links on the way to it, which SQLite is not to follow.
fn real(file: &Path) -> Result<PathBuf> {
    if let Ok(there) = file.canonicalize() {
        return Ok(there);
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().map_err(|e| RecordError::io("finding the folder of the history", folder, e))?;
    Ok(file.file_name().map_or_else(|| folder.clone(), |name| folder.join(name)))
}

fn create(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch(include_str!("schema.sql"))?;
    db.pragma_update(None, "user_version", HISTORY_SCHEMA)
}

fn version(db: &Connection) -> rusqlite::Result<u32> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Refuses a database that is not a history as this tare makes it: nothing else of a stranger's is ever evaluated.
fn checked(db: &Connection, file: &Path) -> Result<()> {
    let failed = |e| unusable(file, "reading the history", e);
    let schema = version(db).map_err(failed)?;
    let found = results::objects(db).map_err(failed)?;
    if found == *own_schema().map_err(|e| RecordError::store("making the tables to compare with", file, e))? {
        return results::known(file, schema, HISTORY_SCHEMA);
    }
    let is_history = ["runs", "facts", "effects"].iter().all(|name| found.iter().any(|object| object.1 == *name));
    match is_history && schema > HISTORY_SCHEMA {
        true => results::known(file, schema, HISTORY_SCHEMA),
        false => Err(RecordError::damaged(file, "is no history of tare's", ANOTHER_FILE)),
    }
}

/// The schema of a new history.
fn own_schema() -> rusqlite::Result<&'static BTreeSet<Object>> {
    static OWN: OnceLock<BTreeSet<Object>> = OnceLock::new();
    if let Some(own) = OWN.get() {
        return Ok(own);
    }
    let db = Connection::open_in_memory()?;
    create(&db)?;
    let own = results::objects(&db)?;
    Ok(OWN.get_or_init(|| own))
}

/// The root hash of the run in the history that is this one or has its id.
fn known(db: &Connection, run: &RunEffects) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT root_hash FROM runs WHERE run_id = ?1 OR root_hash = ?2";
    db.query_row(sql, params![run.run, run.root_hash], |row| row.get(0)).optional()
}

/// What SQLite says of the file, with what would help.
fn unusable(file: &Path, doing: &'static str, e: rusqlite::Error) -> RecordError {
    let interrupted = matches!(&e, rusqlite::Error::SqliteFailure(e, _)
        if e.extended_code == ffi::SQLITE_READONLY_ROLLBACK || e.extended_code == ffi::SQLITE_READONLY_RECOVERY);
    match e.sqlite_error_code() {
        _ if interrupted => RecordError::damaged(
            file,
            "holds the beginning of an addition whose tare was killed",
            "`tare history add` with any run takes it back",
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => RecordError::HistoryBusy { file: file.to_owned() },
        Some(ErrorCode::NotADatabase) => RecordError::damaged(file, "is no history of tare's", ANOTHER_FILE),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::OperationInterrupted) => {
            RecordError::damaged(file, format!("is damaged: {e}"), "Make a new history of the same run folders")
        }
        _ => RecordError::store(doing, file, e),
    }
}
