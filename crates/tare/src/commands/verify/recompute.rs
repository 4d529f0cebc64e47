//! The second path: findings made again by a program in Python, and compared with tare's figure by figure.
//!
//! The program is part of tare. It shares no code with what makes findings; `docs/reference/verify.md` says what it covers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::findings::Findings;
use tare_record::{Folder, layout};

use crate::exit::{Exit, Failure};

/// A file of the program by its path in it.
macro_rules! file {
    ($path:literal) => {
        ($path, include_str!(concat!("../../../recompute/", $path)))
    };
}

/// The program, as it lies in `crates/tare/recompute`.
const PROGRAM: &[(&str, &str)] = &[
    file!("__main__.py"),
    file!("tare_recompute/__init__.py"),
    file!("tare_recompute/cases.py"),
    file!("tare_recompute/compare.py"),
    file!("tare_recompute/comparison.py"),
    file!("tare_recompute/consolidation.py"),
    file!("tare_recompute/density.py"),
    file!("tare_recompute/estimates.py"),
    file!("tare_recompute/figures.py"),
    file!("tare_recompute/findings.py"),
    file!("tare_recompute/flags.py"),
    file!("tare_recompute/folder.py"),
    file!("tare_recompute/grouped.py"),
    file!("tare_recompute/held.py"),
    file!("tare_recompute/histogram.py"),
    file!("tare_recompute/isolation.py"),
    file!("tare_recompute/leaves.py"),
    file!("tare_recompute/limits.py"),
    file!("tare_recompute/loads.py"),
    file!("tare_recompute/main.py"),
    file!("tare_recompute/power.py"),
    file!("tare_recompute/raw.py"),
    file!("tare_recompute/resources.py"),
    file!("tare_recompute/scalability.py"),
    file!("tare_recompute/score.py"),
    file!("tare_recompute/series.py"),
    file!("tare_recompute/sizing.py"),
    file!("tare_recompute/sizing_models.py"),
    file!("tare_recompute/thresholds.py"),
    file!("tare_recompute/units.py"),
];
/// Folders of the system's with what Python and its libraries are: all that is seen of the host where a folder is read without root's rights.
pub const SYSTEM: [&str; 6] = ["/usr", "/bin", "/lib", "/lib64", "/etc/alternatives", "/etc/ld.so.cache"];
/// Files that the program reads.
const READ: [&str; 5] = [layout::PLAN, layout::ENVIRONMENT, layout::JOURNAL, layout::RESULTS, layout::RESULTS_WAL];
/// Where Python may be; the first with numpy and scipy is taken. Another one may stand before that of the system in the search path.
const PYTHONS: [&str; 2] = ["python3", "/usr/bin/python3"];
/// How the program ends where its Python lacks numpy or scipy.
const LACKS_LIBRARIES: i32 = 3;

/// What came of it.
#[derive(Debug, Deserialize, Serialize)]
pub struct Recomputed {
    /// Figures that agree to 1e-9, relative.
    pub checked: u64,
    /// Verdicts, names and other words that agree.
    pub statements: u64,
    /// Figures that agree as far as the search behind them goes, by what was searched.
    pub near: BTreeMap<String, u64>,
    /// Figures that were not made again, by the reason.
    pub left_out: BTreeMap<String, u64>,
    /// Metrics of trials that were made again from histograms, counts and accounts, by their ids.
    pub metrics: BTreeMap<String, u64>,
    /// Metrics of trials of which nothing else is stored: as the trial has them.
    pub taken: BTreeMap<String, u64>,
    /// Metrics of trials that differ.
    pub metrics_differ: u64,
    /// All figures that differ, metrics of trials among them.
    pub mismatches: u64,
    /// The first of them.
    pub listed: Vec<Mismatch>,
}

/// A figure that differs.
#[derive(Debug, Deserialize, Serialize)]
pub struct Mismatch {
    /// Where in the findings it stands.
    pub figure: String,
    /// As tare has it.
    pub tare: Value,
    /// As it was made again.
    pub again: Value,
    /// Relative difference of numbers.
    pub relative: Option<f64>,
}

