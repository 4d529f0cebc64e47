//! Tables that HTML and Markdown both print.

use serde::Serialize;
use tare_model::findings::{Comparison, Estimate};
use tare_model::metric::Unit;

use crate::format::{self, Parts};
use crate::plot::arms::ArmLook;
use crate::words;

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
    /// Style sheet class of the cell's ground; empty for none.
    pub(crate) shade: &'static str,
}

impl Table {
    pub(crate) fn new(caption: impl Into<String>, columns: Vec<Column>) -> Self {
        Self { caption: caption.into(), columns, rows: Vec::new() }
    }

    /// A table without rows, with a column of figures an arm.
    pub(crate) fn by_arm<'a>(
        caption: impl Into<String>,
        first: &str,
        arms: impl IntoIterator<Item = &'a ArmLook>,
    ) -> Self {
        let heads = arms.into_iter().map(Column::arm);
        Self::new(caption, std::iter::once(Column::text(first)).chain(heads).collect())
    }

    /// The table without the columns in which no row has anything.
    pub(crate) fn without_empty_columns(mut self) -> Self {
        for at in (0..self.columns.len()).rev() {
            if self.rows.iter().all(|row| row.get(at).is_none_or(|cell| *cell == Cell::none())) {
                self.columns.remove(at);
                self.rows.iter_mut().for_each(|row| drop(row.remove(at)));
            }
        }
        self
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

    /// A column of an arm's figures, with its mark.
    pub(crate) fn arm(look: &ArmLook) -> Self {
        Self { key: look.key(), ..Self::numeric(&look.label) }
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

    /// The same with one more note.
    pub(crate) fn noted(self, more: &str) -> Self {
        let note = if self.note.is_empty() { more.to_owned() } else { format!("{}; {more}", self.note) };
        Self { note, ..self }
    }

    pub(crate) fn chip(text: impl Into<String>, class: &'static str) -> Self {
        Self { chip: class, ..Self::text(text) }
    }

    /// An arm's name, with its mark.
    pub(crate) fn arm(look: &ArmLook) -> Self {
        Self { key: look.key(), ..Self::text(&look.label) }
    }

    /// A figure with its interval below it, where there is one.
    pub(crate) fn known(estimate: Option<&Estimate>, unit: &Unit) -> Self {
        estimate.map_or_else(Self::none, |estimate| Self::estimate(estimate, unit))
    }

    /// A figure with its interval below it.
    pub(crate) fn estimate(estimate: &Estimate, unit: &Unit) -> Self {
        Self::parts(format::estimate_parts(estimate, unit))
    }

    /// A figure that is written already, with its interval below it.
    pub(crate) fn parts(parts: Parts) -> Self {
        Self::with_note(parts.value, parts.interval.unwrap_or_default())
    }

    /// With the verdict of a comparison in these words below it, and the difference where there is one.
    pub(crate) fn compared(self, comparison: &Comparison, word: &'static str) -> Self {
        let tag_class = words::verdict_class(comparison.verdict);
        if comparison.ratio.n == 0 {
            return Self { word, tag_class, ..self };
        }
        let ratio = format::ratio_parts(&comparison.ratio);
        Self { tag: ratio.value, note: ratio.interval.unwrap_or_default(), word, tag_class, ..self }
    }

    /// What stands where there is no figure.
    pub(crate) fn none() -> Self {
        Self::text("\u{2013}")
    }
}
