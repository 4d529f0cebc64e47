//! Findings to HTML, Markdown, JSON, CSV, Parquet, the terminal, and the formats of continuous integration.
//!
//! Nothing is computed here that could change an answer: every figure, verdict and sentence comes
//! from [`tare_model::findings::Findings`]. This crate decides only how it is read.

mod compare;
mod csv;
mod error;
pub mod export;
pub mod format;
mod gate;
mod history;
mod html;
mod markdown;
mod page;
mod parquet;
mod plot;
mod tables;
mod terminal;
mod view;
pub mod words;

pub use compare::{comparison_html, comparison_markdown, comparison_text};
pub use csv::csv;
pub use error::ReportError;
pub use gate::{annotations, gate_page, junit};
pub use history::{history_html, history_markdown, history_parquet, history_text};
pub use html::html;
pub use markdown::markdown;
pub use page::{Page, PagePart, page_html, page_markdown, page_text};
pub use parquet::parquet;
pub use terminal::terminal;

use tare_model::findings::Findings;

/// The findings as `findings.json` holds them, indented.
///
/// # Errors
/// When the findings cannot be written as JSON, which would be a defect of the model.
pub fn json(findings: &Findings) -> Result<String, ReportError> {
    serde_json::to_string_pretty(findings).map_err(ReportError::Json)
}

#[cfg(test)]
#[path = "../tests/fixture/mod.rs"]
mod fixture;
