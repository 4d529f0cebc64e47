//! Tells a folder that was cut short or altered.

use std::collections::{BTreeMap, BTreeSet};

use crate::digest::{sha256_hex, trial_digest};
use crate::journal::JournalEvent;
use crate::layout;
use crate::reader::{Results, RunFolder};

/// What kind of thing is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// The run ended before its plan did.
    CutShort,
    /// The last line of the journal is not whole, as a crash leaves it.
    Torn,
    /// A trial is stored and was never acknowledged, as a crash leaves it.
    Unacknowledged(u32),
    /// An acknowledged trial is not there.
    Missing(u32),
    /// Something is not what was written.
    Altered,
    /// A file cannot be read.
    Unreadable,
}

/// Something wrong with a run folder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {what}. {remedy}")]
pub struct Problem {
    /// What kind of thing.
    pub kind: ProblemKind,
    /// The file, by its name in the folder.
    pub file: String,
    /// What is wrong, in a sentence without its full stop.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

const RESUME: &str = "Continue the run with --resume, or use what is there";
const ORIGINAL: &str = "Get the folder again from where it was run; figures made from this one cannot be trusted";

impl RunFolder {
    /// Everything wrong with the folder; empty for one that is whole and as it was written.
    ///
    /// Reads every trial and computes its digest.
    pub fn verify(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        self.verify_journal(&mut problems);
        self.verify_fixed_files(&mut problems);
        match self.results() {
            Ok(results) => self.verify_results(&results, &mut problems),
            Err(e) => problems.push(problem(ProblemKind::Unreadable, layout::RESULTS, e.to_string(), ORIGINAL)),
        }
        if !self.facts().finished {
            let acknowledged = self.journal().acknowledged().count();
            let what = format!("the run was cut short: {acknowledged} of {} trials", self.plan().trials.len());
            problems.push(problem(ProblemKind::CutShort, layout::JOURNAL, what, RESUME));
        }
        problems
    }

    fn verify_journal(&self, problems: &mut Vec<Problem>) {
        let journal = self.journal();
        for (line, what) in &journal.altered {
            let what = format!("line {line} {what}");
            problems.push(problem(ProblemKind::Altered, layout::JOURNAL, what, ORIGINAL));
        }
        if let Some(torn) = &journal.torn {
            let what = format!("the last line is not whole ({} bytes), as a crash leaves it", torn.len());
            problems.push(problem(ProblemKind::Torn, layout::JOURNAL, what, RESUME));
        }
    }

    fn verify_fixed_files(&self, problems: &mut Vec<Problem>) {
        let started = self.journal().entries.iter().find_map(|entry| match &entry.event {
            JournalEvent::RunStarted { plan_hash, files, .. } => Some((plan_hash, files)),
            _ => None,
        });
        let Some((plan_hash, files)) = started else {
            let what = "does not say which run this is: its first line is gone".to_owned();
            problems.push(problem(ProblemKind::Altered, layout::JOURNAL, what, ORIGINAL));
            return;
        };
        for (name, digest) in files {
            let now = std::fs::read(self.dir().join(name)).map(|bytes| sha256_hex(&bytes));
            if now.ok().as_ref() != Some(digest) {
                let what = "is not the file that the run began with".to_owned();
                problems.push(problem(ProblemKind::Altered, name, what, ORIGINAL));
            }
        }
        if *plan_hash != self.plan().hash {
            let what = format!("has hash {}, the run began with {plan_hash}", self.plan().hash);
            problems.push(problem(ProblemKind::Altered, layout::PLAN, what, ORIGINAL));
        }
    }

    fn verify_results(&self, results: &Results, problems: &mut Vec<Problem>) {
        let mut altered = |what: String| problems.push(problem(ProblemKind::Altered, layout::RESULTS, what, ORIGINAL));
        if let Err(what) = results.integrity() {
            altered(format!("SQLite finds it damaged: {what}"));
        }
        if results.meta("plan_hash").as_ref() != Some(&self.plan().hash) {
            altered(format!("holds results of another plan than {}", layout::PLAN));
        }
        let acknowledged: BTreeMap<u32, &str> = self.journal().acknowledged().collect();
        let stored: BTreeSet<u32> = match results.indices() {
            Ok(indices) => indices.into_iter().collect(),
            Err(e) => return problems.push(problem(ProblemKind::Unreadable, layout::RESULTS, e.to_string(), ORIGINAL)),
        };
        for &index in &stored {
            problems.extend(self.verify_trial(results, index, acknowledged.get(&index).copied()));
        }
        for &index in acknowledged.keys().filter(|index| !stored.contains(index)) {
            let what = format!("trial {index} was acknowledged and is not there");
            problems.push(problem(ProblemKind::Missing(index), layout::RESULTS, what, ORIGINAL));
        }
        if self.facts().finished {
            for planned in self.plan().trials.iter().filter(|planned| !acknowledged.contains_key(&planned.index)) {
                let what = format!("the run finished, yet trial {} was never acknowledged", planned.index);
                problems.push(problem(ProblemKind::Missing(planned.index), layout::JOURNAL, what, ORIGINAL));
            }
        }
    }

    fn verify_trial(&self, results: &Results, index: u32, acknowledged: Option<&str>) -> Option<Problem> {
        let record = match results.trial(index) {
            Ok(record) => record?,
            Err(e) => {
                let what = format!("trial {index} cannot be read ({e})");
                return Some(problem(ProblemKind::Unreadable, layout::RESULTS, what, ORIGINAL));
            }
        };
        let what = if self.plan().trials.get(index as usize) != Some(&record.planned) {
            format!("trial {index} is not the one that the plan has there")
        } else {
            match acknowledged {
                Some(digest) if digest == trial_digest(&record) => return None,
                Some(_) => format!("trial {index} is not as it was acknowledged: its figures were altered"),
                None => {
                    let what = format!("trial {index} is stored but was never acknowledged");
                    return Some(problem(ProblemKind::Unacknowledged(index), layout::RESULTS, what, RESUME));
                }
            }
        };
        Some(problem(ProblemKind::Altered, layout::RESULTS, what, ORIGINAL))
    }
}

fn problem(kind: ProblemKind, file: &str, what: String, remedy: &str) -> Problem {
    Problem { kind, file: file.to_owned(), what, remedy: remedy.to_owned() }
}
