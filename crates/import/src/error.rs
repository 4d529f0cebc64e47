//! What can be wrong with files of published figures.

use std::path::PathBuf;

use tare_record::RecordError;

/// What was read, what is wrong with it and where, and the remedy. Nothing was written, unless it is [`Self::Record`].
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file or a folder cannot be read.
    #[error("{} cannot be read: {source}. Name CSV files, or a folder that holds them", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file is too long to be a table of a report.
    #[error("{} has {bytes} bytes, but tables of reports have at most {most}: this is not one", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
        /// The longest that is read.
        most: u64,
    },
    /// There is no table where one was looked for.
    #[error("there is no CSV file in {}. Name CSV files of published figures, or a folder that holds them", path.display())]
    Nothing {
        /// The folder.
        path: PathBuf,
    },
    /// The first line is that of no format.
    #[error("{}, line 1: {what}. {remedy}", file.display())]
    Header {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        what: String,
        /// What helps.
        remedy: String,
    },
    /// A line is wrong as a whole.
    #[error("{}, line {line}: {what}. {remedy}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// Line, from 1.
        line: u64,
        /// What is wrong.
        what: String,
        /// What helps.
        remedy: String,
    },
    /// One figure or name is wrong.
    #[error("{}, line {line}, column `{column}`: {what}. {remedy}", file.display())]
    Cell {
        /// The file.
        file: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Name of the column.
        column: String,
        /// What is wrong.
        what: String,
        /// What helps.
        remedy: String,
    },
    /// Two files have the same header.
    #[error("{} and {} have the same header: import one report at a time, each from a folder of its own", first.display(), second.display())]
    Twice {
        /// The first.
        first: PathBuf,
        /// The second.
        second: PathBuf,
    },
    /// The file of claims is wrong.
    #[error("{}, line {line}: {what}. docs/reference/published.md describes the file", file.display())]
    Claims {
        /// The file.
        file: PathBuf,
        /// Line, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// One claim is wrong.
    #[error("{}, line {line}, field `{field}`: {what}. {remedy}", file.display())]
    Claim {
        /// The file.
        file: PathBuf,
        /// Line at which the claim begins, from 1.
        line: u64,
        /// Key in the claim.
        field: String,
        /// What is wrong.
        what: String,
        /// What helps.
        remedy: String,
    },
    /// The run folder cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
}
