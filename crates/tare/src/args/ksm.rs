//! What can be asked of `tare ksm`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use tare_model::units::Span;

use super::{FormatArgument, LineFormat};

/// Arguments of `tare ksm`.
#[derive(Debug, Args)]
pub struct KsmArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: KsmCommand,
}

/// What can be done about the merging of equal memory.
#[derive(Debug, Subcommand)]
pub enum KsmCommand {
    /// Show what the kernel is set to, what it has merged and at what cost, whose memory it is, and who governs it.
    Status {
        /// How to print.
        #[command(flatten)]
        shown: FormatArgument,
    },
    /// Print a line at each interval until Ctrl-C: what is saved and what scanning costs.
    Watch {
        /// Time from line to line.
        #[arg(long, value_name = "SPAN", default_value = "1s")]
        every: Span,
        /// How to print each line.
        #[arg(long, value_enum, default_value_t)]
        format: LineFormat,
        /// End by itself after this.
        #[arg(long = "for", value_name = "SPAN")]
        lasts: Option<Span>,
    },
    /// Govern merging by a rule until Ctrl-C, then put every setting back as it was found.
    ///
    /// It merges the memory that programs have opened to merging, and no other. Whoever shares merged memory can learn by timing
    /// what others hold in theirs: --trust-domain says that all of them may. After a kill -9, `tare ksm restore`, `tare reap` and
    /// the next run put the settings back.
    Tune(TuneArguments),
    /// Put back what a dead `tare ksm tune` or run had changed.
    Restore,
}

/// Arguments of `tare ksm tune`.
#[derive(Debug, Args)]
pub struct TuneArguments {
    /// Who sets how fast pages are scanned.
    #[arg(long, value_enum, default_value_t = Rule::Tare)]
    pub rule: Rule,
    /// To whom all belongs that shares memory, in your words, such as "this team's guests alone".
    #[arg(long, value_name = "TEXT")]
    pub trust_domain: Option<String>,
    /// Pages scanned at a time [fixed; default: 100].
    #[arg(long, value_name = "N")]
    pub pages_to_scan: Option<u32>,
    /// Pause between two times [fixed; default: 20ms].
    #[arg(long, value_name = "SPAN")]
    pub sleep: Option<Span>,
    /// How long one pass over all memory is to take [advisor; default: 200s].
    #[arg(long, value_name = "SPAN")]
    pub target_scan_time: Option<Span>,
    /// Share of the host's memory that is to stay available: below it, merging is in haste [tare; default: 0.2].
    #[arg(long, value_name = "SHARE")]
    pub free_goal: Option<f64>,
    /// Most CPU that scanning may take, a share of one CPU [tare, advisor; default: 0.7].
    #[arg(long, value_name = "SHARE")]
    pub max_cpu: Option<f64>,
    /// Merge empty pages with the kernel's own page of zeros.
    #[arg(long)]
    pub zero_pages: bool,
    /// Reckon with this process alone, where the rule goes by what guests take; may be given again [default: every process that
    /// is open to merging].
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// Reckon with the processes of this control group and of those below it; may be given again.
    #[arg(long, value_name = "DIR")]
    pub group: Vec<PathBuf>,
    /// Time from line to line.
    #[arg(long, value_name = "SPAN", default_value = "10s")]
    pub every: Span,
    /// End by itself after this.
    #[arg(long = "for", value_name = "SPAN")]
    pub lasts: Option<Span>,
    /// Tune although a run of tare's is alive on this host, if that leaves merging alone.
    #[arg(long, env = "TARE_ALONGSIDE", value_parser = clap::builder::FalseyValueParser::new())]
    pub alongside: bool,
}

/// A rule that sets how fast pages are scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Rule {
    /// tare's own: fast while memory is short and scanning pays, and at rest once nothing more is gained.
    Tare,
    /// That of today's ksmtuned.
    Ksmtuned,
    /// That of the script of 2009.
    PublishedScript,
    /// The kernel's own advisor (Linux 6.8).
    Advisor,
    /// These pages and this pause, for good.
    Fixed,
}
