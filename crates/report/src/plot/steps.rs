//! Where the time of an operation goes: its steps, stacked.

use tare_model::findings::{ArmSteps, StepFindings};
use tare_model::metric::Unit;

use super::Figure;
use super::arms::Arms;
use super::stack::{PATTERNS, Part, Stacks};

/// Colours of steps; with more steps they come again, with another pattern.
const COLOURS: [&str; 8] = ["step-1", "step-2", "step-3", "step-4", "step-5", "step-6", "step-7", "step-8"];

/// What no step accounts for.
pub(crate) const REST: &str = "between the steps";

/// Names of the steps that are part of an operation's time, or of those that are not, in the order in which they are done.
pub(crate) fn names(steps: &[ArmSteps], within: bool) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for step in steps.iter().flat_map(|arm| &arm.steps).filter(|step| step.within == within) {
        if !names.contains(&step.name.as_str()) {
            names.push(&step.name);
        }
    }
    names
}

/// One step of an arm.
pub(crate) fn step<'a>(arm: &'a ArmSteps, name: &str) -> Option<&'a StepFindings> {
    arm.steps.iter().find(|step| step.name == name)
}

/// Draws the stacks; `None` when no arm timed a step. `what` is an operation's name for people.
pub(crate) fn figure(id: &str, steps: &[ArmSteps], what: &str, arms: &Arms) -> Option<Figure> {
    let names = names(steps, true);
    let look = |(i, name): (usize, &&str)| Part {
        name: (*name).to_owned(),
        class: COLOURS[i % COLOURS.len()],
        pattern: PATTERNS[i % PATTERNS.len()],
    };
    let rest = Part { name: REST.to_owned(), class: "part-other", pattern: PATTERNS[4] };
    let row = |arm: &ArmSteps| {
        let of = |name: &&str| step(arm, name).map_or(0.0, |step| step.of_operation_s.value);
        let sizes: Vec<f64> = names.iter().map(of).chain([arm.rest_s.unwrap_or(0.0)]).collect();
        (arm.arm.clone(), sizes)
    };
    let stacks = Stacks {
        parts: names.iter().enumerate().map(look).chain([rest]).collect(),
        rows: steps.iter().map(row).filter(|(_, sizes)| sizes.iter().all(|size| size.is_finite())).collect(),
        unit: Unit::Seconds,
        axis: format!("time of one {what}, mean"),
        title: format!("Where the time of one {what} goes on each arm, by step"),
        none: "not shown: see the table",
    };
    (stacks.longest() > 0.0).then(|| Figure::draw(id, |page| stacks.draw(page, arms)))
}
