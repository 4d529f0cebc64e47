//! How tare ends.

use std::fmt::Display;
use std::process::ExitCode;

/// The documented exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Success = 0,
    /// tare could not do what was asked.
    Failure = 1,
    /// The command line or a file of the user's is wrong.
    Usage = 2,
    /// Some trials failed or are invalid.
    Incomplete = 3,
    /// This host cannot do it.
    HostUnfit = 4,
    /// Something in a run does not hold together.
    Broken = 5,
    /// The user stopped it.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command ended without doing what was asked.
#[derive(Debug)]
pub struct Failure {
    /// What the user is shown.
    pub message: String,
    /// The exit code.
    pub exit: Exit,
}

impl Failure {
    /// A failure with its exit code.
    pub fn new(error: impl Display, exit: Exit) -> Self {
        Self { message: format!("tare: {error}"), exit }
    }
}
