//! What is read at each sample, and where the values go.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use tare_model::sample::{Sample, Source};

use crate::reader::Reader;
use crate::text;

/// A series by its number in the [`Catalog`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeriesId(u32);

/// The names of all series of a probe, and of what was looked for and is not there.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    series: Vec<(Source, String)>,
    absent: Vec<String>,
}

impl Catalog {
    /// A new series.
    pub fn add(&mut self, source: &Source, series: impl Into<String>) -> SeriesId {
        self.series.push((source.clone(), series.into()));
        SeriesId(self.series.len() as u32 - 1)
    }

    /// Notes that something is not there, in words.
    pub fn absent(&mut self, what: String) {
        self.absent.push(what);
    }

    /// The values as samples, in the order of time, and what was absent.
    pub fn resolve(self, values: Values) -> (Vec<Sample>, Vec<String>) {
        let name = |value: Value| {
            let (source, series) = self.series.get(value.series.0 as usize)?.clone();
            Some(Sample { at_ns: value.at_ns, source, series, value: value.value })
        };
        (values.0.into_iter().filter_map(name).collect(), self.absent)
    }
}

/// One value, as small as it can be kept while sampling.
#[derive(Debug, Clone, Copy)]
struct Value {
    at_ns: u64,
    series: SeriesId,
    value: f64,
}

/// Every value of a probe, in the order of time.
#[derive(Debug, Default)]
pub(crate) struct Values(Vec<Value>);

impl Values {
    /// One more value.
    pub fn push(&mut self, at_ns: u64, series: SeriesId, value: f64) {
        self.0.push(Value { at_ns, series, value });
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets the values after the first `length`.
    pub fn truncate(&mut self, length: usize) {
        self.0.truncate(length);
    }
}

/// Something that is read at each sample.
pub(crate) trait Collector: Send {
    /// Reads it and adds its values, all stamped `at_ns`. After an error it is not asked again: what it reads is gone.
    fn collect(&mut self, at_ns: u64, values: &mut Values) -> io::Result<()>;

    /// What it reads, for people.
    fn name(&self) -> String;
}

/// A figure in a file.
#[derive(Debug, Clone)]
pub(crate) enum Pick {
    /// The first number.
    First,
    /// The first number after a key.
    Key(&'static str),
    /// Total stall time of the line `some` or `full`.
    Pressure(&'static str),
    /// A cell of a table.
    Cell {
        /// Name of the row.
        key: String,
        /// Column that holds the name.
        key_column: usize,
        /// Column that holds the figure.
        column: usize,
    },
}

impl Pick {
    fn find(&self, text: &str) -> Option<f64> {
        match self {
            Self::First => text::first_number(text),
            Self::Key(key) => text::value_of(text, key),
            Self::Pressure(line) => text::pressure_total(text, line),
            Self::Cell { key, key_column, column } => text::cell(text, key, *key_column, *column),
        }
    }
}

/// A series wanted from a file: its name, where it is, and the factor to its unit.
pub(crate) type Wanted = (String, Pick, f64);

/// Reads some figures of one file.
#[derive(Debug)]
pub(crate) struct FileCollector {
    reader: Reader,
    picks: Vec<(SeriesId, Pick, f64)>,
}

impl FileCollector {
    /// A collector of those of `wanted` that `reader` has now; the others are noted as absent. `None` if it has none.
    pub fn new(mut reader: Reader, source: &Source, wanted: Vec<Wanted>, catalog: &mut Catalog) -> Option<Self> {
        let path = reader.path().to_owned();
        let text = match reader.read() {
            Ok(text) => text,
            Err(error) => {
                catalog.absent(format!("{}: {error}", path.display()));
                return None;
            }
        };
        let mut picks = Vec::new();
        for (series, pick, factor) in wanted {
            if pick.find(text).is_some() {
                picks.push((catalog.add(source, series), pick, factor));
            } else {
                catalog.absent(format!("{series}: not in {}", path.display()));
            }
        }
        (!picks.is_empty()).then_some(Self { reader, picks })
    }

    /// The same for a path; a file that is not there is noted as absent.
    pub fn open(path: &Path, source: &Source, wanted: Vec<Wanted>, catalog: &mut Catalog) -> Option<Self> {
        match Reader::open(path) {
            Ok(reader) => Self::new(reader, source, wanted, catalog),
            Err(error) => {
                catalog.absent(format!("{}: {error}", path.display()));
                None
            }
        }
    }
}

impl Collector for FileCollector {
    fn collect(&mut self, at_ns: u64, values: &mut Values) -> io::Result<()> {
        let text = self.reader.read()?;
        for (series, pick, factor) in &self.picks {
            if let Some(value) = pick.find(text) {
                values.push(at_ns, *series, value * factor);
            }
        }
        Ok(())
    }

    fn name(&self) -> String {
        self.reader.path().display().to_string()
    }
}

/// Reads counts that only grow, each by its name; whoever hands it out knows where they are.
pub type CountReader = Box<dyn FnMut() -> io::Result<Vec<(String, f64)>> + Send>;

/// Reads what somebody else counts of a guest.
pub(crate) struct CountCollector {
    read: CountReader,
    source: Source,
    series: BTreeMap<String, SeriesId>,
}

impl CountCollector {
    /// A collector of what is counted now; why not is noted. `None` if nothing is.
    pub fn new(source: &Source, mut read: CountReader, catalog: &mut Catalog) -> Option<Self> {
        match read() {
            Ok(counts) => {
                let series = counts.into_iter().map(|(name, _)| (name.clone(), catalog.add(source, name))).collect();
                Some(Self { read, source: source.clone(), series }).filter(|made| !made.series.is_empty())
            }
            Err(error) => {
                catalog.absent(format!("counts of {source:?}: {error}"));
                None
            }
        }
    }
}

impl Collector for CountCollector {
    fn collect(&mut self, at_ns: u64, values: &mut Values) -> io::Result<()> {
        for (name, value) in (self.read)()? {
            if let Some(series) = self.series.get(&name) {
                values.push(at_ns, *series, value);
            }
        }
        Ok(())
    }

    fn name(&self) -> String {
        format!("counts of {:?}", self.source)
    }
}
