//! Finds out whether a folder is whole and as it was written.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::plan::PlannedTrial;
use tare_model::precision::is_spared;

use crate::digest::{sha256_hex, trial_digest};
use crate::journal::JournalEvent;
use crate::layout;
use crate::reader::RunFolder;
use crate::results::Results;
use crate::run_id::is_run_id;
use crate::sets;

/// What kind of thing is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// The run ended before its plan did.
    CutShort,
    /// The last line of the journal is not whole, as a crash leaves it.
    Torn,
    /// A trial is stored and was never acknowledged, as a crash leaves it.
    Unacknowledged(u32),
    /// Of a set of trials some are there and others are missing, as a crash leaves it.
    PartOfSet,
    /// An acknowledged trial is not there.
    Missing(u32),
    /// Something is not what was written.
    Altered,
    /// A file cannot be read.
    Unreadable,
}

impl ProblemKind {
    /// Whether a crash leaves a folder like this, so that what it holds is still as it was written.
    pub const fn explained_by_a_crash(self) -> bool {
        matches!(self, Self::CutShort | Self::Torn | Self::Unacknowledged(_) | Self::PartOfSet)
    }
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
/// What a run begins with and never changes, sorted.
const FIXED: [&str; 3] = [layout::ENVIRONMENT, layout::PLAN, layout::STUDY];
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
            let acknowledged = self.journal().acknowledged_indices();
            for part in sets::unfinished(self.plan(), &acknowledged) {
                problems.push(problem(ProblemKind::PartOfSet, layout::JOURNAL, part.to_string(), RESUME));
            }
            let what = format!("the run was cut short: {} of {} trials", acknowledged.len(), self.plan().trials.len());
            problems.push(problem(ProblemKind::CutShort, layout::JOURNAL, what, RESUME));
        }
        problems
    }

    fn verify_journal(&self, problems: &mut Vec<Problem>) {
        let journal = self.journal();
        let mut altered = |what| problems.push(problem(ProblemKind::Altered, layout::JOURNAL, what, ORIGINAL));
        if let Some((line, what)) = &journal.altered {
            altered(format!("line {line} {what}; nothing after it is believed"));
        }
        let begins = |event: &JournalEvent| matches!(event, JournalEvent::RunStarted { .. });
        if let Some(again) = journal.entries.iter().skip(1).find(|entry| begins(&entry.event)) {
            altered(format!("line {} begins a run once more", again.seq + 1));
        }
        let mut seen = BTreeSet::new();
        for (index, _) in journal.acknowledged() {
            if !seen.insert(index) {
                altered(format!("trial {index} was acknowledged twice"));
            } else if index as usize >= self.plan().trials.len() {
                altered(format!("trial {index} was acknowledged, and the plan has no such trial"));
            }
        }
        for line in sets::wrongly_withdrawn(self.plan(), journal) {
            altered(format!("line {line} withdraws trials that are no unfinished set"));
        }
        let mut cases = BTreeSet::new();
        for ended in journal.ended() {
            if !ended.fits(self.plan()) {
                altered(format!(
                    "case {} ended after {} blocks, which the plan does not allow",
                    ended.case, ended.blocks
                ));
            } else if !cases.insert(&ended.case) {
                altered(format!("case {} ended twice", ended.case));
            }
        }
        if let Some(torn) = &journal.torn {
            let what = format!("the last line is not whole ({} bytes), as a crash leaves it", torn.len());
            problems.push(problem(ProblemKind::Torn, layout::JOURNAL, what, RESUME));
        }
    }

    fn verify_fixed_files(&self, problems: &mut Vec<Problem>) {
        let mut altered = |file: &str, what| problems.push(problem(ProblemKind::Altered, file, what, ORIGINAL));
        let Some(JournalEvent::RunStarted { run_id, plan_hash, files, .. }) =
            self.journal().entries.first().map(|entry| &entry.event)
        else {
            return altered(layout::JOURNAL, "does not say which run this is: its first line is gone".to_owned());
        };
        if !is_run_id(run_id) {
            altered(layout::JOURNAL, "names a run by an id that tare does not make".to_owned());
        }
        let mut named: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        named.sort_unstable();
        if named != FIXED {
            altered(layout::JOURNAL, format!("does not name just {} as what the run began with", FIXED.join(", ")));
        }
        for (name, digest) in files.iter().filter(|(name, _)| FIXED.contains(&name.as_str())) {
            let now = self.folder().read(name).map(|bytes| bytes.map(|bytes| sha256_hex(&bytes)));
            if !matches!(now, Ok(Some(now)) if now == *digest) {
                altered(name, "is not the file that the run began with".to_owned());
            }
        }
        if *plan_hash != self.plan().hash {
            let what = format!("has another hash than the plan that the run began with, {plan_hash}");
            altered(layout::PLAN, what);
        }
    }

    fn verify_results(&self, results: &Results, problems: &mut Vec<Problem>) {
        let mut altered = |what: String| problems.push(problem(ProblemKind::Altered, layout::RESULTS, what, ORIGINAL));
        if let Err(what) = results.integrity() {
            // What a damaged file says further can be endless.
            return altered(format!("SQLite finds it damaged: {what}"));
        }
        if results.meta("plan_hash").as_ref() != Some(&self.plan().hash) {
            altered(format!("holds results of another plan than {}", layout::PLAN));
        }
        if results.meta("run_id").as_ref() != Some(&self.facts().run_id) {
            altered(format!("holds results of another run than {}", layout::JOURNAL));
        }
        let acknowledged: BTreeMap<u32, &str> = self.journal().acknowledged().collect();
        let stored: BTreeSet<u32> = match results.indices(self.plan().trials.len()) {
            Ok(indices) => indices.into_iter().collect(),
            Err(e) => return problems.push(problem(ProblemKind::Unreadable, layout::RESULTS, e.to_string(), ORIGINAL)),
        };
        // A crash between a trial's two writes leaves one, besides those that were withdrawn; a run that went through its plan none.
        let withdrawn = self.journal().withdrawn();
        let explained = |index: &u32| acknowledged.contains_key(index) || withdrawn.contains(index);
        let unexplained = stored.iter().filter(|index| !explained(index)).count();
        let crash = unexplained <= 1 && !self.facts().finished;
        for &index in &stored {
            problems.extend(self.verify_trial(results, index, acknowledged.get(&index).copied(), crash));
        }
        for &index in acknowledged.keys().filter(|index| !stored.contains(index)) {
            let what = format!("trial {index} was acknowledged and is not there");
            problems.push(problem(ProblemKind::Missing(index), layout::RESULTS, what, ORIGINAL));
        }
        if self.facts().finished {
            let missing = |planned: &&PlannedTrial| {
                !acknowledged.contains_key(&planned.index) && !is_spared(self.plan(), &self.facts().ended, planned)
            };
            for planned in self.plan().trials.iter().filter(missing) {
                let what = format!("the run finished, yet trial {} was never acknowledged", planned.index);
                problems.push(problem(ProblemKind::Missing(planned.index), layout::JOURNAL, what, ORIGINAL));
            }
        }
    }

    fn verify_trial(&self, results: &Results, index: u32, acknowledged: Option<&str>, crash: bool) -> Option<Problem> {
        let Some(digest) = acknowledged else {
            let kind = if crash { ProblemKind::Unacknowledged(index) } else { ProblemKind::Altered };
            let what = format!("trial {index} is stored but was never acknowledged, and counts for nothing");
            return Some(problem(kind, layout::RESULTS, what, if crash { RESUME } else { ORIGINAL }));
        };
        let record = match results.trial(index) {
            Ok(record) => record?,
            Err(e) => {
                let what = format!("trial {index} cannot be read ({e})");
                return Some(problem(ProblemKind::Unreadable, layout::RESULTS, what, ORIGINAL));
            }
        };
        let what = if self.plan().trials.get(index as usize) != Some(&record.planned) {
            format!("trial {index} is not the one that the plan has there")
        } else if digest == trial_digest(&record) {
            return None;
        } else {
            format!("trial {index} is not as it was acknowledged: its figures were altered")
        };
        Some(problem(ProblemKind::Altered, layout::RESULTS, what, ORIGINAL))
    }
}

fn problem(kind: ProblemKind, file: &str, what: String, remedy: &str) -> Problem {
    Problem { kind, file: file.to_owned(), what, remedy: remedy.to_owned() }
}
