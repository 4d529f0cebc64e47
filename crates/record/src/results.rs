//! The results of a folder, opened for reading as what they may be: a database that a stranger made to do harm.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use tare_model::trial::TrialRecord;
use tempfile::TempDir;

use crate::error::{RecordError, Result};
use crate::folder::Folder;
use crate::layout;
use crate::store::{self, RESULTS_SCHEMA};

pub(crate) const COPY_AGAIN: &str = "Copy the folder again from where it was run, or run the study anew";

/// Most bytes of a results file and its log that are copied to be read: the copy may be in memory.
const COPIED_BYTES: u64 = 128 << 20;
/// How a log of SQLite's begins: its magic number without the last bit, which says the order of bytes of its checksums.
const LOG_MAGIC: [u8; 4] = [0x37, 0x7f, 0x06, 0x82];

/// Limits on what a database may hold: far above what tare writes.
const LIMITS: [(Limit, i32); 10] = [
    // Also the most bytes of a text.
    (Limit::SQLITE_LIMIT_LENGTH, 1 << 20),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 64 << 10),
    (Limit::SQLITE_LIMIT_COLUMN, 100),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 50),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 5),
    (Limit::SQLITE_LIMIT_VDBE_OP, 25_000),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 8),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
];

/// Steps of SQLite's machine between two looks at the budget.
const LOOK_EVERY: i32 = 1000;
/// Steps that any file may take, and further ones for each byte of it: several times what reading all of it takes.
const STEPS: u64 = 5_000_000;
const STEPS_OF_A_BYTE: u64 = 64;

/// The results, opened for reading.
pub(crate) struct Results {
    db: Connection,
    file: PathBuf,
    /// Where a copy lives, when the original could not be read in place.
    _copy: Option<TempDir>,
}

impl Results {
    /// Opens the results of a folder and looks whether their tables are those that tare makes.
    pub(crate) fn open(folder: &Folder) -> Result<Self> {
        let file = folder.file(layout::RESULTS);
        let length = folder.length(layout::RESULTS)?;
        let Some(length) = length else { return Err(RecordError::damaged(&file, "is missing", COPY_AGAIN)) };
        for name in [layout::RESULTS_SHM, layout::RESULTS_JOURNAL] {
            folder.length(name)?;
        }
        let log = log_bytes(folder)?;
        let live = is_written(folder)?;
        // Without a log nothing beside the file is needed, and nothing may be made.
        let (path, immutable, copy) = if !live && log == 0 {
            (folder.real_path(layout::RESULTS)?, true, None)
        } else if live {
            (folder.real_path(layout::RESULTS)?, false, None)
        } else {
            // A log that a crash left: SQLite reads it from a copy, for it would write beside the file.
            let copy = copied(folder, length + log)?;
            (copy.path().join(layout::RESULTS), false, Some(copy))
        };
        let held = folder.bytes_on_disk(layout::RESULTS)?.min(length);
        let db = connect(&path, immutable, held + log).map_err(|e| unreadable(&file, &e))?;
        checked(&db, &file)?;
        Ok(Self { db, file, _copy: copy })
    }

    /// Trials that are stored, ascending.
    ///
    /// # Errors
    /// When they cannot be read, and when there are more than `most`, which is how many the plan has.
    pub(crate) fn indices(&self, most: usize) -> Result<Vec<u32>> {
        let stored = store::trial_indices(&self.db, most + 1).map_err(|e| unreadable(&self.file, &e))?;
        if stored.len() > most {
            return Err(RecordError::damaged(&self.file, "holds more trials than the plan has", COPY_AGAIN));
        }
        Ok(stored)
    }

    pub(crate) fn trial(&self, index: u32) -> Result<Option<TrialRecord>> {
        store::read_trial(&self.db, index).map_err(|e| unreadable(&self.file, &e))
    }

    pub(crate) fn meta(&self, key: &str) -> Option<String> {
        self.db.query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0)).ok()
    }

    /// What SQLite itself finds wrong with the file.
    pub(crate) fn integrity(&self) -> Result<(), String> {
        let said: rusqlite::Result<String> = self.db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0));
        match said {
            Ok(ok) if ok == "ok" => Ok(()),
            Ok(other) => Err(other),
            Err(e) => Err(e.to_string()),
        }
    }
}

/// Refuses a file by its schema, of which this tare reads those from 1 to `newest`. Each file with a schema is looked at here before
/// anything else of it is read: from the first release on, older schemas stay readable.
pub(crate) fn known(file: &Path, schema: u32, newest: u32) -> Result<()> {
    match schema {
        0 => Err(RecordError::damaged(file, "has schema 0, which no tare writes", COPY_AGAIN)),
        _ if schema > newest => Err(RecordError::NewerTare { file: file.to_owned(), schema, known: newest }),
        _ => Ok(()),
    }
}

