//! The sections that workloads add to findings.

use tare_model::findings::Findings;

use crate::registry;

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
