//! The change points of one series, and what is to be said of each.

use std::collections::BTreeSet;

use tare_model::findings::{Estimate, Verdict};
use tare_model::history::{ChangePoint, Effect, RunEffects, minute};
use tare_model::metric::Better;

use super::change_points::{Change, ChangeRule, change_points};
use super::host;
use crate::estimate::{self, ALPHA, Procedure, TwoSamples};
use crate::located::Located;
use crate::words;

/// Runs of one series, and what each has of the effect.
type Points<'a> = [(&'a RunEffects, &'a Effect)];

/// Fewest runs in which changes are looked for: fewer cannot confirm any.
pub(crate) const FEWEST_RUNS: usize = 2 * FEWEST_BESIDE;

/// Those that count.
fn counted<'a>(points: &Points<'a>) -> Vec<(&'a RunEffects, &'a Effect)> {
    points.iter().copied().filter(|(_, effect)| effect.fault.is_none()).collect()
}

/// Why no change can be found, if there is a reason.
pub(super) fn withheld(points: &Points<'_>) -> Option<String> {
    let n = counted(points).len();
    (n < FEWEST_RUNS).then(|| format!("{n} of the {FEWEST_RUNS} runs that the search for changes needs"))
}

/// Where the effect changes, by the logarithms of the runs' ratios.
pub(super) fn changes(points: &Points<'_>) -> Vec<ChangePoint> {
    let counted = counted(points);
    if counted.len() < FEWEST_RUNS {
        return Vec::new();
    }
    let logs: Vec<f64> = counted.iter().map(|(_, effect)| effect.ratio.value.ln()).collect();
    let found = change_points(&logs, ChangeRule::OTAVA);
    let ends = found.iter().skip(1).map(|change| change.at).chain([logs.len()]);
    let starts = std::iter::once(0).chain(found.iter().map(|change| change.at));
    let beside = found.iter().zip(starts.zip(ends));
    beside.filter_map(|(change, (start, end))| point(&counted, &logs[start..end], start, change)).collect()
}

/// What there is to say of a change, by the logarithms from the change before it, at `start`, to the one after it.
fn point(counted: &Points<'_>, logs: &[f64], start: usize, change: &Change) -> Option<ChangePoint> {
    let (from, to) = logs.split_at(change.at - start);
    let (located, procedure, is_confirmed) = size(from, to)?;
    let verdict = |better: bool| if better { Verdict::Better } else { Verdict::Worse };
    let ratio = estimate::from_logs(located, procedure, logs.len(), "logarithms of the runs' effects");
    let (before, after) = (counted[change.at - 1], counted[change.at]);
    let way = verdict((ratio.value > 1.0) == (after.1.metric.better == Better::Higher));
    let word = match (way, is_confirmed) {
        (Verdict::Better, true) => "better",
        (_, true) => "worse",
        (Verdict::Better, false) => "better, if further runs confirm it",
        (_, false) => "worse, if further runs confirm it",
    };
    Some(ChangePoint {
        before: before.0.run.clone(),
        after: after.0.run.clone(),
        runs_before: from.len() as u32,
        runs_after: to.len() as u32,
        p_equal: change.p,
        verdict: if is_confirmed { way } else { Verdict::Lead },
        differences: differences(before, after),
        sentence: sentence(before.0, after, &ratio, word),
        ratio,
    })
}

/// Fewest runs on each side of a change that is confirmed.
const FEWEST_BESIDE: usize = 3;

/// How much the runs after a change differ from those before it, by the interval of `tare compare`, and whether that confirms it: each side
/// has runs enough, and the interval excludes that nothing changed. The test that chose its place takes values for normal, and a single run
/// far off at the end of a series passes it. `None` where a side has no runs.
pub(crate) fn size(from: &[f64], to: &[f64]) -> Option<(Located, Procedure, bool)> {
    let (located, procedure) = TwoSamples { from, to, comparisons: 1 }.shift(ALPHA)?;
    let excludes = located.ends.is_some_and(|(low, high)| low > 0.0 || high < 0.0);
    Some((located, procedure, excludes && from.len().min(to.len()) >= FEWEST_BESIDE))
}

