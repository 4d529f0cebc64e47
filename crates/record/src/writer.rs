//! Writes a run folder, so that a crash at any moment loses nothing that was acknowledged.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, TransactionBehavior, params};
use serde::Serialize;
use tare_model::environment::Environment;
use tare_model::plan::Plan;
use tare_model::trial::TrialRecord;

use crate::digest::{sha256_hex, trial_digest};
use crate::error::{RecordError, Result};
use crate::journal::{Journal, JournalEvent, JournalWriter};
use crate::layout;
use crate::reader::RunFolder;
use crate::store::{self, MIGRATIONS};
use crate::verify::ProblemKind;

const NEW_RUN: &str = "The folder cannot be continued: start a new run. `tare report` still shows what it holds";

/// The one writer of a run folder. Holds the folder's lock as long as it lives.
#[derive(Debug)]
pub struct RunWriter {
    dir: PathBuf,
    plan: Plan,
    journal: JournalWriter,
    results: Connection,
    recorded: BTreeSet<u32>,
    repairs: Vec<String>,
}

impl RunWriter {
    /// Makes the folder of a new run and writes into it what never changes.
    ///
    /// # Errors
    /// When `dir` is there and not empty, or anything cannot be written.
    pub fn create(
        dir: &Path,
        study_source: &str,
        plan: &Plan,
        environment: &Environment,
        run_id: &str,
        tare_version: &str,
    ) -> Result<Self> {
        fs::create_dir_all(dir).map_err(|e| RecordError::io("making the run folder", dir, e))?;
        let mut entries = fs::read_dir(dir).map_err(|e| RecordError::io("reading the run folder", dir, e))?;
        if entries.next().is_some() {
            return Err(RecordError::NotEmpty { dir: dir.to_owned() });
        }
        let mut journal = JournalWriter::open(&dir.join(layout::JOURNAL), true)?;
        write_file(&dir.join(layout::README), layout::README_TEXT.as_bytes())?;
        let fixed = [
            (layout::STUDY, study_source.as_bytes().to_vec()),
            (layout::PLAN, json(&dir.join(layout::PLAN), plan)?),
            (layout::ENVIRONMENT, json(&dir.join(layout::ENVIRONMENT), environment)?),
        ];
        for (name, bytes) in &fixed {
            write_file(&dir.join(name), bytes)?;
        }
        let results = create_results(&dir.join(layout::RESULTS), plan, run_id, tare_version)?;
        journal.append(&JournalEvent::RunStarted {
            run_id: run_id.to_owned(),
            tare_version: tare_version.to_owned(),
            plan_hash: plan.hash.clone(),
            files: fixed.iter().map(|(name, bytes)| ((*name).to_owned(), sha256_hex(bytes))).collect(),
        })?;
        sync_dir(dir)?;
        let (dir, plan) = (dir.to_owned(), plan.clone());
        Ok(Self { dir, plan, journal, results, recorded: BTreeSet::new(), repairs: Vec::new() })
    }

