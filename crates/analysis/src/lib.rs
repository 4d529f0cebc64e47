//! Statistics of comparison: run folder to Findings, as pure functions.
//!
//! [`analyse`] reads a run folder; [`findings`] is the pure function behind it; [`compare`] sets runs against runs.
//! What is estimated how, and why, is argued in `docs/adr/0004-statistics.md`; `docs/method.md` explains it to users.

mod account;
mod across;
mod answer;
mod audit;
mod capacity;
mod case;
mod comparison;
mod components;
mod consolidation;
mod cpu;
mod density;
mod deviations;
mod distribution;
mod effort;
mod estimate;
mod findings;
mod fit;
mod flags;
mod gate;
mod grouped;
mod groups;
mod held;
mod history;
mod incomplete;
mod isolation;
mod limits;
mod located;
mod marked;
mod method;
mod missing;
mod normals;
mod objective;
mod offered;
mod paired;
mod parts;
mod power;
mod precision;
mod rank;
mod requests;
mod resources;
mod run;
mod runs;
mod score;
mod sequential;
mod series;
mod share;
mod sizing;
mod spare;
mod steady;
mod steps;
mod student;
#[cfg(test)]
mod tests;
pub mod threshold;
mod turns;
mod unsafety;
mod why;
mod words;

pub use findings::findings;
pub use gate::{gate, gated};
pub use history::{history, run_effects};
pub use paired::{paired_ratio, spreads};
pub use power::Rule;
pub use precision::judge;
pub use run::Run;
pub use runs::{CompareError, Side, compare};
pub use share::{Kept, Share};
pub use sizing::{GuestSizing, HEADROOM, LoadSizing, SizeError, Sizing, qos_metric, size};
pub use tare_model::written::value as written;

use tare_model::findings::Findings;
use tare_record::{RecordError, RunFolder};

/// Makes the findings of a run folder. What is wrong with the folder is among their deviations.
///
/// # Errors
/// When the trials cannot be read.
pub fn analyse(folder: &RunFolder) -> Result<Findings, RecordError> {
    let trials = folder.trials()?;
    let problems: Vec<String> = folder.verify().iter().map(ToString::to_string).collect();
    Ok(findings(&Run {
        facts: folder.facts(),
        plan: folder.plan(),
        environment: folder.environment(),
        trials: &trials,
        problems: &problems,
    }))
}
