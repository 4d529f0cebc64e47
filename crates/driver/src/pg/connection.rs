//! A session with a server, and statements by the simple protocol.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tare_model::drive::SocketOptions;
use tare_model::sql::{SqlRows, SqlServer};

use super::copy::CopyIn;
use super::error::PgError;
use super::frame::{Columns, column_names};
use super::login::log_in;
use super::wire::Wire;
use crate::{DriverError, net};

/// A session. Dropping it closes the connection, which ends what was not committed.
#[derive(Debug)]
pub struct Connection {
    pub(super) wire: Wire,
}

impl Connection {
    /// Connects and logs in; both together take at most `timeout`. Statements that follow may take as long as they do
    /// unless [`bound`](Self::bound) says otherwise.
    ///
    /// # Errors
    /// When nothing listens, the login is refused (28P01, 28000), the database is missing (3D000), or the server asks
    /// for TLS or a proof that is not spoken here.
    pub fn connect(server: &SqlServer, timeout: Duration) -> Result<Self, PgError> {
        let mut connection = Self::open(server, &SocketOptions::default(), timeout)?;
        connection.begin(server)?;
        connection.bound(None)?;
        Ok(connection)
    }

    /// A connection on which nobody has logged in. What follows on it is bounded by what is left of `timeout`.
    pub(crate) fn open(server: &SqlServer, options: &SocketOptions, timeout: Duration) -> Result<Self, PgError> {
        let before = crate::clock::now_ns();
        let fd = net::connect_tcp(server.address, options, true, timeout).map_err(|error| {
            PgError::broken(match error {
                DriverError::Connect { source, .. } => {
                    format!("cannot connect to {server}: {source}; check that the server runs and listens there")
                }
                other => format!("cannot connect to {server}: {other}"),
            })
        })?;
        let mut connection = Self { wire: Wire::new(fd) };
        let spent = Duration::from_nanos(crate::clock::now_ns() - before);
        connection.bound(Some(timeout.saturating_sub(spent)))?;
        Ok(connection)
    }

    /// Logs in.
    pub(crate) fn begin(&mut self, server: &SqlServer) -> Result<(), PgError> {
        log_in(&mut self.wire, server).map_err(|error| error.while_trying(&format!("cannot log in to {server}")))
    }

    /// The socket, for one who may have to cut it.
    pub(crate) fn socket(&self) -> Arc<OwnedFd> {
        self.wire.socket().clone()
    }

    /// Bounds all that follows together: a server that is silent for longer is given up, and the connection is broken.
    /// `None` waits as long as it takes.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn bound(&mut self, timeout: Option<Duration>) -> Result<(), PgError> {
        self.wire.bound(timeout)
    }

    /// Runs a text of one statement or more, separated by `;`, and returns what each gave.
    ///
    /// # Errors
    /// Of the first statement that fails; those before it, in the same text, are rolled back with it.
    pub fn simple(&mut self, sql: &str) -> Result<Vec<SqlRows>, PgError> {
        self.ask(sql)?;
        let mut results = vec![SqlRows::default()];
        let mut failed = None;
        loop {
            let (kind, body) = match self.wire.message() {
                Ok(message) => message,
                Err(broken) => return Err(PgError::at_the_end(failed, broken)),
            };
            let Some(current) = results.last_mut() else { return Err(PgError::protocol("no result")) };
            match kind {
                b'T' => {
                    let bad = || PgError::protocol("a description of rows that is cut short");
                    current.columns = column_names(body).ok_or_else(bad)?;
                }
                b'D' => current
                    .rows
                    .push(Columns::of(body).map(|c| c.map(|c| String::from_utf8_lossy(c).into_owned())).collect()),
                b'C' => {
                    current.tag = String::from_utf8_lossy(body.strip_suffix(b"\0").unwrap_or(body)).into_owned();
                    results.push(SqlRows::default());
                }
                b'E' => failed = failed.or(Some(PgError::of_response(body))),
                b'Z' => break,
                // A client that is asked for data it has not got says so; data that come unasked are dropped.
                b'G' => self.refuse_copy()?,
                _ => {}
            }
        }
        results.pop();
        failed.map_or(Ok(results), Err)
    }

    /// Sends a text by the simple protocol.
    pub(super) fn ask(&mut self, sql: &str) -> Result<(), PgError> {
        let mut buffer = BytesMut::new();
        frontend::query(sql, &mut buffer).map_err(|error| PgError {
            sqlstate: None,
            message: format!("the statement cannot be sent: {error}"),
            broken: false,
        })?;
        self.send(&buffer)
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), PgError> {
        self.wire.output.extend_from_slice(bytes);
        self.wire.send()
    }

    fn refuse_copy(&mut self) -> Result<(), PgError> {
        let mut buffer = BytesMut::new();
        frontend::copy_fail("no data here", &mut buffer).map_err(|_| PgError::protocol("COPY"))?;
        self.send(&buffer)
    }

    /// Begins to send rows: `sql` is a `COPY ... FROM STDIN`, and what is written then is in its format.
    ///
    /// # Errors
    /// When the server refuses it.
    pub fn copy_in(&mut self, sql: &str) -> Result<CopyIn<'_>, PgError> {
        self.ask(sql)?;
        let mut failed = None;
        loop {
            match self.wire.message() {
                Ok((b'G', _)) => return Ok(CopyIn::new(self)),
                Ok((b'E', body)) => failed = failed.or(Some(PgError::of_response(body))),
                Ok((b'Z', _)) => {
                    let other = || PgError {
                        sqlstate: None,
                        message: "the server did not ask for rows; the statement must be a COPY FROM STDIN".to_owned(),
                        broken: false,
                    };
                    return Err(failed.unwrap_or_else(other));
                }
                Ok(_) => {}
                Err(broken) => return Err(PgError::at_the_end(failed, broken)),
            }
        }
    }
}

impl Drop for Connection {
    /// Says good-bye, so that the server logs no lost client.
    fn drop(&mut self) {
        self.wire.farewell();
    }
}
