//! What can be asked of `tare gate` and `tare export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tare_model::findings::GateOutcome;

use super::FormatArgument;

/// Shown below the help of `tare gate`.
pub const GATE_CODES: &str = "\
Exit codes of this command; they are not those of the others:
  0    none of the comparisons is proven worse by more than the limit
  1    at least one is proven worse by more than the limit
  2    cannot say, where --fail-on asks for it; always if no comparison has a verdict
  64   there is no answer: the command line is wrong, a folder cannot be read or is not as it was
       written, nothing was chosen, or a file cannot be written
  Any other code is no answer either, such as 101 and those of signals (130, 137, 143).

Examples:
  tare run study.toml --out run && tare gate run --fail-on worse:2%
  tare gate run --fail-on worse:2% --fail-on no-verdict --junit gate.xml --github
  tare gate run --fail-on worse:5% --fail-on unsure --case 'write*' --format json > gate.json";

/// On what a gate fails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FailOn {
    /// A proven regression of more than this share.
    Worse(f64),
    /// An outcome that proves nothing.
    Doubt(GateOutcome),
}

/// `worse:2%`, `no-verdict` or `unsure`.
fn fail_on(text: &str) -> Result<FailOn, String> {
    match (text, text.strip_prefix("worse:")) {
        ("no-verdict", _) => Ok(FailOn::Doubt(GateOutcome::NoVerdict)),
        ("unsure", _) => Ok(FailOn::Doubt(GateOutcome::Unsure)),
        (_, Some(limit)) => super::share(limit)
            .map(FailOn::Worse)
            .ok_or_else(|| "the limit is a percentage from 0 to below 100, such as `worse:2%`".to_owned()),
        _ => Err("write `worse:2%`, `no-verdict` or `unsure`".to_owned()),
    }
}

/// Which comparisons or figures.
#[derive(Debug, Default, Args)]
pub struct ChoiceArguments {
    /// Only those of this case; may be given again. `*` stands for any characters, here and in the next two.
    #[arg(long, value_name = "CASE")]
    pub case: Vec<String>,
    /// Only those of this arm; may be given again.
    #[arg(long, value_name = "ARM")]
    pub arm: Vec<String>,
    /// Only those in this metric, by its name in files; may be given again.
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<String>,
}

/// Arguments of `tare gate`.
#[derive(Debug, Args)]
pub struct GateArguments {
    /// Run folders.
    #[arg(required = true, value_name = "DIR")]
    pub runs: Vec<PathBuf>,
    /// When to fail: `worse:2%`, a regression of more than 2 % is proven; may be given again with
    /// `no-verdict`, a comparison has no verdict (trials failed, the driver was at its limit, the audit found it broken, the arm did not
    /// run), or `unsure`, that, or the interval is too wide to rule such a regression out.
    ///
    /// Proven: the interval of the ratio lies beyond the limit in the direction that is worse, and does so after the correction for the
    /// number of comparisons that answer the study. The estimate alone proves nothing. 2 % less of what should be more is a ratio of 0.98.
    #[arg(long, value_name = "WHEN", required = true, value_parser = fail_on)]
    pub fail_on: Vec<FailOn>,
    /// Which comparisons are judged, of those that answer the study.
    #[command(flatten)]
    pub choice: ChoiceArguments,
    /// Write JUnit XML into this file, too.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write for GitHub Actions, too: annotations to standard error, and a summary to the end of the file that GITHUB_STEP_SUMMARY names.
    #[arg(long)]
    pub github: bool,
    /// How to print.
    #[command(flatten)]
    pub shown: FormatArgument,
}

/// A format of another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Bencher Metric Format, JSON.
    Bencher,
    /// A row of CSV for Apache Otava.
    Otava,
    /// JSON for `customSmallerIsBetter` or `customBiggerIsBetter`.
    GithubActionBenchmark,
    /// OpenMetrics text.
    Openmetrics,
}

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Direction {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
}

/// Arguments of `tare export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    /// Run folder.
    pub run: PathBuf,
    /// Which format.
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// File to write, over what is there [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Add a row to the file instead, which must have the same columns (otava).
    #[arg(long, requires = "out")]
    pub append: bool,
    /// Add a column of this name (otava), such as `commit=4f2a1c`; may be given again.
    #[arg(long, value_name = "NAME=VALUE", value_parser = attribute)]
    pub attribute: Vec<(String, String)>,
    /// Which figures. Without --metric they are those that answer the study: primary metrics, guest start, memory of an idle guest.
    #[command(flatten)]
    pub choice: ChoiceArguments,
    /// Only metrics that are better this way; a file of github-action-benchmark has one direction.
    #[arg(long, value_enum)]
    pub better: Option<Direction>,
}

fn attribute(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write a name and a value, such as `commit=4f2a1c`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_percentage_and_nothing_else_passes_for_one() {
        assert_eq!(fail_on("worse:2%"), Ok(FailOn::Worse(0.02)));
        assert_eq!(fail_on("worse:0.5 %"), Ok(FailOn::Worse(0.005)));
        assert_eq!(fail_on("worse:0%"), Ok(FailOn::Worse(0.0)));
        assert_eq!(fail_on("unsure"), Ok(FailOn::Doubt(GateOutcome::Unsure)));
        for wrong in ["worse", "worse:", "worse:2", "worse:-1%", "worse:100%", "worse:NaN%", "worse:2%%", "Unsure", ""]
        {
            assert!(fail_on(wrong).is_err(), "{wrong}");
        }
    }
}
