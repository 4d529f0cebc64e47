//! `cpu-target` of a case: the load at which the guests' CPUs are busy to a share.

use std::ops::RangeInclusive;
use tare_model::traits::Traits;

use serde_json::Value as Json;
use tare_model::cpu_target::CpuTarget;
use tare_model::load::LoadModel;
use tare_model::units::Span;

use super::capacity::{default_from, number, words};
use super::{Context, size};
use crate::fields;
use crate::tree::{Cursor, Table};

/// Shares that can be held: with none and with all there is nothing to be held.
pub(crate) const SHARES: RangeInclusive<f64> = 0.01..=0.99;
/// How far off a share may be: finer than a part in a thousand no host holds, and wider than a fifth says nothing.
pub(crate) const TOLERANCES: RangeInclusive<f64> = 0.001..=0.2;
/// Two points, where the study says nothing.
const TOLERANCE: f64 = 0.02;
/// Time of each load, where the study says nothing.
const STEP: Span = Span::from_secs(30);
/// Shortest: below it the probe's own samples are too few.
const MIN_STEP: Span = Span::from_millis(100);
/// Loads that are tried, where the study says nothing.
const STEPS: u32 = 8;
/// Fewest: the first can hardly be right. Most: what is not held by then is not to be held.
pub(crate) const FEWEST_STEPS: u32 = 2;
pub(crate) const MOST_STEPS: u32 = 100;

/// What cannot stand beside it, and why.
const NOT_BESIDE: [(&str, &str); 3] = [
    (
        "capacity",
        "one looks for the largest load that meets objectives, the other for that which takes a share of the CPUs",
    ),
    ("load-from", "one looks for its load itself, the other takes it from what another case finds"),
    ("density", "one changes load in guests that stand, the other adds guests under one load"),
];

/// The search that a case asks for; each of its guests has so many `instances`.
pub(super) fn target(cursor: &Cursor<'_>, model: &LoadModel, instances: u32) -> Option<CpuTarget> {
    let table = cursor.table(fields::CPU_TARGET)?;
    let share = table.require("share").and_then(|field| within(&field, &SHARES, 0.4));
    let tolerance = table.get("tolerance").map_or(Some(TOLERANCE), |field| within(&field, &TOLERANCES, TOLERANCE));
    let most = table.require("most").and_then(|field| number(&field, model));
    let first = table.get("from");
    let from = first.as_ref().map(|field| number(field, model));
    let step = table.get("step").map_or(Some(STEP), |field| step(&field));
    let steps = table.get("steps").map_or(Some(STEPS), |field| field.integer32(FEWEST_STEPS..=MOST_STEPS));
    let most = most?;
    let from = match from {
        Some(from) => from?,
        None => match model {
            // Each instance has a client of its own.
            LoadModel::Closed { .. } => default_from(most, model).max(f64::from(instances)).min(most),
            LoadModel::Open { .. } => default_from(most, model),
        },
    };
    if let Some(field) = first.filter(|_| from > most) {
        let what = format!("is {}, and the search ends at {}", words(model, from), words(model, most));
        field.wrong(&what, "write a smaller number, or a larger `most`");
        return None;
    }
    let kind = model.kind();
    Some(CpuTarget { kind, share: share?, tolerance: tolerance?, from, most, step: step?, steps: steps? })
}

/// A share within bounds. A value that looks like a percentage is reported as one.
fn within(field: &Cursor<'_>, bounds: &RangeInclusive<f64>, such_as: f64) -> Option<f64> {
    let share = field.number()?;
    if bounds.contains(&share) {
        return Some(share);
    }
    let (least, most) = (bounds.start(), bounds.end());
    let meant = share / 100.0;
    let help = if share >= 1.0 && bounds.contains(&meant) {
        format!("write {meant}: a share, not a percentage")
    } else {
        format!("write a share such as {such_as} for {} %", such_as * 100.0)
    };
    field.wrong(&format!("is {share}, and must be from {least} to {most}"), help);
    None
}

fn step(field: &Cursor<'_>) -> Option<Span> {
    let step = size::span(field)?;
    if step < MIN_STEP {
        let what = format!("is {step}, too short for the CPU of a load to be seen: it takes at least {MIN_STEP}");
        field.wrong(&what, "thirty seconds show it well: \"30s\"");
        return None;
    }
    Some(step)
}

/// Reports what says in another way how much load is offered, or keeps the guests' CPUs busy with something else.
pub(super) fn alone(case: &Table<'_>, cursor: &Cursor<'_>) {
    for (key, why) in NOT_BESIDE {
        if case.get(key).is_some() {
            cursor
                .wrong_key(&format!("cannot stand beside `{key}`: {why}"), "leave one of them out, or make two cases");
        }
    }
    if let Some(field) = case.get("busy-target").filter(|field| field.json() == Some(Json::Bool(true))) {
        field
            .wrong_key("cannot stand beside `cpu-target`: its busy loops take all of the guest's CPUs", "leave it out");
    }
}

/// Reports a workload that cannot be offered one load after another in the same guest, or that finds its load itself.
pub(super) fn can(case: &Table<'_>, context: &Context<'_>, workload: Option<&str>, traits: &[Traits]) {
    let (Some(cursor), Some(name)) = (case.get("cpu-target"), workload) else { return };
    if traits.iter().any(|traits| traits.calibrated) {
        let what = format!("says what load is offered, and `{name}` as it is set here finds that itself");
        cursor.wrong_key(&what, "leave it out, or the parameter by which a load is found");
        return;
    }
    if traits.iter().all(|traits| traits.repeats) {
        return;
    }
    let others = context.others("it can be had with", |traits| traits.repeats);
    let what = format!("changes load in guests that stand, which `{name}` as it is set here cannot do");
    cursor.wrong_key(&what, format!("leave `cpu-target` out{others}"));
}
