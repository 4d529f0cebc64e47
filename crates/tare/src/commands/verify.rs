//! `tare verify`.

use tare_record::{Problem, RunFolder};

use crate::args::VerifyArguments;
use crate::exit::{Exit, Failure};
use crate::output;

/// Checks a run folder.
pub fn command(arguments: &VerifyArguments) -> Result<Exit, Failure> {
    let folder = RunFolder::open(&arguments.run).map_err(|error| Failure::new(error, Exit::Failure))?;
    let (root, dir) = (&folder.facts().root_hash, arguments.run.display());
    let problems = folder.verify();
    let (expected, altered): (Vec<&Problem>, Vec<&Problem>) =
        problems.iter().partition(|problem| problem.kind.explained_by_a_crash());
    let mut wrong: Vec<String> = altered.iter().map(|problem| format!("{dir}: {problem}")).collect();
    if let Some(asked) = arguments.root.as_ref().filter(|asked| *asked != root) {
        wrong.push(format!(
            "{dir} has root hash {root}, and {asked} was asked for: it is another run, or was altered, or the run went on. \
             Get the folder again from where it was run"
        ));
    }
    output::print(&format!("root hash: {root}"))?;
    for problem in &expected {
        output::print(&format!("{dir}: {problem}"))?;
    }
    if !wrong.is_empty() {
        return Err(Failure::new(wrong.join("\n"), Exit::Failure));
    }
    let trials = folder.journal().acknowledged().count();
    let what = if expected.is_empty() { "whole, and" } else { "cut short, but what it holds is" };
    let against = match arguments.root {
        Some(_) => "it is the run of this root hash",
        None => "compare the root hash with the one that the run printed: who alters a folder can compute it anew",
    };
    output::print(&format!("{dir} is {what} as it was written: {trials} trials; {against}"))?;
    output::print(
        "report.*, findings.json and *.csv are made from it and were not looked at: `tare report` makes them again",
    )?;
    Ok(Exit::Success)
}
