//! `tare history`.

mod add;
mod chosen;

use std::path::Path;

use tare_model::history::History;

use crate::args::{ChosenSeries, Format, HistoryArguments, HistoryCommand};
use crate::commands::report::colour;
use crate::exit::{Exit, Failure};
use crate::{forms, output};

/// Keeps runs over time, and shows them.
pub fn command(arguments: &HistoryArguments) -> Result<Exit, Failure> {
    match &arguments.command {
        HistoryCommand::Add { runs, into, shown } => add::command(runs, into, shown.format),
        HistoryCommand::Show { chosen, all, shown } => show(&history(chosen)?, *all, shown.format),
        HistoryCommand::Export { chosen, out } => export(&history(chosen)?, out),
    }
}

/// The history of the chosen series.
fn history(chosen: &ChosenSeries) -> Result<History, Failure> {
    let runs = tare_record::history::read(&chosen.from).map_err(|error| Failure::new(error, Exit::Usage))?;
    Ok(tare_analysis::history(&chosen::series(runs, chosen)?))
}

fn show(history: &History, all: bool, format: Format) -> Result<Exit, Failure> {
    output::print(&match format {
        Format::Html => tare_report::history_html(history).map_err(|error| Failure::new(error, Exit::Failure))?,
        Format::Md => tare_report::history_markdown(history),
        Format::Json => forms::json(history)?,
        Format::Text => tare_report::history_text(history, all, forms::width(), colour()),
    })?;
    Ok(Exit::Success)
}

fn export(history: &History, out: &Path) -> Result<Exit, Failure> {
    let failed = |doing: &str, path: &Path, error: &std::io::Error| {
        Failure::new(format!("{doing} {} failed: {error}", path.display()), Exit::Failure)
    };
    let files = tare_report::history_parquet(history).map_err(|error| Failure::new(error, Exit::Failure))?;
    std::fs::create_dir_all(out).map_err(|error| failed("making", out, &error))?;
    for (name, bytes) in files {
        let path = out.join(name);
        std::fs::write(&path, bytes).map_err(|error| failed("writing", &path, &error))?;
        output::print(&path.display().to_string())?;
    }
    Ok(Exit::Success)
}
