//! The results: one SQLite file, its schema, and trials in and out of it.

mod cpu;
mod cpu_target;
mod insert;
pub(crate) mod names;
mod parts;
mod read;
mod remove;
mod requests;
mod scale_up;
mod search;
mod turns;

pub(crate) use insert::{InsertError, insert_trial};
pub(crate) use read::{read_trial, trial_indices, word};
pub(crate) use remove::remove_trial;

use rusqlite::Connection;

/// Newest schema of `results.sqlite` that this tare reads (`PRAGMA user_version`).
pub const RESULTS_SCHEMA: u32 = 1;

/// Makes the tables in an empty file, all or none.
pub(crate) fn create(db: &mut Connection) -> rusqlite::Result<()> {
    let transaction = db.transaction()?;
    transaction.execute_batch(include_str!("schema.sql"))?;
    transaction.pragma_update(None, "user_version", RESULTS_SCHEMA)?;
    transaction.commit()
}
