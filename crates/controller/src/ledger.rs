//! The run folder as the ledger of what must be torn down.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tare_lab::{Ledger, LedgerError, Resource};
use tare_model::redact::Redactor;
use tare_model::trial::TrialRecord;
use tare_record::{JournalEvent, RecordError, RunWriter};

/// Names a line of the journal, counted from 1 in this process, right after which the controller kills
/// itself with SIGKILL: the test of what a crash at that moment leaves behind.
const KILL_AT_LINE: &str = "TARE_TEST_KILL_AT_JOURNAL_LINE";

/// The one writer of the run folder, shared by the thread that runs trials and those that start guests.
pub struct Book {
    inner: Mutex<Inner>,
    /// Takes out of texts what must not be in the folder.
    redactor: Redactor,
    kill_at_line: Option<u64>,
}

struct Inner {
    writer: RunWriter,
    lines: u64,
    next_id: u64,
    held: BTreeMap<u64, Resource>,
}

impl Book {
    /// A book over a run folder.
    pub fn new(writer: RunWriter, redactor: Redactor) -> Self {
        let kill_at_line = std::env::var(KILL_AT_LINE).ok().and_then(|line| line.parse().ok());
        let inner = Inner { writer, lines: 0, next_id: 1, held: BTreeMap::new() };
        Self { inner: Mutex::new(inner), redactor, kill_at_line }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes an event to the journal.
    pub fn write(&self, event: &JournalEvent) -> Result<(), RecordError> {
        let mut inner = self.lock();
        match event {
            JournalEvent::RunInterrupted { reason } => {
                inner.writer.journal(&JournalEvent::RunInterrupted { reason: self.redactor.text(reason) })?;
            }
            event => inner.writer.journal(event)?,
        }
        self.line_written(&mut inner);
        Ok(())
    }

    /// Stores a trial and acknowledges it.
    pub fn append(&self, record: &TrialRecord) -> Result<(), RecordError> {
        let mut inner = self.lock();
        inner.writer.append(&self.redactor.trial(record))?;
        self.line_written(&mut inner);
        Ok(())
    }

    /// The run folder.
    pub fn dir(&self) -> std::path::PathBuf {
        self.lock().writer.dir().to_owned()
    }

    /// What was planned and not released yet.
    pub fn held(&self) -> Vec<Resource> {
        self.lock().held.values().cloned().collect()
    }

    /// Trials that are recorded.
    pub fn recorded(&self) -> std::collections::BTreeSet<u32> {
        self.lock().writer.recorded().clone()
    }

    fn line_written(&self, inner: &mut Inner) {
        inner.lines += 1;
        if self.kill_at_line == Some(inner.lines) {
            // Nothing to do about a failure: the test that asked for it then sees a run that went on.
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
    }
}

impl Ledger for Book {
    fn planned(&self, resource: &Resource) -> Result<u64, LedgerError> {
        let value = serde_json::to_value(resource).map_err(|error| LedgerError(error.to_string()))?;
        let mut inner = self.lock();
        inner
            .writer
            .journal(&JournalEvent::ResourcePlanned { resource: value })
            .map_err(|error| LedgerError(error.to_string()))?;
        let id = inner.next_id;
        inner.next_id += 1;
        inner.held.insert(id, resource.clone());
        self.line_written(&mut inner);
        Ok(id)
    }

    fn released(&self, id: u64) -> Result<(), LedgerError> {
        let mut inner = self.lock();
        let Some(resource) = inner.held.remove(&id) else { return Ok(()) };
        let value = serde_json::to_value(resource).map_err(|error| LedgerError(error.to_string()))?;
        inner
            .writer
            .journal(&JournalEvent::ResourceReleased { resource: value })
            .map_err(|error| LedgerError(error.to_string()))?;
        self.line_written(&mut inner);
        Ok(())
    }
}