    /// Opens the folder of a run that was cut short, and repairs what a crash can leave: a torn last line of
    /// the journal is kept aside in `journal.torn`, and a trial that was stored whole but not yet acknowledged is
    /// acknowledged. Each repair is reported by [`Self::repairs`] and written to the journal.
    ///
    /// # Errors
    /// When another process writes to the folder, when it was written by a newer tare, or when it is in a
    /// state that a crash cannot explain (a file altered, an acknowledged trial gone).
    pub fn open_for_resume(dir: &Path, tare_version: &str) -> Result<Self> {
        let folder = RunFolder::open(dir)?;
        let path = dir.join(layout::JOURNAL);
        let mut writer = JournalWriter::open(&path, false)?;
        // Read again under the lock: what was read before it may be older.
        let journal = Journal::read(&path)?;
        let mut unacknowledged = Vec::new();
        for problem in folder.verify() {
            match problem.kind {
                ProblemKind::CutShort | ProblemKind::Torn => {}
                ProblemKind::Unacknowledged(index) => unacknowledged.push(index),
                _ => return Err(RecordError::damaged(&dir.join(&problem.file), problem.what, NEW_RUN)),
            }
        }
        let mut repairs = Vec::new();
        if let Some(torn) = &journal.torn {
            keep_aside(&dir.join(layout::JOURNAL_TORN), torn)?;
            repairs.push(format!(
                "the last line of {} was torn ({} bytes); it is kept in {}",
                layout::JOURNAL,
                torn.len(),
                layout::JOURNAL_TORN
            ));
        }
        writer.continue_after(&journal)?;
        let file = dir.join(layout::RESULTS);
        let mut results = open_results(&file)?;
        migrate(&mut results, &file)?;
        let stored = store::trial_indices(&results).map_err(|e| RecordError::store("listing the trials", &file, e))?;
        let plan = folder.plan().clone();
        let recorded = stored.into_iter().collect();
        let mut this = Self { dir: dir.to_owned(), plan, journal: writer, results, recorded, repairs };
        for index in unacknowledged {
            let record = this.read_back(index)?;
            this.journal.append(&JournalEvent::TrialAcknowledged { index, digest: trial_digest(&record) })?;
            this.repairs.push(format!("trial {index} was stored whole but not acknowledged; it is now"));
        }
        let (tare_version, repairs) = (tare_version.to_owned(), this.repairs.clone());
        this.journal.append(&JournalEvent::RunResumed { tare_version, repairs })?;
        Ok(this)
    }

    /// Stores a trial and acknowledges it. When this returns, the trial is on disk and reads as it was measured;
    /// when it fails, the trial is not there, or there whole and not acknowledged.
    ///
    /// # Errors
    /// When the trial is not of this plan, is recorded already, holds a number beyond 2^63, or cannot be
    /// written (a full disk is [`RecordError::DiskFull`]).
    pub fn append(&mut self, record: &TrialRecord) -> Result<()> {
        let index = record.planned.index;
        if self.plan.trials.get(index as usize) != Some(&record.planned) {
            let planned = &record.planned;
            let what = format!("block {}, case {}, arm {}", planned.block, planned.case, planned.arm);
            return Err(RecordError::NotInPlan { index, what });
        }
        if self.recorded.contains(&index) {
            return Err(RecordError::AlreadyRecorded { index });
        }
        let digest = self.store(record)?;
        self.recorded.insert(index);
        self.journal.append(&JournalEvent::TrialAcknowledged { index, digest })
    }

