//! One CSV file: known by its header, every figure with its place.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use tare_model::metric::Unit;
use tare_model::published::{Place, unit};

use crate::error::ImportError;

/// Longest file that is read, bytes: hundreds of times the longest table of the reports.
pub(crate) const FILE_BYTES_MAX: u64 = 4 << 20;
/// Largest figure that a cell may have: sums over the longest file still fit in 64 bits.
const FIGURE_MAX: f64 = 1e12;
/// Longest name of a platform, a workload or a request type.
const NAME_CHARS_MAX: usize = 64;

/// Longest words of a condition.
const WORDS_CHARS_MAX: usize = 200;

/// The formats, one a table of the published reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Format {
    /// Operations of guests that are added to a host.
    Density,
    /// Web requests by type and iteration.
    WebIterations,
    /// Web response times and resources at one load.
    WebLatency,
    /// Resources at the largest web load.
    WebThroughput,
    /// Wrong answers by web iteration.
    WebErrors,
    /// Orders a minute by client and guest.
    Store,
    /// Single figures that a text states. Several files of it may be read at a time.
    Figures,
    /// Conditions that a report discloses. Several files of it may be read at a time.
    Conditions,
}

impl Format {
    pub(crate) const ALL: [Self; 8] = [
        Self::Density,
        Self::WebIterations,
        Self::WebLatency,
        Self::WebThroughput,
        Self::WebErrors,
        Self::Store,
        Self::Figures,
        Self::Conditions,
    ];

    /// Whether each line names its report, so that several files of it may be read at a time.
    pub(crate) const fn names_report(self) -> bool {
        matches!(self, Self::Figures | Self::Conditions)
    }

    /// Names of the columns.
    pub(crate) const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Density => &["platform", "guests", "operations_in_run"],
            Self::WebIterations => &[
                "environment",
                "workload",
                "sessions",
                "iteration",
                "request_type",
                "requests",
                "good",
                "tolerable",
                "fail",
                "weighted_abr",
                "response_s",
                "bytes_per_request",
            ],
            Self::WebLatency => {
                &["workload", "environment", "sessions", "response_s", "cpu_cores", "network_mbps", "disk_ms"]
            }
            Self::WebThroughput => &["workload", "environment", "sessions", "cpu_percent", "network_mbps", "disk_ms"],
            Self::WebErrors => &["environment", "workload", "iteration", "validation_errors", "line"],
            Self::Store => &["configuration", "client", "guest", "orders_per_minute"],
            Self::Figures => &["report", "case", "arm", "figure", "least", "most", "unit", "line"],
            Self::Conditions => &["report", "case", "arm", "subject", "what", "value", "unit", "source"],
        }
    }

    fn known() -> String {
        let each = Self::ALL.map(|format| format!("`{}`", format.columns().join(",")));
        format!("Headers that are known: {}", each.join("; "))
    }
}

/// A file as it was read.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub file: PathBuf,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
    pub format: Format,
    pub rows: Vec<Row>,
}

/// One line below the header. Cells are in the order of [`Format::columns`].
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub line: u64,
    cells: Vec<String>,
}

impl Table {
    /// Reads a file of published figures.
    pub(crate) fn parse(file: &Path, bytes: &[u8]) -> Result<Self, ImportError> {
        let sha256 = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        // Spreadsheets begin a file with a mark of its encoding.
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut lines = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(text)
            .into_records();
        let first = match lines.next() {
            Some(record) => record.map_err(|error| not_csv(file, &error))?,
            None => return Err(header(file, "the file is empty".to_owned())),
        };
        let names: Vec<&str> = first.iter().collect();
        let format = recognised(file, &names)?;
        let order: Vec<usize> = format
            .columns()
            .iter()
            .filter_map(|column| names.iter().position(|name| name.eq_ignore_ascii_case(column)))
            .collect();
        let mut rows = Vec::new();
        for record in lines {
            let record = record.map_err(|error| not_csv(file, &error))?;
            let line = record.position().map_or(0, csv::Position::line);
            if record.len() != names.len() {
                let what = format!("{} cells, where the header has {} columns", record.len(), names.len());
                let remedy = "Give every line one cell a column, and no comma in a figure".to_owned();
                return Err(ImportError::Line { file: file.to_owned(), line, what, remedy });
            }
            let cell = |&at: &usize| record.get(at).unwrap_or_default().to_owned();
            rows.push(Row { line, cells: order.iter().map(cell).collect() });
        }
        if rows.is_empty() {
            return Err(header(file, "there is no line below the header".to_owned()));
        }
        Ok(Self { file: file.to_owned(), sha256, format, rows })
    }

