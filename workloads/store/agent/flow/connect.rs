//! Connections of clients: what is checked before the load, and the errors for people.

use std::os::fd::AsFd;
use std::time::Duration;

use tare_model::drive::SocketOptions;
use tare_model::sql::SqlServer;

use super::book::Book;
use crate::control::Breaker;
use crate::operation::CUT_OFF;
use crate::pg::{Connection, PgError};

/// Connects within the first of two times, logs in and prepares all statements within the second. What follows on the connection is
/// not bounded. Whoever holds the breaker may end it, but for the first part.
pub(super) fn connect(
    server: &SqlServer,
    options: &SocketOptions,
    book: &Book,
    (network, login): (Duration, Duration),
    breaker: &Breaker,
) -> Result<Connection, PgError> {
    let mut connection = Connection::open(server, options, network)?;
    let socket = connection.socket();
    let Some(_armed) = breaker.guard(socket.as_fd()) else { return Err(PgError::broken(CUT_OFF)) };
    connection.bound(Some(login))?;
    connection.begin(server)?;
    connection.prepare(&book.all()).map_err(explained)?;
    connection.bound(None)?;
    Ok(connection)
}

/// Adds to a refused statement what may be the reason.
fn explained(mut error: PgError) -> PgError {
    let remedy = match error.sqlstate.as_deref() {
        // Undefined table, column, function, schema.
        Some("42P01" | "42703" | "42883" | "3F000") => {
            "fill the store first, in this database and schema, with this version of tare"
        }
        Some("42501") => "let the role read and write the tables of the store",
        _ => return error,
    };
    error.message = format!("{}; {remedy}", error.message);
    error
}