/// Refuses a database whose schema is newer, or holds anything else than the tables and views that tare makes: no view, trigger,
/// generated column or virtual table of a stranger's is ever evaluated.
pub(crate) fn checked(db: &Connection, file: &Path) -> Result<()> {
    let schema: u32 =
        db.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(|e| unreadable(file, &e))?;
    known(file, schema, RESULTS_SCHEMA)?;
    let own = own_schema().map_err(|e| RecordError::store("making the tables to compare with", file, e))?;
    let found = objects(db).map_err(|e| unreadable(file, &e))?;
    let Some(other) = found.symmetric_difference(own).next() else { return Ok(()) };
    let (kind, name) = (shown(&other.0), shown(&other.1));
    let what = match (found.contains(other), own.iter().any(|object| object.1 == other.1)) {
        (true, false) => format!("holds a {kind} `{name}` that tare does not make"),
        (true, true) => format!("holds a {kind} `{name}` that is not the one that tare makes"),
        (false, _) => format!("does not hold the {kind} `{name}` as tare makes it"),
    };
    Err(RecordError::damaged(file, what, COPY_AGAIN))
}

/// What protects a connection against the file that it opens.
pub(crate) fn defend(db: &Connection) -> rusqlite::Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    for off in [
        DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA,
        DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER,
        DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW,
    ] {
        db.set_db_config(off, false)?;
    }
    for (limit, most) in LIMITS {
        db.set_limit(limit, most)?;
    }
    db.pragma_update(None, "cell_size_check", true)?;
    db.pragma_update(None, "mmap_size", 0)
}

/// Ends every statement once all of them together took more steps than reading a file of so many bytes can need.
fn bound(db: &Connection, file_bytes: u64) -> rusqlite::Result<()> {
    let mut left = (STEPS + STEPS_OF_A_BYTE * file_bytes) / u64::from(LOOK_EVERY.unsigned_abs());
    let spent = move || {
        left = left.saturating_sub(1);
        left == 0
    };
    db.progress_handler(LOOK_EVERY, Some(spent))
}

/// An object of a schema: its type, name, table and statement.
pub(crate) type Object = (String, String, String, Option<String>);

pub(crate) fn objects(db: &Connection) -> rusqlite::Result<BTreeSet<Object>> {
    db.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema LIMIT 1000")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
        .collect()
}

/// The schema of a new database.
fn own_schema() -> rusqlite::Result<&'static BTreeSet<Object>> {
    static OWN: OnceLock<BTreeSet<Object>> = OnceLock::new();
    if let Some(own) = OWN.get() {
        return Ok(own);
    }
    let mut db = Connection::open_in_memory()?;
    store::create(&mut db)?;
    Ok(OWN.get_or_init(|| objects(&db).unwrap_or_default()))
}

/// A name of a stranger's, fit for a message.
fn shown(name: &str) -> String {
    name.chars().take(60).flat_map(char::escape_default).collect()
}

/// Whether a writer holds the folder: the log is then its own and grows.
fn is_written(folder: &Folder) -> Result<bool> {
    let Some(journal) = folder.open_file(layout::JOURNAL)? else { return Ok(false) };
    Ok(matches!(journal.try_lock_shared(), Err(std::fs::TryLockError::WouldBlock)))
}

/// Length of the log that a writer or a crash left, bytes; 0 without one, and for what is no log, which SQLite would not read
/// either.
fn log_bytes(folder: &Folder) -> Result<u64> {
    let Some(mut log) = folder.open_file(layout::RESULTS_WAL)? else { return Ok(0) };
    let mut head = [0; LOG_MAGIC.len()];
    let is_log = log.read_exact(&mut head).is_ok() && [head[0], head[1], head[2], head[3] & 0xfe] == LOG_MAGIC;
    if is_log { Ok(folder.length(layout::RESULTS_WAL)?.unwrap_or_default()) } else { Ok(0) }
}

fn copied(folder: &Folder, length: u64) -> Result<TempDir> {
    let file = folder.file(layout::RESULTS);
    if length > COPIED_BYTES {
        return Err(RecordError::TooLong { file, length, most: COPIED_BYTES });
    }
    let failed = |e| RecordError::io("copying the results to read them", &file, e);
    let copy = tempfile::tempdir().map_err(failed)?;
    for name in [layout::RESULTS, layout::RESULTS_WAL] {
        if let Some(mut from) = folder.open_file(name)? {
            let mut to = File::create_new(copy.path().join(name)).map_err(failed)?;
            std::io::copy(&mut from, &mut to).map_err(failed)?;
        }
    }
    Ok(copy)
}

pub(crate) fn connect(file: &Path, immutable: bool, bytes: u64) -> rusqlite::Result<Connection> {
    let mut uri = String::from("file:");
    for &byte in file.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str(if immutable { "?immutable=1" } else { "?mode=ro" });
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let db = Connection::open_with_flags(uri, flags)?;
    defend(&db)?;
    bound(&db, bytes)?;
    Ok(db)
}

pub(crate) fn unreadable(file: &Path, e: &rusqlite::Error) -> RecordError {
    let what = match e.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => "takes more work to read than its size can need".to_owned(),
        _ => format!("cannot be read: {e}"),
    };
    RecordError::damaged(file, what, COPY_AGAIN)
}