    /// Name of the file without its folders.
    pub(crate) fn name(&self) -> String {
        self.file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// What stands in a column, as it is written.
    pub(crate) fn text<'a>(&self, row: &'a Row, column: &str) -> &'a str {
        let at = self.format.columns().iter().position(|name| *name == column);
        at.and_then(|at| row.cells.get(at)).map_or("", String::as_str)
    }

    /// A name: letters, digits, `_`, `-`, `.` and spaces.
    pub(crate) fn name_in<'a>(&self, row: &'a Row, column: &str) -> Result<&'a str, ImportError> {
        let text = self.text(row, column);
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
        if text.is_empty() || text.chars().count() > NAME_CHARS_MAX || !text.chars().all(fits) {
            let what = format!("`{}` is not a name", shortened(text));
            let remedy = format!("Names have 1 to {NAME_CHARS_MAX} letters (ASCII), digits, `_`, `-`, `.` and spaces");
            return Err(self.wrong(row, column, what, &remedy));
        }
        Ok(text)
    }

    /// A name, or nothing where it is of all of them.
    pub(crate) fn name_or_all<'a>(&self, row: &'a Row, column: &str) -> Result<&'a str, ImportError> {
        if self.text(row, column).is_empty() { Ok("") } else { self.name_in(row, column) }
    }

    /// Words: 1 to [`WORDS_CHARS_MAX`] characters that can be printed, of ASCII.
    pub(crate) fn words<'a>(&self, row: &'a Row, column: &str) -> Result<&'a str, ImportError> {
        let text = self.text(row, column);
        let fits = |c: char| c.is_ascii_graphic() || c == ' ';
        if text.is_empty() || text.len() > WORDS_CHARS_MAX || !text.chars().all(fits) {
            let what =
                if text.is_empty() { "it is empty".to_owned() } else { format!("`{}` is no text", shortened(text)) };
            let remedy = format!("Write 1 to {WORDS_CHARS_MAX} characters of ASCII that can be printed");
            return Err(self.wrong(row, column, what, &remedy));
        }
        Ok(text)
    }

    /// The unit of a line.
    pub(crate) fn unit<'a>(&self, row: &'a Row) -> Result<(&'a str, Unit, f64), ImportError> {
        const COLUMN: &str = "unit";
        let text = self.text(row, COLUMN);
        if let Some((unit, factor)) = unit::named(text) {
            return Ok((text, unit, factor));
        }
        let what = if text.is_empty() {
            "the figure has no unit".to_owned()
        } else {
            format!("`{}` is not a unit that is known", shortened(text))
        };
        let names: Vec<&str> = unit::names().collect();
        let remedy = format!("Units: {}; `{}` is that of words and of bare numbers", names.join(", "), unit::NONE);
        Err(self.wrong(row, COLUMN, what, &remedy))
    }

    /// A number that is not negative, written with digits and at most one point.
    pub(crate) fn number(&self, row: &Row, column: &str) -> Result<f64, ImportError> {
        let text = self.text(row, column);
        let digits = |c: char| c.is_ascii_digit() || c == '.';
        let value = if text.chars().all(digits) { text.parse::<f64>().ok() } else { None };
        match value {
            Some(value) if value <= FIGURE_MAX => Ok(value),
            Some(_) => Err(self.wrong(
                row,
                column,
                format!("{} is larger than {FIGURE_MAX:e}", shortened(text)),
                "Look the figure up in the report: none of them is so large",
            )),
            None if text.starts_with('-') && text[1..].parse::<f64>().is_ok() => Err(self.wrong(
                row,
                column,
                format!("{} is negative", shortened(text)),
                "Look the figure up in the report: it cannot be negative",
            )),
            None => Err(self.wrong(
                row,
                column,
                format!("`{}` is not a number", shortened(text)),
                "Write figures with digits and a point alone, such as 0.884; leave the whole line out where the report has no figure",
            )),
        }
    }

    /// A whole number.
    pub(crate) fn count(&self, row: &Row, column: &str) -> Result<u64, ImportError> {
        let value = self.number(row, column)?;
        if value.fract() != 0.0 {
            let what = format!("{value} is not a whole number");
            return Err(self.wrong(row, column, what, "Write counts without a point"));
        }
        // Not larger than FIGURE_MAX, which 64 bits hold.
        Ok(value as u64)
    }

    /// A whole number from 1 to `most`.
    pub(crate) fn ordinal(&self, row: &Row, column: &str, most: u32) -> Result<u32, ImportError> {
        let value = self.count(row, column)?;
        match u32::try_from(value) {
            Ok(value) if (1..=most).contains(&value) => Ok(value),
            _ => {
                let what = format!("{value} is not from 1 to {most}");
                Err(self.wrong(row, column, what, "Look the figure up in the report"))
            }
        }
    }

    /// Half of the last digit that is printed.
    pub(crate) fn rounding(&self, row: &Row, column: &str) -> f64 {
        let places = self.text(row, column).split_once('.').map_or(0, |(_, digits)| digits.len());
        0.5 * 10f64.powi(-i32::try_from(places).unwrap_or(i32::MAX))
    }

    /// Where a figure stands.
    pub(crate) fn place(&self, row: &Row, column: &str) -> Place {
        Place { file: self.name(), line: row.line, field: column.to_owned() }
    }

    /// An error at one figure.
    pub(crate) fn wrong(&self, row: &Row, column: &str, what: String, remedy: &str) -> ImportError {
        let (file, column, remedy) = (self.file.clone(), column.to_owned(), remedy.to_owned());
        ImportError::Cell { file, line: row.line, column, what, remedy }
    }

    /// Lines of one report, of a format that names it.
    pub(crate) fn of_report<'a>(&'a self, report: &'a str) -> impl Iterator<Item = &'a Row> {
        self.rows.iter().filter(move |row| self.text(row, "report") == report)
    }

    /// Refuses a table in which two lines tell the same thing.
    pub(crate) fn unique(&self, columns: &[&str]) -> Result<(), ImportError> {
        let mut seen = BTreeSet::new();
        for row in &self.rows {
            let key: Vec<&str> = columns.iter().map(|column| self.text(row, column)).collect();
            if !seen.insert(key.clone()) {
                let what = format!("{} is listed a second time", key.join(", "));
                let remedy = "Leave one of the two lines in: the figure must not depend on which is read".to_owned();
                return Err(ImportError::Line { file: self.file.clone(), line: row.line, what, remedy });
            }
        }
        Ok(())
    }
}

