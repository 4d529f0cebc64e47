//! What can be asked on the command line. The help texts here are the reference.

mod exec;
mod format;
mod gate;
mod history;
mod ksm;
mod prove;
mod size;

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

pub use exec::ExecArguments;
pub use format::{Format, FormatArgument, LineFormat};
pub use gate::{ChoiceArguments, Direction, ExportArguments, ExportFormat, FailOn, GateArguments};
pub use history::{ChosenSeries, HistoryArguments, HistoryCommand};
pub use ksm::{KsmArguments, KsmCommand, Rule, TuneArguments};
pub use prove::{Group, ProveArguments};
pub use size::SizeArguments;

const EXIT_CODES: &str = "\
Exit codes:
  0    done, and everything that was to be measured was
  1    tare could not do what was asked; the message says what, why and what would help
  2    the command line or a file of yours is wrong; nothing was started
  3    the run ended, but some trials failed or are invalid; the report lists them
  4    this host cannot do it; `tare doctor` says what is missing
  5    `tare audit` found something that does not hold together; no verdict rests on it;
       `tare size --check`: a held-out case was not predicted
  64   `tare gate` has no answer; its 0, 1 and 2 are answers: see `tare gate --help`
  130  you stopped it; everything was taken down and what was measured is kept

Environment:
  TARE_AGENT  path of the agent's program (default: `tare-agent` beside `tare`, else in ../lib/tare)
  TARE_CACHE  where kernels and images of virtual machines are kept
  TARE_LOG    what is logged to standard error, such as `debug` or `tare_lab=trace`";

