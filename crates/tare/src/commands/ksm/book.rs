//! The list of what must be put back, for work that has a state directory and no run folder.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tare_lab::{Ledger, LedgerError, Resource};
use tare_record::{Folder, JournalEvent, JournalWriter, RecordError};

/// A journal in the state directory: it is read by the same `tare reap` as that of a run.
pub struct Book(Mutex<Inner>);

struct Inner {
    writer: JournalWriter,
    next_id: u64,
    held: BTreeMap<u64, Resource>,
}

impl Book {
    /// A new journal in this directory.
    pub fn create(directory: &Path) -> Result<Self, RecordError> {
        let writer = JournalWriter::create(&Folder::open(directory)?)?;
        Ok(Self(Mutex::new(Inner { writer, next_id: 1, held: BTreeMap::new() })))
    }

    /// Whether nothing is left to be put back.
    pub fn is_settled(&self) -> bool {
        self.lock().held.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger for Book {
    fn planned(&self, resource: &Resource) -> Result<u64, LedgerError> {
        let value = serde_json::to_value(resource).map_err(|error| LedgerError(error.to_string()))?;
        let mut inner = self.lock();
        let planned = JournalEvent::ResourcePlanned { resource: value };
        inner.writer.append(&planned).map_err(|error| LedgerError(error.to_string()))?;
        let id = inner.next_id;
        inner.next_id += 1;
        inner.held.insert(id, resource.clone());
        Ok(id)
    }

    fn released(&self, id: u64) -> Result<(), LedgerError> {
        let mut inner = self.lock();
        let Some(resource) = inner.held.remove(&id) else { return Ok(()) };
        let value = serde_json::to_value(resource).map_err(|error| LedgerError(error.to_string()))?;
        let released = JournalEvent::ResourceReleased { resource: value };
        inner.writer.append(&released).map_err(|error| LedgerError(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_planned_and_not_released_is_found_by_a_fresh_process() {
        let directory = tempfile::tempdir().unwrap();
        let book = Book::create(directory.path()).unwrap();
        let run = Resource::Settings { found: vec![("/sys/kernel/mm/ksm/run".into(), "0".into())] };
        let sleep = Resource::Settings { found: vec![("/sys/kernel/mm/ksm/sleep_millisecs".into(), "20".into())] };
        let id = book.planned(&run).unwrap();
        book.planned(&sleep).unwrap();
        assert_eq!(tare_controller::still_planned(directory.path()), Ok(vec![sleep.clone(), run]));
        book.released(id).unwrap();
        assert_eq!(tare_controller::still_planned(directory.path()), Ok(vec![sleep]));
        assert!(!book.is_settled());
    }
}
