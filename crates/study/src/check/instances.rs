//! `instances` and `held-out` of a case.

use tare_model::field::FieldError;
use tare_model::load::LoadModel;
use tare_model::study::Case;
use tare_model::traits::Traits;

use super::Context;
use super::load::NamedLoad;
use crate::tree::{Cursor, Table};

/// Most instances in one guest: each is a process with memory, a database and users of its own.
pub(crate) const MAX_INSTANCES: u32 = 64;

/// How many instances of the application are in each guest.
pub(super) fn of_case(case: &Table<'_>) -> u32 {
    case.get("instances").and_then(|field| field.integer32(1..=MAX_INSTANCES)).unwrap_or(1)
}

/// Reports several instances where the workload cannot have them with each of its loads, and a load that has
/// fewer clients than there are `instances`.
pub(super) fn can(
    case: &Table<'_>,
    (context, workload, traits): (&Context<'_>, Option<&str>, &[Traits]),
    loads: &[NamedLoad],
    instances: u32,
) {
    let Some(field) = case.get("instances").filter(|_| instances > 1) else { return };
    for key in ["capacity", "load-from"] {
        if case.get(key).is_some() {
            let what = format!("is {instances}, and `{key}` may come to fewer clients: each instance has one at least");
            field.wrong(&what, "leave one of them out; `cpu-target` and `load` can be had with instances");
        }
    }
    clients(case, &field, loads, instances);
    let Some(name) = workload else { return };
    if traits.iter().all(|traits| traits.several_instances) {
        return;
    }
    let others = context.others("several can be had with", |traits| traits.several_instances);
    let what = format!("is {instances}, but `{name}` as it is set here has one instance in a guest");
    field.wrong(&what, format!("leave `instances` out{others}"));
}

/// Reports loads that do not have a client for each instance.
fn clients(case: &Table<'_>, field: &Cursor<'_>, loads: &[NamedLoad], instances: u32) {
    let count = |model: &LoadModel| match model {
        LoadModel::Closed { clients, .. } => (*clients, "clients"),
        LoadModel::Open { connections, .. } => (*connections, "connections"),
    };
    let first = case.get("cpu-target").and_then(|target| {
        let from = target.named()?.into_iter().find(|field| field.key() == "from")?;
        u32::try_from(from.json()?.as_u64()?).ok()
    });
    for load in loads {
        let (all, what) = count(&load.model);
        let (all, of) = match first.filter(|from| *from < all) {
            Some(from) => (from, "the first load that is tried".to_owned()),
            None => {
                (all, load.name.as_ref().map_or_else(|| "the load".to_owned(), |name| format!("the load `{name}`")))
            }
        };
        if all < instances {
            let fault = format!("is {instances}, and {of} has {all} {what}: each instance has at least one of its own");
            field.wrong(&fault, format!("offer at least {instances} {what}, or ask for fewer instances"));
        }
    }
}

/// Whether no model is fitted to the case's figures. Reports it where there are none that a model could predict.
pub(super) fn held_out(case: &Table<'_>) -> bool {
    let Some(field) = case.get("held-out") else { return false };
    let held_out = field.boolean().unwrap_or(false);
    for key in ["capacity", "density"].into_iter().filter(|_| held_out) {
        if case.get(key).is_some() {
            let what =
                format!("cannot stand beside `{key}`: what is predicted is what one load in given guests comes to");
            field.wrong_key(&what, "leave it out; a case with a `load` of its own can be held out");
        }
    }
    held_out
}

/// Reports held-out cases that no other case of their workload could predict.
pub(super) fn predicted(study: &Table<'_>, cases: &[Case]) {
    let fitted = |workload: &str| {
        cases.iter().any(|case| {
            !case.held_out && case.workload == workload && !case.load.is_density() && !case.load.is_capacity()
        })
    };
    let mut reported: Vec<&str> = Vec::new();
    for case in cases.iter().filter(|case| case.held_out && !case.workload.is_empty() && !fitted(&case.workload)) {
        let id = case.id.split('@').next().unwrap_or(&case.id);
        if reported.contains(&id) {
            continue;
        }
        reported.push(id);
        let workload = &case.workload;
        let message = format!(
            "`cases.{id}.held-out` keeps its figures from the models, and no other case with `{workload}` is left to fit them to"
        );
        let error = FieldError::new(&["cases", id, "held-out"], message);
        study.cursor().sink().add(error.help("leave it out, or add cases of other loads that are not held out"));
    }
}
