//! `tare import`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tare_import::{ImportError, Report};
use tare_model::audit::{AuditCheck, AuditEntry, AuditOutcome};
use tare_report::Page;

use crate::args::ImportArguments;
use crate::commands::report::analysed;
use crate::exit::{Exit, Failure};
use crate::{forms, place};

/// Reads published figures and makes a run folder of each report.
pub fn command(arguments: &ImportArguments) -> Result<Exit, Failure> {
    let read = if arguments.from.is_empty() { tare_import::shipped() } else { tare_import::read(&arguments.from) };
    let imported = read.map_err(|error| Failure::new(error, Exit::Usage))?;
    let folders = folders(&imported.reports, arguments.out.as_deref());
    // Before the first is made: none of them may be in the way.
    if let Some(taken) = folders.iter().find(|folder| is_taken(folder)) {
        let message = format!("{} is not empty: a run is never written over. Choose another folder", taken.display());
        return Err(Failure::new(message, Exit::Usage));
    }
    let mut wrong = Vec::new();
    for (report, folder) in imported.reports.iter().zip(&folders) {
        report.write(folder, &place::new_run_id(), env!("CARGO_PKG_VERSION")).map_err(failure)?;
        wrong.extend(wrong_totals(folder)?);
    }
    let reports: Vec<_> = imported.reports.iter().zip(&folders).collect();
    let data = json!({
        "reports": reports.iter().map(|(report, folder)| in_json(report, folder)).collect::<Vec<_>>(),
        "notes": imported.notes,
        "wrong_totals": wrong,
    });
    let page = |_| {
        let mut page = Page::new("Imported figures");
        imported.notes.iter().for_each(|note| _ = page.paragraph(format!("note: {note}")));
        wrong.iter().for_each(|total| _ = page.paragraph(format!("wrong total: {total}")));
        reports.iter().for_each(|(report, folder)| summary(&mut page, report, folder));
        let named: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        page.paragraph(format!("next: `tare audit {}`, then `tare report` on each", named.join(" ")));
        page
    };
    forms::print(arguments.shown.format, &data, page)?;
    Ok(Exit::Success)
}

/// Printed totals that are not what their parts add up to: figures are imported as they are printed, and the verdicts that
/// rest on these are withheld.
fn wrong_totals(folder: &Path) -> Result<Vec<String>, Failure> {
    let audit = analysed(folder, false)?.audit;
    let broken = |entry: &AuditEntry| entry.check == AuditCheck::Totals && entry.outcome == AuditOutcome::Broken;
    Ok(audit.into_iter().filter(broken).map(|entry| entry.detail).collect())
}

/// Where each report goes: a single one to `out`, several into it.
fn folders(reports: &[Report], out: Option<&Path>) -> Vec<PathBuf> {
    let folder = |report: &Report| match (out, reports.len()) {
        (None, _) => place::default_folder(&report.plan.study.name),
        (Some(out), 1) => out.to_owned(),
        (Some(out), _) => out.join(&report.plan.study.name),
    };
    reports.iter().map(folder).collect()
}

fn is_taken(folder: &Path) -> bool {
    std::fs::read_dir(folder).map_or_else(|_| folder.exists(), |mut entries| entries.next().is_some())
}

fn in_json(report: &Report, folder: &Path) -> Value {
    let (published, study) = (report.published(), &report.plan.study);
    json!({
        "run": folder,
        "study": study.name,
        "report": published.report,
        "title": published.title,
        "trials": report.trials.len(),
        "arms": study.arms.iter().map(|arm| &arm.id).collect::<Vec<_>>(),
        "cases": study.cases.iter().map(|case| &case.id).collect::<Vec<_>>(),
        "printed_totals": published.printed.len(),
        "claims": published.claims.len(),
        "conditions": published.conditions.len(),
    })
}

fn summary(page: &mut Page, report: &Report, folder: &Path) {
    let published = report.published();
    let study = &report.plan.study;
    let arms: Vec<&str> = study.arms.iter().map(|arm| arm.label.as_str()).collect();
    let cases: Vec<&str> = study.cases.iter().map(|case| case.id.as_str()).collect();
    let count = |n: usize, one: &str, more: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {more}") };
    page.heading(format!("{}: report {}", folder.display(), published.report));
    let kept = format!(
        "{} of {} in {}; {}, {} and {} kept beside the figures",
        count(report.trials.len(), "trial", "trials"),
        arms.join(", "),
        cases.join(", "),
        count(published.printed.len(), "printed total", "printed totals"),
        count(published.claims.len(), "claim", "claims"),
        count(published.conditions.len(), "condition", "conditions"),
    );
    page.rows(&["What it is"], vec![vec![published.title], vec![kept]]);
}

fn failure(error: ImportError) -> Failure {
    let exit = match &error {
        ImportError::Record(_) => Exit::Failure,
        _ => Exit::Usage,
    };
    Failure::new(error, exit)
}
