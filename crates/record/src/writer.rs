//! Writes a run folder, so that a crash at any moment loses nothing that was acknowledged.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};
use tare_model::environment::Environment;
use tare_model::plan::Plan;
use tare_model::trial::TrialRecord;

use crate::digest::{sha256_hex, trial_digest};
use crate::error::{RecordError, Result};
use crate::folder::{Folder, json};
use crate::journal::{JOURNAL_SCHEMA, JournalEvent, JournalWriter};
use crate::layout;
use crate::reader::RunFolder;
use crate::results;
use crate::sets;
use crate::store;
use crate::verify::ProblemKind;

const NEW_RUN: &str = "The folder cannot be continued: start a new run. `tare report` still shows what it holds";

/// The one writer of a run folder. Holds the folder's lock as long as it lives.
#[derive(Debug)]
pub struct RunWriter {
    folder: Folder,
    plan: Plan,
    journal: JournalWriter,
    results: Connection,
    recorded: BTreeSet<u32>,
    /// The acknowledgement of a trial that is stored, where the journal could not be written.
    owed: Option<JournalEvent>,
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
        let folder = Folder::create(dir)?;
        let mut journal = JournalWriter::create(&folder)?;
        folder.replace(layout::README, layout::README_TEXT.as_bytes())?;
        let fixed = [
            (layout::STUDY, study_source.as_bytes().to_vec()),
            (layout::PLAN, json(&folder.file(layout::PLAN), plan)?),
            (layout::ENVIRONMENT, json(&folder.file(layout::ENVIRONMENT), environment)?),
        ];
        for (name, bytes) in &fixed {
            folder.replace(name, bytes)?;
        }
        folder.open_new(layout::RESULTS)?;
        let results = create_results(&folder, plan, run_id, tare_version)?;
        journal.append(&JournalEvent::RunStarted {
            schema: JOURNAL_SCHEMA,
            run_id: run_id.to_owned(),
            tare_version: tare_version.to_owned(),
            plan_hash: plan.hash.clone(),
            files: fixed.iter().map(|(name, bytes)| ((*name).to_owned(), sha256_hex(bytes))).collect(),
        })?;
        folder.sync()?;
        let (plan, recorded, repairs) = (plan.clone(), BTreeSet::new(), Vec::new());
        Ok(Self { folder, plan, journal, results, recorded, owed: None, repairs })
    }

    /// Opens the folder of a run that was cut short, and repairs what a crash can leave: a torn last line of
    /// the journal is kept aside in `journal.torn`; a trial that was stored but not yet acknowledged is removed, and so are those of a
    /// set that is not there whole, so that they are measured anew. Each repair is reported by [`Self::repairs`] and written to the journal.
    ///
    /// # Errors
    /// When another process writes to the folder, when it was written by a newer tare, or when it is in a
    /// state that a crash cannot explain (a file altered, an acknowledged trial gone).
    pub fn open_for_resume(dir: &Path, tare_version: &str) -> Result<Self> {
        let folder = Folder::open(dir)?;
        let mut writer = JournalWriter::open(&folder)?;
        // A writer that ends or begins leaves one in a crash, for a change of the file's first sector: either state of it is sound.
        // SQLite must not see it, for such a journal can name other files, which are then removed.
        folder.remove(layout::RESULTS_JOURNAL)?;
        // Read under the lock: what was read before it may be older.
        let run = RunFolder::open(dir)?;
        let mut unacknowledged = Vec::new();
        for problem in run.verify() {
            match problem.kind {
                ProblemKind::Unacknowledged(index) => unacknowledged.push(index),
                kind if kind.explained_by_a_crash() => {}
                _ => return Err(RecordError::damaged(&dir.join(&problem.file), problem.what, NEW_RUN)),
            }
        }
        let mut repairs = Vec::new();
        if let Some(torn) = &run.journal().torn {
            folder.append(layout::JOURNAL_TORN, &[torn.as_slice(), b"\n"].concat())?;
            repairs.push(format!(
                "the last line of {} was torn ({} bytes); it is kept in {}",
                layout::JOURNAL,
                torn.len(),
                layout::JOURNAL_TORN
            ));
        }
        writer.continue_after(run.journal())?;
        let mut results = open_results(&folder)?;
        let file = folder.file(layout::RESULTS);
        results::checked(&results, &file)?;
        let mut remove = |index| {
            store::remove_trial(&mut results, index).map_err(|e| RecordError::store("removing a trial", &file, e))
        };
        for index in unacknowledged {
            remove(index)?;
            repairs.push(format!("trial {index} was stored and not acknowledged; it is measured anew"));
        }
        let mut recorded = run.journal().acknowledged_indices();
        for part in sets::unfinished(run.plan(), &recorded) {
            let reason = part.to_string();
            // Before they are removed: a crash between the two leaves trials that are stored and not acknowledged.
            writer.append(&JournalEvent::TrialsWithdrawn { indices: part.there.clone(), reason: reason.clone() })?;
            for index in part.there {
                remove(index)?;
                recorded.remove(&index);
            }
            repairs.push(reason);
        }
        let plan = run.plan().clone();
        let mut this = Self { folder, plan, journal: writer, results, recorded, owed: None, repairs };
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
        self.settle()?;
        let digest = self.store(record)?;
        self.recorded.insert(index);
        self.owed = Some(JournalEvent::TrialAcknowledged { index, digest });
        self.settle()
    }

    /// Writes an event to the journal, and waits for the disk where others rely on the line
    /// ([`JournalEvent::durable`]).
    ///
    /// # Errors
    /// When it cannot be written. No part of the line is left then.
    pub fn journal(&mut self, event: &JournalEvent) -> Result<()> {
        self.settle()?;
        self.journal.append(event)
    }

    /// Writes the acknowledgement that is still owed: never are two trials stored without theirs.
    fn settle(&mut self) -> Result<()> {
        if let Some(owed) = &self.owed {
            self.journal.append(owed)?;
            self.owed = None;
        }
        Ok(())
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        self.folder.path()
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
        self.folder.file(layout::RESULTS)
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
}

