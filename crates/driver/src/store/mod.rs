//! The store of the order-entry workload: its rows, its orders, and counting what is in it.

use std::sync::atomic::AtomicBool;

use tare_model::sql::SqlFailure;
use tare_model::store::{StoreCount, StoreCounts, StoreLoad, StoreLoaded};

/// Makes the tables, fills them and makes all that rests on them.
///
/// # Errors
/// Why the server did not do what it was asked, with its SQLSTATE.
pub fn load(load: &StoreLoad, cancel: &AtomicBool) -> Result<StoreLoaded, SqlFailure> {
    let _ = cancel;
    Err(SqlFailure { sqlstate: None, message: format!("{} was not filled", load.server) })
}

/// Counts what is in a store.
///
/// # Errors
/// Why the server did not do what it was asked, with its SQLSTATE.
pub fn count(count: &StoreCount) -> Result<StoreCounts, SqlFailure> {
    Err(SqlFailure { sqlstate: None, message: format!("{} was not counted", count.server) })
}
