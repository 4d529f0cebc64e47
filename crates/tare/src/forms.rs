//! `--format`: a command makes a value and a page of it, and they are printed here.

use std::io::IsTerminal as _;

use serde::Serialize;
use serde_json::Value;
use tare_report::Page;

use crate::args::Format;
use crate::exit::{Exit, Failure};
use crate::output;

/// Schema of the JSON documents that have none of their own.
const SCHEMA: u32 = 1;

/// The terminal that a text is for. What goes to a page or a file is as wide, and has no colours.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    /// Its columns.
    pub width: usize,
    /// Whether it wants colours.
    pub colour: bool,
}

impl Terminal {
    fn of(format: Format) -> Self {
        let colour = format == Format::Text && output::colours(&std::io::stdout());
        Self { width: width(), colour }
    }
}

/// Columns of the terminal.
pub fn width() -> usize {
    rustix::termios::tcgetwinsize(std::io::stdout()).map_or(80, |size| usize::from(size.ws_col)).clamp(60, 160)
}

/// Columns in which paragraphs are broken into lines: only a terminal's, so that programs find each of them whole.
fn columns() -> usize {
    if std::io::stdout().is_terminal() { width() } else { usize::MAX }
}

/// Prints what a command found: `data` as JSON, else the page that is made of it.
///
/// # Errors
/// When it cannot be written in that form, or standard output cannot be written.
pub fn print(format: Format, data: &impl Serialize, page: impl FnOnce(Terminal) -> Page) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(error, Exit::Failure);
    let terminal = Terminal::of(format);
    output::print(&match format {
        Format::Text => tare_report::page_text(&page(terminal), columns()),
        Format::Json => json(data)?,
        Format::Md => tare_report::page_markdown(&page(terminal)),
        Format::Html => tare_report::page_html(&page(terminal)).map_err(|error| failed(&error))?,
    })
}

/// A value as indented JSON, with the number of its schema.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn json(data: &impl Serialize) -> Result<String, Failure> {
    let failed = |error| Failure::new(format!("it cannot be written as JSON: {error}"), Exit::Failure);
    let mut value = serde_json::to_value(data).map_err(failed)?;
    if let Value::Object(fields) = &mut value
        && !fields.contains_key("schema")
    {
        let own = std::mem::take(fields);
        fields.insert("schema".to_owned(), SCHEMA.into());
        fields.extend(own);
    }
    serde_json::to_string_pretty(&value).map_err(failed)
}