impl Drop for RunWriter {
    /// Folds the log back into the results and leaves one plain file, which opens from read-only media as well. If this
    /// cannot be done, nothing is lost: the log stays beside the file, as after a crash.
    fn drop(&mut self) {
        let _ = self.results.pragma_update(None, "journal_mode", "DELETE");
    }
}

fn create_results(folder: &Folder, plan: &Plan, run_id: &str, tare_version: &str) -> Result<Connection> {
    const DOING: &str = "making the results' tables";
    let file = folder.file(layout::RESULTS);
    let mut results = open_results(folder)?;
    store::create(&mut results).map_err(|e| RecordError::store(DOING, &file, e))?;
    let schema = store::RESULTS_SCHEMA.to_string();
    let facts = [
        ("run_id", run_id),
        ("tare_version", tare_version),
        ("plan_hash", plan.hash.as_str()),
        ("study", plan.study.name.as_str()),
        ("schema", &schema),
    ];
    for (key, value) in facts {
        results
            .execute("INSERT INTO meta VALUES (?1, ?2)", params![key, value])
            .map_err(|e| RecordError::store(DOING, &file, e))?;
    }
    Ok(results)
}

/// Opens for writing: a commit returns when its log is on disk, and a crash costs at most what was not committed.
fn open_results(folder: &Folder) -> Result<Connection> {
    let file = folder.file(layout::RESULTS);
    for name in [layout::RESULTS, layout::RESULTS_WAL, layout::RESULTS_SHM, layout::RESULTS_JOURNAL] {
        folder.length(name)?;
    }
    let path = folder.real_path(layout::RESULTS)?;
    let open = || {
        let flags =
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let results = Connection::open_with_flags(path, flags)?;
        results::defend(&results)?;
        results.pragma_update(None, "journal_mode", "WAL")?;
        results.pragma_update(None, "synchronous", "FULL")?;
        results.pragma_update(None, "foreign_keys", true)?;
        Ok(results)
    };
    open().map_err(|e| RecordError::store("opening the results", &file, e))
}
