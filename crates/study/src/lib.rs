//! Study file (TOML) to [`Study`] (valid by type) to [`Plan`] (expanded, ordered, costed, hashed).
//!
//! Platforms and workloads are known only through the [`Catalog`]. Whatever is wrong in a file is reported
//! at once, each problem with its line, the reason and the remedy. Why the format is as it is:
//! `docs/adr/0001-study-format.md`.
//!
//! [`Plan`]: tare_model::plan::Plan

mod beside;
mod catalog;
mod check;
mod cpus;
mod error;
mod file;
mod host;
mod host_rule;
mod language;
mod node;
mod parser_words;
mod plan;
mod redacted;
mod schema;
mod select;
mod suggest;
mod sweep;
mod syntax;
mod template;
mod words;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use tare_model::study::{CaseLoad, CaseSchedule, Study};

use language::tree::{Cursor, Sink};

pub use catalog::{Catalog, CatalogEntry, WorkloadAsked};
pub use error::{Invalid, Problem, StudyError};
pub use host::{Directories, FileSystem, HostError, HostFacts};
pub use plan::{PlanError, PlanRefusal, alone, human, identity, plan, time};
pub use redacted::redacted;
pub use schema::schema;
pub use select::{SelectError, Selection, matches, select};
pub use suggest::nearest;
pub use template::template;

/// Largest study file that is read, bytes.
const MAX_FILE: u64 = 1 << 20;

/// A study with the text that it was written as, which goes into the run folder beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedStudy {
    /// The study, as checked.
    pub study: Study,
    /// The file, byte for byte.
    pub source: String,
    /// Whether each run draws a seed of its own, for nobody has named one. The study has the one that plans are shown with.
    pub draws_seed: bool,
    /// Where the study is not the file's, a sentence each: arms and cases that were left out.
    pub reduced: Vec<String>,
}

/// Reads and checks a study file.
///
/// # Errors
/// When the file is missing, unreadable, larger than 1 MiB, not UTF-8 or empty, and when anything in it is wrong:
/// then all problems at once.
pub fn load(path: &Path, catalog: &dyn Catalog) -> Result<LoadedStudy, StudyError> {
    let (name, text) = read(path)?;
    parse(&name, &text, catalog)
}

/// Reads a study file, or one that is put beside it; its name for errors, and its text.
///
/// # Errors
/// When the file is missing, unreadable, larger than 1 MiB or not UTF-8.
pub fn read(path: &Path) -> Result<(String, String), StudyError> {
    let failed = |source: std::io::Error| match source.kind() {
        ErrorKind::NotFound => StudyError::Missing { path: path.to_owned() },
        _ => StudyError::Read { path: path.to_owned(), source },
    };
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    let file = regular(path).map_err(failed)?;
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(StudyError::TooLarge { name });
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count() + 1;
        StudyError::NotUtf8 { name: name.clone(), offset, line }
    })?;
    Ok((name, text))
}

/// Opens a file that is one: opening a pipe would wait for its writer, and a device never ends.
fn regular(path: &Path) -> std::io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::CLOEXEC).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(std::io::Error::other("it is no regular file")) }
}

/// Checks the text of a study file; `name` is what errors call it.
///
/// # Errors
/// When the text is empty or too large, and when anything in it is wrong: then all problems at once.
pub fn parse(name: &str, text: &str, catalog: &dyn Catalog) -> Result<LoadedStudy, StudyError> {
    parse_whole((name, text), None, catalog)
}

/// The same with a text put behind it that says which hosts take part: `[hosts.NAME]`, `[roles]` and `[lab.wire]`, and nothing else. So any
/// study runs on any hosts without being written again. Problems are shown in the text that they are in.
///
/// # Errors
/// As [`parse`], and when the second text says anything else.
pub fn parse_on_hosts(
    study: (&str, &str),
    hosts: (&str, &str),
    catalog: &dyn Catalog,
) -> Result<LoadedStudy, StudyError> {
    beside::check(hosts.0, hosts.1)?;
    parse_whole(study, Some(hosts), catalog)
}

fn parse_whole(
    (name, text): (&str, &str),
    hosts: Option<(&str, &str)>,
    catalog: &dyn Catalog,
) -> Result<LoadedStudy, StudyError> {
    if text.len() as u64 > MAX_FILE {
        return Err(StudyError::TooLarge { name: name.to_owned() });
    }
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return Err(StudyError::Empty { name: name.to_owned() });
    }
    let placed = hosts.map(|(own, hosts)| (beside::begins(text), own, hosts));
    let invalid = |problems| StudyError::Invalid(Box::new(Invalid::new((name, text), placed, problems)));
    let text = &hosts.map_or_else(|| text.to_owned(), |(_, hosts)| beside::joined(text, hosts));
    let mut tree = node::Node::parse(text).map_err(invalid)?;
    let sink = Sink::of::<file::Study<'_>>();
    sweep::expand(&mut tree, &sink);
    let root = Cursor::root(&sink, &tree);
    let (study, draws_seed) = (check::study(&root, catalog), !root.get("seed").is_there());
    match study {
        Some(study) if sink.is_empty() => {
            Ok(LoadedStudy { study, source: text.clone(), draws_seed, reduced: Vec::new() })
        }
        _ => Err(invalid(sink.into_problems(&tree, text))),
    }
}

/// The study with every phase, each step of a search for a share of CPU, and the rest before load, multiplied by `factor` (`--scale`); [`Study::scale`] keeps the
/// product, and the report states it. Blocks, sizes, loads and limits stay as they are.
///
/// # Errors
/// When `factor` is not more than 0 and at most 10.
pub fn scale(mut study: Study, factor: f64) -> Result<Study, ScaleError> {
    if !(factor > 0.0 && factor <= MAX_SCALE) {
        return Err(ScaleError { factor });
    }
    for case in &mut study.cases {
        case.phases = case.phases.scaled(factor);
        if let CaseSchedule::Conditions(condition) = &mut case.schedule {
            condition.turns = condition.turns.halved(case.phases.steady_state);
        }
        if let CaseSchedule::Turns(turns) = case.schedule {
            let steady_state = case.phases.steady_state;
            let too_short = || CaseSchedule::Trials { why: check::too_short(steady_state) };
            case.schedule = turns.shortened(steady_state).map_or_else(too_short, CaseSchedule::Turns);
        }
        match &mut case.load {
            // How long merging may take to settle is a limit, and no shorter on a shorter run.
            CaseLoad::Density { spec, .. } => spec.rest = spec.rest.scaled(factor),
            CaseLoad::CpuTarget { target, .. } => target.step = target.step.scaled(factor),
            CaseLoad::Fixed { .. } | CaseLoad::Capacity(_) | CaseLoad::ShareOf { .. } => {}
        }
    }
    study.scale *= factor;
    Ok(study)
}

/// Largest factor of [`scale`].
const MAX_SCALE: f64 = 10.0;

/// A factor by which no study can be scaled.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error(
    "a study cannot be scaled by {factor}: the factor must be more than 0 and at most 10 (0.1 makes every phase a tenth as long)"
)]
pub struct ScaleError {
    /// The factor asked for.
    pub factor: f64,
}
