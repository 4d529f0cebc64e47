//! Report 004's table: orders a minute by guest and client.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::guest::GuestSize;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::published::Published;
use tare_model::study::{CaseLoad, Guests, Study};
use tare_model::trial::{Measurement, Part};
use tare_model::{ByteSize, Span};

use crate::error::ImportError;
use crate::study::{self, ReportedTrial};
use crate::table::{Row, Table};

/// Id of the case.
pub(crate) const CASE: &str = "orders";
/// The metric, with the id and the unit that the workload `store` gives it.
pub(crate) const METRIC: &str = "orders_per_minute";
/// Length of a run and of the warm-up before it, seconds.
const RUN_S: u64 = 900;
const WARM_UP_S: u64 = 300;
/// Threads of each client.
const THREADS: u32 = 20;
/// Most guests and clients that a line may tell of.
const MOST: u32 = 10_000;

/// The table as a study and its trials.
pub(crate) fn imported(table: &Table, published: Published) -> Result<(Study, Vec<ReportedTrial>), ImportError> {
    table.unique(&["configuration", "client"])?;
    let names = study::names(table, "configuration")?;
    let trials = names.iter().map(|name| {
        let own = table.rows.iter().filter(|row| table.text(row, "configuration") == name);
        trial(table, name, own)
    });
    let trials = trials.collect::<Result<Vec<ReportedTrial>, ImportError>>()?;
    let guest = GuestSize { cpus: 4, memory: ByteSize(10 << 30) };
    let parts = || trials.iter().map(|trial| &trial.measurement.parts);
    let count = parts().map(|parts| guests(parts).len() as u32).max().unwrap_or(1);
    let drivers = parts().flatten().filter_map(|part| part.driver).max().unwrap_or(1);
    let load = CaseLoad::Fixed { load: study::clients(THREADS), guests: Guests { count, drivers } };
    let mut case = study::case(CASE, "order entry".to_owned(), "store", load, RUN_S, guest);
    case.phases.warm_up = Span::from_secs(WARM_UP_S);
    let arms = names.iter().map(|name| study::arm(name)).collect();
    Ok((study::study(published, arms, vec![case]), trials))
}

fn guests(parts: &[Part]) -> BTreeSet<u32> {
    parts.iter().map(|part| part.guest).collect()
}

fn trial<'a>(table: &Table, name: &str, rows: impl Iterator<Item = &'a Row>) -> Result<ReportedTrial, ImportError> {
    // (guest, client): in the order of clients within each guest.
    let mut clients: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    for row in rows {
        let key = (table.ordinal(row, "guest", MOST)?, table.ordinal(row, "client", MOST)?);
        clients.insert(key, table.number(row, METRIC)?);
    }
    let mut drivers: BTreeMap<u32, u32> = BTreeMap::new();
    let metrics = |value: f64| BTreeMap::from([(METRIC.to_owned(), value)]);
    let mut parts = Vec::new();
    for ((guest, _), value) in &clients {
        let driver = drivers.entry(*guest).or_default();
        *driver += 1;
        parts.push(Part { guest: *guest, driver: Some(*driver), metrics: metrics(*value), instance: None });
    }
    let measurement = Measurement { metrics: metrics(clients.values().sum()), parts, ..Measurement::default() };
    let unit = Unit::Other("orders/min".to_owned());
    Ok(ReportedTrial {
        case: CASE.to_owned(),
        arm: name.to_owned(),
        measurement,
        metrics: vec![MetricSpec::new(METRIC, "orders a minute (OPM)", unit, Better::Higher).primary()],
        window_s: RUN_S as f64,
        facts: BTreeMap::new(),
    })
}
