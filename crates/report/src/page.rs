//! What a command found, as a page of headings, sentences and tables in three printed forms.

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::Serialize;

use crate::error::ReportError;
use crate::html::render;
use crate::markdown::{escaped, table_markdown};
use crate::terminal::{paragraph, plain};
use crate::view::table::{Cell, Column, Table};

/// What a command found, to be printed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    /// What it is about. The form for a terminal leaves it out: there the user has just typed the command.
    pub title: String,
    /// Its parts, in order.
    pub parts: Vec<PagePart>,
}

/// A part of a page.
#[derive(Debug, Clone, PartialEq)]
pub enum PagePart {
    /// A heading over what follows.
    Heading(String),
    /// A paragraph.
    Paragraph(String),
    /// Rows of as many cells as there are names of columns.
    Rows(Vec<String>, Vec<Vec<String>>),
    /// The same whose cells are long: a terminal has each cell on lines of its own.
    Records(Vec<String>, Vec<Vec<String>>),
    /// Lines that are laid out already.
    Lines(String),
}

impl Page {
    /// A page without parts.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), parts: Vec::new() }
    }

    /// A page of lines that are laid out already.
    pub fn of_lines(title: impl Into<String>, lines: impl Into<String>) -> Self {
        Self { title: title.into(), parts: vec![PagePart::Lines(lines.into())] }
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: impl Into<String>) -> &mut Self {
        self.parts.push(PagePart::Heading(text.into()));
        self
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: impl Into<String>) -> &mut Self {
        self.parts.push(PagePart::Paragraph(text.into()));
        self
    }

    /// Adds a table, unless it has no rows.
    pub fn rows(&mut self, columns: &[&str], rows: Vec<Vec<String>>) -> &mut Self {
        if !rows.is_empty() {
            self.parts.push(PagePart::Rows(owned(columns), rows));
        }
        self
    }

    /// Adds a table whose cells are long, unless it has no rows.
    pub fn records(&mut self, columns: &[&str], rows: Vec<Vec<String>>) -> &mut Self {
        if !rows.is_empty() {
            self.parts.push(PagePart::Records(owned(columns), rows));
        }
        self
    }
}

fn owned(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|&name| name.to_owned()).collect()
}

/// The page for a terminal of `width` columns. Rows stand below their heading without the names of their columns.
pub fn page_text(page: &Page, width: usize) -> String {
    let mut out = String::new();
    for part in &page.parts {
        let gap = matches!(part, PagePart::Heading(_) | PagePart::Lines(_)) && !out.is_empty();
        out.push_str(if gap { "\n" } else { "" });
        match part {
            PagePart::Heading(text) => out.push_str(&paragraph(text, width, "", "")),
            PagePart::Paragraph(text) => out.push_str(&paragraph(text, width, "", "  ")),
            PagePart::Rows(_, rows) => rows.iter().for_each(|row| out.push_str(&row_text(row, rows, width))),
            PagePart::Records(columns, rows) => {
                rows.iter().for_each(|row| out.push_str(&record_text(columns, row, width)));
            }
            PagePart::Lines(lines) => {
                out.push_str(lines.trim_end());
                out.push('\n');
            }
        }
    }
    out
}

/// A row of text: each cell but the last as wide as the widest of its column, the last broken between words.
fn row_text(row: &[String], rows: &[Vec<String>], width: usize) -> String {
    let Some((last, others)) = row.split_last() else { return String::new() };
    let mut first = String::from("  ");
    for (at, cell) in others.iter().enumerate() {
        let wide = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0);
        first.push_str(&format!("{:<wide$}  ", plain(cell)));
    }
    let rest = " ".repeat(first.chars().count().min(width / 2));
    let text = paragraph(last, width, &first, &rest);
    format!("{}\n", text.trim_end())
}

