//! `density` of a case: guests are added until the host carries no more.

use serde_json::Value as Json;
use tare_model::density::{self, DensitySpec, GuestSeries};
use tare_model::metric::MetricSpec;
use tare_model::traits::Traits;
use tare_model::units::{ByteSize, Span};

use super::{Context, size};
use crate::check::case::MAX_GUESTS;
use crate::fields;
use crate::tree::{Cursor, Table};

/// Most numbers of guests in a list: each is a whole measurement.
pub(crate) const MAX_LISTED: usize = 64;
/// Least reserve: the host's own programs, and what the kernel takes before a watcher can look again.
const MIN_RESERVE: ByteSize = ByteSize(256 << 20);
/// Longest wait for merging to settle, where the study says nothing.
const SETTLE: Span = Span::from_secs(120);
/// Share of time in which some task may wait for memory, where the study says nothing.
const PRESSURE: f64 = 0.4;

const STAND_IN: GuestSeries = GuestSeries::Search { from: 1, most: 1 };

/// The search that a case asks for, if it does, with what cannot stand beside it.
pub(super) fn of_case(
    case: &Table<'_>,
    context: &Context<'_>,
    workload: Option<&str>,
    traits: &[Traits],
) -> Option<DensitySpec> {
    let tile = traits.first().map(Traits::tile).unwrap_or_default();
    let Some(cursor) = case.get("density") else {
        if let (false, Some(field)) = (tile.is_empty(), case.get("workload")) {
            let help = "write `density = { guests = [1, 2, 4] }`: it counts tiles";
            field.wrong(
                &format!("is `{}`, of which tiles are added, and the case does not say how many", workload?),
                help,
            );
        }
        return None;
    };
    if let Some(name) = workload {
        can(&cursor, context, name, traits);
    }
    alone(case);
    let table = cursor.table(fields::DENSITY)?;
    let most = MAX_GUESTS / u32::try_from(tile.len()).unwrap_or(MAX_GUESTS).clamp(1, MAX_GUESTS);
    let series = table.require("guests").and_then(|c| series(&c, most)).unwrap_or(STAND_IN);
    let for_what = "that the host's own programs take";
    Some(DensitySpec {
        guests: series,
        tile,
        reserve: table.get("reserve").and_then(|c| size::host_memory(&c, MIN_RESERVE, for_what)),
        settle: table.get("settle").and_then(|c| size::span(&c)).unwrap_or(SETTLE),
        rest: table.get("rest").and_then(|c| size::span(&c)).unwrap_or(Span::ZERO),
        pressure: table.get("pressure").and_then(|c| size::share(&c)).unwrap_or(PRESSURE),
    })
}

/// Metrics that objectives of a density case may be about: those of a number of guests, then the workload's own. How many
/// guests held is what is found, not what is asked.
pub(super) fn objectives(workload: Vec<MetricSpec>) -> Vec<MetricSpec> {
    let mut all: Vec<MetricSpec> =
        density::metric_specs().into_iter().filter(|spec| spec.id != density::metric::HELD).collect();
    let asked = |own: &MetricSpec| own.id != density::metric::TILES_HELD && all.iter().all(|spec| spec.id != own.id);
    let others: Vec<MetricSpec> = workload.into_iter().filter(asked).collect();
    all.extend(others);
    all
}

/// Reports a workload that cannot be driven while guests are added.
fn can(cursor: &Cursor<'_>, context: &Context<'_>, name: &str, traits: &[Traits]) {
    if traits.iter().all(|traits| traits.density) {
        return;
    }
    let others = context.others("it can be had with", |traits| traits.density);
    let what = format!("adds guests under load, which `{name}` as it is set here cannot do");
    cursor.wrong_key(&what, format!("leave `density` out{others}"));
}

/// Reports fields that say how many guests or drivers there are in another way, or keep the host busy with others.
fn alone(case: &Table<'_>) {
    let more_than_one = |field: &Cursor<'_>| field.json().and_then(|json| json.as_u64()).is_some_and(|count| count > 1);
    let refuse = |key: &str, asked: &dyn Fn(&Cursor<'_>) -> bool, help: &str| {
        if let Some(field) = case.get(key).filter(|field| asked(field)) {
            field.wrong_key("cannot stand beside `density`, which adds guests itself, each with one driver", help);
        }
    };
    refuse("guests", &more_than_one, "leave it out: `density = { guests = [...] }` has the numbers");
    refuse("drivers", &more_than_one, "leave it out");
    refuse("neighbours", &|_| true, "leave it out: the guests are each other's neighbours");
    refuse("busy-target", &|field| field.json() == Some(Json::Bool(true)), "leave it out");
}

/// A list of numbers, or a search; none is more than `most`.
fn series(cursor: &Cursor<'_>, most: u32) -> Option<GuestSeries> {
    if cursor.is_table() {
        let table = cursor.table(fields::DENSITY_GUESTS)?;
        return search(&table.require("search")?, most);
    }
    let items = cursor.items()?;
    if items.is_empty() || items.len() > MAX_LISTED {
        let what = format!("lists {} numbers of guests; from 1 to {MAX_LISTED} are expected", items.len());
        cursor.wrong(&what, "write such as `[1, 4, 8, 16]`, or `{ search = { most = 64 } }`");
        return None;
    }
    let mut numbers: Vec<u32> = Vec::with_capacity(items.len());
    for item in &items {
        let number = item.integer32(1..=most)?;
        if let Some(&before) = numbers.last()
            && number <= before
        {
            item.wrong(&format!("is {number}, and {before} stands before it"), "write each number once, ascending");
            return None;
        }
        numbers.push(number);
    }
    Some(GuestSeries::Listed(numbers))
}

fn search(cursor: &Cursor<'_>, can: u32) -> Option<GuestSeries> {
    let table = cursor.table(fields::SEARCH)?;
    let from = table.get("from").map_or(Some(1), |c| c.integer32(1..=can));
    let field = table.require("most")?;
    let (from, most) = (from?, field.integer32(1..=can)?);
    if most < from {
        field.wrong(&format!("is {most}, less than the {from} that the search begins with"), "write a larger number");
        return None;
    }
    Some(GuestSeries::Search { from, most })
}
