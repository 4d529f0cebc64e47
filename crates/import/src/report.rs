//! Files to reports, and reports to run folders.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tare_model::plan::Plan;
use tare_model::published::Published;
use tare_model::trial::TrialRecord;
use tare_record::{JournalEvent, RunWriter};

use crate::error::ImportError;
use crate::table::{FILE_BYTES_MAX, Format, Table};
use crate::{claims, density, store, study, web};

/// What was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The reports, in the order of their names.
    pub reports: Vec<Report>,
    /// What a reader must know of the files, each in a sentence: which were not read, of which nothing is claimed.
    pub notes: Vec<String>,
}

/// One published report, as a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The plan; its study says where the figures are from.
    pub plan: Plan,
    /// The trials, in the order of the plan.
    pub trials: Vec<TrialRecord>,
}

impl Report {
    /// Where the figures are from.
    pub fn published(&self) -> Published {
        self.plan.study.published.clone().unwrap_or_default()
    }

    /// Makes the run folder.
    ///
    /// # Errors
    /// When `dir` is there and not empty, or cannot be written.
    pub fn write(&self, dir: &Path, run_id: &str, tare_version: &str) -> Result<(), ImportError> {
        let published = self.published();
        let environment = study::environment(&published);
        let mut writer = RunWriter::create(dir, &source(&published), &self.plan, &environment, run_id, tare_version)?;
        for record in &self.trials {
            writer.append(record)?;
        }
        writer.journal(&JournalEvent::RunFinished)?;
        Ok(())
    }
}

/// What stands in place of a study file.
fn source(published: &Published) -> String {
    let files = published.files.iter().map(|(name, sha256)| format!("# {sha256}  {name}\n"));
    format!(
        "# Imported by `tare import`: figures that others published, not a study that can be run.\n# {}\n{}",
        published.title.replace('\n', " "),
        files.collect::<String>()
    )
}

/// Reads CSV files, and folders of them. Files are known by their headers; those of web serving make one report together.
/// A `claims.toml` beside the first of them tells what the report says of its figures; of the reports that tare knows this is
/// known. Everything is read and checked before anything is given.
///
/// # Errors
/// When a file cannot be read or anything in it is wrong: where, and what helps.
pub fn read(paths: &[PathBuf]) -> Result<Imported, ImportError> {
    let mut notes = Vec::new();
    let (mut files, mut beside) = (Vec::new(), None);
    for path in paths {
        let (found, folder) = files_of(path, &mut notes)?;
        let own = folder.join(claims::FILE);
        if beside.is_none() && is_plain(&own) {
            beside = Some(own);
        }
        files.extend(found);
    }
    let mut tables: Vec<Table> = Vec::new();
    for file in files {
        let table = Table::parse(&file, &bytes(&file)?)?;
        if let Some(first) = tables.iter().find(|known| known.format == table.format) {
            return Err(ImportError::Twice { first: first.file.clone(), second: file });
        }
        tables.push(table);
    }
    let text = match &beside {
        Some(file) => Some(String::from_utf8_lossy(&bytes(file)?).into_owned()),
        None => None,
    };
    imported(&tables, beside.as_deref().zip(text.as_deref()), notes)
}

/// The published reports that ship with tare: (name of the file, its text).
const SHIPPED: [(&str, &str); 5] = [
    ("000-density.csv", include_str!("../published/000-density.csv")),
    ("002-web-iterations.csv", include_str!("../published/002-web-iterations.csv")),
    ("002-web-latency.csv", include_str!("../published/002-web-latency.csv")),
    ("002-web-throughput.csv", include_str!("../published/002-web-throughput.csv")),
    ("004-store.csv", include_str!("../published/004-store.csv")),
];

/// The published reports that ship with tare.
///
/// # Errors
/// None but by a defect of tare.
pub fn shipped() -> Result<Imported, ImportError> {
    let tables: Result<Vec<Table>, ImportError> =
        SHIPPED.iter().map(|(name, text)| Table::parse(Path::new(name), text.as_bytes())).collect();
    imported(&tables?, None, Vec::new())
}

