//! What a gate found, as a page, as JUnit XML, and as annotations of GitHub.

mod annotations;
mod junit;

pub use annotations::annotations;
pub use junit::junit;

use tare_model::findings::{Gate, GateOutcome, GatedComparison, GatedRun};

use crate::format;
use crate::page::Page;

/// What a gate says of a comparison, in a word or two.
const fn word(outcome: GateOutcome) -> &'static str {
    match outcome {
        GateOutcome::Worse => "worse",
        GateOutcome::NoVerdict => "no verdict",
        GateOutcome::Unsure => "unsure",
        GateOutcome::Within => "ok",
    }
}

/// `+3.1 % [+2.2, +4.0]`, where there is a ratio.
fn difference(own: &GatedComparison) -> Option<String> {
    own.ratio.as_ref().map(format::ratio)
}

/// The difference, the baseline that it is against, and what the gate says of it, in one sentence without its full stop.
fn said(run: &GatedRun, own: &GatedComparison) -> String {
    match difference(own) {
        Some(change) => format!("{change} against {}: {}", run.baseline, own.reason),
        None => own.reason.clone(),
    }
}

/// The comparisons of a run, the gravest first; within an outcome in the order of the study.
fn in_order(run: &GatedRun) -> Vec<&GatedComparison> {
    let mut all: Vec<&GatedComparison> = run.comparisons.iter().collect();
    all.sort_by_key(|own| own.outcome);
    all
}

/// The gate as a page: the answer in a sentence, and a table for each run.
pub fn gate_page(gate: &Gate) -> Page {
    let mut page = Page::new("Gate");
    page.paragraph(&gate.sentence);
    for run in &gate.runs {
        page.heading(format!("{} ({})", run.study, run.folder));
        for warning in &run.warnings {
            page.paragraph(format!("! {warning}"));
        }
        let row = |own: &GatedComparison| vec![word(own.outcome).to_owned(), own.id.clone(), said(run, own)];
        page.rows(&["Gate", "Comparison", "Difference"], in_order(run).into_iter().map(row).collect());
    }
    page
}
