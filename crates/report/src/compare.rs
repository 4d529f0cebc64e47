//! Two runs side by side, for `tare compare`: one neutral table and its three printed forms.

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::{Deserialize, Serialize};
use tare_model::findings::{Estimate, Verdict};
use tare_model::metric::Unit;

use crate::error::ReportError;
use crate::format;
use crate::html::render;
use crate::markdown::{escaped, table_markdown};
use crate::terminal::{Style, paragraph, plain};
use crate::view::table::{Cell, Column, Table};
use crate::words;

/// What was compared with what, a row a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparisonTable {
    /// Heading.
    pub title: String,
    /// Name of the first side, which ratios are against.
    pub a_label: String,
    /// Name of the second side.
    pub b_label: String,
    /// What a reader must know, such as that the plans differ; printed above the rows.
    pub notes: Vec<String>,
    /// The rows.
    pub rows: Vec<ComparisonRow>,
}

/// One figure on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparisonRow {
    /// What it is, such as case, arm and metric.
    pub label: String,
    /// Unit of `a` and `b`.
    pub unit: Unit,
    /// Value on the first side; `None` when it has none.
    pub a: Option<f64>,
    /// Value on the second side; `None` when it has none.
    pub b: Option<f64>,
    /// `b` over `a`; `None` when either is missing.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's interval.
    pub low: Option<f64>,
    /// Upper end of the ratio's interval.
    pub high: Option<f64>,
    /// The verdict, where one may be given.
    pub verdict: Option<Verdict>,
    /// The comparison in words.
    pub sentence: String,
}

impl ComparisonRow {
    fn value(&self, side: Option<f64>) -> String {
        side.map_or_else(|| "\u{2013}".to_owned(), |value| format::value(value, &self.unit))
    }

    fn ratio(&self) -> Option<format::Parts> {
        let value = self.ratio?;
        let (low, high) = (self.low, self.high);
        Some(format::ratio_parts(&Estimate { value, low, high, level: 0.95, n: 1, method: String::new() }))
    }

    fn verdict(&self) -> &'static str {
        self.verdict.map_or("", words::verdict)
    }
}

fn table(comparison: &ComparisonTable) -> Table {
    let columns = vec![
        Column::text("What"),
        Column::numeric(&comparison.a_label),
        Column::numeric(&comparison.b_label),
        Column::numeric("Difference"),
        Column::text("Verdict"),
        Column::text("In words"),
    ];
    let caption = format!("{} against {}.", comparison.b_label, comparison.a_label);
    let mut table = Table::new(caption, columns);
    for row in &comparison.rows {
        let ratio = row.ratio();
        let chip = row.verdict.map_or_else(Cell::none, |v| Cell::chip(words::verdict(v), words::verdict_class(v)));
        table.rows.push(vec![
            Cell::text(&row.label),
            Cell::text(row.value(row.a)),
            Cell::text(row.value(row.b)),
            ratio.map_or_else(Cell::none, Cell::parts),
            chip,
            Cell::text(&row.sentence),
        ]);
    }
    table
}

/// The comparison for a terminal of `width` columns, with ANSI colours if `colour`.
pub fn comparison_text(comparison: &ComparisonTable, width: usize, colour: bool) -> String {
    let style = Style::new(colour);
    let mut out = format!("{}\n", style.bold(&plain(&comparison.title)));
    for note in &comparison.notes {
        out.push_str(&paragraph(note, width, "! ", "  "));
    }
    for row in &comparison.rows {
        let ratio = row.ratio().map_or_else(|| "\u{2013}".to_owned(), |parts| parts.joined());
        out.push_str(&format!("\n{}\n", style.bold(&plain(&row.label))));
        let line = format!(
            "{} {}, {} {}: {ratio}",
            comparison.a_label,
            row.value(row.a),
            comparison.b_label,
            row.value(row.b)
        );
        out.push_str(&paragraph(&line, width, "  ", "  "));
        let words =
            if row.verdict.is_some() { format!("{}: {}", row.verdict(), row.sentence) } else { row.sentence.clone() };
        if !words.is_empty() {
            out.push_str(&paragraph(&words, width, "  ", "  "));
        }
    }
    out
}

/// The comparison as Markdown.
pub fn comparison_markdown(comparison: &ComparisonTable) -> String {
    let mut out = format!("# {}\n\n", escaped(&comparison.title));
    for note in &comparison.notes {
        out.push_str(&format!("- {}\n", escaped(note)));
    }
    if !comparison.notes.is_empty() {
        out.push('\n');
    }
    out.push_str(&table_markdown(&table(comparison)));
    out
}

/// The comparison as one self-contained HTML file.
///
/// # Errors
/// When a template does not render, which would be a defect of this crate.
pub fn comparison_html(comparison: &ComparisonTable) -> Result<String, ReportError> {
    let values = context! {
        title => comparison.title.clone(),
        notes => comparison.notes.clone(),
        table_data => Value::from(Serde(table(comparison))),
    };
    render("comparison.html", values)
}
