//! How load is offered: `load`, `loads`, `users-per-instance`, `capacity`, `load-from` and `cpu-target` of a case.

use tare_model::capacity::{CapacitySpec, LoadShare};
use tare_model::cpu_target::CpuTarget;
use tare_model::density::DensitySpec;
use tare_model::load::{Arrivals, LoadModel};
use tare_model::study::{CaseLoad, Guests};
use tare_model::units::{Rate, Span};

use super::{capacity, check_id, cpu_target, size};
use crate::fields;
use crate::suggest;
use crate::tree::{Cursor, Table};

/// Most connections of one driver: what a client's range of ports allows (16 bits).
pub(crate) const MAX_CONNECTIONS: u32 = 60_000;

/// The field that says how many clients each instance has.
const USERS: &str = "users-per-instance";

pub(super) const ONE_CLIENT: LoadModel = LoadModel::Closed { clients: 1, think_time: Span::ZERO };

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

/// The cases that look for a capacity.
pub(super) struct Searches {
    /// Ids of those that say so, right or wrong.
    pub(super) ids: Vec<String>,
    /// Ids of all cases.
    pub(super) cases: Vec<String>,
    /// Those that were right, each with the largest load that is tried.
    pub(super) found: Vec<(String, CapacitySpec)>,
}

impl Searches {
    /// Of the cases of a file, before any of them was read.
    pub(super) fn of(cases: &[Cursor<'_>]) -> Self {
        let ids = cases.iter().filter(|case| has(case, "capacity")).map(|case| case.key().to_owned());
        Self { ids: ids.collect(), cases: cases.iter().map(|case| case.key().to_owned()).collect(), found: Vec::new() }
    }
}

/// Whether a case is offered what another one finds.
pub(super) fn waits(case: &Cursor<'_>) -> bool {
    has(case, "load-from")
}

/// Whether a case has a field, right or wrong, or a slip of its name. A slip is reported already.
pub(super) fn has(case: &Cursor<'_>, key: &str) -> bool {
    let meant = |written: &str| {
        let known = fields::find(fields::CASE, written).is_some();
        let nearest = || suggest::nearest(written, fields::CASE.iter().map(|field| field.key));
        if known { written == key } else { nearest() == Some(key) }
    };
    case.is_table() && case.named().unwrap_or_default().iter().any(|field| meant(field.key()))
}

/// What a case offers: one load, several by name, a search for the largest or for that which keeps its guests' CPUs busy to a share, or
/// a share of what another one found. Each of its guests has so many `instances`.
pub(super) fn offered(case: &Table<'_>, searches: &Searches, instances: u32) -> Offered {
    let (search, share) = (case.get("capacity"), case.get("load-from"));
    if let (Some(_), Some(share)) = (&search, &share) {
        let help = "leave one of them out; a case of its own can be offered a share of what this one finds";
        share.wrong_key("stands beside `capacity`, and a case has one load", help);
    }
    if let Some(users) = case.get(USERS) {
        alone(case, &users);
    }
    let mut offered = Offered { loads: Vec::new(), capacity: None, load_from: None, cpu_target: None };
    let target = case.get("cpu-target");
    if let Some(target) = &target {
        cpu_target::alone(case, target);
    }
    match (search, share) {
        (None, None) if target.is_some() => {
            let model = kind(case, "cpu-target").unwrap_or(ONE_CLIENT);
            offered.cpu_target = target.and_then(|target| cpu_target::target(&target, &model, instances));
            let most = offered.cpu_target.map_or(model, |spec| spec.kind.at(spec.most));
            offered.loads.push(NamedLoad::only(most, Some(&["cpu-target", "most"])));
        }
        (Some(search), _) => {
            let model = kind(case, "capacity").unwrap_or(ONE_CLIENT);
            offered.capacity = capacity::search(case, &search, &model);
            let most = offered.capacity.map_or(model, |spec| spec.kind.at(spec.most));
            offered.loads.push(NamedLoad::only(most, Some(&["capacity", "most"])));
        }
        (None, Some(share)) => {
            let own = kind(case, "load-from");
            offered.load_from = capacity::share(case, &share, own, searches);
            let most = offered.load_from.as_ref().map_or(ONE_CLIENT, |share| share.kind.at(share.most));
            offered.loads.push(NamedLoad::only(most, Some(&["load-from", "share"])));
        }
        (None, None) => offered.loads = loads(case, instances),
    }
    offered
}

/// Reports what cannot stand beside `users-per-instance`.
fn alone(case: &Table<'_>, users: &Cursor<'_>) {
    for other in ["load", "loads", "capacity", "load-from", "cpu-target"] {
        if case.get(other).is_some() {
            users.wrong_key(&format!("stands beside `{other}`, and a case has one load"), "leave one of them out");
        }
    }
}

/// A closed loop of so many clients for each instance.
fn per_instance(users: &Cursor<'_>, instances: u32) -> Option<NamedLoad> {
    let clients = users.integer32(1..=MAX_CONNECTIONS / instances)? * instances;
    Some(NamedLoad::only(LoadModel::Closed { clients, think_time: Span::ZERO }, Some(&[USERS])))
}

/// The loads of a case: `load`, or each of `loads`, or `users-per-instance`, or one client in a closed loop.
fn loads(case: &Table<'_>, instances: u32) -> Vec<NamedLoad> {
    if let Some(users) = case.get(USERS) {
        return per_instance(&users, instances).into_iter().collect();
    }
    let keys = |cursor: &Cursor<'_>| {
        let depth = case.cursor().path().len();
        cursor.path()[depth..].iter().map(|&key| key.to_owned()).collect()
    };
    match (case.get("load"), case.get("loads")) {
        (Some(_), Some(several)) => {
            several.wrong_key(
                "stands beside `load`; a case has one or the other",
                "move the `load` into `loads` under a name",
            );
            Vec::new()
        }
        (Some(cursor), None) => vec![NamedLoad::only(load(&cursor, None).unwrap_or(ONE_CLIENT), None)],
        (None, Some(several)) => {
            let cursors = several.named().unwrap_or_default();
            if several.is_table() && cursors.is_empty() {
                several.wrong_key(
                    "names no load",
                    "add one, such as `low = { closed = { clients = 1 } }`, or leave `loads` out",
                );
            }
            cursors.iter().for_each(check_id);
            let named = |cursor: &Cursor<'_>| NamedLoad {
                name: Some(cursor.key().to_owned()),
                model: load(cursor, None).unwrap_or(ONE_CLIENT),
                keys: keys(cursor),
                number: None,
            };
            cursors.iter().map(named).collect()
        }
        (None, None) => vec![NamedLoad::only(ONE_CLIENT, None)],
    }
}

