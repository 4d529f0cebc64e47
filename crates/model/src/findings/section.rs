//! What a workload says of a case beyond what every case has, as blocks that a report shows without knowing the workload.
//!
//! Figures stay numbers with their units, and arms stay ids: the report gives both the form that they have everywhere in it.

use serde::{Deserialize, Serialize};

use super::Estimate;
use crate::metric::Unit;

/// Blocks under one heading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// Where in the case it stands.
    pub place: Place,
    /// What it holds, in order.
    pub blocks: Vec<Block>,
}

/// Where in a case a section stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// With the answer, before the figures that every case has.
    Answer,
    /// Among what explains the answer, before the tables that every case has.
    Detail,
}

/// One part of a section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Block {
    /// A sentence with its full stop.
    Sentence(String),
    /// A table.
    Table(Table),
    /// A figure.
    Figure(Figure),
    /// What is opened by who wants it.
    Fold {
        /// What is in it.
        title: String,
        /// The tables.
        tables: Vec<Table>,
    },
}

/// A table: the first cell of a row names it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// What it shows, in sentences.
    pub caption: String,
    /// Heads of the columns.
    pub columns: Vec<Column>,
    /// As many cells a row as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// Head of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// What it holds, or the arm that it is of.
    pub head: Value,
    /// Whether its cells are figures.
    pub numeric: bool,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// What is said first.
    pub value: Value,
    /// What is said beside it; empty for nothing.
    pub note: String,
}

/// What a cell holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// Nothing is known.
    Unknown,
    /// Words.
    Text(String),
    /// An arm, by its id.
    Arm(String),
    /// Things that were counted.
    Count(u64),
    /// A part of a whole, 0 to 1.
    Share(f64),
    /// A figure with its interval.
    Estimate(Estimate, Unit),
}

/// Lines over one horizontal axis, a panel a quantity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What it shows, in sentences.
    pub caption: String,
    /// What is on the axis.
    pub x_title: String,
    /// The panels, from the top.
    pub panels: Vec<Panel>,
}

/// One quantity of a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Panel {
    /// What it is.
    pub title: String,
    /// Its unit.
    pub unit: Unit,
    /// A level that matters, with its name.
    pub bound: Option<(f64, String)>,
    /// A line an arm.
    pub lines: Vec<Line>,
}

/// One arm in one panel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Arm id.
    pub arm: String,
    /// From left to right.
    pub points: Vec<Point>,
}

/// One point of a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its place on the axis.
    pub x: f64,
    /// The figure.
    pub y: Estimate,
    /// Whether it does not count as the others do.
    pub hollow: bool,
}

impl Section {
    /// A section; `None` without blocks.
    pub fn of(title: &str, place: Place, blocks: impl IntoIterator<Item = Option<Block>>) -> Option<Self> {
        let blocks: Vec<Block> = blocks.into_iter().flatten().collect();
        (!blocks.is_empty()).then(|| Self { title: title.to_owned(), place, blocks })
    }
}

impl Table {
    /// A table without rows.
    pub fn new(caption: impl Into<String>, columns: Vec<Column>) -> Self {
        Self { caption: caption.into(), columns, rows: Vec::new() }
    }

    /// The table unless it has no rows.
    pub fn filled(self) -> Option<Self> {
        (!self.rows.is_empty()).then_some(self)
    }
}

impl Column {
    /// A column of words.
    pub fn text(title: impl Into<String>) -> Self {
        Self { head: Value::Text(title.into()), numeric: false }
    }

    /// A column of figures.
    pub fn number(title: impl Into<String>) -> Self {
        Self { numeric: true, ..Self::text(title) }
    }

    /// An arm's column of figures.
    pub fn arm(id: &str) -> Self {
        Self { head: Value::Arm(id.to_owned()), numeric: true }
    }
}

impl Cell {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Value::Text(text.into()).into()
    }

    /// An arm, by its id.
    pub fn arm(id: &str) -> Self {
        Value::Arm(id.to_owned()).into()
    }

    /// A count, where there is one.
    pub fn count(n: Option<u64>) -> Self {
        n.map_or(Value::Unknown, Value::Count).into()
    }

    /// The same with something said beside it.
    #[must_use]
    pub fn noted(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }
}

impl From<Value> for Cell {
    fn from(value: Value) -> Self {
        Self { value, note: String::new() }
    }
}
