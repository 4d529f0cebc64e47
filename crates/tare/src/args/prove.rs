//! Arguments of `tare prove`.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum};

use super::FormatArgument;
/// Arguments of `tare prove`.
#[derive(Debug, Args)]
pub struct ProveArguments {
    /// The short form, of at most a quarter of an hour, as without it.
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,
    /// The long form, which takes a night: hundreds of comparisons and a thousand kills.
    #[arg(long)]
    pub full: bool,
    /// So many runs, or kills, of each kind.
    #[arg(long, hide = true, value_name = "N")]
    pub times: Option<u32>,
    /// Count for these bars alone; may be given again.
    #[arg(long, value_enum, value_name = "BARS")]
    pub only: Vec<Group>,
    /// Folder of the proof and of its runs [default: runs/prove-TIME].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Run although another run of tare's is alive on this host.
    #[arg(long, env = "TARE_ALONGSIDE", value_parser = FalseyValueParser::new())]
    pub alongside: bool,
    /// How to print.
    #[command(flatten)]
    pub shown: FormatArgument,
}

/// Bars that rest on the same runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Group {
    /// Equal arms: how often a difference is seen.
    Equal,
    /// Arms that are slower by a known share: whether that is found, and held by its interval.
    Slower,
    /// Servers with a known service time: whether percentiles are those of the server's log.
    Percentiles,
    /// Disturbed runs: whether the flag of the cause is raised.
    Planted,
    /// Killed runs: whether anything is left behind or lost.
    Killed,
    /// All run folders of this proof: whether a second program comes to the same figures.
    Recomputed,
    /// What runs leave in their folders: whether a secret or a name of this host is in it.
    Secrets,
}

impl Group {
    /// All, in order.
    pub const ALL: [Self; 7] =
        [Self::Equal, Self::Slower, Self::Percentiles, Self::Planted, Self::Killed, Self::Recomputed, Self::Secrets];

    /// What is done, for whoever waits.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Equal => "equal arms",
            Self::Slower => "arms that are slower by a known share",
            Self::Percentiles => "servers whose service time is known",
            Self::Planted => "runs that something disturbs",
            Self::Killed => "runs that are killed",
            Self::Recomputed => "all figures by a second program",
            Self::Secrets => "secrets and names of this host",
        }
    }
}
