//! `tare report`.

use std::path::{Path, PathBuf};

use tare_model::findings::Findings;
use tare_record::{RunFolder, layout};

use crate::args::{Format, ReportArguments};
use crate::exit::{Exit, Failure};
use crate::{forms, output};

/// Analyses a run folder and renders it.
pub fn command(arguments: &ReportArguments) -> Result<Exit, Failure> {
    let findings = analysed(&arguments.run, arguments.altered)?;
    match arguments.format {
        Some(format) => output::print(&rendered(&findings, format)?)?,
        None => {
            let report = write_all(&arguments.run, &findings)?;
            output::print(&tare_report::terminal(&findings, forms::width(), colour()))?;
            output::print(&format!("report: {}", report.display()))?;
            output::print(&root_hash(&findings))?;
        }
    }
    Ok(Exit::Success)
}

/// Opens, verifies and analyses a run folder, and adds what the workloads say of their cases. Every report is made of what this returns.
///
/// # Errors
/// When it is no run folder or of a newer tare; and when it is not what was written, unless `altered` says to
/// show it all the same. What a crash leaves is no reason to refuse: the findings tell it.
pub fn analysed(run: &Path, altered: bool) -> Result<Findings, Failure> {
    let folder = RunFolder::open(run).map_err(|error| Failure::new(error, Exit::Usage))?;
    let damage: Vec<String> = folder
        .verify()
        .iter()
        .filter(|problem| !problem.kind.explained_by_a_crash())
        .map(|problem| format!("{}: {problem}", run.display()))
        .collect();
    if !damage.is_empty() && !altered {
        let message = format!("{}\n`tare report --altered` shows it anyway, with a warning", damage.join("\n"));
        return Err(Failure::new(message, Exit::Failure));
    }
    let mut findings = tare_analysis::analyse(&folder).map_err(|error| Failure::new(error, Exit::Failure))?;
    tare_workload::add_sections(&mut findings);
    fit_to_be_shown(findings)
}

/// The findings without what could command a terminal or turn the writing of a page: whoever wrote the folder chose the
/// names and texts in it.
///
/// # Errors
/// When nothing sound is left.
fn fit_to_be_shown(findings: Findings) -> Result<Findings, Failure> {
    let failed = |error| Failure::new(format!("the texts of this run cannot be shown: {error}"), Exit::Broken);
    let json = serde_json::to_string(&findings).map_err(failed)?;
    let shown = tare_model::text::readable_json(&json);
    shown.map_or(Ok(findings), |json| serde_json::from_str(&json).map_err(failed))
}

/// The hash by which a copy of the run folder is known, for people.
pub fn root_hash(findings: &Findings) -> String {
    format!("root hash: {}", findings.run.root_hash)
}

/// The findings in one form.
///
/// # Errors
/// When they cannot be written so.
pub fn rendered(findings: &Findings, format: Format) -> Result<String, Failure> {
    match format {
        Format::Html => tare_report::html(findings).map_err(|error| Failure::new(error, Exit::Failure)),
        Format::Md => Ok(tare_report::markdown(findings)),
        Format::Json => tare_report::json(findings).map_err(|error| Failure::new(error, Exit::Failure)),
        Format::Text => Ok(tare_report::terminal(findings, forms::width(), colour())),
    }
}

/// Writes every form of the report into the run folder; gives the path of the HTML.
///
/// # Errors
/// When a file cannot be written.
pub fn write_all(run: &Path, findings: &Findings) -> Result<PathBuf, Failure> {
    let failed = |error| Failure::new(error, Exit::Failure);
    let folder = RunFolder::open(run).map_err(|error| Failure::new(error, Exit::Usage))?;
    folder.write_findings(findings).map_err(failed)?;
    let forms = [(layout::REPORT_HTML, Format::Html), (layout::REPORT_MARKDOWN, Format::Md)];
    for (name, format) in forms {
        folder.write_file(name, rendered(findings, format)?.as_bytes()).map_err(failed)?;
    }
    for (name, text) in tare_report::csv(findings) {
        folder.write_file(&name, text.as_bytes()).map_err(failed)?;
    }
    for (name, bytes) in tare_report::parquet(findings).map_err(|error| Failure::new(error, Exit::Failure))? {
        folder.write_file(&name, &bytes).map_err(failed)?;
    }
    Ok(run.join(layout::REPORT_HTML))
}

/// Whether standard output is a terminal that wants colour.
pub fn colour() -> bool {
    output::colours(&std::io::stdout())
}