/// tare measures what an isolation layer weighs: the same work natively, in containers, sandboxes and
/// virtual machines on your own hosts, side by side, with an answer that stands up.
///
/// Start with `tare doctor`, then `tare run quickstart`, or `tare exec -- COMMAND` with a command of your own.
#[derive(Debug, Parser)]
#[command(name = "tare", version, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a study: every trial of its plan, then the findings and the report.
    ///
    /// The run folder holds everything: `tare report` and `tare compare` need nothing else. Ctrl-C takes
    /// everything down and keeps the trials that were completed; --resume goes on with the rest.
    Run(RunArguments),
    /// Run one command natively, in containers, sandboxes and machines, and compare: no study file.
    ///
    /// The arms run the command in turns, in guests of equal limits. What is compared is its wall time, or a figure out of what it
    /// prints. The command runs once on each arm before anything counts: one that fails ends tare with its output, and how long it takes
    /// decides how often it runs. The run folder is that of `tare run`; --save writes the study for it.
    #[command(after_help = exec::EXAMPLES)]
    Exec(ExecArguments),
    /// Show what a run would do: the trials in order, how long, how much memory and disk.
    ///
    /// Of more than 60 trials the first are listed; --format json has all.
    /// Refuses, with the figures, what does not fit on this host, and tells the arms that it cannot run.
    Plan(PlanArguments),
    /// Say what this host can run, what not, why, and the remedy.
    Doctor(DoctorArguments),
    /// Render findings and report again, from a run folder alone.
    Report(ReportArguments),
    /// Check that a run folder is whole and as it was written.
    ///
    /// Checks the chain of the journal, the files that the run began with, the digest of every trial, and that just the
    /// acknowledged trials are stored; prints the root hash and each problem with its remedy. A run that was cut short is as it was
    /// written. Ends with 1 where something was altered, or is not what --root says. With --recompute a second program, which shares no
    /// code with the analysis, makes the findings again from the results (docs/reference/verify.md); ends with 1 where a figure
    /// differs, or where findings.json is not what tare makes of the results, and with 4 without Python, numpy and scipy.
    Verify(VerifyArguments),
    /// Compare runs with runs, such as before and after an upgrade.
    ///
    /// Each run gives one value of a figure, so that verdicts need several runs on both sides:
    /// `tare compare before-1 before-2 before-3 --with after-1 after-2 after-3`. Two runs (`tare compare before after`) are shown side by
    /// side, without a verdict. Two versions of one platform, kernel or setting are better compared as arms of one study, in turns:
    /// `tare init my-study.toml --from two-settings` writes an example. Ends with 2 where plans differ in what figures depend on.
    Compare(CompareArguments),
    /// Hold a study's comparisons against a limit, for continuous integration: fail on a proven regression.
    ///
    /// Judges what answers the study: each arm against the baseline in the primary metric of each case, in guest start and in the memory
    /// of an idle guest. Two builds, kernels or settings are best compared as arms of one study, in turns: `tare init my-study.toml
    /// --from two-settings` writes an example. docs/reference/ci.md has recipes.
    #[command(after_help = gate::GATE_CODES)]
    Gate(GateArguments),
    /// Write effects and values with their intervals for programs that watch figures from run to run.
    ///
    /// An effect is the ratio of an arm to the baseline of its own run: what moved the whole host cancels. docs/reference/ci.md describes the
    /// formats.
    Export(ExportArguments),
    /// Keep the effects of runs over time in one file, and show from which run on they changed.
    ///
    /// `tare history add DIR` after each run, then `tare history show`. Series are of effects, an arm over the baseline of its own run, so that
    /// what moves the whole host cancels. Another host, and a plan that differs in what figures depend on, begin a series of their own.
    History(HistoryArguments),
    /// Bring figures that others published into run folders, for report, comparison and audit.
    ///
    /// Reads CSV files of the tables of published reports, known by their headers, not by their names
    /// (docs/reference/published.md has the formats). Each report becomes one run folder; nothing is corrected, and
    /// nothing is written unless all files are right.
    Import(ImportArguments),
    /// Check whether runs are consistent and whether their arms can be compared.
    ///
    /// Checks totals, bytes a request, mix, numbers of requests, conditions, instrument, repeats, and the claims of a
    /// published report. `tare run` and `tare report` make the same checks before any verdict: a broken check removes
    /// the verdict. Ends with 5 where something is broken.
    Audit(AuditArguments),
    /// Say how many instances or guests of this size to run, at which CPU and with how much memory, from a run folder.
    ///
    /// Fits few models to what was measured (docs/reference/sizing.md), reports their intervals and residuals, predicts nothing
    /// outside the measured range, and checks itself on the cases that the study holds out. Runs that add guests or search for a
    /// capacity are sized by their result.
    Size(SizeArguments),
    /// Measure the instrument itself on this host: its floor and what measuring costs.
    Calibrate(CalibrateArguments),
    /// Count how often tare is wrong on this host: by studies whose truth is known.
    ///
    /// Equal arms, arms that are slower by a known share, runs that are disturbed or killed on purpose, and secrets that are planted: each
    /// statement that tare makes of itself is a bar, which is met, not met, or open where too few were counted to say. The short form
    /// takes a quarter of an hour and leaves most of them open; --full takes a night. Nothing else should run on the host: it disturbs
    /// its own runs by itself. Ends with 5 where a bar is not met.
    Prove(ProveArguments),
    /// Take away whatever dead runs left on this host.
    ///
    /// Every run has a reaper of its own: a process that takes the run down when its controller is killed. This command is for
    /// what outlives both, such as after both were killed. It goes by the ledger that the run kept in its state directory
    /// (/run/tare/RUN; without root XDG_RUNTIME_DIR/tare/RUN or /tmp/tare-UID/RUN), and finds processes, control groups and
    /// directories by run id. No file of a run folder is read. Runs that are alive are left alone. Running it again finds nothing.
    Reap {
        /// Reap this run for the last time: strike from its list what it left on other machines that do not answer.
        ///
        /// For a machine that is gone for good. Every other `tare reap` and every run tries it again, and fails or says so.
        #[arg(long, value_name = "RUN")]
        forget: Option<String>,
    },
    /// Waits for the end of a run's controller and takes down what it leaves; `tare run` starts it.
    #[command(hide = true)]
    Reaper {
        /// What the run is called on this host.
        run: String,
    },
    /// Make, check, list and clear what virtual machines boot from.
    Image(ImageArguments),
    /// Show, watch and govern how the kernel merges equal memory, and put back what was changed.
    Ksm(KsmArguments),
    /// List platforms, workloads and shipped studies.
    List(ListArguments),
    /// Write a study file to start from: a commented one, or a copy of one that ships with tare.
    Init(InitArguments),
    /// Print the JSON schema of study files, for editors; or what one platform or workload takes, for people.
    Schema(SchemaArguments),
    /// Print shell completions.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder.
    Man {
        /// The folder; it is made if it is not there.
        folder: PathBuf,
    },
}

