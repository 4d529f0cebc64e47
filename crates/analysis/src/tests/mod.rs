//! Tests of the statistics as a whole: against SciPy, by simulation, and from made-up runs to findings.
mod capacity;
mod compare;
mod consolidation;
mod density;
mod family;
mod history;
mod isolation;
mod oracle;
mod power;
mod precision;
mod runs;
mod simulation;
mod sizing;
mod store;
mod turns;

use tare_model::environment::Environment;
use tare_model::findings::Findings;
use tare_model::plan::Plan;
use tare_model::trial::TrialRecord;
use tare_record::{RunFacts, testing};

use crate::{Run, findings};

fn environment() -> Environment {
    testing::environment()
}

pub(crate) fn of(plan: &Plan, trials: &[TrialRecord]) -> Findings {
    let facts = RunFacts {
        run_id: "r".to_owned(),
        tare_version: "0".to_owned(),
        finished: true,
        root_hash: String::new(),
        ended: Vec::new(),
    };
    findings(&Run { facts: &facts, plan, environment: &environment(), trials, problems: &[] })
}
