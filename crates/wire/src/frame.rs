//! Greeting and frames on a byte stream.

use std::io::{Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

use tare_model::meter::{MAX_DECODED_BYTES, decode};

use crate::WireError;

/// Version of the messages. Both ends must have the same: the agent comes with its tare.
pub const PROTOCOL: u32 = 1;

/// Longest frame that is read: a trial's samples and histograms take a few MiB at most.
pub const MAX_FRAME_BYTES: usize = 64 << 20;

/// Version of this tare and, behind a `+`, a hash of the sources that define its messages: two builds between
/// which a message changed never talk, also where nobody raised [`PROTOCOL`].
pub const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("TARE_WIRE_BUILD"));

const MAGIC: [u8; 4] = *b"TARE";

/// What each end says first: `TARE`, the protocol (four bytes, little-endian), the length of the
/// version (one byte) and the version. This layout never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// Protocol of the end that sent it.
    pub protocol: u32,
    /// Version and build of the end that sent it, as in [`BUILD`].
    pub version: String,
}

impl Greeting {
    /// The greeting of this build.
    pub fn ours() -> Self {
        Self { protocol: PROTOCOL, version: BUILD.to_owned() }
    }

    /// Sends it.
    pub fn write(&self, writer: &mut dyn Write) -> Result<(), WireError> {
        let version = &self.version.as_bytes()[..self.version.len().min(255)];
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.protocol.to_le_bytes());
        bytes.push(version.len() as u8);
        bytes.extend_from_slice(version);
        writer
            .write_all(&bytes)
            .and_then(|()| writer.flush())
            .map_err(|source| WireError::Io { doing: "greeting", source })
    }

    /// Reads the other end's.
    pub fn read(reader: &mut dyn Read) -> Result<Self, WireError> {
        let doing = "reading the greeting";
        let io = |source| WireError::Io { doing, source };
        let mut magic = [0; 4];
        reader.read_exact(&mut magic).map_err(io)?;
        if magic != MAGIC {
            return Err(WireError::NotTare { found: magic });
        }
        let mut fixed = [0; 5];
        reader.read_exact(&mut fixed).map_err(io)?;
        let protocol = u32::from_le_bytes([fixed[0], fixed[1], fixed[2], fixed[3]]);
        let mut version = vec![0; usize::from(fixed[4])];
        reader.read_exact(&mut version).map_err(io)?;
        // It will be shown, and may come from anybody.
        Ok(Self { protocol, version: tare_model::text::readable(&String::from_utf8_lossy(&version)) })
    }

    /// Fails unless the other end speaks our protocol and was built from the same messages.
    pub fn check(self) -> Result<Self, WireError> {
        if self.protocol != PROTOCOL {
            return Err(WireError::Version { ours: PROTOCOL, theirs: self.protocol, their_version: self.version });
        }
        if self.version != BUILD {
            return Err(WireError::Build { ours: BUILD, theirs: self.version });
        }
        Ok(self)
    }
}

/// Writes one message as a frame, in one write.
pub fn write_frame<T: Serialize>(writer: &mut dyn Write, message: &T) -> Result<(), WireError> {
    let bytes = encode(message)?;
    writer
        .write_all(&bytes)
        .and_then(|()| writer.flush())
        .map_err(|source| WireError::Io { doing: "writing a message", source })
}

/// The frame of one message.
pub(crate) fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, WireError> {
    let malformed = |e: postcard::Error| WireError::Malformed { reason: e.to_string() };
    let mut bytes = vec![0; 4];
    bytes = postcard::to_extend(message, bytes).map_err(malformed)?;
    let length = bytes.len() - 4;
    if length > MAX_FRAME_BYTES {
        return Err(WireError::TooLong { bytes: length as u64, limit: MAX_FRAME_BYTES });
    }
    bytes[..4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(bytes)
}

/// Reads one message. `Ok(None)` is the end of the stream between two frames.
pub fn read_frame<T: DeserializeOwned>(reader: &mut dyn Read) -> Result<Option<T>, WireError> {
    let io = |source| WireError::Io { doing: "reading a message", source };
    let mut length = [0; 4];
    let first = loop {
        match reader.read(&mut length) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            other => break other.map_err(io)?,
        }
    };
    if first == 0 {
        return Ok(None);
    }
    reader.read_exact(&mut length[first..]).map_err(io)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_FRAME_BYTES {
        return Err(WireError::TooLong { bytes: length as u64, limit: MAX_FRAME_BYTES });
    }
    // Grown as bytes arrive: an announced length alone must not cost memory.
    let mut bytes = Vec::with_capacity(length.min(64 << 10));
    let got = reader.take(length as u64).read_to_end(&mut bytes).map_err(io)?;
    if got < length {
        return Err(io(std::io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(Some(decode(&bytes, MAX_DECODED_BYTES)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_of_another_protocol_is_understood_and_refused() {
        let mut bytes = Vec::new();
        Greeting { protocol: 99, version: "9.9.9".into() }.write(&mut bytes).unwrap();
        let read = Greeting::read(&mut bytes.as_slice()).unwrap();
        let error = read.check().unwrap_err().to_string();
        assert!(error.contains("protocol 99") && error.contains("9.9.9"), "{error}");
    }

    #[test]
    fn an_agent_of_another_build_is_refused_with_what_to_do() {
        let stale = Greeting { protocol: PROTOCOL, version: format!("{}+0123456789abcdef", env!("CARGO_PKG_VERSION")) };
        let error = stale.check().unwrap_err().to_string();
        assert!(error.contains("0123456789abcdef") && error.contains("cargo build -p tare-agent"), "{error}");
        assert_eq!(Greeting::ours().check().unwrap(), Greeting::ours());
        let (version, hash) = BUILD.split_once('+').unwrap();
        assert_eq!(version, env!("CARGO_PKG_VERSION"));
        assert!(hash.len() == 16 && hash != "cbf29ce484222325", "a hash of nothing: {hash}");
    }

    #[test]
    fn something_else_on_the_stream_is_named() {
        let error = Greeting::read(&mut &b"login: "[..]).unwrap_err();
        assert!(matches!(error, WireError::NotTare { .. }), "{error}");
    }

    #[test]
    fn frames_come_back_and_the_end_between_two_is_clean() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &("hello", 7u64)).unwrap();
        let mut reader = bytes.as_slice();
        assert_eq!(read_frame::<(String, u64)>(&mut reader).unwrap(), Some(("hello".to_owned(), 7)));
        assert_eq!(read_frame::<(String, u64)>(&mut reader).unwrap(), None);
    }

    #[test]
    fn oversized_torn_and_malformed_frames_are_refused() {
        let huge = (MAX_FRAME_BYTES as u32 + 1).to_le_bytes();
        assert!(matches!(read_frame::<u64>(&mut huge.as_slice()), Err(WireError::TooLong { .. })));
        let mut torn = Vec::new();
        write_frame(&mut torn, &"some text").unwrap();
        torn.pop();
        assert!(matches!(read_frame::<String>(&mut torn.as_slice()), Err(WireError::Io { .. })));
        let mut wrong = Vec::new();
        write_frame(&mut wrong, &(1u8, 2u8)).unwrap();
        assert!(matches!(read_frame::<u8>(&mut wrong.as_slice()), Err(WireError::Malformed { .. })));
    }
}
