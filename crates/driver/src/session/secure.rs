//! A connection in TLS that has no buffers of its own: records are taken apart in the thread's, and what stays with the connection is
//! the beginning of a record whose end has not come.

use std::fmt;

use rustls::HandshakeKind;
use rustls::client::UnbufferedClientConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError};

use super::tls::Tls;

/// Most that a record adds to what it carries, bytes (RFC 8446, section 5.2), and most that one carries.
const RECORD_EXTRA: usize = 256;
const RECORD_CARRIES: usize = 16 << 10;

/// The TLS of one connection.
pub(crate) struct Secure {
    inner: UnbufferedClientConnection,
    /// The beginning of a record, as it came.
    pub held: Vec<u8>,
    /// Records that the kernel had no room for.
    pub unsent: Vec<u8>,
}

/// How far records were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed {
    /// The handshake is under way.
    Shaking,
    /// Requests may be sent.
    Open,
    /// The other end has said that it sends no more.
    Ended,
}

impl fmt::Debug for Secure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inner: _, held, unsent } = self;
        f.debug_struct("Secure").field("held", &held.len()).field("unsent", &unsent.len()).finish_non_exhaustive()
    }
}

impl Secure {
    /// Not begun yet.
    ///
    /// # Errors
    /// When there is no randomness to be had.
    pub fn new(tls: &Tls) -> Result<Self, rustls::Error> {
        let inner = UnbufferedClientConnection::new(tls.config.clone(), tls.name.clone())?;
        Ok(Self { inner, held: Vec::new(), unsent: Vec::new() })
    }

    /// Whether the handshake resumed a session; `None` before that is known.
    pub fn resumed(&self) -> Option<bool> {
        self.inner.handshake_kind().map(|kind| kind == HandshakeKind::Resumed)
    }

    /// Goes through the records in `incoming`: what they carry goes to `each`, what has to be sent for it is appended to `out`. Returns
    /// how far it got and how many bytes it used up; the rest is the beginning of a record.
    ///
    /// # Errors
    /// When the other end does not keep to the protocol, or is not who it should be. `out` then has the alert to it.
    pub fn pass(
        &mut self,
        incoming: &mut [u8],
        out: &mut Vec<u8>,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(Passed, usize), rustls::Error> {
        let mut used = 0;
        let mut failed = None;
        loop {
            let status = self.inner.process_tls_records(&mut incoming[used..]);
            let mut discard = status.discard;
            let state = match status.state {
                Ok(state) => state,
                // The alert, if there is one, comes out of the next turns.
                Err(error) if failed.is_none() => {
                    failed = Some(error);
                    used += discard;
                    continue;
                }
                Err(error) => return Err(failed.unwrap_or(error)),
            };
            let mut passed = None;
            match state {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        each(record.payload);
                    }
                }
                ConnectionState::EncodeTlsData(mut data) => encode(out, |room| data.encode(room))?,
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::BlockedHandshake => passed = Some(Passed::Shaking),
                ConnectionState::WriteTraffic(_) => passed = Some(Passed::Open),
                ConnectionState::PeerClosed | ConnectionState::Closed => passed = Some(Passed::Ended),
                // A client is never sent early data, and states to come are not asked for.
                _ => return Err(rustls::Error::General("a state that a client does not have".to_owned())),
            }
            used += discard;
            if let Some(passed) = passed {
                return failed.map_or(Ok((passed, used)), Err);
            }
        }
    }

    /// Appends the records that carry `plain` to `out`.
    ///
    /// # Errors
    /// When the handshake has not been completed, or the keys are used up.
    pub fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), rustls::Error> {
        for piece in plain.chunks(RECORD_CARRIES) {
            loop {
                match self.inner.process_tls_records(&mut []).state? {
                    ConnectionState::WriteTraffic(mut traffic) => {
                        break seal(piece, out, |room| traffic.encrypt(piece, room))?;
                    }
                    // An answer to what came before, such as new keys.
                    ConnectionState::EncodeTlsData(mut data) => encode(out, |room| data.encode(room))?,
                    ConnectionState::TransmitTlsData(data) => data.done(),
                    _ => return Err(rustls::Error::HandshakeNotComplete),
                }
            }
        }
        Ok(())
    }
}

/// Appends the record that carries `piece` to `out`.
fn seal(
    piece: &[u8],
    out: &mut Vec<u8>,
    mut into: impl FnMut(&mut [u8]) -> Result<usize, EncryptError>,
) -> Result<(), rustls::Error> {
    let before = out.len();
    out.resize(before + piece.len() + RECORD_EXTRA, 0);
    let written = match into(&mut out[before..]) {
        Err(EncryptError::InsufficientSize(size)) => {
            out.resize(before + size.required_size, 0);
            into(&mut out[before..])
        }
        other => other,
    };
    out.truncate(before + written.map_err(|e| general(&e))?);
    Ok(())
}

fn general(error: &dyn std::error::Error) -> rustls::Error {
    rustls::Error::General(error.to_string())
}

/// Appends what is encoded to `out`, asking again with as much room as is needed.
fn encode(
    out: &mut Vec<u8>,
    mut into: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>,
) -> Result<(), rustls::Error> {
    let before = out.len();
    let needed = match into(&mut []) {
        Ok(written) => return if written == 0 { Ok(()) } else { Err(rustls::Error::EncryptError) },
        Err(EncodeError::InsufficientSize(size)) => size.required_size,
        Err(error) => return Err(general(&error)),
    };
    out.resize(before + needed, 0);
    let written = into(&mut out[before..]).map_err(|e| general(&e))?;
    out.truncate(before + written);
    Ok(())
}
