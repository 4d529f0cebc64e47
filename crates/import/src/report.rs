//! Files to reports, and reports to run folders.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tare_model::plan::Plan;
use tare_model::published::Published;
use tare_model::study::Study;
use tare_model::trial::TrialRecord;
use tare_record::{JournalEvent, RunWriter};

use crate::claims::KnownReport;
use crate::error::ImportError;
use crate::study::ReportedTrial;
use crate::table::{FILE_BYTES_MAX, Format, Table};
use crate::{claims, conditions, density, figures, store, study, web};

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
        let first = tables.iter().find(|known| known.format == table.format && !table.format.names_report());
        if let Some(first) = first {
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
const SHIPPED: [(&str, &str); 13] = [
    ("000-density.csv", include_str!("../published/000-density.csv")),
    ("000-conditions.csv", include_str!("../published/000-conditions.csv")),
    ("001-figures.csv", include_str!("../published/001-figures.csv")),
    ("001-conditions.csv", include_str!("../published/001-conditions.csv")),
    ("002-web-iterations.csv", include_str!("../published/002-web-iterations.csv")),
    ("002-web-latency.csv", include_str!("../published/002-web-latency.csv")),
    ("002-web-throughput.csv", include_str!("../published/002-web-throughput.csv")),
    ("002-web-errors.csv", include_str!("../published/002-web-errors.csv")),
    ("002-conditions.csv", include_str!("../published/002-conditions.csv")),
    ("003-figures.csv", include_str!("../published/003-figures.csv")),
    ("003-conditions.csv", include_str!("../published/003-conditions.csv")),
    ("004-store.csv", include_str!("../published/004-store.csv")),
    ("004-conditions.csv", include_str!("../published/004-conditions.csv")),
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
    let conditions: Vec<&Table> = tables.iter().filter(|table| table.format == Format::Conditions).collect();
    let mut reports = Vec::new();
    for group in grouped(tables)? {
        reports.push(report(&group, &conditions, beside, &mut notes)?);
    }
    let names: Vec<String> = reports.iter().map(|report: &Report| report.published().report).collect();
    conditions::check(&conditions, &names)?;
    reports.sort_by_key(|report| report.plan.study.name.clone());
    Ok(Imported { reports, notes })
}

/// The tables of one report, and its name where they tell it.
struct Group<'a> {
    tables: Vec<&'a Table>,
    name: Option<&'a str>,
}

/// The tables of each report.
fn grouped(tables: &[Table]) -> Result<Vec<Group<'_>>, ImportError> {
    let of = |formats: &[Format]| Group {
        tables: formats.iter().filter_map(|format| tables.iter().find(|table| table.format == *format)).collect(),
        name: None,
    };
    let web = [Format::WebIterations, Format::WebLatency, Format::WebThroughput, Format::WebErrors];
    let mut groups = vec![of(&[Format::Density]), of(&web), of(&[Format::Store])];
    groups.retain(|group| !group.tables.is_empty());
    let figures = tables.iter().filter(|table| table.format == Format::Figures);
    for (table, row) in figures.flat_map(|table| table.rows.iter().map(move |row| (table, row))) {
        let name = table.text(row, "report");
        if !claims::is_name(name) {
            let what = format!("`{}` is not the name of a report", name.escape_debug());
            return Err(table.wrong(row, "report", what, &format!("Use {}", claims::NAME_FITS)));
        }
        match groups.iter_mut().find(|group| group.name == Some(name)) {
            Some(group) if group.tables.iter().any(|known| std::ptr::eq(*known, table)) => {}
            Some(group) => group.tables.push(table),
            None => groups.push(Group { tables: vec![table], name: Some(name) }),
        }
    }
    Ok(groups)
}

fn report(
    group: &Group<'_>,
    conditions: &[&Table],
    beside: Option<(&Path, &str)>,
    notes: &mut Vec<String>,
) -> Result<Report, ImportError> {
    let known = claims::of(&group.tables, group.name, beside)?;
    let mut published = known.published.clone();
    if !known.known {
        let names: Vec<String> = published.files.iter().map(|(name, _)| name.clone()).collect();
        notes.push(format!(
            "{}: tare does not know this report, so its claims are unknown; put a {} beside the files to state them",
            names.join(", "),
            claims::FILE
        ));
    }
    let own = conditions.iter().filter(|table| table.of_report(&published.report).next().is_some());
    published.files.extend(own.map(|table| (table.name(), table.sha256.clone())));
    let name = published.report.clone();
    let (mut study, reported) = studied(group, &known, published)?;
    known.name(&mut study);
    let disclosed = conditions::of(conditions, &name, &study)?;
    study.published.iter_mut().for_each(|own| own.conditions.clone_from(&disclosed));
    claims::check(&study, &known)?;
    let (plan, trials) = study::planned(study, reported);
    Ok(Report { plan, trials })
}

/// The tables of a report as a study and its trials.
fn studied(
    group: &Group<'_>,
    known: &KnownReport,
    published: Published,
) -> Result<(Study, Vec<ReportedTrial>), ImportError> {
    if group.name.is_some() {
        return figures::imported(&group.tables, &known.described(), published);
    }
    let find = |format: Format| group.tables.iter().copied().find(|table| table.format == format);
    match (find(Format::Density), find(Format::Store)) {
        (Some(table), _) => density::imported(table, published),
        (_, Some(table)) => store::imported(table, published),
        _ => {
            let own = web::Tables {
                iterations: find(Format::WebIterations),
                latency: find(Format::WebLatency),
                throughput: find(Format::WebThroughput),
                errors: find(Format::WebErrors),
            };
            web::imported(&own, published)
        }
    }
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
