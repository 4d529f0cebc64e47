//! `tare verify`.

use std::collections::BTreeMap;

use serde::Serialize;
use tare_record::{Problem, RunFolder};
use tare_report::Page;

use self::again::Stale;
use self::recompute::{Mismatch, Recomputed};
use super::report;
use crate::args::VerifyArguments;
use crate::exit::{Exit, Failure};
use crate::forms;

mod again;
mod recompute;

pub use recompute::SYSTEM;

/// Figures that differ and are named on standard error.
const NAMED: usize = 10;

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
    /// What a second path made of it, where that was asked for.
    recomputed: Option<Recomputed>,
    /// What differs in findings.json, where that was looked at and there is one.
    stale: Option<Stale>,
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
    let as_written = problems.iter().all(|own| own.explained_by_a_crash);
    let whole = problems.is_empty();
    let (recomputed, stale) = match arguments.recompute && as_written {
        true => again(arguments, &folder, &mut problems)?,
        false => (None, None),
    };
    let verified = Verified {
        run: dir.to_string(),
        root_hash: root.clone(),
        as_written,
        whole,
        trials: folder.journal().acknowledged().count(),
        problems,
        recomputed,
        stale,
    };
    forms::print(arguments.shown.format, &verified, |_| page(&verified, arguments.root.is_some()))?;
    let wrong = verified.problems.iter().filter(|own| !own.explained_by_a_crash);
    let wrong: Vec<String> = wrong.map(|own| format!("{dir}: {}", own.what)).collect();
    if wrong.is_empty() { Ok(Exit::Success) } else { Err(Failure::new(wrong.join("\n"), Exit::Failure)) }
}

/// Makes the findings again, by tare and by the second path. What differs is added to the problems.
fn again(
    arguments: &VerifyArguments,
    folder: &RunFolder,
    problems: &mut Vec<Found>,
) -> Result<(Option<Recomputed>, Option<Stale>), Failure> {
    let findings = report::analysed(&arguments.run, false)?;
    let recomputed = recompute::recompute(&arguments.run, &findings)?;
    let mut wrong = |what: String| problems.push(Found { what, explained_by_a_crash: false });
    if recomputed.mismatches > 0 {
        wrong(format!(
            "{} figures differ from what a second path makes of the results: a defect of tare, please report it{}",
            recomputed.mismatches,
            recomputed.listed.iter().take(NAMED).map(in_words).collect::<String>()
        ));
    }
    let stale = again::stale(folder, &findings).unwrap_or_else(|why| {
        wrong(format!("findings.json cannot be read ({why}): `tare report` makes it again"));
        None
    });
    if let Some(own) = stale.as_ref().filter(|own| own.differs > 0) {
        wrong(format!(
            "findings.json is not what tare makes of the results: it differs in {} places ({}{}), so it was altered or made by another \
             version; `tare report` makes it again",
            own.differs,
            own.first.join(", "),
            if own.differs > own.first.len() as u64 { " ..." } else { "" }
        ));
    }
    Ok((Some(recomputed), stale))
}

/// `cases[idle] ... value: tare 1.01, again 1.02 (1.0e-2)`, on a line of its own.
fn in_words(mismatch: &Mismatch) -> String {
    let Mismatch { figure, tare, again, relative } = mismatch;
    let off = relative.map_or_else(String::new, |off| format!(" (relative difference {off:.1e})"));
    format!("\n  {figure}: tare has {tare}, the second path {again}{off}")
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
    match &verified.recomputed {
        Some(recomputed) => figures(&mut page, recomputed, verified.stale.is_some()),
        None => {
            page.paragraph(
                "report.*, findings.json and the tables are made from it and were not looked at: `tare report` makes them again, \
                 `--recompute` computes their figures by a second path",
            );
        }
    }
    page
}

/// Which figures were made again, and which were not and why.
fn figures(page: &mut Page, found: &Recomputed, looked_at: bool) {
    let number = |n: u64| tare_model::written::grouped(&n.to_string());
    let of = |counts: &BTreeMap<String, u64>| counts.values().sum::<u64>();
    let listed = |counts: &BTreeMap<String, u64>| {
        let each: Vec<String> = counts.iter().map(|(what, n)| format!("{what} ({})", number(*n))).collect();
        each.join("; ")
    };
    page.paragraph(format!(
        "recomputed by a second path: {} figures agree to 1e-9, and {} verdicts and names",
        number(found.checked),
        number(found.statements)
    ));
    if !found.near.is_empty() {
        page.paragraph(format!(
            "{} figures agree as far as the search behind them goes: {}",
            number(of(&found.near)),
            listed(&found.near)
        ));
    }
    if !found.metrics.is_empty() {
        page.paragraph(format!(
            "{} metrics of trials agree with histograms, counts and accounts: {}",
            number(of(&found.metrics)),
            listed(&found.metrics)
        ));
    }
    if !found.taken.is_empty() {
        page.paragraph(format!(
            "{} metrics of trials are as the trials have them, for nothing else is stored that they could be made of: {}",
            number(of(&found.taken)),
            listed(&found.taken)
        ));
    }
    match of(&found.left_out) {
        0 => page.paragraph("no figure was left out"),
        n => page.paragraph(format!("{} figures were not recomputed: {}", number(n), listed(&found.left_out))),
    };
    let file = if looked_at { "findings.json was looked at" } else { "there is no findings.json" };
    page.paragraph(format!(
        "{file}; report.* and the tables are made from the same figures and were not: `tare report` makes them again"
    ));
}
