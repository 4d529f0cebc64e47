//! How load is offered: `load`, `loads`, `users-per-instance`, `capacity`, `load-from` and `cpu-target` of a case.

use tare_model::capacity::{CapacitySpec, LoadShare};
use tare_model::cpu_target::CpuTarget;
use tare_model::density::DensitySpec;
use tare_model::load::{Arrivals, LoadModel};
use tare_model::study::{CaseLoad, Guests};
use tare_model::units::{Rate, Span};

use super::{Context, capacity, cpu_target};
use crate::file;
use crate::language::shape::MAX_CONNECTIONS;
use crate::language::shape::check_id;
use crate::language::table::Field;

const ONE_CLIENT: LoadModel = LoadModel::Closed { clients: 1, think_time: Span::ZERO };

/// A load with its name in `loads` and the keys that lead to it from the case.
pub(super) struct NamedLoad {
    pub(super) name: Option<String>,
    pub(super) model: LoadModel,
    pub(super) keys: Vec<String>,
    /// The keys that lead to its number of clients or its rate, where these stand elsewhere.
    pub(super) number: Option<&'static [&'static str]>,
}

impl NamedLoad {
    /// The load of a case that gives it no name.
    fn only(model: LoadModel, number: Option<&'static [&'static str]>) -> Self {
        Self { name: None, model, keys: vec!["load".to_owned()], number }
    }
}

/// What a case offers.
#[derive(Default)]
pub(super) struct Offered {
    /// Its loads; of a search the largest that is tried, of a share the largest that it may come to.
    pub(super) loads: Vec<NamedLoad>,
    pub(super) capacity: Option<CapacitySpec>,
    pub(super) load_from: Option<LoadShare>,
    pub(super) cpu_target: Option<CpuTarget>,
}

impl Offered {
    /// One of the case's loads, offered to these guests. What excludes one another is reported where it is read.
    pub(super) fn load(&self, load: LoadModel, guests: Guests, density: Option<&DensitySpec>) -> CaseLoad {
        match (self.capacity, self.cpu_target, &self.load_from, density) {
            (Some(spec), ..) => CaseLoad::Capacity(spec),
            (_, Some(target), ..) => CaseLoad::CpuTarget { target, guests },
            (_, _, Some(share), _) => CaseLoad::ShareOf { share: share.clone(), guests },
            (.., Some(spec)) => CaseLoad::Density { load, spec: spec.clone() },
            _ => CaseLoad::Fixed { load, guests },
        }
    }
}

/// The id of a case that looks for a capacity, and the search.
pub(super) type Found = (String, CapacitySpec);

/// Ids of the cases that look for a capacity, right or wrong.
pub(super) fn searching<'f>(file: &'f file::Study<'_>) -> Vec<&'f str> {
    let cases = file.cases.value.as_deref().unwrap_or_default().iter();
    cases.filter(|case| case.value.as_ref().is_some_and(|c| c.capacity.is_meant())).map(|case| case.key()).collect()
}

/// What a case offers: one load, several by name, a search for the largest or for that which keeps its guests' CPUs busy to a share, or
/// a share of what another one found. Each of its guests has so many `instances`.
pub(super) fn offered(case: &file::Case<'_>, context: &Context<'_>, found: &[Found], instances: u32) -> Offered {
    let mut offered = Offered::default();
    if case.capacity.is_there() {
        let model = load(&case.load, Some("capacity")).unwrap_or(ONE_CLIENT);
        let drivers = case.drivers.value.unwrap_or(1);
        offered.capacity = case.capacity.value.as_ref().and_then(|search| capacity::search(search, &model, drivers));
        let most = offered.capacity.map_or(model, |spec| spec.of_each(spec.most));
        offered.loads.push(NamedLoad::only(most, Some(&["capacity", "most"])));
    } else if case.load_from.is_there() {
        let own = load(&case.load, Some("load-from"));
        offered.load_from = capacity::share(case, own, context, found);
        let most = offered.load_from.as_ref().map_or(ONE_CLIENT, |share| share.kind.at(share.most));
        offered.loads.push(NamedLoad::only(most, Some(&["load-from", "share"])));
    } else if case.cpu_target.is_there() {
        let model = load(&case.load, Some("cpu-target")).unwrap_or(ONE_CLIENT);
        let target = case.cpu_target.value.as_ref();
        offered.cpu_target = target.and_then(|target| cpu_target::target(target, &model, instances));
        let most = offered.cpu_target.map_or(model, |spec| spec.kind.at(spec.most));
        offered.loads.push(NamedLoad::only(most, Some(&["cpu-target", "most"])));
    } else if case.users_per_instance.is_there() {
        let users = case.users_per_instance.at_most(MAX_CONNECTIONS / instances);
        let model = users.map(|users| LoadModel::Closed { clients: users * instances, think_time: Span::ZERO });
        offered.loads.extend(model.map(|model| NamedLoad::only(model, Some(&["users-per-instance"]))));
    } else if let Some(several) = &case.loads.value {
        several.iter().for_each(|one| check_id(one));
        let named = |one: &Field<'_, file::Load<'_>>| NamedLoad {
            name: Some(one.key().to_owned()),
            model: load(one, None).unwrap_or(ONE_CLIENT),
            keys: vec!["loads".to_owned(), one.key().to_owned()],
            number: None,
        };
        offered.loads.extend(several.iter().map(named));
    } else if !case.loads.is_there() {
        offered.loads.push(NamedLoad::only(load(&case.load, None).unwrap_or(ONE_CLIENT), None));
    }
    offered
}

/// A load; where its number is given by the field `instead`, one of 1, and it may not be written here.
fn load(field: &Field<'_, file::Load<'_>>, instead: Option<&str>) -> Option<LoadModel> {
    let load = field.value.as_ref()?;
    match (load.closed.is_there(), load.open.is_there()) {
        (true, false) => {
            let closed = load.closed.value.as_ref()?;
            let clients = number(&closed.clients, instead, 1);
            Some(LoadModel::Closed { clients: clients?, think_time: closed.think_time.unless_absent(Span::ZERO)? })
        }
        (false, true) => {
            let open = load.open.value.as_ref()?;
            let rate = number(&open.rate, instead, Rate(1.0))?;
            let arrivals = open.arrivals.unless_absent(Arrivals::default())?;
            Some(LoadModel::Open { rate, arrivals, connections: open.connections.value? })
        }
        (true, true) => {
            field.wrong_key("is closed and open at once", "keep one of them; for both, give them names in `loads`");
            None
        }
        (false, false) => {
            let help = match instead {
                None => {
                    "write `load = { closed = { clients = 1 } }` or `load = { open = { rate = \"1000/s\", connections = 4 } }`"
                }
                Some(_) => "write `load = { closed = {} }` or `load = { open = { connections = 4 } }`",
            };
            field.wrong_key("says neither `closed` nor `open`", help);
            None
        }
    }
}

/// The number of a load, which has to be there; or `one`, where the field `instead` gives it, and it may not be there.
fn number<T: Copy>(field: &Field<'_, T>, instead: Option<&str>, one: T) -> Option<T> {
    let Some(instead) = instead else { return field.require().copied() };
    if field.is_there() {
        let help = match instead {
            "load-from" => "leave it out: it comes from what the other case finds".to_owned(),
            _ => format!("leave it out: the search goes from `{instead}.from` to `{instead}.most`"),
        };
        field.wrong_key(&format!("stands beside `{instead}`, which says how much load is offered"), help);
        return None;
    }
    Some(one)
}
