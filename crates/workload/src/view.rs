//! What workloads say of their own cases in a report.

use tare_model::findings::CaseFindings;
use tare_model::findings::section::Section;
use tare_model::study::Case;

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
