//! What can be asked of `tare history`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{ChoiceArguments, FormatArgument};

/// The file of a history unless another is named, in the current folder.
pub const FILE: &str = "tare-history.sqlite";

/// Arguments of `tare history`.
#[derive(Debug, Args)]
pub struct HistoryArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: HistoryCommand,
}

/// What can be done about a history.
#[derive(Debug, Subcommand)]
pub enum HistoryCommand {
    /// Add runs, all or none. A run that is there already stays as it is; one that was altered or cut short is refused.
    ///
    /// Several may add to one file at the same time: each waits for the others, for a minute at most.
    Add {
        /// Run folders.
        #[arg(required = true, value_name = "DIR")]
        runs: Vec<PathBuf>,
        /// The history; it is made if it is not there.
        #[arg(long, value_name = "FILE", default_value = FILE)]
        into: PathBuf,
        /// How to print.
        #[command(flatten)]
        shown: FormatArgument,
    },
    /// Show the effects over time, and from which runs on they changed.
    Show {
        /// Which of the series.
        #[command(flatten)]
        chosen: ChosenSeries,
        /// List every series, not only those that answer their study or changed; the other forms have all.
        #[arg(long)]
        all: bool,
        /// How to print; `--format html > history.html` makes a page that opens offline, with a small plot a series.
        #[command(flatten)]
        shown: FormatArgument,
    },
    /// Write runs, effects and changes as Parquet files.
    Export {
        /// Which of the series.
        #[command(flatten)]
        chosen: ChosenSeries,
        /// The folder; it is made if it is not there.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

/// Which series of a history.
#[derive(Debug, Args)]
pub struct ChosenSeries {
    /// The history.
    #[arg(long, value_name = "FILE", default_value = FILE)]
    pub from: PathBuf,
    /// Runs of this study alone.
    #[arg(long, value_name = "NAME")]
    pub study: Option<String>,
    /// Of these its series.
    #[command(flatten)]
    pub choice: ChoiceArguments,
}