fn imported(tables: &[Table], beside: Option<(&Path, &str)>, mut notes: Vec<String>) -> Result<Imported, ImportError> {
    let mut reports = Vec::new();
    for group in grouped(tables) {
        reports.push(report(&group, beside, &mut notes)?);
    }
    Ok(Imported { reports, notes })
}

/// The tables of each report.
fn grouped(tables: &[Table]) -> Vec<Vec<&Table>> {
    let of = |formats: &[Format]| -> Vec<&Table> {
        formats.iter().filter_map(|format| tables.iter().find(|table| table.format == *format)).collect()
    };
    let web = [Format::WebIterations, Format::WebLatency, Format::WebThroughput];
    [of(&[Format::Density]), of(&web), of(&[Format::Store])].into_iter().filter(|group| !group.is_empty()).collect()
}

fn report(tables: &[&Table], beside: Option<(&Path, &str)>, notes: &mut Vec<String>) -> Result<Report, ImportError> {
    let known = claims::of(tables, beside)?;
    let published = known.published.clone();
    if !known.known {
        let names: Vec<String> = published.files.iter().map(|(name, _)| name.clone()).collect();
        notes.push(format!(
            "{}: tare does not know this report, so its claims are unknown; put a {} beside the files to state them",
            names.join(", "),
            claims::FILE
        ));
    }
    let find = |format: Format| tables.iter().copied().find(|table| table.format == format);
    let (mut study, reported) = match (find(Format::Density), find(Format::Store)) {
        (Some(table), _) => density::imported(table, published)?,
        (_, Some(table)) => store::imported(table, published)?,
        _ => {
            let own = web::Tables {
                iterations: find(Format::WebIterations),
                latency: find(Format::WebLatency),
                throughput: find(Format::WebThroughput),
            };
            web::imported(&own, published)?
        }
    };
    known.name(&mut study);
    claims::check(&study, beside.map(|(file, _)| file))?;
    let (plan, trials) = study::planned(study, reported);
    Ok(Report { plan, trials })
}

/// The CSV files that a path names, and the folder in which they are. What else is in a folder is left alone, and noted.
fn files_of(path: &Path, notes: &mut Vec<String>) -> Result<(Vec<PathBuf>, PathBuf), ImportError> {
    let unreadable = |source| ImportError::Read { path: path.to_owned(), source };
    if !fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Ok((vec![path.to_owned()], path.parent().map(Path::to_owned).unwrap_or_default()));
    }
    let (mut files, mut others) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?.path();
        let csv = entry.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
        let name = entry.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        if csv && is_plain(&entry) {
            files.push(entry);
        } else if name != claims::FILE {
            others.push(name);
        }
    }
    if files.is_empty() {
        return Err(ImportError::Nothing { path: path.to_owned() });
    }
    files.sort();
    others.sort();
    if !others.is_empty() {
        notes.push(format!("not read, because they are not CSV files: {}", others.join(", ")));
    }
    Ok((files, path.to_owned()))
}

/// Whether it is a regular file, and no link to one: what nobody named is not followed.
fn is_plain(file: &Path) -> bool {
    fs::symlink_metadata(file).is_ok_and(|found| found.is_file())
}

fn bytes(file: &Path) -> Result<Vec<u8>, ImportError> {
    use std::io::Read;
    let unreadable = |source| ImportError::Read { path: file.to_owned(), source };
    let mut bytes = Vec::new();
    // Opening a pipe would wait for its writer, and what is opened is what is looked at.
    let flags = (OFlags::NONBLOCK | OFlags::CLOEXEC).bits().cast_signed();
    let opened = fs::OpenOptions::new().read(true).custom_flags(flags).open(file).map_err(unreadable)?;
    if !opened.metadata().map_err(unreadable)?.is_file() {
        return Err(unreadable(std::io::Error::other("it is not a regular file")));
    }
    // No longer than what is refused, whatever the file says of its length.
    opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let length = fs::metadata(file).map_or(bytes.len() as u64, |metadata| metadata.len());
        return Err(ImportError::TooLong { path: file.to_owned(), bytes: length, most: FILE_BYTES_MAX });
    }
    Ok(bytes)
}
