//! What can go wrong in a chore.

use std::io;
use std::path::PathBuf;

/// A chore that could not be carried out. A broken rule is not an error but a finding.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The arguments name no chore.
    #[error("no such command\n\n{0}")]
    Usage(&'static str),
    /// A file could not be read.
    #[error("cannot read {0}: {1}")]
    Read(PathBuf, #[source] io::Error),
    /// A file or stream could not be written.
    #[error("cannot write {0}: {1}")]
    Write(PathBuf, #[source] io::Error),
    /// The table of house rules is not what this program expects.
    #[error("{0} is not valid: {1}")]
    House(PathBuf, #[source] Box<toml::de::Error>),
    /// The workspace's members come from cargo, which could not give them.
    #[error("cannot list the members of {0}: {1}")]
    Members(PathBuf, #[source] cargo_metadata::Error),
    /// The workspace's manifest does not say how tests are run.
    #[error("{0}: {1}")]
    Settings(PathBuf, String),
    /// A test program that was asked for does not exist.
    #[error("there is no test program {0}")]
    NoProgram(String),
    /// A program that end-to-end tests start does not exist.
    #[error("{0} is not there: run `make build`")]
    NotBuilt(PathBuf),
    /// The tests do not compile.
    #[error("the tests could not be built: see above")]
    Build,
    /// The list of files comes from git, which could not give it.
    #[error("cannot list the files of {path}: {why}; tidy needs git and a clone")]
    List {
        /// The workspace.
        path: PathBuf,
        /// What git said.
        why: String,
    },
}
