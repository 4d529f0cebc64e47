//! What a run writes down: trials and events in its run folder, what must be torn down in the ledger of its state directory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tare_lab::{FileLedger, Ledger, LedgerError, Resource};
use tare_model::redact::Redactor;
use tare_model::trial::TrialRecord;
use tare_record::{JournalEvent, RecordError, RunWriter};

/// Names a line of journal and ledger together, counted from 1 in this process, right after which the controller kills
/// itself with SIGKILL: the test of what a crash at that moment leaves behind.
const KILL_AT_LINE: &str = "TARE_TEST_KILL_AT_LINE";

/// The one writer of the run folder and of the ledger, shared by the thread that runs trials and those that start guests.
pub struct Book {
    inner: Mutex<Inner>,
    ledger: Arc<FileLedger>,
    /// Takes out of texts what must not be in the folder.
    redactor: Redactor,
    kill_at_line: Option<u64>,
}

struct Inner {
    writer: RunWriter,
    lines: u64,
}

impl Book {
    /// A book over a run folder and a ledger.
    pub fn new(writer: RunWriter, ledger: Arc<FileLedger>, redactor: Redactor) -> Self {
        let kill_at_line = std::env::var(KILL_AT_LINE).ok().and_then(|line| line.parse().ok());
        Self { inner: Mutex::new(Inner { writer, lines: 0 }), ledger, redactor, kill_at_line }
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
            JournalEvent::MachineDescribed(machine) => {
                inner.writer.journal(&JournalEvent::MachineDescribed(self.redactor.machine(machine)))?;
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
        self.ledger.held()
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
        let mut inner = self.lock();
        let id = self.ledger.planned(resource)?;
        self.line_written(&mut inner);
        Ok(id)
    }

    fn released(&self, id: u64) -> Result<(), LedgerError> {
        let mut inner = self.lock();
        self.ledger.released(id)?;
        self.line_written(&mut inner);
        Ok(())
    }
}
