//! What workloads say of their own cases in a report.

use tare_model::findings::section::Section;
use tare_model::findings::{CaseFindings, Findings};
use tare_model::study::Case;

use crate::registry;

/// What one workload says of its cases. It is asked of runs that others have measured, too: no fact or count need be there.
pub trait View: Sync {
    /// What a report calls one operation; `None`: no name of its own.
    fn operation(&self) -> Option<&'static str> {
        None
    }

    /// The sections that a case has beyond what every case has.
    fn of_case(&self, case: &Case, found: &CaseFindings) -> Vec<Section> {
        let _ = (case, found);
        Vec::new()
    }
}

/// Adds to each case what the view of its workload says.
pub fn add_sections(findings: &mut Findings) {
    for found in &mut findings.cases {
        let case = findings.plan.study.cases.iter().find(|case| case.id == found.id);
        let view = case.and_then(|case| Some((case, registry::find(&case.workload)?.view?)));
        let Some((case, view)) = view else { continue };
        if let Some(operation) = view.operation() {
            operation.clone_into(&mut found.operation);
        }
        found.sections = view.of_case(case, found);
    }
}
