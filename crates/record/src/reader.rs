//! Reads a run folder and never changes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::de::{DeserializeOwned, IgnoredAny};
use tare_model::environment::Environment;
use tare_model::findings::{FINDINGS_SCHEMA, Findings};
use tare_model::plan::{PLAN_SCHEMA, Plan};
use tare_model::precision::CaseBlocks;
use tare_model::trial::TrialRecord;

use crate::error::{RecordError, Result};
use crate::folder::{Folder, json};
use crate::journal::{Journal, JournalEvent};
use crate::layout;
use crate::results::{self, COPY_AGAIN, Results};
use crate::run_id::is_run_id;
use crate::sets;

/// Who ran it and how far it came.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFacts {
    /// Run id; `unknown` where the journal gives none of the form that runs have.
    pub run_id: String,
    /// Version of tare that began it.
    pub tare_version: String,
    /// Whether it went through its plan.
    pub finished: bool,
    /// By which the folder is known, see [`Journal::root_hash`].
    pub root_hash: String,
    /// The cases that take no further block, where their number follows from their intervals.
    pub ended: Vec<CaseBlocks>,
}

/// A run folder, opened for reading.
#[derive(Debug)]
pub struct RunFolder {
    folder: Folder,
    plan: Plan,
    environment: Environment,
    source: String,
    journal: Journal,
    facts: RunFacts,
}

impl RunFolder {
    /// Opens the folder. The results themselves are opened when trials are asked for. A folder with damaged results
    /// therefore opens, and a folder that never was a run does not.
    ///
    /// # Errors
    /// When `dir` is no run folder, was written by a newer tare, or a file that never changes is unreadable.
    pub fn open(dir: &Path) -> Result<Self> {
        let folder = match Folder::open(dir) {
            // A file, or nothing.
            Err(RecordError::Io { source, .. })
                if matches!(source.kind(), std::io::ErrorKind::NotADirectory | std::io::ErrorKind::NotFound) =>
            {
                return Err(RecordError::NotARun { dir: dir.to_owned(), missing: layout::PLAN });
            }
            other => other?,
        };
        for missing in [layout::PLAN, layout::JOURNAL] {
            if !folder.exists(missing)? {
                return Err(RecordError::NotARun { dir: dir.to_owned(), missing });
            }
        }
        let plan: Plan = read_json(&folder, layout::PLAN, Some(PLAN_SCHEMA))?;
        fits(&plan).map_err(|what| RecordError::damaged(&folder.file(layout::PLAN), what, COPY_AGAIN))?;
        let mut environment: Environment = read_json(&folder, layout::ENVIRONMENT, None)?;
        let study = bytes(&folder, layout::STUDY)?;
        let source = String::from_utf8(study)
            .map_err(|_| RecordError::damaged(&folder.file(layout::STUDY), "is not text", COPY_AGAIN))?;
        let journal = Journal::read(&folder)?;
        environment.machines = journal.machines();
        let facts = facts_of(&journal, &plan);
        let this = Self { folder, plan, environment, source, journal, facts };
        // Only a schema that is too new matters here; damage is reported when the trials are asked for.
        match this.results() {
            Err(e @ RecordError::NewerTare { .. }) => Err(e),
            _ => Ok(this),
        }
    }

    /// The folder's path.
    pub fn dir(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) const fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The plan that was run.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The host, and the machines beside it that were described until now.
    pub const fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The study file as the user wrote it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The journal.
    pub const fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Who ran it and how far it came.
    pub const fn facts(&self) -> &RunFacts {
        &self.facts
    }

    /// Every trial that was acknowledged and is stored, in the order of the plan. One that a crash left stored without its
    /// acknowledgement counts for nothing, nor do those of a set of which others are missing.
    ///
    /// # Errors
    /// When the results cannot be read.
    pub fn trials(&self) -> Result<Vec<TrialRecord>> {
        let mut trials = Vec::new();
        self.each_trial(|record| {
            trials.push(record);
            Ok::<(), RecordError>(())
        })?;
        Ok(trials)
    }

    /// Calls `each` with one trial of [`Self::trials`] after the other, so that one at a time is in memory.
    ///
    /// # Errors
    /// When the results cannot be read; what `each` returns as an error is passed on.
    pub fn each_trial<E: From<RecordError>>(
        &self,
        mut each: impl FnMut(TrialRecord) -> Result<(), E>,
    ) -> Result<(), E> {
        let results = self.results()?;
        let acknowledged = self.acknowledged();
        for index in results.indices(self.plan.trials.len())?.into_iter().filter(|index| acknowledged.contains(index)) {
            if let Some(record) = results.trial(index)? {
                each(record)?;
            }
        }
        Ok(())
    }

    /// One trial by its position in the plan; `None` when it is not among [`Self::trials`].
    ///
    /// # Errors
    /// When the results cannot be read.
    pub fn trial(&self, index: u32) -> Result<Option<TrialRecord>> {
        if self.acknowledged().contains(&index) { self.results()?.trial(index) } else { Ok(None) }
    }

