//! A small client of PostgreSQL: blocking sockets, one buffer each way.
//!
//! What is hot, executing prepared statements, is encoded by hand and read in place: one send and as few receives as
//! arrive a statement, and no allocation. All else (SCRAM, MD5, COPY, texts) is encoded by `postgres-protocol`. There is no TLS.

mod connection;
mod copy;
mod error;
mod frame;
mod login;
mod statement;
mod wire;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tare_model::packed::Task;
use tare_model::sql::{SqlFailure, SqlRows, SqlSpec};

use crate::task;

pub use connection::Connection;
pub use copy::CopyIn;
pub use error::PgError;
pub(crate) use frame::Columns;
pub(crate) use statement::{Kind, Statement, Value, cents_of};

pub(crate) const KINDS: &[task::Kind] = &[task::Kind::calls::<SqlSpec>()];

impl task::Calls for SqlSpec {
    fn call(self, _: &AtomicBool) -> <Self as Task>::Outcome {
        ask(&self)
    }
}

/// Connects, runs the statements and closes.
///
/// # Errors
/// Why the server did not do what it was asked, with its SQLSTATE.
pub fn ask(spec: &SqlSpec) -> Result<Vec<SqlRows>, SqlFailure> {
    let timeout = Duration::from_nanos(spec.timeout_ns);
    let before = std::time::Instant::now();
    let mut connection = Connection::connect(&spec.server, timeout)?;
    connection.bound(Some(timeout.saturating_sub(before.elapsed())))?;
    let mut results = Vec::with_capacity(spec.statements.len());
    for statement in &spec.statements {
        let said = connection
            .simple(statement)
            .map_err(|error| error.while_trying(&format!("{}: `{}`", spec.server, brief(statement))))?;
        results.push(said.into_iter().last().unwrap_or_default());
    }
    Ok(results)
}

/// The beginning of a statement, for people, up to a password if it sets one.
fn brief(statement: &str) -> String {
    const LENGTH: usize = 120;
    let secret = statement.to_ascii_lowercase().find("password").unwrap_or(statement.len());
    statement[..secret].chars().take(LENGTH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_a_statement_is_short_and_holds_no_password() {
        assert_eq!(brief("SELECT 1/0"), "SELECT 1/0");
        assert_eq!(brief("CREATE ROLE a LOGIN Password 'hush'"), "CREATE ROLE a LOGIN ");
        assert_eq!(brief(&"ä".repeat(500)).chars().count(), 120);
    }
}