/// What changes a study before it is planned.
#[derive(Debug, Default, Args)]
pub struct StudyArguments {
    /// Study file, or the name of a shipped study (`tare list studies`).
    pub study: String,
    /// A file that says which hosts take part in this study, and on which wire: `[hosts.NAME]`, `[roles]`, `[lab.wire]`.
    #[arg(long, value_name = "FILE")]
    pub hosts: Option<PathBuf>,
    /// Multiply every phase by this, such as 0.1 for a tenth of the time. The report states it.
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true)]
    pub scale: Option<f64>,
    /// Run this many blocks instead of the study's, a fixed number.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub blocks: Option<u32>,
    /// Order trials by this seed. By default a run draws one, where the study names none.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Leave this arm out, such as one whose runtime is missing on this host; may be given again. The report states it.
    /// `*` stands for any characters, here and in the next three.
    #[arg(long, value_name = "ARM")]
    pub without: Vec<String>,
    /// Run this arm alone beside the baseline; may be given again. The report states it.
    #[arg(long, value_name = "ARM")]
    pub only_arm: Vec<String>,
    /// Run this case alone, with the one whose capacity its load is a share of; may be given again. The report states it.
    #[arg(long, value_name = "CASE")]
    pub only_case: Vec<String>,
    /// Leave this case out; may be given again. The report states it.
    #[arg(long, value_name = "CASE")]
    pub without_case: Vec<String>,
    /// Measure virtual machines also where KVM runs none and they are emulated. A study with `skip-unavailable`
    /// leaves them out otherwise; their figures say nothing about virtual machines, and reports show them apart.
    #[arg(long)]
    pub emulated: bool,
    /// Run what this host can run of a study that repeats a published one, although arms that the publication is about
    /// cannot run here. The report opens with that. Where the baseline cannot run either, the first arm that can takes its place.
    #[arg(long)]
    pub what_can: bool,
}

impl StudyArguments {
    /// A study as it is.
    pub fn of(study: &str) -> Self {
        Self { study: study.to_owned(), ..Self::default() }
    }
}

/// Arguments of `tare run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// The study.
    #[command(flatten)]
    pub study: StudyArguments,
    /// Run folder [default: runs/STUDY-TIME].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with a run that was cut short; --out names its folder.
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Keep host names, addresses and serial numbers in the disclosed environment.
    #[arg(long)]
    pub no_redact: bool,
    /// Run although another run of tare's is alive on this host; every trial then says so.
    #[arg(long, env = "TARE_ALONGSIDE", value_parser = FalseyValueParser::new())]
    pub alongside: bool,
}

/// Arguments of `tare plan`.
#[derive(Debug, Args)]
pub struct PlanArguments {
    /// The study.
    #[command(flatten)]
    pub study: StudyArguments,
    /// How to print; the JSON is that of plan.json.
    #[command(flatten)]
    pub shown: FormatArgument,
    /// How much the ratio of arm to baseline is assumed to spread from block to block, for the power that the plan states (default 2 %).
    #[arg(long, value_name = "PERCENT", value_parser = percent, conflicts_with = "noise_from")]
    pub noise: Option<f64>,
    /// Take that spread from an earlier run, case by case.
    #[arg(long, value_name = "RUN")]
    pub noise_from: Option<PathBuf>,
}

/// A share from 0 to below 1, written as a percentage.
fn share(text: &str) -> Option<f64> {
    let number = text.strip_suffix('%').map(str::trim).and_then(|number| number.parse::<f64>().ok());
    number.map(|number| number / 100.0).filter(|share| (0.0..1.0).contains(share))
}

/// A share above 0 and below 1, written as `2%` or `2 %`.
fn percent(text: &str) -> Result<f64, String> {
    let share = share(text).filter(|share| *share > 0.0);
    share.ok_or_else(|| "write a percentage above 0 and below 100, such as `2%`".to_owned())
}

/// Arguments of `tare doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// Examine the arms of this study, with their options, instead of every platform with its defaults.
    pub study: Option<String>,
    /// Do not start a guest on each platform, only look.
    #[arg(long)]
    pub quick: bool,
    /// Try again what an earlier attempt has settled, and remember what is found now.
    ///
    /// Whether KVM boots a guest, and whether a mode of a sandbox works, is tried once and remembered for the same tare, kernel,
    /// processor and program: 30 days, and 7 days where it did not work. For arms with a program, kernel or processor of their own, name the study.
    #[arg(long)]
    pub again: bool,
    /// Add what the figures of each platform mean, and the settings of the host.
    #[arg(long)]
    pub verbose: bool,
    /// How to print; JSON has all that --verbose adds.
    #[command(flatten)]
    pub shown: FormatArgument,
}

/// Arguments of `tare report`.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Run folder.
    pub run: PathBuf,
    /// Print one form to standard output; without it, all are written into the run folder.
    #[arg(long)]
    pub format: Option<Format>,
    /// Render although the folder is not what was written; the report says so.
    #[arg(long)]
    pub altered: bool,
}

