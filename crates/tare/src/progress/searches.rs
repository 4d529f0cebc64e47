//! The words for what a search tries.

use tare_controller::{CpuSearchNow, TryNow};
use tare_model::capacity::ProbePurpose;

/// The load that a search tries, and how far the search is.
pub fn trying(now: &TryNow) -> String {
    let TryNow { number, at_most, load, purpose, held, missed } = now;
    let why = match (purpose, held, missed) {
        (ProbePurpose::Confirm, ..) => "whether it holds again".to_owned(),
        (_, Some(held), Some(missed)) => format!("between {held} and {missed}"),
        (_, Some(held), None) => format!("above {held}"),
        (_, None, Some(missed)) => format!("below {missed}"),
        (_, None, None) => "the first".to_owned(),
    };
    format!("try {number} of at most {at_most}, {load} ({why})")
}

/// What came of a try, and how many may follow.
pub fn tried(now: &TryNow, failed: Option<&str>) -> String {
    let TryNow { number, at_most, load, .. } = now;
    let became = failed.map_or_else(|| "held".to_owned(), |why| format!("did not hold: {why}"));
    format!("try {number}, {load}: {became} (at most {} left)", at_most.saturating_sub(*number))
}

/// The load that is offered in a search for a share of CPU, and what it is for.
pub fn cpu_search(now: &CpuSearchNow) -> String {
    let CpuSearchNow { number, at_most, load, target, measured, .. } = now;
    let share = target * 100.0;
    let what = if *measured { "measured at".to_owned() } else { format!("step {number} of at most {at_most},") };
    format!("{what} {load} ({share:.0} % of the guests' CPUs asked)")
}

/// What a load took.
pub fn held(now: &CpuSearchNow, took: f64) -> String {
    let CpuSearchNow { number, load, target, measured, .. } = now;
    let (took, share) = (took * 100.0, target * 100.0);
    let what = if *measured { "measured".to_owned() } else { format!("step {number}") };
    format!("{what}, {load}: {took:.1} % of the guests' CPUs ({share:.1} % asked)")
}
