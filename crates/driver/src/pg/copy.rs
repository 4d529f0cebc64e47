//! Rows for a table, streamed.

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::connection::Connection;
use super::error::PgError;
use super::frame::rows_of;

/// Bytes that are sent in one message: large enough for few calls, small enough to stay in the cache.
const CHUNK: usize = 64 * 1024;
/// Bytes before the data of a message: its kind and its length.
const HEAD: usize = 5;

/// A `COPY ... FROM STDIN` under way. Dropped without [`finish`](Self::finish), it is aborted.
#[derive(Debug)]
pub struct CopyIn<'a> {
    connection: &'a mut Connection,
    over: bool,
}

impl<'a> CopyIn<'a> {
    pub(super) fn new(connection: &'a mut Connection) -> Self {
        let output = &mut connection.wire.output;
        output.clear();
        output.reserve(CHUNK + HEAD);
        output.resize(HEAD, 0);
        Self { connection, over: false }
    }

    /// Takes bytes of rows, in pieces of any size.
    ///
    /// # Errors
    /// When the connection breaks, and when the server has refused a row before: then it takes no more. What it thinks of the
    /// others comes with [`finish`](Self::finish).
    #[inline]
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), PgError> {
        loop {
            let output = &mut self.connection.wire.output;
            let room = CHUNK + HEAD - output.len();
            if bytes.len() < room {
                output.extend_from_slice(bytes);
                return Ok(());
            }
            let (now, later) = bytes.split_at(room);
            output.extend_from_slice(now);
            bytes = later;
            self.flush()?;
        }
    }

    /// Sends what was taken so far.
    fn flush(&mut self) -> Result<(), PgError> {
        let wire = &mut self.connection.wire;
        if wire.output.len() > HEAD {
            // At most CHUNK, which fits into 32 bits.
            let length = (wire.output.len() - 1) as u32;
            wire.output[0] = b'd';
            wire.output[1..HEAD].copy_from_slice(&length.to_be_bytes());
            let sent = wire.send();
            if sent.is_err() {
                self.over = true;
            }
            sent?;
            self.mind_a_refusal()?;
        }
        let output = &mut self.connection.wire.output;
        output.clear();
        output.resize(HEAD, 0);
        Ok(())
    }

    /// A server that refuses a row says so at once and throws all later ones away: what is left need not be sent.
    fn mind_a_refusal(&mut self) -> Result<(), PgError> {
        while self.connection.wire.has_input() {
            match self.connection.wire.message() {
                // It has left the COPY by itself, and is ready for another statement.
                Ok((b'E', body)) => {
                    self.over = true;
                    let refused = PgError::of_response(body);
                    return self.outcome(Some(refused)).map(|_| ());
                }
                // A notice, or a setting that was changed.
                Ok(_) => {}
                Err(broken) => {
                    self.over = true;
                    return Err(broken);
                }
            }
        }
        Ok(())
    }

    /// Ends the rows and returns how many the server took.
    ///
    /// # Errors
    /// Why the server refuses them: then it keeps none.
    pub fn finish(mut self) -> Result<u64, PgError> {
        self.flush()?;
        let mut buffer = BytesMut::new();
        frontend::copy_done(&mut buffer);
        self.end(&buffer)
    }

    /// Ends it without the rows: the server keeps none.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn abort(mut self) -> Result<(), PgError> {
        self.give_up()
    }

    fn give_up(&mut self) -> Result<(), PgError> {
        let mut buffer = BytesMut::new();
        frontend::copy_fail("aborted", &mut buffer).map_err(|_| PgError::protocol("COPY"))?;
        match self.end(&buffer) {
            Err(error) if error.broken => Err(error),
            // That it was cancelled is what was asked for.
            _ => Ok(()),
        }
    }

    fn end(&mut self, last: &[u8]) -> Result<u64, PgError> {
        self.over = true;
        let wire = &mut self.connection.wire;
        wire.output.clear();
        wire.output.extend_from_slice(last);
        wire.send()?;
        wire.output.shrink_to(CHUNK);
        self.outcome(None)
    }

    /// Reads what is said until the server is ready for another statement.
    fn outcome(&mut self, mut failed: Option<PgError>) -> Result<u64, PgError> {
        let mut rows = 0;
        loop {
            match self.connection.wire.message() {
                Ok((b'C', body)) => rows = rows_of(body),
                Ok((b'E', body)) => failed = failed.or(Some(PgError::of_response(body))),
                Ok((b'Z', _)) => return failed.map_or(Ok(rows), Err),
                Ok(_) => {}
                Err(broken) => return Err(PgError::at_the_end(failed, broken)),
            }
        }
    }
}

impl Drop for CopyIn<'_> {
    fn drop(&mut self) {
        if !self.over {
            // A broken connection aborts it as well.
            let _ = self.give_up();
        }
    }
}
