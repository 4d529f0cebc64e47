//! What can go wrong with a run folder.

use std::path::{Path, PathBuf};

/// A result of this crate.
pub type Result<T, E = RecordError> = std::result::Result<T, E>;

/// What was tried with a run folder, why it failed, and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A new run was to be written where something already is.
    #[error("{} is not empty: a run is never written over. Choose another folder, or continue that run with --resume", dir.display())]
    NotEmpty {
        /// The folder.
        dir: PathBuf,
    },
    /// The folder is not one that tare wrote.
    #[error("{} is not a run folder: it has no {missing}. Name the folder that `tare run` printed", dir.display())]
    NotARun {
        /// The folder.
        dir: PathBuf,
        /// The file that every run folder has.
        missing: &'static str,
    },
    /// The folder was written by a later version.
    #[error("{} was written by a newer tare (schema {schema}; this one reads up to {known}). Use that version or a later one", file.display())]
    NewerTare {
        /// The file whose schema is too new.
        file: PathBuf,
        /// Its schema.
        schema: u32,
        /// Newest schema that this program reads.
        known: u32,
    },
    /// Something in the folder is not a plain file.
    #[error("{} is {what}: every file of a run folder is a plain file with one name, and nothing else is read or written. Get the folder again from where it was run (`cp -r` makes plain copies of hard links)", file.display())]
    NotPlain {
        /// Its path.
        file: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A file is longer than one of its kind can be.
    #[error("{} has {length} bytes, and tare reads at most {most} of such a file. Get the folder again from where it was run", file.display())]
    TooLong {
        /// The file.
        file: PathBuf,
        /// Its length, bytes.
        length: u64,
        /// The most that is read, bytes.
        most: u64,
    },
    /// Another process writes to the folder.
    #[error("{} is being written by another tare. Wait for it to end, or stop it first", dir.display())]
    Busy {
        /// The folder.
        dir: PathBuf,
    },
    /// There is no such history.
    #[error("{} is not there: `tare history add DIR... --into FILE` makes a history of runs", file.display())]
    NoHistory {
        /// The file.
        file: PathBuf,
    },
    /// Another process holds the history.
    #[error("{} was held by another program for a minute. Wait for it to end, then try again", file.display())]
    HistoryBusy {
        /// The file.
        file: PathBuf,
    },
    /// A history holds another run of the same id.
    #[error("{} holds the run {run} with root hash {root_hash}, and this folder has {given}: one of the two was altered. `tare verify DIR --root HASH` says of a folder which it is", file.display())]
    OtherRun {
        /// The history.
        file: PathBuf,
        /// The run's id.
        run: String,
        /// Its root hash in the history.
        root_hash: String,
        /// The root hash of the folder.
        given: String,
    },
    /// The file system is full.
    #[error("the disk is full while {doing} ({}). What was acknowledged is kept: free some space, then continue with --resume", file.display())]
    DiskFull {
        /// What was tried.
        doing: &'static str,
        /// The file.
        file: PathBuf,
    },
    /// A file could not be read or written.
    #[error("{doing} failed ({}): {source}", file.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file.
        file: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The results could not be read or written.
    #[error("{doing} failed ({}): {source}", file.display())]
    Store {
        /// What was tried.
        doing: &'static str,
        /// The database.
        file: PathBuf,
        /// Why it failed.
        source: rusqlite::Error,
    },
    /// A file does not hold what it must.
    #[error("{} {what}. {remedy}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A number is beyond what the results hold.
    #[error("{what} of {value} cannot be stored: {} holds at most {most}", crate::layout::RESULTS)]
    TooLarge {
        /// What the number is.
        what: &'static str,
        /// The number.
        value: u64,
        /// The largest that can be stored.
        most: u64,
    },
    /// The trial is there already.
    #[error("trial {index} is recorded already; a trial is never written over")]
    AlreadyRecorded {
        /// Its position in the plan.
        index: u32,
    },
    /// The plan knows no such trial.
    #[error("trial {index} ({what}) is not one of this run's plan; nothing was written")]
    NotInPlan {
        /// Its position in the plan.
        index: u32,
        /// Block, case and arm.
        what: String,
    },
    /// What was written reads otherwise.
    #[error(
        "trial {index} reads otherwise than it was written; it was taken back. This is a fault in tare or of the disk: please report it"
    )]
    ReadsOtherwise {
        /// Its position in the plan.
        index: u32,
    },
}

impl RecordError {
    pub(crate) fn io(doing: &'static str, file: &Path, source: std::io::Error) -> Self {
        if matches!(source.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded) {
            return Self::DiskFull { doing, file: file.to_owned() };
        }
        Self::Io { doing, file: file.to_owned(), source }
    }

    pub(crate) fn store(doing: &'static str, file: &Path, source: rusqlite::Error) -> Self {
        // SQLite tells a full disk as FULL, but as an I/O error where it grows the WAL's index.
        let full = matches!(&source, rusqlite::Error::SqliteFailure(e, _)
            if e.code == rusqlite::ErrorCode::DiskFull || e.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE);
        if full {
            return Self::DiskFull { doing, file: file.to_owned() };
        }
        Self::Store { doing, file: file.to_owned(), source }
    }

    pub(crate) fn damaged(file: &Path, what: impl Into<String>, remedy: &'static str) -> Self {
        Self::Damaged { file: file.to_owned(), what: what.into(), remedy }
    }
}