/// The format that a header is of.
fn recognised(file: &Path, names: &[&str]) -> Result<Format, ImportError> {
    let has = |column: &str| names.iter().filter(|name| name.eq_ignore_ascii_case(column)).count();
    if let Some(twice) = names.iter().find(|name| has(name) > 1) {
        return Err(header(file, format!("the column `{}` occurs twice", shortened(twice))));
    }
    let missing =
        |format: Format| -> Vec<&str> { format.columns().iter().copied().filter(|column| has(column) == 0).collect() };
    let whole =
        Format::ALL.into_iter().find(|format| missing(*format).is_empty() && format.columns().len() == names.len());
    if let Some(format) = whole {
        return Ok(format);
    }
    let had = |format: &Format| format.columns().len() - missing(*format).len();
    let nearest = Format::ALL.into_iter().filter(|format| 2 * had(format) > format.columns().len());
    let Some(format) = nearest.max_by_key(|format| (had(format), std::cmp::Reverse(format.columns().len()))) else {
        return Err(header(file, format!("`{}` is not the header of a known format", shortened(&names.join(",")))));
    };
    let named =
        |columns: &[&str]| columns.iter().map(|name| format!("`{}`", shortened(name))).collect::<Vec<_>>().join(", ");
    let absent = missing(format);
    let what = if absent.is_empty() {
        let known = |name: &&&str| format.columns().iter().any(|column| name.eq_ignore_ascii_case(column));
        let more: Vec<&str> = names.iter().filter(|name| !known(name)).copied().collect();
        format!("unknown columns: {}", named(&more))
    } else {
        format!("missing columns: {}", named(&absent))
    };
    let remedy = format!("The header of this format is `{}`", format.columns().join(","));
    Err(ImportError::Header { file: file.to_owned(), what, remedy })
}

fn header(file: &Path, what: String) -> ImportError {
    ImportError::Header { file: file.to_owned(), what, remedy: Format::known() }
}

fn not_csv(file: &Path, error: &csv::Error) -> ImportError {
    let line = error.position().map_or(0, csv::Position::line);
    let what = match error.kind() {
        csv::ErrorKind::Utf8 { .. } => "this is not UTF-8".to_owned(),
        _ => error.to_string(),
    };
    let remedy = "Save the table as CSV in UTF-8, with commas between cells".to_owned();
    ImportError::Line { file: file.to_owned(), line, what, remedy }
}

/// As much of a cell as fits in a message.
fn shortened(text: &str) -> String {
    const CHARS: usize = 80;
    let short: String = text.chars().take(CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().count() > CHARS { format!("{short}...") } else { short }
}
