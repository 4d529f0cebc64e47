//! `tare verify`.

use serde::Serialize;
use tare_record::{Problem, RunFolder};
use tare_report::Page;

use crate::args::VerifyArguments;
use crate::exit::{Exit, Failure};
use crate::forms;

/// What was found of a run folder.
#[derive(Serialize)]
struct Verified {
    run: String,
    root_hash: String,
    /// Whether it is what was written, and has the root hash that was asked for.
    as_written: bool,
    /// Whether the run came to its end.
    whole: bool,
    trials: usize,
    problems: Vec<Found>,
}

#[derive(Serialize)]
struct Found {
    what: String,
    /// Whether a run that was cut short leaves it.
    explained_by_a_crash: bool,
}

/// Checks a run folder.
pub fn command(arguments: &VerifyArguments) -> Result<Exit, Failure> {
    let folder = RunFolder::open(&arguments.run).map_err(|error| Failure::new(error, Exit::Failure))?;
    let (root, dir) = (&folder.facts().root_hash, arguments.run.display());
    let found = |problem: &Problem| Found {
        what: problem.to_string(),
        explained_by_a_crash: problem.kind.explained_by_a_crash(),
    };
    let mut problems: Vec<Found> = folder.verify().iter().map(found).collect();
    if let Some(asked) = arguments.root.as_ref().filter(|asked| *asked != root) {
        let what = format!(
            "it has root hash {root}, and {asked} was asked for: it is another run, or was altered, or the run went on. \
             Get the folder again from where it was run"
        );
        problems.push(Found { what, explained_by_a_crash: false });
    }
    let verified = Verified {
        run: dir.to_string(),
        root_hash: root.clone(),
        as_written: problems.iter().all(|own| own.explained_by_a_crash),
        whole: problems.is_empty(),
        trials: folder.journal().acknowledged().count(),
        problems,
    };
    forms::print(arguments.shown.format, &verified, |_| page(&verified, arguments.root.is_some()))?;
    let wrong = verified.problems.iter().filter(|own| !own.explained_by_a_crash);
    let wrong: Vec<String> = wrong.map(|own| format!("{dir}: {}", own.what)).collect();
    if wrong.is_empty() { Ok(Exit::Success) } else { Err(Failure::new(wrong.join("\n"), Exit::Failure)) }
}

/// What is wrong is said on standard error.
fn page(verified: &Verified, root_given: bool) -> Page {
    let Verified { run, root_hash, trials, .. } = verified;
    let mut page = Page::new(format!("Check of {run}"));
    page.paragraph(format!("root hash: {root_hash}"));
    for problem in verified.problems.iter().filter(|own| own.explained_by_a_crash) {
        page.paragraph(format!("{run}: {}", problem.what));
    }
    if !verified.as_written {
        return page;
    }
    let what = if verified.whole { "whole, and" } else { "cut short, but what it holds is" };
    let against = match root_given {
        true => "it is the run of this root hash",
        false => "compare the root hash with the one that the run printed: who alters a folder can compute it anew",
    };
    page.paragraph(format!("{run} is {what} as it was written: {trials} trials; {against}"));
    page.paragraph(
        "report.*, findings.json and the tables are made from it and were not looked at: `tare report` makes them again",
    );
    page
}