    /// Writes an event to the journal, and waits for the disk where others rely on the line
    /// ([`JournalEvent::durable`]).
    ///
    /// # Errors
    /// When it cannot be written. No part of the line is left then.
    pub fn journal(&mut self, event: &JournalEvent) -> Result<()> {
        self.journal.append(event)
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The plan that is run.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Trials that are recorded, whatever their outcome.
    pub const fn recorded(&self) -> &BTreeSet<u32> {
        &self.recorded
    }

    /// What [`Self::open_for_resume`] had to repair, each in a sentence.
    pub fn repairs(&self) -> &[String] {
        &self.repairs
    }

    fn results_file(&self) -> PathBuf {
        self.dir.join(layout::RESULTS)
    }

    /// One transaction; gives the digest of what was read back inside it.
    fn store(&mut self, record: &TrialRecord) -> Result<String> {
        let index = record.planned.index;
        let file = self.results_file();
        let failed = |e| RecordError::store("storing a trial", &file, e);
        let transaction = self.results.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        store::insert_trial(&transaction, record).map_err(|e| match e {
            store::InsertError::TooLarge(e) => e,
            store::InsertError::Sql(e) => failed(e),
        })?;
        let reread = store::read_trial(&transaction, index).map_err(failed)?;
        let digest = trial_digest(record);
        if reread.as_ref().map(trial_digest).as_ref() != Some(&digest) {
            return Err(RecordError::ReadsOtherwise { index });
        }
        transaction.commit().map_err(failed)?;
        Ok(digest)
    }

    fn read_back(&self, index: u32) -> Result<TrialRecord> {
        let file = self.results_file();
        store::read_trial(&self.results, index)
            .map_err(|e| RecordError::store("reading a trial", &file, e))?
            .ok_or_else(|| RecordError::damaged(&file, format!("lost trial {index} while it was read"), NEW_RUN))
    }
}

impl Drop for RunWriter {
    /// Folds the log back into the results and leaves one plain file, which opens from read-only media as well. If this
    /// cannot be done, nothing is lost: the log stays beside the file, as after a crash.
    fn drop(&mut self) {
        let _ = self.results.pragma_update(None, "journal_mode", "DELETE");
    }
}

fn create_results(file: &Path, plan: &Plan, run_id: &str, tare_version: &str) -> Result<Connection> {
    let mut results = open_results(file)?;
    migrate(&mut results, file)?;
    let facts = [
        ("run_id", run_id),
        ("tare_version", tare_version),
        ("plan_hash", plan.hash.as_str()),
        ("study", plan.study.name.as_str()),
    ];
    for (key, value) in facts {
        results
            .execute("INSERT INTO meta VALUES (?1, ?2)", params![key, value])
            .map_err(|e| RecordError::store("making the results", file, e))?;
    }
    Ok(results)
}

/// Brings the tables to the newest schema: all of them in a new file, what is missing in one that an older tare began.
fn migrate(results: &mut Connection, file: &Path) -> Result<()> {
    const DOING: &str = "making the results' tables";
    MIGRATIONS.to_latest(results).map_err(|e| match e {
        rusqlite_migration::Error::RusqliteError { err, .. } => RecordError::store(DOING, file, err),
        other => RecordError::io(DOING, file, std::io::Error::other(other)),
    })?;
    let schema = store::RESULTS_SCHEMA.to_string();
    results
        .execute("INSERT OR REPLACE INTO meta VALUES ('schema', ?1)", params![schema])
        .map_err(|e| RecordError::store(DOING, file, e))?;
    Ok(())
}

/// Opens for writing: a commit returns when its log is on disk, and a crash costs at most what was not committed.
fn open_results(file: &Path) -> Result<Connection> {
    let failed = |e| RecordError::store("opening the results", file, e);
    let results = Connection::open(file).map_err(failed)?;
    results.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    results.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    results.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    Ok(results)
}

pub(crate) fn json(file: &Path, value: &impl Serialize) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|e| RecordError::io("writing JSON", file, std::io::Error::other(e)))?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || {
        let mut file = File::create_new(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(|e| RecordError::io("writing", path, e))
}

/// Replaces a file whole: a reader sees the old one or the new one.
pub(crate) fn replace_file(dir: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = dir.join(name);
    let replace = || {
        let mut file = tempfile::Builder::new().prefix(name).tempfile_in(dir)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        // A temporary file is private; the results of a run are for whoever may read the folder.
        fs::set_permissions(file.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        file.persist(&path).map_err(|e| e.error)
    };
    replace().map_err(|e| RecordError::io("writing", &path, e))?;
    sync_dir(dir)
}

fn keep_aside(path: &Path, bytes: &[u8]) -> Result<()> {
    let keep = || {
        let mut file = File::options().create(true).append(true).open(path)?;
        file.write_all(bytes)?;
        file.write_all(b"\n")?;
        file.sync_all()
    };
    keep().map_err(|e| RecordError::io("keeping a torn line aside", path, e))
}

fn sync_dir(dir: &Path) -> Result<()> {
    File::open(dir).and_then(|d| d.sync_all()).map_err(|e| RecordError::io("writing the folder's entries", dir, e))
}
