//! `capacity` and `load-from` of a case: the largest load that meets its objectives, and a share of what another case found;
//! `score` of the study.

use tare_model::capacity::{CapacitySpec, LoadShare, ScoreSpec};
use tare_model::load::{LoadKind, LoadModel};
use tare_model::study::Case;
use tare_model::units::Rate;

use super::load::Found;
use super::{Able, Context};
use crate::file;
use crate::language::shape::MAX_CONNECTIONS;
use crate::language::shape::{PerSecond, Shape, Whole};
use crate::language::table::Field;
use crate::language::tree::Cursor;
use crate::suggest;

/// The first load as a share of the largest, where the study says nothing: four doublings lie between them.
const FROM: f64 = 1.0 / 16.0;

/// The search that a case asks for, whose loads so many drivers offer together.
pub(super) fn search(capacity: &file::Capacity<'_>, model: &LoadModel, drivers: u32) -> Option<CapacitySpec> {
    let (from, most) = first_and_most(&capacity.from, &capacity.most, model, |most| default_from(most, model))?;
    // Three times, as the published comparison did it.
    let (precision, iterations) = (capacity.precision.or(0.05), capacity.iterations.or(3));
    if model.kind().is_closed() && most < f64::from(drivers) {
        let what = format!("is {most}, and each of the {drivers} drivers has one client at least");
        capacity.most.wrong(&what, "write a larger number, or fewer `drivers`");
        return None;
    }
    Some(CapacitySpec { kind: model.kind(), from, most, precision, iterations, drivers })
}

/// The first load where the study says nothing.
pub(super) fn default_from(most: f64, model: &LoadModel) -> f64 {
    match model {
        LoadModel::Closed { .. } => (most * FROM).ceil().max(1.0),
        LoadModel::Open { .. } => most * FROM,
    }
}

/// The first and the largest load of a search.
pub(super) fn first_and_most(
    first: &Field<'_, ()>,
    most: &Field<'_, ()>,
    model: &LoadModel,
    default: impl Fn(f64) -> f64,
) -> Option<(f64, f64)> {
    let from = first.is_there().then(|| number(first, model));
    let most = most.is_there().then(|| number(most, model))??;
    let from = from.unwrap_or_else(|| Some(default(most)))?;
    if from > most {
        let words = |load: f64| match model {
            LoadModel::Closed { .. } => load.to_string(),
            LoadModel::Open { .. } => Rate(load).to_string(),
        };
        let what = format!("is {}, and the search ends at {}", words(from), words(most));
        first.wrong(&what, "write a smaller number, or a larger `most`");
        return None;
    }
    Some((from, most))
}

/// A number of clients of a closed loop, or a rate of an open one.
fn number(field: &Cursor<'_>, model: &LoadModel) -> Option<f64> {
    let written = field.json()?;
    match model {
        LoadModel::Closed { .. } if written.as_str().is_some_and(|text| text.parse::<Rate>().is_ok()) => {
            let help =
                "write a number of clients, or say of which kind the load is: `load = { open = { connections = 4 } }`";
            field.wrong(&format!("is the rate {written}, and the load is a closed loop, which has clients"), help);
            None
        }
        LoadModel::Closed { .. } => Whole::<1, MAX_CONNECTIONS>::read(field).map(f64::from),
        LoadModel::Open { .. } => PerSecond::read(field).map(|rate| rate.0),
    }
}

/// Reports a search without objectives, which every load would meet, and loads of a workload that finds its own.
pub(super) fn can(case: &file::Case<'_>, able: Able<'_>) {
    if case.capacity.is_there() && case.qos.named_or_empty().is_empty() {
        let help = "add them, such as `qos = { response_time_p99_s = \"5ms\" }`";
        let what = "looks for the largest load that meets its objectives, and the case has none";
        case.capacity.wrong_key(what, help);
    }
    let offered: [&Cursor<'_>; 3] = [&case.capacity, &case.load_from, &case.cpu_target];
    for field in offered.into_iter().filter(|field| field.is_there()) {
        if let (Some(name), true) = (able.workload, able.traits.iter().any(|traits| traits.calibrated)) {
            let what = format!("says what load is offered, and `{name}` as it is set here finds that itself");
            field.wrong_key(&what, "leave it out, or the parameter by which a load is found");
        }
    }
}

/// The share that a case is offered. `own` is the kind of load, if the case says it.
pub(super) fn share(
    case: &file::Case<'_>,
    own: Option<LoadModel>,
    context: &Context<'_>,
    found: &[Found],
) -> Option<LoadShare> {
    let share = case.load_from.value.as_ref()?;
    let id = share.case.value?;
    if !context.searching.contains(&id) {
        let there = context.root.get("cases").get(id).is_there();
        let what = if there { "and that case has no `capacity`" } else { "but no case has that id" };
        let help = searching(context, id, "give the case whose capacity is meant a `capacity = { most = 1000 }`");
        share.case.wrong(&format!("is {id:?}, {what}"), help);
        return None;
    }
    // A refused search is reported already.
    let (_, spec) = found.iter().find(|(other, _)| other == id)?;
    let own = own.map(|own| own.kind());
    if let Some(own) = own.filter(|own| own.is_closed() != spec.kind.is_closed()) {
        let (this, that) = if own.is_closed() { ("closed", "open") } else { ("open", "closed") };
        let what = format!("is {this}, and the load of `cases.{id}` is {that}");
        case.load.wrong_key(&what, "leave it out: it is then as that of the other case");
        return None;
    }
    let part = share.share.value?;
    // A bound, and where it can be the other's: cases of one bound are given the same data, such as one file set.
    let drivers = f64::from(case.drivers.unless_absent(1)?);
    let most = spec.most * part.max(1.0) / drivers;
    if matches!(spec.kind, LoadKind::Closed { .. }) && most > f64::from(MAX_CONNECTIONS) {
        let what =
            format!("of `cases.{id}` may come to {most:.0} clients, and one driver has {MAX_CONNECTIONS} at most");
        share.share.wrong(&what, "write a smaller share, or a smaller `most` there");
        return None;
    }
    Some(LoadShare { kind: own.unwrap_or(spec.kind), case: id.to_owned(), share: part, most })
}

/// The help where a case is named that looks for no capacity.
fn searching(context: &Context<'_>, id: &str, none: &str) -> String {
    match context.searching.as_slice() {
        [] => none.to_owned(),
        ids => suggest::help(id, "cases with `capacity`", ids.iter().copied()),
    }
}

/// `score` of the study: reference capacities by case.
pub(super) fn score(file: &file::Study<'_>, context: &Context<'_>, cases: &[Case]) -> Option<ScoreSpec> {
    let entries = file.score.value.as_deref()?;
    for entry in entries.iter().filter(|entry| !context.searching.contains(&entry.key())) {
        let there = cases.iter().any(|case| case.id == entry.key());
        let what = if there { "is a case that looks for no capacity" } else { "is no case of this study" };
        let none = "a score is made of the capacities that cases with `capacity` find";
        entry.wrong_key(what, searching(context, entry.key(), none));
    }
    let references = entries.iter().filter_map(|entry| Some((entry.key().to_owned(), entry.value?)));
    Some(ScoreSpec { references: references.collect() })
}
