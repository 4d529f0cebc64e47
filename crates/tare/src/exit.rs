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
    /// A gate has no answer.
    NoAnswer = 64,
    /// The user stopped it.
    Interrupted = 130,
}

/// The answers of `tare gate`, whose other codes are [`Exit::Success`] and [`Exit::NoAnswer`].
impl Exit {
    /// A regression is proven.
    pub const REGRESSION: Self = Self::Failure;
    /// Nothing is proven, and that was to be reported.
    pub const CANNOT_SAY: Self = Self::Usage;
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

    /// The same of a gate: a script that asks for an answer must not take a failure for one.
    pub fn without_answer(self) -> Self {
        Self { exit: Exit::NoAnswer, ..self }
    }
}