/// The first cell, and each other one below it behind the name of its column. Lines of a cell stay lines.
fn record_text(columns: &[String], row: &[String], width: usize) -> String {
    let wide = columns.iter().skip(1).map(|name| name.chars().count()).max().unwrap_or(0) + 1;
    let mut out = row.first().map_or_else(String::new, |name| paragraph(name, width, "  ", "  "));
    let others = columns.iter().zip(row).skip(1).filter(|(_, cell)| !cell.trim().is_empty());
    for (name, cell) in others {
        let (mut first, rest) = (format!("    {:<wide$} ", format!("{name}:")), " ".repeat(wide + 5));
        for line in cell.trim().lines() {
            out.push_str(&paragraph(line, width, &first, &rest));
            first.clone_from(&rest);
        }
    }
    out
}

/// The page as Markdown (GitHub's tables).
pub fn page_markdown(page: &Page) -> String {
    let mut out = format!("# {}\n", escaped(&page.title));
    for part in &page.parts {
        out.push('\n');
        match part {
            PagePart::Heading(text) => out.push_str(&format!("## {}\n", escaped(text))),
            PagePart::Paragraph(text) => out.push_str(&format!("{}\n", escaped(text))),
            PagePart::Rows(columns, rows) | PagePart::Records(columns, rows) => {
                out.push_str(&table_markdown(&table(columns, rows)));
            }
            PagePart::Lines(lines) => {
                let indented = lines.trim_end().lines().map(|line| format!("    {}\n", plain(line)));
                out.push_str(&indented.collect::<String>());
            }
        }
    }
    out
}

/// The page as one self-contained HTML file.
///
/// # Errors
/// When a template does not render, which would be a defect of this crate.
pub fn page_html(page: &Page) -> Result<String, ReportError> {
    let parts: Vec<HtmlPart> = page.parts.iter().map(HtmlPart::of).collect();
    render("page.html", context! { title => page.title.clone(), parts => Value::from(Serde(parts)) })
}

/// A part as the template takes it.
#[derive(Debug, Default, Serialize)]
struct HtmlPart {
    heading: Option<String>,
    paragraph: Option<String>,
    lines: Option<String>,
    table: Option<Table>,
}

impl HtmlPart {
    fn of(part: &PagePart) -> Self {
        match part {
            PagePart::Heading(text) => Self { heading: Some(text.clone()), ..Self::default() },
            PagePart::Paragraph(text) => Self { paragraph: Some(text.clone()), ..Self::default() },
            PagePart::Lines(lines) => Self { lines: Some(lines.clone()), ..Self::default() },
            PagePart::Rows(columns, rows) | PagePart::Records(columns, rows) => {
                Self { table: Some(table(columns, rows)), ..Self::default() }
            }
        }
    }
}

fn table(columns: &[String], rows: &[Vec<String>]) -> Table {
    let mut table = Table::new("", columns.iter().map(|name| Column::text(name)).collect());
    table.rows = rows.iter().map(|row| row.iter().map(Cell::text).collect()).collect();
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        let mut page = Page::new("Some <things>");
        let rows = [["a", "the first of them all"], ["bcd", "x|y"]];
        page.heading("Things").rows(&["Name", "What"], rows.map(|row| row.map(str::to_owned).to_vec()).to_vec());
        page.paragraph("That is all.");
        page
    }

    #[test]
    fn a_page_is_laid_out_for_the_width_of_a_terminal() {
        let said = page_text(&page(), 20);
        assert_eq!(said, "Things\n  a    the first of\n       them all\n  bcd  x|y\nThat is all.\n");
    }

    #[test]
    fn long_cells_stand_below_each_other_and_their_lines_stay() {
        let mut page = Page::default();
        page.records(&["Name", "why", "remedy"], vec![["a", "it is\ngone", "buy one"].map(str::to_owned).to_vec()]);
        assert_eq!(page_text(&page, 80), "  a\n    why:    it is\n            gone\n    remedy: buy one\n");
    }

    #[test]
    fn the_other_forms_hold_the_same_and_escape_it() {
        let (markdown, html) = (page_markdown(&page()), page_html(&page()).unwrap_or_default());
        assert!(markdown.contains("# Some &lt;things") && markdown.contains("| bcd | x\\|y |"), "{markdown}");
        assert!(html.contains("<h1>Some &lt;things&gt;</h1>") && html.contains("the first of them all"), "{html}");
    }
}
