//! What can be asked of `tare exec`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::FalseyValueParser;
use tare_model::Span;

/// Shown below the help.
pub const EXAMPLES: &str = "\
Examples:
  tare exec -- gzip -k9c /usr/bin/perl
  tare exec --on native,container,kvm --until 2% --max-time 10m -- sh -c 'make -C /srv/app clean all'
  tare exec --cpus 2 --metric 'events per second: +([0-9.]+)' --unit /s -- sysbench cpu --threads=2 run";

/// Arguments of `tare exec`.
#[derive(Debug, Args)]
pub struct ExecArguments {
    /// Where the command runs, the baseline first: names of `tare doctor`'s list, such as `native,container,crun,kvm`, `docker:IMAGE`,
    /// `podman:IMAGE`, `ssh:HOST` [default: native,container].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub on: Vec<String>,
    /// Compare this figure instead of the wall time: a regular expression whose first group is the figure; the last match counts.
    #[arg(long, value_name = "REGEX")]
    pub metric: Option<String>,
    /// Compare this figure instead of the wall time: a JSON path into the output, such as `$.jobs[0].read.iops`.
    #[arg(long, value_name = "PATH", conflicts_with = "metric")]
    pub json_path: Option<String>,
    /// Unit of the figure, as it shall be shown.
    #[arg(long, value_name = "UNIT", default_value = "")]
    pub unit: String,
    /// More of the figure is better. The default for --metric and --json-path, as most programs print a rate.
    #[arg(long)]
    pub higher_is_better: bool,
    /// Less of the figure is better, as of a latency.
    #[arg(long, conflicts_with = "higher_is_better")]
    pub lower_is_better: bool,
    /// Run blocks until no interval reaches further than this from its estimate, such as `2%`; --max-time bounds how many there are.
    #[arg(long, value_name = "PERCENT", conflicts_with = "blocks")]
    pub until: Option<String>,
    /// Plan no more blocks than fit into this time, such as `5m` [default: 5m, and 6 blocks at least].
    #[arg(long, value_name = "TIME", conflicts_with = "blocks")]
    pub max_time: Option<Span>,
    /// Run so many blocks; each has fresh guests [default: 12, or as many as fit into --max-time].
    #[arg(long, value_name = "N")]
    pub blocks: Option<u32>,
    /// Runs of the command in each block, on each arm [default: as many as fit into 0.25 s, 1 to 10].
    #[arg(long, value_name = "N")]
    pub runs: Option<u32>,
    /// Unmeasured runs in each fresh guest [default: 1, or 0 of a command that takes a second and more].
    #[arg(long, value_name = "N")]
    pub warm_up: Option<u32>,
    /// CPUs of each guest.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub cpus: u32,
    /// Memory of each guest.
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub memory: String,
    /// Hand this environment variable to the command; may be given again. Its value is a secret: no report shows it.
    #[arg(long, value_name = "NAME")]
    pub env: Vec<String>,
    /// Working directory of the command, in each guest.
    #[arg(long, value_name = "DIR")]
    pub directory: Option<String>,
    /// Kill the command, and end the run, after this long.
    #[arg(long, value_name = "TIME", default_value = "10m")]
    pub timeout: Span,
    /// Do not run the baseline twice in each block, which shows what mere noise does.
    #[arg(long)]
    pub no_noise_floor: bool,
    /// Write the report into this file, too; its end says how: .html, .json, .md, .txt. May be given again.
    #[arg(long, value_name = "FILE")]
    pub export: Vec<PathBuf>,
    /// Write the study into this file, for `tare run` and `tare plan`.
    #[arg(long, value_name = "FILE.toml")]
    pub save: Option<PathBuf>,
    /// Run folder [default: runs/exec-PROGRAM-TIME].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Order the runs by this seed, and save it with the study. By default each run draws one.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Run although another run of tare's is alive on this host.
    #[arg(long, env = "TARE_ALONGSIDE", value_parser = FalseyValueParser::new())]
    pub alongside: bool,
    /// The command and its arguments, behind `--`. No shell is used: write `sh -c '...'` for one.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
