//! Reads a run folder and never changes it.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use serde::de::DeserializeOwned;
use tare_model::environment::Environment;
use tare_model::findings::{FINDINGS_SCHEMA, Findings};
use tare_model::plan::{PLAN_SCHEMA, Plan};
use tare_model::trial::TrialRecord;
use tempfile::TempDir;

use crate::error::{RecordError, Result};
use crate::journal::{Journal, JournalEvent};
use crate::layout;
use crate::store::{self, RESULTS_SCHEMA};
use crate::writer;

const COPY_AGAIN: &str = "Copy the folder again from where it was run, or run the study anew";

/// Who ran it and how far it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFacts {
    /// Run id.
    pub run_id: String,
    /// Version of tare that began it.
    pub tare_version: String,
    /// Whether it went through its plan.
    pub finished: bool,
}

/// A run folder, opened for reading.
#[derive(Debug)]
pub struct RunFolder {
    dir: PathBuf,
    plan: Plan,
    environment: Environment,
    source: String,
    journal: Journal,
    facts: RunFacts,
}

impl RunFolder {
    /// Opens the folder. The results themselves are opened when trials are asked for, so that a folder whose
    /// results are damaged can still be told from one that never was a run.
    ///
    /// # Errors
    /// When `dir` is no run folder, was written by a newer tare, or a file that never changes is unreadable.
    pub fn open(dir: &Path) -> Result<Self> {
        for missing in [layout::PLAN, layout::JOURNAL] {
            if !dir.join(missing).is_file() {
                return Err(RecordError::NotARun { dir: dir.to_owned(), missing });
            }
        }
        let plan: Plan = read_json(&dir.join(layout::PLAN), Some(PLAN_SCHEMA))?;
        let environment = read_json(&dir.join(layout::ENVIRONMENT), None)?;
        let study = dir.join(layout::STUDY);
        let source = std::fs::read_to_string(&study).map_err(|e| RecordError::io("reading the study", &study, e))?;
        let journal = Journal::read(&dir.join(layout::JOURNAL))?;
        let facts = facts_of(&journal, dir);
        let folder = Self { dir: dir.to_owned(), plan, environment, source, journal, facts };
        // Only a schema that is too new matters here; damage is told when the trials are asked for.
        match folder.results() {
            Err(e @ RecordError::NewerTare { .. }) => Err(e),
            _ => Ok(folder),
        }
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The plan that was run.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The host.
    pub const fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The study file as the user wrote it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The journal.
    pub const fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Who ran it and how far it came.
    pub const fn facts(&self) -> &RunFacts {
        &self.facts
    }

    /// Every trial that is stored, in the order of the plan.
    ///
    /// # Errors
    /// When the results cannot be read.
    pub fn trials(&self) -> Result<Vec<TrialRecord>> {
        let results = self.results()?;
        results.indices()?.into_iter().filter_map(|index| results.trial(index).transpose()).collect()
    }

    /// Calls `each` with one trial after the other, in the order of the plan, so that one at a time is in memory.
    ///
    /// # Errors
    /// When the results cannot be read; what `each` returns as an error is passed on.
    pub fn each_trial<E: From<RecordError>>(
        &self,
        mut each: impl FnMut(TrialRecord) -> Result<(), E>,
    ) -> Result<(), E> {
        let results = self.results()?;
        for index in results.indices()? {
            if let Some(record) = results.trial(index)? {
                each(record)?;
            }
        }
        Ok(())
    }

    /// One trial by its position in the plan; `None` when it is not stored.
    ///
    /// # Errors
    /// When the results cannot be read.
    pub fn trial(&self, index: u32) -> Result<Option<TrialRecord>> {
        self.results()?.trial(index)
    }

    /// Writes `findings.json`, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_findings(&self, findings: &Findings) -> Result<()> {
        let bytes = writer::json(&self.dir.join(layout::FINDINGS), findings)?;
        self.write_file(layout::FINDINGS, &bytes)
    }

    /// Writes a file that is made from the run, such as the report, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_file(&self, name: &str, bytes: &[u8]) -> Result<()> {
        writer::replace_file(&self.dir, name, bytes)
    }

    /// Reads `findings.json`; `None` when it was not made yet.
    ///
    /// # Errors
    /// When it is there and cannot be read, or was written by a newer tare.
    pub fn read_findings(&self) -> Result<Option<Findings>> {
        let path = self.dir.join(layout::FINDINGS);
        if !path.is_file() {
            return Ok(None);
        }
        read_json(&path, Some(FINDINGS_SCHEMA)).map(Some)
    }

    pub(crate) fn results(&self) -> Result<Results> {
        Results::open(&self.dir.join(layout::RESULTS))
    }
}

