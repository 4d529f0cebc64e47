//! `tare compare`.

use std::path::PathBuf;

use tare_analysis::Side;
use tare_model::findings::Findings;

use crate::args::{CompareArguments, Format};
use crate::commands::report::{analysed, colour};
use crate::exit::{Exit, Failure};
use crate::{forms, output};

/// Sets runs against runs.
pub fn command(arguments: &CompareArguments) -> Result<Exit, Failure> {
    let (before, after) = sides(arguments)?;
    let read = |paths: &[PathBuf]| paths.iter().map(|path| analysed(path, false)).collect::<Result<Vec<_>, _>>();
    let (first, second) = (read(before)?, read(after)?);
    let (a, b) = labels((before, &first), (after, &second));
    let names = [before, after].map(|paths| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>());
    let [first, second] =
        [(&a, &first, &names[0]), (&b, &second, &names[1])].map(|(label, runs, names)| Side { label, runs, names });
    let compared = tare_analysis::compare(&first, &second).map_err(|error| Failure::new(error, Exit::Usage))?;
    let text = match arguments.shown.format {
        Format::Html => tare_report::comparison_html(&compared).map_err(|error| Failure::new(error, Exit::Failure))?,
        Format::Md => tare_report::comparison_markdown(&compared),
        Format::Json => forms::json(&compared)?,
        Format::Text => tare_report::comparison_text(&compared, arguments.all, forms::width(), colour()),
    };
    output::print(&text)?;
    Ok(Exit::Success)
}

/// The folders of both sides.
///
/// # Errors
/// When it does not follow from the arguments which are which.
fn sides(arguments: &CompareArguments) -> Result<(&[PathBuf], &[PathBuf]), Failure> {
    match (&arguments.before[..], &arguments.after[..]) {
        ([_, second @ ..], []) if second.len() == 1 => Ok((&arguments.before[..1], second)),
        (_, []) => Err(Failure::new(
            "which runs are to be compared with which? Two run folders, or several on each side: \
             `tare compare A1 A2 A3 --with B1 B2 B3`",
            Exit::Usage,
        )),
        sides => Ok(sides),
    }
}

/// What the two sides are called: by their first folders; where those are of one name, as their paths were given; where it is the same path
/// twice, by their place.
fn labels((a, first): (&[PathBuf], &[Findings]), (b, second): (&[PathBuf], &[Findings])) -> (String, String) {
    let folder = |paths: &[PathBuf], findings: &[Findings]| {
        let path = paths.first().and_then(|path| std::fs::canonicalize(path).ok());
        let name = path.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        name.or_else(|| Some(findings.first()?.run.id.clone())).unwrap_or_default()
    };
    let given = |paths: &[PathBuf]| paths.first().map_or_else(String::new, |path| path.display().to_string());
    let (x, y) = match (folder(a, first), folder(b, second)) {
        (x, y) if x != y => (x, y),
        _ if given(a) != given(b) => (given(a), given(b)),
        (x, y) => (format!("{x} (first)"), format!("{y} (second)")),
    };
    let counted = |name: String, paths: &[PathBuf]| match paths.len() {
        1 => name,
        n => format!("{name} and {} more", n - 1),
    };
    (counted(x, a), counted(y, b))
}
