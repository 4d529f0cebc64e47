//! The run folder: schema, writer, reader.
//!
//! A folder holds everything that a run measured, in files that others can read without tare. It is
//! written so that a crash at any moment loses no acknowledged trial ([`RunWriter`]), and read so that
//! a folder cut short or altered is known as such ([`RunFolder::verify`]). It may come from a stranger, and is read as if he meant harm
//! ([`Folder`]). Why it looks as it does is argued in `docs/adr/0002-run-folder.md` and `docs/adr/0017-untrusted-input.md`.

mod digest;
mod error;
mod folder;
pub mod history;
pub mod journal;
pub mod layout;
mod reader;
mod results;
mod run_id;
mod sets;
mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod verify;
mod writer;

pub use digest::{digest_of, trial_digest};
pub use error::{RecordError, Result};
pub use folder::Folder;
pub use journal::{Journal, JournalEntry, JournalEvent, JournalWriter};
pub use reader::{RunFacts, RunFolder};
pub use run_id::is_run_id;
pub use store::RESULTS_SCHEMA;
pub use verify::{Problem, ProblemKind};
pub use writer::RunWriter;