fn facts_of(journal: &Journal, dir: &Path) -> RunFacts {
    let finished = journal.finished();
    let started = journal.entries.iter().find_map(|entry| match &entry.event {
        JournalEvent::RunStarted { run_id, tare_version, .. } => Some((run_id.clone(), tare_version.clone())),
        _ => None,
    });
    let (run_id, tare_version) = started.unwrap_or_else(|| {
        let name = dir.file_name().map(|name| name.to_string_lossy().into_owned());
        (name.unwrap_or_default(), "unknown".to_owned())
    });
    RunFacts { run_id, tare_version, finished }
}

/// Reads a JSON file; its schema is looked at first, so that a newer file is named as such and not as damaged.
fn read_json<T: DeserializeOwned>(path: &Path, known: Option<u32>) -> Result<T> {
    #[derive(serde::Deserialize)]
    struct Head {
        schema: u32,
    }
    let bytes = std::fs::read(path).map_err(|e| RecordError::io("reading", path, e))?;
    if let (Some(known), Ok(Head { schema })) = (known, serde_json::from_slice(&bytes))
        && schema > known
    {
        return Err(RecordError::NewerTare { file: path.to_owned(), schema, known });
    }
    serde_json::from_slice(&bytes).map_err(|e| RecordError::damaged(path, format!("cannot be read: {e}"), COPY_AGAIN))
}

/// The results, opened for reading.
pub(crate) struct Results {
    db: Connection,
    file: PathBuf,
    /// Where a copy lives, when the original could not be read in place.
    _copy: Option<TempDir>,
}

impl Results {
    fn open(file: &Path) -> Result<Self> {
        if !file.is_file() {
            return Err(RecordError::damaged(file, "is missing", COPY_AGAIN));
        }
        let wal = file.with_file_name(layout::RESULTS_WAL);
        let wal_bytes = std::fs::metadata(&wal).map_or(0, |meta| meta.len());
        // Without a log nobody is writing, and nothing beside the file is needed or may be made.
        if wal_bytes == 0 && !wal.exists() {
            let db = connect(file, true).map_err(|e| unreadable(file, e))?;
            return Self::checked(db, file, None);
        }
        if let Ok(db) = connect(file, false) {
            return Self::checked(db, file, None);
        }
        // A log that a crash left, where nothing may be written: SQLite reads it from a copy.
        let copying = |e| RecordError::io("copying the results to read them", file, e);
        let copy = tempfile::tempdir().map_err(copying)?;
        let target = copy.path().join(layout::RESULTS);
        std::fs::copy(file, &target).map_err(copying)?;
        std::fs::copy(&wal, copy.path().join(layout::RESULTS_WAL)).map_err(copying)?;
        let db = connect(&target, false).map_err(|e| unreadable(file, e))?;
        Self::checked(db, file, Some(copy))
    }

    fn checked(db: Connection, file: &Path, copy: Option<TempDir>) -> Result<Self> {
        let schema: u32 =
            db.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(|e| unreadable(file, e))?;
        match schema {
            0 => Err(RecordError::damaged(file, "has no tables", COPY_AGAIN)),
            _ if schema > RESULTS_SCHEMA => {
                Err(RecordError::NewerTare { file: file.to_owned(), schema, known: RESULTS_SCHEMA })
            }
            _ => Ok(Self { db, file: file.to_owned(), _copy: copy }),
        }
    }

    pub(crate) fn indices(&self) -> Result<Vec<u32>> {
        store::trial_indices(&self.db).map_err(|e| unreadable(&self.file, e))
    }

    pub(crate) fn trial(&self, index: u32) -> Result<Option<TrialRecord>> {
        store::read_trial(&self.db, index).map_err(|e| unreadable(&self.file, e))
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

fn connect(file: &Path, immutable: bool) -> rusqlite::Result<Connection> {
    let mut uri = String::from("file:");
    for &byte in file.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str(if immutable { "?immutable=1" } else { "?mode=ro" });
    let db = Connection::open_with_flags(uri, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)?;
    // Opening reads nothing yet: what cannot be read must show here.
    db.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0))?;
    Ok(db)
}

fn unreadable(file: &Path, e: rusqlite::Error) -> RecordError {
    RecordError::damaged(file, format!("cannot be read: {e}"), COPY_AGAIN)
}
