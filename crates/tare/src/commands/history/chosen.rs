//! Which series of a history are shown.

use std::collections::BTreeSet;

use tare_model::history::{Effect, RunEffects};
use tare_study::matches;

use crate::args::ChosenSeries;
use crate::exit::{Exit, Failure};

/// What of an effect was asked for, by which patterns, and where it is.
type Part<'a> = (&'static str, &'a [String], fn(&Effect) -> &str);

/// The runs with the effects that were asked for.
///
/// # Errors
/// When there are none, with those that there are.
pub fn series(mut runs: Vec<RunEffects>, chosen: &ChosenSeries) -> Result<Vec<RunEffects>, Failure> {
    let studies = listed(runs.iter().map(|run| run.study.as_str()));
    if let Some(study) = &chosen.study {
        runs.retain(|run| run.study == *study);
        if runs.is_empty() {
            return none(chosen, format!("no run of a study `{study}`; its studies: {studies}"));
        }
    }
    let parts: [Part<'_>; 3] = [
        ("case", &chosen.choice.case, |own| own.case.as_deref().unwrap_or_default()),
        ("arm", &chosen.choice.arm, |own| &own.arm),
        ("metric", &chosen.choice.metric, |own| &own.metric.id),
    ];
    for (what, patterns, of) in parts.into_iter().filter(|(_, patterns, _)| !patterns.is_empty()) {
        let there = listed(runs.iter().flat_map(|run| &run.effects).map(of));
        let wanted = |own: &Effect| patterns.iter().any(|pattern| matches(pattern, of(own)));
        runs.iter_mut().for_each(|run| run.effects.retain(wanted));
        runs.retain(|run| !run.effects.is_empty());
        if runs.is_empty() {
            let asked = listed(patterns.iter().map(String::as_str));
            return none(chosen, format!("no {what} {asked} among the series that were asked for; there are: {there}"));
        }
    }
    Ok(runs)
}

fn none<T>(chosen: &ChosenSeries, what: String) -> Result<T, Failure> {
    Err(Failure::new(format!("{} has {what}", chosen.from.display()), Exit::Usage))
}

/// Each name once.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
