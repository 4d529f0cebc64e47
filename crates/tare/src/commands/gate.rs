//! `tare gate`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use tare_model::findings::{Findings, Gate, GateAnswer, GateOutcome, GatedComparison, GatedRun};

use crate::args::{FailOn, GateArguments};
use crate::commands::report::analysed;
use crate::exit::{Exit, Failure};
use crate::{choice, forms, output};

/// The file that GitHub Actions shows as the summary of a step.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// Holds runs against a limit. A failure is no answer: see [`Failure::without_answer`].
pub fn command(arguments: &GateArguments) -> Result<Exit, Failure> {
    answered(arguments).map_err(Failure::without_answer)
}

fn answered(arguments: &GateArguments) -> Result<Exit, Failure> {
    let (limit, doubts) = rule(&arguments.fail_on)?;
    let gate = tare_analysis::gate(runs(arguments, limit)?, limit, &doubts);
    if let Some(file) = &arguments.junit {
        let xml = tare_report::junit(&gate).map_err(|error| Failure::new(error, Exit::Failure))?;
        std::fs::write(file, output::shown(&xml, false)).map_err(|error| unwritten(file, &error))?;
    }
    if arguments.github {
        github(&gate)?;
    }
    forms::print(arguments.shown.format, &gate, |_| tare_report::gate_page(&gate))?;
    Ok(match gate.answer {
        GateAnswer::Pass => Exit::Success,
        GateAnswer::Regression => Exit::REGRESSION,
        GateAnswer::CannotSay => Exit::CANNOT_SAY,
    })
}

/// The limit, and the outcomes that fail although nothing is proven.
///
/// # Errors
/// When there is no limit, or more than one.
fn rule(fail_on: &[FailOn]) -> Result<(f64, Vec<GateOutcome>), Failure> {
    let limits: Vec<f64> =
        fail_on.iter().filter_map(|own| if let FailOn::Worse(limit) = own { Some(*limit) } else { None }).collect();
    let [limit] = limits[..] else {
        let message = "--fail-on: give one limit, such as `--fail-on worse:2%`; for another limit of other comparisons run the gate again \
                       with --case, --arm or --metric";
        return Err(Failure::new(message, Exit::Usage));
    };
    let mut doubts: Vec<GateOutcome> =
        fail_on.iter().filter_map(|own| if let FailOn::Doubt(outcome) = own { Some(*outcome) } else { None }).collect();
    if doubts.contains(&GateOutcome::Unsure) {
        // Where there is no verdict nothing is sure either.
        doubts.push(GateOutcome::NoVerdict);
    }
    Ok((limit, doubts))
}

/// What is to be judged of each run.
fn runs(arguments: &GateArguments, limit: f64) -> Result<Vec<GatedRun>, Failure> {
    let mut found = Vec::new();
    for run in &arguments.runs {
        let findings = analysed(run, false)?;
        let comparisons = tare_analysis::gated(&findings, limit);
        found.push((run, findings, comparisons));
    }
    let keys: Vec<choice::Key<'_>> = found.iter().flat_map(|(_, _, own)| own).map(key).collect();
    choice::check(&arguments.choice, &keys, "comparisons that answer the study")?;
    let chosen = |(run, findings, comparisons): (&PathBuf, Findings, Vec<GatedComparison>)| {
        let comparisons: Vec<_> =
            comparisons.into_iter().filter(|own| choice::has(&arguments.choice, key(own))).collect();
        if comparisons.is_empty() {
            let message = format!("{}: the study has no comparison that is to be judged", run.display());
            return Err(Failure::new(message, Exit::Usage));
        }
        Ok(gated_run(run, &findings, comparisons))
    };
    found.into_iter().map(chosen).collect()
}

fn key(own: &GatedComparison) -> choice::Key<'_> {
    (own.case.as_deref(), &own.arm, &own.metric)
}

fn gated_run(folder: &Path, findings: &Findings, comparisons: Vec<GatedComparison>) -> GatedRun {
    let (study, run) = (&findings.plan.study, &findings.run);
    let baseline = study.arms.iter().find(|arm| arm.id == study.baseline);
    let cut_short = format!("The run was cut short: {} of {} trials completed.", run.completed, run.planned);
    GatedRun {
        folder: folder.display().to_string(),
        study: study.name.clone(),
        run: run.id.clone(),
        started_at: run.started_at.clone(),
        wall_s: run.wall_s,
        baseline: baseline.map_or_else(|| study.baseline.clone(), |arm| arm.label.clone()),
        warnings: findings.warnings.iter().cloned().chain(run.finished_at.is_none().then_some(cut_short)).collect(),
        comparisons,
    }
}

/// Annotations go to standard error, where the runner reads them as well and what is printed stays whole.
fn github(gate: &Gate) -> Result<(), Failure> {
    tare_report::annotations(gate).iter().for_each(|line| output::note(line));
    let Some(file) = step_summary() else {
        output::note(&format!("tare: {STEP_SUMMARY} is not set, so there is no summary"));
        return Ok(());
    };
    let text = output::shown(&tare_report::page_markdown(&tare_report::gate_page(gate)), false);
    let opened = OpenOptions::new().append(true).create(true).open(&file);
    opened.and_then(|mut open| open.write_all(format!("{text}\n").as_bytes())).map_err(|error| unwritten(&file, &error))
}

/// Where the summary of this step goes.
pub fn step_summary() -> Option<PathBuf> {
    std::env::var_os(STEP_SUMMARY).filter(|file| !file.is_empty()).map(PathBuf::from)
}

fn unwritten(file: &Path, error: &std::io::Error) -> Failure {
    Failure::new(
        format!("{} cannot be written: {error}; name a file in a folder that is there", file.display()),
        Exit::Failure,
    )
}
