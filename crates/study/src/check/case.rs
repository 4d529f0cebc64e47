//! `[cases.ID]`: the situations in which every arm is measured.

use serde_json::Value as Json;
use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::load::Phases;
use tare_model::metric::{MetricSpec, Unit};
use tare_model::study::{Case, CaseLoad, Guests, Neighbours, QosObjective};
use tare_model::traits::Traits;
use tare_model::units::{BitRate, ByteSize, Rate, Span};

use super::load::{self, NamedLoad, Searches};
use super::size::Asked;
use super::{Context, capacity, check_id, cpu_target, density, few, instances, known, options_of, schema_of, size};
use crate::catalog::WorkloadAsked;
use crate::fields;
use crate::tree::{Cursor, Table};
use crate::{suggest, sweep};

/// Most guests beside the measured one.
const MAX_NEIGHBOURS: u32 = 4096;
/// Most measured guests at one time: what the lab's network and a host's memory can take with room to spare.
pub(crate) const MAX_GUESTS: u32 = 256;
/// Most drivers of one guest; each is a process.
pub(crate) const MAX_DRIVERS: u32 = 64;
/// Between the id of a case and the name of a load.
const LOAD_SEPARATOR: char = '@';

/// All cases, those with several loads expanded.
pub(super) fn cases(
    study: &Table<'_>,
    context: &Context<'_>,
    guest: Option<Asked>,
    phases: Option<Phases>,
) -> Vec<Case> {
    let field = study.require("cases");
    let cursors = field.as_ref().and_then(|field| few(field, "cases")).unwrap_or_default();
    if let (Some(field), true) = (&field, cursors.is_empty())
        && field.is_table()
    {
        field.wrong_key("names no case", "add at least one: `[cases.idle]` and below it `workload = \"rr\"`");
    }
    // Cases that are offered a share of what others find come after these, and then to their places.
    let (waiting, first): (Vec<_>, Vec<_>) = cursors.iter().enumerate().partition(|(_, cursor)| load::waits(cursor));
    let mut searches = Searches::of(&cursors);
    let mut all: Vec<Vec<Case>> = vec![Vec::new(); cursors.len()];
    for (place, cursor) in first.into_iter().chain(waiting) {
        all[place] = case(cursor, context, (guest, phases), &searches);
        searches.found.extend(all[place].iter().filter_map(|case| match case.load {
            CaseLoad::Capacity(spec) => Some((case.id.clone(), spec)),
            _ => None,
        }));
    }
    let all: Vec<Case> = all.into_iter().flatten().collect();
    instances::predicted(study, &all);
    all
}

fn case(
    cursor: &Cursor<'_>,
    context: &Context<'_>,
    (guest, phases): (Option<Asked>, Option<Phases>),
    searches: &Searches,
) -> Vec<Case> {
    check_id(cursor);
    let Some(table) = cursor.table(fields::CASE).filter(|table| !sweep::is_wrong(table)) else { return Vec::new() };
    let id = cursor.key();
    let label = table.get("label").and_then(|c| c.text()).unwrap_or(id);
    let workload = table.require("workload").and_then(|c| {
        let name = c.text()?;
        known(&c, name, "workload", &context.workloads).then_some(name)
    });
    let parameters = parameters(&table);
    let inside = instances::of_case(&table);
    let offered = load::offered(&table, searches, inside);
    let loads = &offered.loads;
    let neighbours = table.get("neighbours").and_then(|c| neighbours(&c));
    let busy_target = table.get("busy-target").and_then(|c| c.boolean()).unwrap_or(false);
    let Asked { size: guest, seccomp } = size::case_guest(&table, guest);
    let phases = size::case_phases(&table, phases);
    let own = workload.zip(parameters.as_ref());
    let check = |load| check_workload(cursor, context, own, load, (guest, inside)).unwrap_or_default();
    let checked: Vec<Json> = loads.iter().map(check).collect();
    let traits = loads.iter().zip(&checked).filter(|(_, json)| !json.is_null()).filter_map(|(load, json)| {
        let (name, load) = (workload?, load.model);
        Some(context.catalog.traits(&WorkloadAsked { name, parameters: json, load, guest, instances: inside }))
    });
    // Refused parameters are reported already.
    let traits: Vec<Traits> = traits.collect();
    let [count, drivers] = [("guests", MAX_GUESTS), ("drivers", MAX_DRIVERS)]
        .map(|(key, most)| several(&table, (key, most), context, (workload, &traits)));
    let density = density::of_case(&table, context, workload, &traits);
    capacity::beside(&table, workload, &traits);
    cpu_target::can(&table, context, workload, &traits);
    instances::can(&table, (context, workload, &traits), loads, inside);
    let held_out = instances::held_out(&table);
    let qos = table.get("qos").zip(workload).map(|(c, name)| {
        let metrics = checked.first().filter(|json| !json.is_null()).map(|json| context.catalog.metrics(name, json));
        let metrics = if density.is_some() { metrics.map(density::objectives) } else { metrics };
        metrics.map_or_else(Vec::new, |metrics| qos(&c, name, &metrics))
    });
    let one = |(load, parameters): (&NamedLoad, Json)| Case {
        id: load.name.as_ref().map_or_else(|| id.to_owned(), |name| format!("{id}{LOAD_SEPARATOR}{name}")),
        label: load.name.as_ref().map_or_else(|| label.to_owned(), |name| format!("{label}, {name}")),
        workload: workload.unwrap_or_default().to_owned(),
        parameters,
        load: offered.load(load.model, Guests { count, drivers }, density.as_ref()),
        phases,
        guest,
        seccomp,
        neighbours,
        busy_target,
        qos: qos.clone().unwrap_or_default(),
        held_out,
        instances: inside,
    };
    loads.iter().zip(checked).map(one).collect()
}