/// The kind of load of a case that has its number in the field `instead`; `None` where the case does not say.
fn kind(case: &Table<'_>, instead: &str) -> Option<LoadModel> {
    if let Some(several) = case.get("loads") {
        let help = "leave it out; cases of their own can differ in their loads";
        several.wrong_key(&format!("cannot stand beside `{instead}`, which says how much load is offered"), help);
    }
    case.get("load").and_then(|cursor| load(&cursor, Some(instead)))
}

/// A load; where its number is given by the field `instead`, one of 1, and it may not be written here.
fn load(cursor: &Cursor<'_>, instead: Option<&str>) -> Option<LoadModel> {
    let table = cursor.table(fields::LOAD)?;
    match (table.get("closed"), table.get("open")) {
        (Some(closed), None) => closed_loop(&closed, instead),
        (None, Some(open)) => open_loop(&open, instead),
        (Some(_), Some(_)) => {
            cursor.wrong_key("is closed and open at once", "keep one of them; for both, give them names in `loads`");
            None
        }
        (None, None) => {
            let help = match instead {
                None => {
                    "write `load = { closed = { clients = 1 } }` or `load = { open = { rate = \"1000/s\", connections = 4 } }`"
                }
                Some(_) => "write `load = { closed = {} }` or `load = { open = { connections = 4 } }`",
            };
            cursor.wrong_key("says neither `closed` nor `open`", help);
            None
        }
    }
}

fn closed_loop(cursor: &Cursor<'_>, instead: Option<&str>) -> Option<LoadModel> {
    let table = cursor.table(fields::CLOSED)?;
    let think_time = table.get("think-time").map_or(Some(Span::ZERO), |c| size::span(&c));
    let clients = match instead {
        None => table.require("clients").and_then(|c| c.integer32(1..=MAX_CONNECTIONS)),
        Some(instead) => elsewhere(&table, "clients", instead).then_some(1),
    };
    Some(LoadModel::Closed { clients: clients?, think_time: think_time? })
}

fn open_loop(cursor: &Cursor<'_>, instead: Option<&str>) -> Option<LoadModel> {
    let table = cursor.table(fields::OPEN)?;
    let rate = match instead {
        None => table.require("rate").and_then(|c| c.quantity::<Rate>()),
        Some(instead) => elsewhere(&table, "rate", instead).then_some(Rate(1.0)),
    };
    let connections = table.require("connections").and_then(|c| c.integer32(1..=MAX_CONNECTIONS));
    let words = [("poisson", Arrivals::Poisson), ("uniform", Arrivals::Uniform)];
    let arrivals = table.get("arrivals").map_or(Some(Arrivals::default()), |c| c.choice(&words));
    Some(LoadModel::Open { rate: rate?, arrivals: arrivals?, connections: connections? })
}

/// Whether a number that the field `instead` gives is not written here as well; if it is, that is reported.
fn elsewhere(table: &Table<'_>, key: &str, instead: &str) -> bool {
    let Some(field) = table.get(key) else { return true };
    let help = match instead {
        "capacity" => "leave it out: the search goes from `capacity.from` to `capacity.most`",
        "cpu-target" => "leave it out: the search goes from `cpu-target.from` to `cpu-target.most`",
        _ => "leave it out: it comes from what the other case finds",
    };
    field.wrong_key(&format!("stands beside `{instead}`, which says how much load is offered"), help);
    false
}
