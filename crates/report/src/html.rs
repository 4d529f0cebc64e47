//! One HTML file that opens offline and needs no script to be read.

use minijinja::value::Serde;
use minijinja::{Environment, Value, context};
use serde::Serialize;
use tare_model::findings::Findings;

use crate::csv::csv;
use crate::error::ReportError;
use crate::tables::SAMPLES;
use crate::view::Report;

/// The style sheet, shared by every page.
const STYLE: &str = include_str!("../templates/style.css");

/// The report as one self-contained HTML file: no script, no external resource, light and dark, printable.
///
/// # Errors
/// When a template does not render, which would be a defect of this crate.
pub fn html(findings: &Findings) -> Result<String, ReportError> {
    let mut report = Report::new(findings);
    report.say_once();
    let files: Vec<File> =
        csv(findings).into_iter().filter(|(name, _)| !name.starts_with(SAMPLES)).map(File::new).collect();
    render("report.html", context! { report => Value::from(Serde(&report)), files => Value::from(Serde(&files)) })
}

/// Renders one of this crate's templates with the style sheet in it.
pub(crate) fn render(template: &str, values: Value) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    // Names end in `.html`, for which minijinja escapes every value that is not marked safe.
    for (name, source) in [
        ("report.html", include_str!("../templates/report.html")),
        ("parts.html", include_str!("../templates/parts.html")),
        ("case.html", include_str!("../templates/case.html")),
        ("more.html", include_str!("../templates/more.html")),
        ("instances.html", include_str!("../templates/instances.html")),
        ("frame.html", include_str!("../templates/frame.html")),
        ("comparison.html", include_str!("../templates/comparison.html")),
        ("history.html", include_str!("../templates/history.html")),
        ("page.html", include_str!("../templates/page.html")),
    ] {
        environment.add_template(name, source).map_err(ReportError::Template)?;
    }
    environment.add_global("style", Value::from_safe_string(STYLE.to_owned()));
    environment.get_template(template).and_then(|template| template.render(values)).map_err(ReportError::Template)
}

/// A CSV file inside the page: to be read, and to be saved by a link that holds it.
#[derive(Debug, Serialize)]
struct File {
    name: String,
    content: String,
    link: String,
    lines: usize,
}

impl File {
    fn new((name, content): (String, String)) -> Self {
        let link = format!("data:text/csv;charset=utf-8,{}", percent_encoded(&content));
        let lines = content.lines().count().saturating_sub(1);
        Self { name, content: content.replace("\r\n", "\n"), link, lines }
    }
}

/// Every byte but letters, digits and `-._~` as `%XX` (RFC 3986).
fn percent_encoded(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~,".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