/// Arguments of `tare verify`.
#[derive(Debug, Args)]
pub struct VerifyArguments {
    /// Run folder.
    pub run: PathBuf,
    /// The root hash that the folder must have, as the run or its report printed it.
    #[arg(long, value_name = "HASH", value_parser = root_hash)]
    pub root: Option<String>,
    /// Make every figure of the findings again by a second path, and compare. Needs `python3` with numpy and scipy.
    #[arg(long)]
    pub recompute: bool,
    /// How to print.
    #[command(flatten)]
    pub shown: FormatArgument,
}

fn root_hash(text: &str) -> Result<String, String> {
    let hash = text.trim().to_ascii_lowercase();
    match hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Ok(hash),
        false => Err("a root hash has 64 hexadecimal digits".to_owned()),
    }
}

/// Arguments of `tare compare`.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// Run folders to compare with; without --with, one and then the one to judge.
    #[arg(required = true, value_name = "DIR")]
    pub before: Vec<PathBuf>,
    /// Run folders to judge.
    #[arg(long = "with", value_name = "DIR", num_args = 1..)]
    pub after: Vec<PathBuf>,
    /// Print every figure, not only the summary and the changes; the other forms have all.
    #[arg(long)]
    pub all: bool,
    /// How to print; `--format html > compared.html` makes a page that opens offline.
    #[command(flatten)]
    pub shown: FormatArgument,
}

/// Arguments of `tare import`.
#[derive(Debug, Args)]
pub struct ImportArguments {
    /// CSV files, or folders that hold them [default: the published reports that ship with tare].
    #[arg(value_name = "FILE|DIR")]
    pub from: Vec<PathBuf>,
    /// Run folder of the report; of several, the folder in which theirs are made [default: runs/STUDY-TIME].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub shown: FormatArgument,
}

/// Arguments of `tare audit`.
#[derive(Debug, Args)]
pub struct AuditArguments {
    /// Run folders.
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// How to print.
    #[command(flatten)]
    pub shown: FormatArgument,
}

/// Arguments of `tare calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArguments {
    /// Run folder [default: runs/calibrate-TIME].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Multiply every phase by this.
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true)]
    pub scale: Option<f64>,
    /// Run although another run of tare's is alive on this host; every trial then says so.
    #[arg(long, env = "TARE_ALONGSIDE", value_parser = FalseyValueParser::new())]
    pub alongside: bool,
    /// How to print; all but text leave out the report on the trials, which is in the run folder.
    #[command(flatten)]
    pub shown: FormatArgument,
}

/// Arguments of `tare image`.
#[derive(Debug, Args)]
pub struct ImageArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: ImageCommand,
}

/// What can be done about images.
#[derive(Debug, Subcommand)]
pub enum ImageCommand {
    /// Build an image, unless it is in the cache; a run never does.
    Build {
        /// Which.
        what: Built,
        /// Packages besides the base system.
        packages: Vec<String>,
        /// Suite, such as `bookworm` [default: the host's own if it is a Debian, else `stable`].
        #[arg(long)]
        suite: Option<String>,
    },
    /// Look at an image as a run would: its format, and whether it refers to other files.
    Check {
        /// File or block device.
        image: PathBuf,
        /// Its format; it is never guessed.
        #[arg(long)]
        format: ImageFormat,
    },
    /// List the kernel that would be used and what is in the cache (TARE_CACHE).
    List(FormatArgument),
    /// Remove everything from the cache but kernels.
    Clear,
}

/// What can be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Built {
    /// A small Debian, with mmdebstrap.
    Debian,
}

/// Format of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ImageFormat {
    /// Byte for byte.
    Raw,
    /// QEMU's own.
    Qcow2,
}

/// Arguments of `tare list`.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// List only these.
    pub what: Option<Listed>,
    /// How to print.
    #[command(flatten)]
    pub shown: FormatArgument,
}

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// What provides guests.
    Platforms,
    /// What runs in them.
    Workloads,
    /// Study files that come with tare.
    Studies,
}

/// Arguments of `tare init`.
#[derive(Debug, Args)]
pub struct InitArguments {
    /// File to write; `-` prints it.
    #[arg(default_value = "study.toml")]
    pub file: PathBuf,
    /// Copy this study that ships with tare (`tare list studies`) instead, to be changed.
    #[arg(long, value_name = "STUDY")]
    pub from: Option<String>,
}

/// Arguments of `tare schema`.
#[derive(Debug, Args)]
pub struct SchemaArguments {
    /// Print what this platform takes as `options`, or this workload as `parameters` (`tare list`), a paragraph each.
    #[arg(value_name = "PLATFORM|WORKLOAD")]
    pub of: Option<String>,
    /// How to print [default: text of one platform or workload, else json].
    #[arg(long, value_enum)]
    pub format: Option<Format>,
}