/// `container over native, response time (median): +5.0 % [+4.8, +5.2] (worse) from run ... on; until then run ...`.
fn sentence(before: &RunEffects, (after, effect): (&RunEffects, &Effect), ratio: &Estimate, word: &str) -> String {
    let (arm, baseline, what) = (&effect.arm_label, &effect.baseline, words::noun(&effect.metric));
    let (change, first, last) = (words::change(ratio), named(after), named(before));
    format!("{arm} over {baseline}, {what}: {change} ({word}) from run {first} on; the run before it is {last}")
}

/// A run with its time, its version of tare and its kernel.
fn named(run: &RunEffects) -> String {
    let kernel = host::name(host::KERNEL);
    let kernel = run.notes.iter().find(|(name, _)| *name == kernel).map_or("not known", |(_, value)| value);
    format!("{} ({}, tare {}, kernel {kernel})", run.run, minute(&run.started_at), run.tare_version)
}

/// What else differs between two runs of a series.
fn differences((before, from): (&RunEffects, &Effect), (after, to): (&RunEffects, &Effect)) -> Vec<String> {
    let mut found = Vec::new();
    if before.tare_version != after.tare_version {
        found.push(format!("Version of tare: {}, then {}.", before.tare_version, after.tare_version));
    }
    if from.arm_plan != to.arm_plan {
        found.push(format!("Arm {}: its platform or options in the plan.", to.arm));
    }
    found.extend(changed(&before.notes, &after.notes).into_iter().map(|own| format!("{own}.")));
    found
}

/// Facts that differ: `Kernel, release: 6.1, then 6.12`.
pub(super) fn changed(before: &[(String, String)], after: &[(String, String)]) -> Vec<String> {
    let names: BTreeSet<&String> = before.iter().chain(after).map(|(name, _)| name).collect();
    let of = |facts: &[(String, String)], name: &String| {
        let own: Vec<&str> = facts.iter().filter(|(own, _)| own == name).map(|(_, value)| value.as_str()).collect();
        if own.is_empty() { "not known".to_owned() } else { own.join(", ") }
    };
    let pairs = names.into_iter().map(|name| (name, of(before, name), of(after, name)));
    pairs.filter(|(_, x, y)| x != y).map(|(name, x, y)| format!("{name}: {x}, then {y}")).collect()
}

/// How changes are looked for in so many series, in paragraphs.
pub(super) fn method(series: usize) -> Vec<String> {
    let ChangeRule { window, p } = ChangeRule::OTAVA;
    let about = EQUAL_SERIES_WITH_CHANGE * series as f64;
    vec![
        "Series are of effects: an arm over the baseline of the same run. What moves the whole host cancels. Runs of another host, by the \
         hardware that it discloses, and runs of another plan, as far as the effect depends on it, are in series of their own."
            .to_owned(),
        format!(
            "Change points are those of E-divisive means (Matteson and James 2014) in windows of {window} runs, tested by Student's t at p = \
             {p} as in Hunter and Apache Otava (Fleming et al. 2023), on the logarithms of the effects, in series of {FEWEST_RUNS} runs or \
             more. Runs whose effect carries no verdict do not count. A change is a lead until there are {FEWEST_BESIDE} runs on \
             both sides of it whose interval excludes that nothing changed."
        ),
        format!(
            "By simulation, at most {:.1} of 100 series of up to 50 equal runs show a change that is no lead, although nothing changed. Of the \
             {series} series here that is {about:.1}.",
            EQUAL_SERIES_WITH_CHANGE * 100.0
        ),
    ]
}

/// Share of series of equal runs with a change that is confirmed: the largest that `history_false_alarms` saw of up to 50 runs
/// (docs/reference/history.md).
pub(crate) const EQUAL_SERIES_WITH_CHANGE: f64 = 0.027;