/// The parameters as they are written.
fn parameters(case: &Table<'_>) -> Option<Json> {
    case.get("parameters").as_ref().map_or_else(|| Some(Json::Object(serde_json::Map::new())), options_of)
}

/// The parameters as the workload completes them for a guest and the instances in it; its complaint gets its place in the file.
fn check_workload(
    case: &Cursor<'_>,
    context: &Context<'_>,
    workload: Option<(&str, &Json)>,
    load: &NamedLoad,
    (guest, instances): (GuestSize, u32),
) -> Option<Json> {
    let (name, parameters) = workload?;
    let place = |mut error: FieldError| {
        let about_load = error.path.first().is_some_and(|key| key == "load") && parameters.get("load").is_none();
        if about_load {
            error.path.remove(0);
            // Where the file gives the number elsewhere, it is wrong there.
            let number = load.number.filter(|_| error.path.last().is_some_and(|key| key == "clients" || key == "rate"));
            if number.is_some() {
                error.path.clear();
            }
            let written = || load.keys.iter().map(String::as_str).collect();
            let mut keys: Vec<&str> = number.map_or_else(written, |keys| keys.to_vec());
            if let Some(instead) = load.number.and_then(|keys| keys.first())
                && error.path.is_empty()
                && number.is_none()
                && !load::has(case, "load")
            {
                // It takes no load at all, and the file gives it one by this field.
                keys = vec![instead];
                error.help = Some(format!("leave `{instead}` out: `{name}` is offered no load that could be varied"));
            }
            case.foreign(&keys, error, None);
        } else {
            case.foreign(&["parameters"], error, schema_of(name, &context.workloads));
        }
    };
    let checked = context.catalog.check_workload(name, parameters, &load.model).map_err(place).ok()?;
    let asked = WorkloadAsked { name, parameters: &checked, load: load.model, guest, instances };
    if let Err(error) = context.catalog.fits(&asked) {
        case.foreign(&["parameters"], error, schema_of(name, &context.workloads));
    }
    Some(checked)
}

/// How many guests or drivers; more than one only where the workload can have them with each of its loads.
fn several(
    case: &Table<'_>,
    (key, most): (&str, u32),
    context: &Context<'_>,
    (workload, traits): (Option<&str>, &[Traits]),
) -> u32 {
    let Some(field) = case.get(key) else { return 1 };
    let Some(count) = field.integer32(1..=most) else { return 1 };
    // With `density` or `capacity` neither may be there. That is reported already.
    let alone = case.get("density").is_some() || case.get("capacity").is_some();
    let Some(name) = workload.filter(|_| count > 1 && !alone) else { return count };
    if !traits.iter().all(|traits| traits.several_guests) {
        let what = format!("is {count}, but `{name}` as it is set here measures one guest with one driver");
        let others = context.others("several can be had with", |traits| traits.several_guests);
        field.wrong(&what, format!("leave `{key}` out{others}"));
    }
    count
}

fn neighbours(cursor: &Cursor<'_>) -> Option<Neighbours> {
    let table = cursor.table(fields::NEIGHBOURS)?;
    let guest = size::sized(&table, None);
    let count = table.require("count")?;
    if count.json().is_some_and(|count| count == 0) {
        count.wrong("is 0", "for a host without neighbours leave `neighbours` out");
        return None;
    }
    Some(Neighbours { count: count.integer32(1..=MAX_NEIGHBOURS)?, guest })
}

fn qos(cursor: &Cursor<'_>, workload: &str, metrics: &[MetricSpec]) -> Vec<QosObjective> {
    let one = |field: &Cursor<'_>| {
        let Some(metric) = metrics.iter().find(|metric| metric.id == field.key()) else {
            let ids = metrics.iter().map(|metric| metric.id.as_str());
            let help = suggest::help(field.key(), &format!("metrics of `{workload}`"), ids);
            field.wrong_key(&format!("is no metric that `{workload}` yields with these parameters"), help);
            return None;
        };
        Some(QosObjective { metric: metric.id.clone(), bound: bound(field, &metric.unit)? })
    };
    cursor.named().unwrap_or_default().iter().filter_map(one).collect()
}

/// A bound as people write it, in the unit in which the metric is stored.
fn bound(field: &Cursor<'_>, unit: &Unit) -> Option<f64> {
    match unit {
        Unit::Seconds | Unit::CpuSecondsPerOperation => field.quantity::<Span>().map(Span::as_secs_f64),
        Unit::OperationsPerSecond => field.quantity::<Rate>().map(|rate| rate.0),
        Unit::BitsPerSecond => field.quantity::<BitRate>().map(|rate| rate.0 as f64),
        Unit::Bytes => field.quantity::<ByteSize>().map(|size| size.0 as f64),
        // Less than a nanosecond a byte is usual, and no span is as short; the rest has no unit to write.
        Unit::CpuSecondsPerByte | Unit::Share | Unit::Count | Unit::Other(_) => field.number(),
    }
}
