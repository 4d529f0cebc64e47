//! `tare history add`.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tare_model::history::RunEffects;
use tare_record::RunFolder;
use tare_report::Page;

use crate::args::Format;
use crate::exit::{Exit, Failure};
use crate::forms;

/// What became of the runs.
#[derive(Serialize)]
struct Added {
    history: String,
    runs: Vec<AddedRun>,
}

#[derive(Serialize)]
struct AddedRun {
    folder: String,
    run: String,
    root_hash: String,
    study: String,
    /// Whether it was not there yet.
    added: bool,
    effects: usize,
}

/// Adds runs to a history.
pub fn command(folders: &[PathBuf], into: &Path, format: Format) -> Result<Exit, Failure> {
    let (mut runs, mut refused) = (Vec::new(), Vec::new());
    for folder in folders {
        match effects(folder) {
            Ok(run) => runs.push(run),
            Err(why) => refused.push(why),
        }
    }
    if !refused.is_empty() {
        return Err(Failure::new(format!("{}\nNothing was added", refused.join("\n")), Exit::Usage));
    }
    let added = tare_record::history::add(into, &runs).map_err(|error| Failure::new(error, Exit::Failure))?;
    let of = |((folder, run), added): ((&PathBuf, &RunEffects), bool)| AddedRun {
        folder: folder.display().to_string(),
        run: run.run.clone(),
        root_hash: run.root_hash.clone(),
        study: run.study.clone(),
        added,
        effects: run.effects.len(),
    };
    let runs = folders.iter().zip(&runs).zip(added).map(of).collect();
    let added = Added { history: into.display().to_string(), runs };
    forms::print(format, &added, |_| page(&added))?;
    Ok(Exit::Success)
}

/// What a history keeps of a run folder.
///
/// # Errors
/// Why it is refused, with every reason.
fn effects(folder: &Path) -> Result<RunEffects, String> {
    let run = RunFolder::open(folder).map_err(|error| error.to_string())?;
    let problems = run.verify();
    if !problems.is_empty() {
        let said: Vec<String> = problems.iter().map(|problem| format!("{}: {problem}", folder.display())).collect();
        return Err(said.join("\n"));
    }
    let findings = tare_analysis::analyse(&run).map_err(|error| error.to_string())?;
    let own = tare_analysis::run_effects(&findings);
    match own.effects.is_empty() {
        true => Err(format!(
            "{} has no effect of an arm over the baseline: there is nothing to follow over time",
            folder.display()
        )),
        false => Ok(own),
    }
}

fn page(added: &Added) -> Page {
    let Added { history, runs } = added;
    let mut page = Page::new(format!("Added to {history}"));
    for run in runs {
        let (folder, id, study) = (&run.folder, &run.run, &run.study);
        page.paragraph(match run.added {
            true => format!("{folder}: run {id} of {study} was added, with {} effects", run.effects),
            false => format!("{folder}: run {id} of {study} is there already"),
        });
    }
    page.paragraph(format!("history: {history}"));
    page
}
