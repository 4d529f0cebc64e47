//! `capacity` and `load-from` of a case: the largest load that meets its objectives, and a share of what another case found;
//! `score` of the study.

use std::str::FromStr;
use tare_model::traits::Traits;

use tare_model::capacity::{CapacitySpec, LoadShare, ScoreSpec};
use tare_model::load::{LoadKind, LoadModel};
use tare_model::study::Case;
use tare_model::units::Rate;

use super::load::{MAX_CONNECTIONS, Searches};
use crate::fields;
use crate::suggest;
use crate::tree::{Cursor, Table};

/// The first load as a share of the largest, where the study says nothing: four doublings lie between them.
const FROM: f64 = 1.0 / 16.0;
/// How fine a search is, where the study says nothing.
const PRECISION: f64 = 0.05;
/// Finest and coarsest precision.
const PRECISIONS: std::ops::RangeInclusive<f64> = 0.001..=1.0;
/// Times that a load must hold, where the study says nothing: as the published comparison did it.
const ITERATIONS: u32 = 3;
/// Fewest: one may be luck. Most: each is an instance of its own.
pub(crate) const FEWEST_ITERATIONS: u32 = 2;
pub(crate) const MOST_ITERATIONS: u32 = 20;
/// Largest share of another case's capacity: beyond twice of it nothing but the overload would be seen.
pub(crate) const MAX_SHARE: f64 = 2.0;

/// The search that a case asks for. Reports what cannot stand beside it.
pub(super) fn search(case: &Table<'_>, cursor: &Cursor<'_>, model: &LoadModel) -> Option<CapacitySpec> {
    alone(case);
    let table = cursor.table(fields::CAPACITY)?;
    let most = table.require("most").and_then(|field| number(&field, model));
    let first = table.get("from");
    let from = first.as_ref().map(|field| number(field, model));
    let precision = table.get("precision").map_or(Some(PRECISION), |field| precision(&field));
    let iterations = table.get("iterations");
    let iterations = iterations.map_or(Some(ITERATIONS), |field| field.integer32(FEWEST_ITERATIONS..=MOST_ITERATIONS));
    let most = most?;
    let from = from.unwrap_or_else(|| Some(default_from(most, model)))?;
    if let Some(field) = first.filter(|_| from > most) {
        let what = format!("is {}, and the search ends at {}", words(model, from), words(model, most));
        field.wrong(&what, "write a smaller number, or a larger `most`");
        return None;
    }
    Some(CapacitySpec { kind: model.kind(), from, most, precision: precision?, iterations: iterations? })
}

/// The first load where the study says nothing.
pub(super) fn default_from(most: f64, model: &LoadModel) -> f64 {
    match model {
        LoadModel::Closed { .. } => (most * FROM).ceil().max(1.0),
        LoadModel::Open { .. } => most * FROM,
    }
}

/// A number of clients of a closed loop, or a rate of an open one.
pub(super) fn number(field: &Cursor<'_>, model: &LoadModel) -> Option<f64> {
    let written = field.json()?;
    match model {
        LoadModel::Closed { .. } if written.as_str().is_some_and(|text| Rate::from_str(text).is_ok()) => {
            let help =
                "write a number of clients, or say of which kind the load is: `load = { open = { connections = 4 } }`";
            field.wrong(&format!("is the rate {written}, and the load is a closed loop, which has clients"), help);
            None
        }
        LoadModel::Closed { .. } => field.integer32(1..=MAX_CONNECTIONS).map(f64::from),
        LoadModel::Open { .. } => field.quantity::<Rate>().map(|rate| rate.0),
    }
}

/// A load with its unit.
pub(super) fn words(model: &LoadModel, load: f64) -> String {
    match model {
        LoadModel::Closed { .. } => load.to_string(),
        LoadModel::Open { .. } => Rate(load).to_string(),
    }
}

fn precision(field: &Cursor<'_>) -> Option<f64> {
    let precision = field.number()?;
    if PRECISIONS.contains(&precision) {
        return Some(precision);
    }
    let meant = precision / 100.0;
    let help = if precision > 1.0 && PRECISIONS.contains(&meant) {
        format!("a share, not a percentage: {precision} % is {meant}")
    } else {
        "write a share such as 0.05 for 5 %".to_owned()
    };
    let (finest, coarsest) = (PRECISIONS.start(), PRECISIONS.end());
    field.wrong(&format!("is {precision}, and must be from {finest} to {coarsest}"), help);
    None
}

/// Reports fields that offer load in another way, or to several at once.
fn alone(case: &Table<'_>) {
    if let Some(field) = case.get("density") {
        let what = "cannot stand beside `capacity`: one adds guests under a load, the other adds load to one guest";
        field.wrong_key(what, "leave one of them out, or make two cases");
    }
    for key in ["guests", "drivers"] {
        let field = case.get(key);
        if let Some(field) = field.filter(|f| f.json().and_then(|json| json.as_u64()).is_some_and(|count| count > 1)) {
            field.wrong_key(
                "cannot stand beside `capacity`, which is that of one guest with one driver",
                "leave it out",
            );
        }
    }
}

/// Reports what a search, or a share of what one found, cannot stand beside.
pub(super) fn beside(case: &Table<'_>, workload: Option<&str>, traits: &[Traits]) {
    objectives(case);
    let Some(name) = workload else { return };
    let finds = traits.iter().any(|traits| traits.calibrated);
    for field in ["capacity", "load-from"].into_iter().filter_map(|key| case.get(key)).filter(|_| finds) {
        let what = format!("says what load is offered, and `{name}` as it is set here finds that itself");
        field.wrong_key(&what, "leave it out, or the parameter by which a load is found");
    }
}