/// Makes the findings of a run folder again, and compares them with `findings`, which tare has just made from it.
///
/// # Errors
/// Where no Python has what it takes, and where the program ends without an answer.
pub fn recompute(run: &Path, findings: &Findings) -> Result<Recomputed, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(format!("the second path cannot be started: {error}"), Exit::Failure)
    };
    // A folder of this process alone, with a name that nobody knows beforehand: nobody else can put a program there.
    let place = tempfile::Builder::new().prefix("tare-verify-").tempdir().map_err(|error| failed(&error))?;
    let program = write(place.path()).map_err(|error| failed(&error))?;
    let made = place.path().join("findings.json");
    let json = serde_json::to_string(findings).map_err(|error| failed(&error))?;
    std::fs::write(&made, json).map_err(|error| failed(&error))?;
    let run = copy(run, place.path()).map_err(|error| failed(&error))?;
    let mut found = Vec::new();
    for python in PYTHONS {
        match start(python, &program, &run, &made) {
            Ok(output) if output.status.code() != Some(LACKS_LIBRARIES) => return answer(&output),
            Ok(output) => found.push(format!("{python}: {}", last_line(&output.stderr))),
            Err(error) => found.push(format!("{python}: {error}")),
        }
    }
    Err(Failure::new(
        format!(
            "figures cannot be recomputed: no `python3` with numpy and scipy was found ({}). Install them (Debian and Ubuntu: \
             `apt install python3-numpy python3-scipy`), or leave out --recompute",
            found.join("; ")
        ),
        Exit::HostUnfit,
    ))
}

fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.lines().last().unwrap_or("it said nothing").to_owned()
}

fn write(place: &Path) -> std::io::Result<PathBuf> {
    let program = place.join("recompute");
    for (name, text) in PROGRAM {
        let file = program.join(name);
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(file, text)?;
    }
    Ok(program)
}

/// A copy of what the program reads of a folder: started without root's rights, it may not read the folder itself.
fn copy(run: &Path, place: &Path) -> Result<PathBuf, String> {
    let folder = Folder::open(run).map_err(|error| error.to_string())?;
    let copy = place.join("run");
    std::fs::create_dir(&copy).map_err(|error| error.to_string())?;
    for name in READ {
        let Some(mut file) = folder.open_file(name).map_err(|error| error.to_string())? else { continue };
        let copied = std::fs::File::create_new(copy.join(name)).and_then(|mut to| std::io::copy(&mut file, &mut to));
        copied.map_err(|error| format!("{name} cannot be copied: {error}"))?;
    }
    Ok(copy)
}

/// Isolated: no module is taken from the working directory, the environment or the user's own folder.
fn start(python: &str, program: &Path, run: &Path, findings: &Path) -> std::io::Result<Output> {
    let mut command = Command::new(python);
    command.args(["-I", "-B"]).args([program, run, findings]);
    // One thread, so that sums have one order. Nothing comes on its input: where a folder is read without root's rights there is no /dev/null.
    command.env("OPENBLAS_NUM_THREADS", "1").stdin(Stdio::piped()).current_dir("/").output()
}

fn answer(output: &Output) -> Result<Recomputed, Failure> {
    let text = String::from_utf8_lossy(&output.stdout);
    // Names and reasons in it are those of the folder, which others may have written.
    let fit = tare_model::text::readable_json(&text);
    let found = serde_json::from_str(fit.as_deref().unwrap_or(&text)).ok().filter(|_| output.status.success());
    found.ok_or_else(|| {
        let last = last_line(&output.stderr);
        let message = format!("figures cannot be recomputed: the second path ended with {}: {last}", output.status);
        Failure::new(message, Exit::Failure)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_file_of_the_program_is_in_tare() {
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("recompute");
        let names = |folder: &str| -> Vec<String> {
            let entries = std::fs::read_dir(place.join(folder)).unwrap().map(|entry| entry.unwrap().file_name());
            let names = entries.map(|name| format!("{folder}{}", name.to_str().unwrap()));
            names.filter(|name| name.ends_with(".py")).collect()
        };
        let there: BTreeSet<String> = [names(""), names("tare_recompute/")].concat().into_iter().collect();
        let built_in: BTreeSet<String> = PROGRAM.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(there, built_in);
    }
}
