//! `[cases.ID]`: the situations in which every arm is measured.

use serde_json::{Value as Json, json};
use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::metric::{MetricSpec, Unit};
use tare_model::study::{Case, CaseLoad, CaseSchedule, Guests, Neighbours, QosObjective};
use tare_model::traits::Traits;
use tare_model::units::{BitRate, ByteSize, Rate, Span};

use super::load::{self, Found, NamedLoad};
use super::size::Asked;
use super::{
    Able, Context, beside, capacity, conditions, cpu_target, density, instances, known, labelled_twice, schedule,
    schema_of, size,
};
use crate::catalog::WorkloadAsked;
use crate::file;
use crate::language::shape::check_id;
use crate::language::table::Field;
use crate::language::tree::Cursor;
use crate::suggest;

/// Between the id of a case and the name of a load, or of what its neighbours do.
pub(super) const LOAD_SEPARATOR: char = '@';

/// How long the load of a trial that ends by itself is planned to take, where no phases say.
const ENDS_WITHIN: Span = Span::from_secs(10);

/// All cases, those with several loads expanded.
pub(super) fn cases(file: &file::Study<'_>, context: &Context<'_>) -> Vec<Case> {
    let written = file.cases.value.as_deref().unwrap_or_default();
    // Cases that are offered a share of what others find come after these, and then to their places.
    let waits = |field: &Field<'_, file::Case<'_>>| field.value.as_ref().is_some_and(|case| case.load_from.is_meant());
    let (waiting, first): (Vec<_>, Vec<_>) = written.iter().enumerate().partition(|(_, field)| waits(field));
    let mut found: Vec<Found> = Vec::new();
    let mut all: Vec<Vec<Case>> = vec![Vec::new(); written.len()];
    for (place, field) in first.into_iter().chain(waiting) {
        check_id(field);
        // What is wrong with a sweep that is still there is reported.
        let Some(written) = field.value.as_ref().filter(|case| !case.sweep.is_there()) else { continue };
        all[place] = case(field, written, context, &found);
        found.extend(all[place].iter().filter_map(|case| match case.load {
            CaseLoad::Capacity(spec) => Some((case.id.clone(), spec)),
            _ => None,
        }));
    }
    let own = |cases: &Vec<Case>| cases.first().map(|case| (case.id.clone(), case.label.clone()));
    let labels: Vec<_> = written
        .iter()
        .zip(&all)
        .filter_map(|(field, cases)| Some((field.value.as_ref().map(|own| &*own.label), own(cases)?)))
        .collect();
    labelled_twice(labels.iter().map(|(at, (id, label))| (*at, id, label)));
    let all: Vec<Case> = all.into_iter().flatten().collect();
    instances::predicted(context, &all);
    all
}

fn case(at: &Cursor<'_>, written: &file::Case<'_>, context: &Context<'_>, found: &[Found]) -> Vec<Case> {
    let id = at.key();
    let label = written.label.or(id);
    let workload = known(&written.workload, "workload", &context.workloads);
    let parameters = written.parameters.unless_absent(json!({}));
    let inside = written.instances.or(1);
    let offered = load::offered(written, context, found, inside);
    let loads = &offered.loads;
    let guests = Guests { count: written.guests.or(1), drivers: written.drivers.or(1) };
    let Asked { size: guest, seccomp } = size::guest(&written.guest, context.guest, context.unsaid.0.as_ref());
    let own = workload.zip(parameters.as_ref());
    let check = |load| check_workload(at, context, own, load, (guest, inside)).unwrap_or_default();
    let checked: Vec<Json> = loads.iter().map(check).collect();
    let traits = loads.iter().zip(&checked).filter(|(_, json)| !json.is_null()).filter_map(|(load, parameters)| {
        let (name, load) = (workload?, load.model);
        Some(context.catalog.traits(&WorkloadAsked { name, parameters, load, guest, instances: inside }))
    });
    // Refused parameters are reported already.
    let traits: Vec<Traits> = traits.collect();
    // What ends by itself takes as long as it takes, and refused parameters tell nothing about that.
    let ends_by_itself = traits.iter().all(|traits| traits.longest.is_some());
    let phases = match context.phases {
        None if ends_by_itself && !written.phases.is_meant() => size::steady(ENDS_WITHIN),
        all => size::phases(&written.phases, all, context.unsaid.1.as_ref()),
    };
    let able = Able { context, workload, traits: &traits };
    let density = density::of_case(written, able);
    can(at, written, able, loads);
    let qos = workload.zip(checked.first().filter(|json| !json.is_null())).map(|(name, json)| {
        let metrics = context.catalog.metrics(name, json);
        qos(&written.qos, name, &if density.is_some() { density::objectives(metrics) } else { metrics })
    });
    let one = |(load, parameters): (&NamedLoad, Json)| {
        let offered = offered.load(load.model, guests, density.as_ref());
        Case {
            id: load.name.as_ref().map_or_else(|| id.to_owned(), |name| format!("{id}{LOAD_SEPARATOR}{name}")),
            label: load.name.as_ref().map_or_else(|| label.to_owned(), |name| format!("{label}, {name}")),
            workload: workload.unwrap_or_default().to_owned(),
            parameters,
            // What takes turns there are conditions, and not arms.
            schedule: if conditions::are_meant(written) {
                CaseSchedule::default()
            } else {
                schedule::of(at, written, able, &offered)
            },
            load: offered,
            phases,
            guest,
            seccomp,
            neighbours: neighbours(&written.neighbours),
            made: traits.iter().map(|traits| traits.made).max().unwrap_or(0),
            busy_target: written.busy_target.or(false),
            qos: qos.clone().unwrap_or_default(),
            held_out: written.held_out.or(false),
            instances: inside,
        }
    };
    let cases = loads.iter().zip(checked).map(one).collect();
    conditions::expanded(written, able, cases)
}

/// Reports fields that exclude each other, and what the workload cannot do.
fn can(at: &Cursor<'_>, case: &file::Case<'_>, able: Able<'_>, loads: &[NamedLoad]) {
    beside::check(at);
    // Beside these it is reported already that there can be one alone.
    if !case.density.is_there() {
        let guests = Some(&case.guests).filter(|_| !case.capacity.is_there());
        for field in guests.into_iter().chain([&case.drivers]) {
            if let Some(count) = field.value.filter(|count| *count > 1) {
                let what = format!("is {count}, but {{}} measures one guest with one driver");
                able.check(field, |traits| traits.several_guests, &what, "several can be had with");
            }
        }
    }
    capacity::can(case, able);
    cpu_target::can(case, able);
    instances::can(case, able, loads);
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
                && !case.get("load").is_there()
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

fn neighbours(field: &Field<'_, file::Neighbours<'_>>) -> Option<Neighbours> {
    let neighbours = field.value.as_ref()?;
    let guest = GuestSize { cpus: neighbours.cpus.value?, memory: neighbours.memory.value? };
    Some(Neighbours { count: neighbours.count.value?, guest })
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
    cursor.named_or_empty().iter().filter_map(one).collect()
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
