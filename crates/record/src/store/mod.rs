//! The results: one SQLite file, its schema, and trials in and out of it.

mod ascent;
mod cpu;
mod hold;
mod insert;
mod names;
mod parts;
mod read;
mod remove;
mod requests;
mod search;

pub(crate) use insert::{InsertError, insert_trial};
pub(crate) use read::{read_trial, trial_indices};
pub(crate) use remove::remove_trial;

use rusqlite_migration::{M, Migrations};

/// Newest schema of `results.sqlite` that this tare reads (`PRAGMA user_version`).
pub const RESULTS_SCHEMA: u32 = 1;

/// Every schema so far, oldest first. What was released is never changed: a new schema is a new line.
const STEPS: &[M<'static>] = &[M::up(include_str!("schema.sql"))];

/// The way from an empty file to the newest schema.
pub(crate) const MIGRATIONS: Migrations<'static> = Migrations::from_slice(STEPS);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn the_schema_number_is_the_number_of_steps_and_all_of_them_run() {
        assert_eq!(RESULTS_SCHEMA as usize, STEPS.len());
        MIGRATIONS.validate().unwrap();
    }
}