    /// Trials that count: those that were acknowledged, without those of a set that is not there whole.
    fn acknowledged(&self) -> BTreeSet<u32> {
        let mut counted = self.journal.acknowledged_indices();
        for part in sets::unfinished(&self.plan, &counted.clone()) {
            part.there.iter().for_each(|index| _ = counted.remove(index));
        }
        counted
    }

    /// Writes `findings.json`, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_findings(&self, findings: &Findings) -> Result<()> {
        let bytes = json(&self.folder.file(layout::FINDINGS), findings)?;
        self.write_file(layout::FINDINGS, &bytes)
    }

    /// Writes a file that is made from the run, such as the report, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written, or no file of a run folder has this name.
    pub fn write_file(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.folder.replace(name, bytes)
    }

    /// Reads `findings.json`; `None` when it was not made yet.
    ///
    /// # Errors
    /// When it is there and cannot be read, or was written by a newer tare.
    pub fn read_findings(&self) -> Result<Option<Findings>> {
        if !self.folder.exists(layout::FINDINGS)? {
            return Ok(None);
        }
        read_json(&self.folder, layout::FINDINGS, Some(FINDINGS_SCHEMA)).map(Some)
    }

    pub(crate) fn results(&self) -> Result<Results> {
        Results::open(&self.folder)
    }
}

fn facts_of(journal: &Journal, plan: &Plan) -> RunFacts {
    let (run_id, tare_version) = match journal.entries.first().map(|entry| &entry.event) {
        Some(JournalEvent::RunStarted { run_id, tare_version, .. }) if is_run_id(run_id) => {
            (run_id.clone(), tare_version.clone())
        }
        _ => ("unknown".to_owned(), "unknown".to_owned()),
    };
    let ended = journal.ended().filter(|own| own.fits(plan)).cloned().collect();
    RunFacts { run_id, tare_version, finished: journal.finished(), root_hash: journal.root_hash().to_owned(), ended }
}

/// Most bytes of a name or label of a study.
const LABEL_BYTES: usize = 1000;

/// Whether a plan's numbers and names agree with its trials; what is wrong with it. Others size what they make by them.
fn fits(plan: &Plan) -> Result<(), String> {
    let study = &plan.study;
    let (arms, cases) = (study.arms.iter(), study.cases.iter());
    let names = arms.clone().flat_map(|arm| [&arm.id, &arm.label]).chain(cases.clone().flat_map(|c| [&c.id, &c.label]));
    if let Some(long) = names.chain([&study.name, &study.baseline]).find(|name| name.len() > LABEL_BYTES) {
        return Err(format!("has a name of {} bytes; the longest that a study may give has {LABEL_BYTES}", long.len()));
    }
    if study.most_blocks() as usize > plan.trials.len().max(1) {
        return Err(format!("has {} blocks and {} trials", study.most_blocks(), plan.trials.len()));
    }
    let arms: BTreeSet<&str> = arms.map(|arm| arm.id.as_str()).collect();
    let cases: BTreeMap<&str, u32> = cases.map(|case| (case.id.as_str(), case.schedule.pairs())).collect();
    if let Some((case, pairs)) = cases.iter().find(|(_, pairs)| **pairs as usize > arms.len().max(1)) {
        return Err(format!("has {pairs} pairs of {} arms in case {case}", arms.len()));
    }
    let stray = plan.trials.iter().enumerate().find(|(at, trial)| {
        let most = |pairs: &u32| u64::from(*pairs) * u64::from(study.most_blocks());
        let within =
            cases.get(trial.case.as_str()).is_some_and(|pairs| (1..=most(pairs)).contains(&trial.block.into()));
        trial.index as usize != *at || !within || !arms.contains(trial.arm.as_str())
    });
    match stray {
        Some((at, _)) => Err(format!("has a trial in place {at} that does not belong to its study")),
        None => sets::fit(plan),
    }
}

/// Values of JSON beside those of trials that a file of a run may hold: a few bytes of text make many of memory.
const VALUES: usize = 200_000;
const VALUES_OF_A_TRIAL: usize = 8;

/// Reads a JSON file; its schema is looked at first, so that a newer file is named as such and not as damaged.
fn read_json<T: DeserializeOwned>(folder: &Folder, name: &str, newest: Option<u32>) -> Result<T> {
    #[derive(serde::Deserialize, Default)]
    #[serde(default)]
    struct Head {
        schema: Option<u32>,
        trials: Vec<IgnoredAny>,
    }
    let (path, bytes) = (folder.file(name), bytes(folder, name)?);
    let head: Head = serde_json::from_slice(&bytes).unwrap_or_default();
    if let (Some(schema), Some(newest)) = (head.schema, newest) {
        results::known(&path, schema, newest)?;
    }
    let values = bytes.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    if name != layout::FINDINGS && values > VALUES + VALUES_OF_A_TRIAL * head.trials.len() {
        return Err(RecordError::damaged(&path, "holds more values than a run writes", COPY_AGAIN));
    }
    serde_json::from_slice(&bytes).map_err(|e| RecordError::damaged(&path, format!("cannot be read: {e}"), COPY_AGAIN))
}

fn bytes(folder: &Folder, name: &str) -> Result<Vec<u8>> {
    folder.read(name)?.ok_or_else(|| RecordError::damaged(&folder.file(name), "is missing", COPY_AGAIN))
}