/// Reports a search without objectives: every load would hold.
fn objectives(case: &Table<'_>) {
    let none = |field: &Cursor<'_>| field.is_table() && field.named().is_none_or(|fields| fields.is_empty());
    let field = case.get("qos");
    if field.as_ref().is_some_and(|field| !none(field)) {
        return;
    }
    if let Some(capacity) = case.get("capacity") {
        let help = "add them, such as `qos = { response_time_p99_s = \"5ms\" }`";
        capacity.wrong_key("looks for the largest load that meets its objectives, and the case has none", help);
    }
}

/// The share that a case is offered. `own` is the kind of load, if the case says it.
pub(super) fn share(
    case: &Table<'_>,
    cursor: &Cursor<'_>,
    own: Option<LoadModel>,
    searches: &Searches,
) -> Option<LoadShare> {
    if let Some(field) = case.get("density") {
        let help = "leave one of them out: what one guest can be offered says nothing of many";
        field.wrong_key("cannot stand beside `load-from`", help);
    }
    let table = cursor.table(fields::LOAD_FROM)?;
    let share = table.require("share").and_then(|field| positive(&field, MAX_SHARE));
    let field = table.require("case")?;
    let id = field.text()?;
    if !searches.ids.iter().any(|other| other == id) {
        not_there(&field, id, searches);
        return None;
    }
    // A refused search is reported already.
    let (_, spec) = searches.found.iter().find(|(other, _)| other == id)?;
    let own = own.map(|own| own.kind());
    if let (Some(own), Some(load)) = (own, case.get("load"))
        && own.is_closed() != spec.kind.is_closed()
    {
        let (this, that) = if own.is_closed() { ("closed", "open") } else { ("open", "closed") };
        let what = format!("is {this}, and the load of `cases.{id}` is {that}");
        load.wrong_key(&what, "leave it out: it is then as that of the other case");
        return None;
    }
    let share = share?;
    // A bound, and where it can be the other's: cases of one bound are given the same data, such as one file set.
    let most = spec.most * share.max(1.0);
    if let (LoadKind::Closed { .. }, Some(field)) = (spec.kind, table.get("share"))
        && most > f64::from(MAX_CONNECTIONS)
    {
        let what =
            format!("of `cases.{id}` may come to {most:.0} clients, and one driver has {MAX_CONNECTIONS} at most");
        field.wrong(&what, "write a smaller share, or a smaller `most` there");
        return None;
    }
    Some(LoadShare { kind: own.unwrap_or(spec.kind), case: id.to_owned(), share, most })
}

fn not_there(field: &Cursor<'_>, id: &str, searches: &Searches) {
    let help = || match searches.ids.as_slice() {
        [] => "give the case whose capacity is meant a `capacity = { most = 1000 }`".to_owned(),
        ids => suggest::help(id, "cases with `capacity`", ids.iter().map(String::as_str)),
    };
    if searches.cases.iter().any(|other| other == id) {
        field.wrong(&format!("is {id:?}, and that case has no `capacity`"), help());
    } else {
        field.wrong(&format!("is {id:?}, but no case has that id"), help());
    }
}

/// A number above 0, at most `most`.
fn positive(field: &Cursor<'_>, most: f64) -> Option<f64> {
    let number = field.number()?;
    if number > 0.0 && number <= most {
        return Some(number);
    }
    let meant = number / 100.0;
    let help = if number > 0.0 && meant <= most && most < 100.0 {
        format!("a share, not a percentage: {number} % is {meant}")
    } else {
        format!("write a number above 0, at most {most}")
    };
    field.wrong(&format!("is {number}, and must be above 0 and at most {most}"), help);
    None
}

/// Largest reference of a score: keeps every product finite.
const MAX_REFERENCE: f64 = 1e12;

/// `score` of the study: reference capacities by case.
pub(super) fn score(study: &Table<'_>, cases: &[Case]) -> Option<ScoreSpec> {
    let field = study.get("score")?;
    let entries = field.named()?;
    if entries.is_empty() {
        field.wrong_key("names no case", "add the capacity that counts as 1, such as `banking = 120`, or leave it out");
    }
    let with: Vec<&str> = cases.iter().filter(|case| case.load.is_capacity()).map(|case| case.id.as_str()).collect();
    // A case that was refused may have been meant to have one.
    let declared = |id: &str| {
        let cases = study.get("cases").filter(Cursor::is_table).and_then(|cases| cases.named()).unwrap_or_default();
        cases.iter().any(|case| case.key() == id && super::load::has(case, "capacity"))
    };
    let one = |entry: &Cursor<'_>| {
        if !with.contains(&entry.key()) && !declared(entry.key()) {
            let there = cases.iter().any(|case| case.id == entry.key());
            let what = if there { "is a case that looks for no capacity" } else { "is no case of this study" };
            let help = match with.as_slice() {
                [] => "a score is made of the capacities that cases with `capacity` find".to_owned(),
                ids => suggest::help(entry.key(), "cases with `capacity`", ids.iter().copied()),
            };
            entry.wrong_key(what, help);
        }
        Some((entry.key().to_owned(), positive(entry, MAX_REFERENCE)?))
    };
    Some(ScoreSpec { references: entries.iter().filter_map(one).collect() })
}
