//! A small client of PostgreSQL.

use tare_model::sql::{SqlFailure, SqlRows, SqlSpec};

/// Connects, runs the statements and closes.
///
/// # Errors
/// Why the server did not do what it was asked, with its SQLSTATE.
pub fn ask(spec: &SqlSpec) -> Result<Vec<SqlRows>, SqlFailure> {
    Err(SqlFailure { sqlstate: None, message: format!("{} was not asked", spec.server) })
}
