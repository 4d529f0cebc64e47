//! What can go wrong between controller and agent.

use std::time::Duration;

use tare_model::meter::DecodeError;

/// An error on the channel between controller and agent.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The byte stream ended or broke.
    #[error("the channel to the agent broke while {doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The other end is not a tare agent (or controller).
    #[error(
        "the other end of the channel is not tare: it began with {found:02x?} instead of `TARE`; is something else printing to this stream?"
    )]
    NotTare {
        /// The first bytes seen.
        found: [u8; 4],
    },
    /// The ends speak different protocols.
    #[error(
        "the agent speaks protocol {theirs} (tare {their_version}), this tare speaks {ours}: use the agent that came with this tare"
    )]
    Version {
        /// Our protocol.
        ours: u32,
        /// Theirs.
        theirs: u32,
        /// Their version of tare.
        their_version: String,
    },
    /// The ends come from different builds.
    #[error(
        "the agent is of another build ({theirs}) than this tare ({ours}): use the agent that came with this tare, or, in a source tree, build it anew: cargo build -p tare-agent"
    )]
    Build {
        /// Our build.
        ours: &'static str,
        /// Theirs.
        theirs: String,
    },
    /// A frame longer than any honest message.
    #[error(
        "a frame of {bytes} bytes was announced, more than the {limit} allowed: the other end is broken or hostile"
    )]
    TooLong {
        /// Announced length.
        bytes: u64,
        /// Limit.
        limit: usize,
    },
    /// A frame that would take far more memory than its length.
    #[error(
        "a frame of {bytes} bytes would take more than {limit} bytes in memory: the other end is broken or hostile"
    )]
    Swollen {
        /// Length of the frame.
        bytes: usize,
        /// Limit.
        limit: usize,
    },
    /// A workload's task, or what came of it, is none.
    #[error(transparent)]
    Packed(#[from] tare_model::packed::PackError),
    /// A frame that does not decode.
    #[error("a message could not be decoded ({reason}): the other end is broken or of another version")]
    Malformed {
        /// The decoder's reason.
        reason: String,
    },
    /// No answer in time.
    #[error("no answer from the agent to `{request}` within {waited:?}: the guest hangs or is starved of CPU")]
    Timeout {
        /// The request.
        request: &'static str,
        /// How long was waited.
        waited: Duration,
    },
    /// The agent closed the channel.
    #[error("the agent is gone ({reason}): it was killed, ran out of memory or its guest stopped")]
    Gone {
        /// How that was seen.
        reason: String,
    },
    /// The agent did what it was asked and failed.
    #[error("the agent could not {request}: {reason}")]
    Refused {
        /// The request.
        request: &'static str,
        /// The agent's reason.
        reason: String,
    },
    /// A file on this side could not be read or written.
    #[error("cannot {doing} {path}: {source}")]
    Local {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file of the guest's that is larger than what was asked for.
    #[error("{path} in the guest is larger than the {limit_bytes} bytes that were allowed for it; nothing was kept")]
    TooLarge {
        /// The file.
        path: String,
        /// The limit.
        limit_bytes: u64,
    },
    /// An answer to another question.
    #[error("the agent answered `{request}` with something else: it is of another version or broken")]
    Unexpected {
        /// The request.
        request: &'static str,
    },
}

impl From<DecodeError> for WireError {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Swollen { bytes, limit } => Self::Swollen { bytes, limit },
            DecodeError::Malformed { reason } => Self::Malformed { reason },
        }
    }
}
