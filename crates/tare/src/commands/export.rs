//! `tare export`.

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::path::Path;

use tare_model::findings::Findings;
use tare_model::metric::Better;
use tare_report::export::{Figure, OtavaRow, Selection, action, bencher, figures, openmetrics, otava};

use crate::args::{Direction, ExportArguments, ExportFormat};
use crate::commands::report::analysed;
use crate::exit::{Exit, Failure};
use crate::{choice, output};

/// Longest header of a table to which a row is added, bytes.
const HEADER_MAX: u64 = 1 << 20;

/// Writes effects and values of a run for another program.
pub fn command(arguments: &ExportArguments) -> Result<Exit, Failure> {
    if arguments.format != ExportFormat::Otava && (arguments.append || !arguments.attribute.is_empty()) {
        return Err(Failure::new("--append and --attribute are of --format otava", Exit::Usage));
    }
    let findings = analysed(&arguments.run, false)?;
    let everything = |_: Option<&str>, _: &str, _: &str| true;
    let all_metrics = !arguments.choice.metric.is_empty();
    let there = figures(&findings, &Selection { has: &everything, all_metrics, better: None });
    let keys: Vec<choice::Key<'_>> = there.iter().map(|own| (own.case, own.arm, own.spec.id.as_str())).collect();
    choice::check(&arguments.choice, &keys, "figures")?;
    let chosen = |case: Option<&str>, arm: &str, metric: &str| choice::has(&arguments.choice, (case, arm, metric));
    let better = arguments.better.map(|better| match better {
        Direction::Lower => Better::Lower,
        Direction::Higher => Better::Higher,
    });
    let figures = figures(&findings, &Selection { has: &chosen, all_metrics, better });
    if figures.is_empty() {
        return Err(Failure::new("no figure is chosen: none is better that way", Exit::Usage));
    }
    for (figure, why) in figures.iter().filter_map(|own| Some((own, own.withheld?))) {
        let place = tare_model::findings::verdict_id(figure.case, figure.arm, &figure.spec.id);
        output::note(&format!("tare: {place}: its effect is not exported: {why}"));
    }
    written(arguments, &findings, &figures)
}

fn written(arguments: &ExportArguments, findings: &Findings, figures: &[Figure<'_>]) -> Result<Exit, Failure> {
    let failed = |error| Failure::new(error, Exit::Usage);
    let text = match arguments.format {
        ExportFormat::Bencher => bencher(figures).map_err(failed)?,
        ExportFormat::Openmetrics => openmetrics(findings, figures),
        ExportFormat::GithubActionBenchmark => {
            let (text, tool) = action(figures).map_err(failed)?;
            output::note(&format!("tare: for `tool: {tool}`"));
            text
        }
        ExportFormat::Otava => {
            let row = otava(findings, figures, &arguments.attribute);
            match arguments.out.as_deref().filter(|_| arguments.append) {
                Some(file) => return appended(file, &row),
                None => format!("{}{}", row.header, row.row),
            }
        }
    };
    match &arguments.out {
        None => output::print(&text)?,
        Some(file) => std::fs::write(file, ended(&text)).map_err(|error| unwritten(file, &error))?,
    }
    Ok(Exit::Success)
}

fn ended(text: &str) -> String {
    let text = output::shown(text, false);
    if text.ends_with('\n') { text } else { format!("{text}\n") }
}

/// Adds a row to a table of the same columns, which is begun where there is none.
fn appended(file: &Path, row: &OtavaRow) -> Result<Exit, Failure> {
    let opened = OpenOptions::new().read(true).append(true).create(true).open(file);
    let mut open = opened.map_err(|error| unwritten(file, &error))?;
    let mut start = Vec::new();
    (&open).take(HEADER_MAX).read_to_end(&mut start).map_err(|error| unwritten(file, &error))?;
    let start = String::from_utf8_lossy(&start);
    let [header, own] = [&row.header, &row.row].map(|line| ended(line));
    let text = if start.is_empty() { format!("{header}{own}") } else { own };
    match start.lines().next() {
        Some(there) if there != header.trim_end() => return Err(other_columns(file, there, header.trim_end())),
        _ => open.write_all(text.as_bytes()).map_err(|error| unwritten(file, &error))?,
    }
    Ok(Exit::Success)
}

/// Names the first column in which a table and a run differ.
fn other_columns(file: &Path, there: &str, own: &str) -> Failure {
    let (there, own): (Vec<&str>, Vec<&str>) = (there.split(',').collect(), own.split(',').collect());
    let at = there.iter().zip(&own).take_while(|(one, other)| one == other).count();
    let name = |all: &[&str]| all.get(at).map_or_else(|| "nothing".to_owned(), |name| format!("`{name}`"));
    let message = format!(
        "{}: nothing was added: column {} is {} there and {} of this run. Choose the figures that all runs have (--case, --arm, --metric), \
         or begin another file",
        file.display(),
        at + 1,
        name(&there),
        name(&own)
    );
    Failure::new(message, Exit::Usage)
}

fn unwritten(file: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{} cannot be written: {error}", file.display()), Exit::Failure)
}
