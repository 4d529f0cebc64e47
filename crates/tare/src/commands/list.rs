//! `tare list`.

use std::fmt::Write;

use tare_study::Catalog;

use crate::args::{ListArguments, Listed};
use crate::catalog::Registries;
use crate::exit::{Exit, Failure};
use crate::{output, studies};

/// Lists platforms, workloads and studies.
pub fn command(arguments: &ListArguments) -> Result<Exit, Failure> {
    let wanted = |what| arguments.what.is_none_or(|only| only == what);
    let mut text = String::new();
    if wanted(Listed::Platforms) {
        section(&mut text, "Platforms", Registries.platforms().into_iter().map(|entry| (entry.name, entry.summary)));
    }
    if wanted(Listed::Workloads) {
        section(&mut text, "Workloads", Registries.workloads().into_iter().map(|entry| (entry.name, entry.summary)));
    }
    if wanted(Listed::Studies) {
        let shipped = studies::SHIPPED.iter().map(|study| (study.name.to_owned(), question(study)));
        section(&mut text, "Studies", shipped);
    }
    let hint = match arguments.what {
        Some(Listed::Studies) => "`tare init mine.toml --from STUDY` copies one, to be changed",
        Some(_) => "`tare schema NAME` says what each takes",
        None => {
            "`tare schema NAME` says what a platform or a workload takes; `tare init mine.toml --from STUDY` copies a study, to be changed"
        }
    };
    text.push_str(hint);
    output::print(&text)?;
    Ok(Exit::Success)
}

fn section(text: &mut String, title: &str, rows: impl Iterator<Item = (String, String)>) {
    let rows: Vec<(String, String)> = rows.collect();
    let widest = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{title}");
    for (name, summary) in rows {
        let _ = writeln!(text, "  {name:<widest$}  {summary}");
    }
    text.push('\n');
}

/// What a shipped study answers.
fn question(study: &studies::ShippedStudy) -> String {
    match tare_study::parse(study.name, study.text, &Registries) {
        Ok(loaded) => loaded.study.question,
        Err(error) => format!("(broken: {error})"),
    }
}
