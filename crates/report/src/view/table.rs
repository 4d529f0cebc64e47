//! Tables that HTML and Markdown both print.

use serde::Serialize;

/// A table: its first column names its rows.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Table {
    /// What it shows, in a sentence.
    pub(crate) caption: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// Head of a column.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Column {
    pub(crate) title: String,
    /// Markup of this crate's own in front of the title; empty for none.
    pub(crate) key: String,
    /// Whether it holds figures, which are set flush right.
    pub(crate) numeric: bool,
    /// Said under the title, smaller.
    pub(crate) note: String,
}

/// One cell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// Said under the text, smaller.
    pub(crate) note: String,
    /// Style sheet class of a verdict; the text is then a chip.
    pub(crate) chip: &'static str,
    /// Whether the text is a machine's own writing.
    pub(crate) code: bool,
    /// Whether it sums up what stands above it.
    pub(crate) strong: bool,
    /// A difference under the text; empty for none.
    pub(crate) tag: String,
    /// The verdict on it; empty for none.
    pub(crate) word: &'static str,
    /// Style sheet class of that verdict.
    pub(crate) tag_class: &'static str,
    /// Markup of this crate's own in front of the text; empty for none.
    pub(crate) key: String,
}

impl Table {
    pub(crate) fn new(caption: impl Into<String>, columns: Vec<Column>) -> Self {
        Self { caption: caption.into(), columns, rows: Vec::new() }
    }

    /// The table unless it has no rows.
    pub(crate) fn filled(self) -> Option<Self> {
        (!self.rows.is_empty()).then_some(self)
    }
}

impl Column {
    pub(crate) fn text(title: &str) -> Self {
        Self { title: title.to_owned(), key: String::new(), numeric: false, note: String::new() }
    }

    pub(crate) fn numeric(title: &str) -> Self {
        Self { numeric: true, ..Self::text(title) }
    }
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub(crate) fn code(text: impl Into<String>) -> Self {
        Self { code: true, ..Self::text(text) }
    }

    /// The same as a sum of what stands above it.
    pub(crate) fn strong(self) -> Self {
        Self { strong: true, ..self }
    }

    pub(crate) fn with_note(text: impl Into<String>, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..Self::text(text) }
    }

    pub(crate) fn chip(text: impl Into<String>, class: &'static str) -> Self {
        Self { chip: class, ..Self::text(text) }
    }

    /// What stands where there is no figure.
    pub(crate) fn none() -> Self {
        Self::text("\u{2013}")
    }
}
