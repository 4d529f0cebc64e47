//! `density` of a case: guests are added until the host carries no more.

use tare_model::density::{self, DensitySpec, GuestSeries};
use tare_model::metric::MetricSpec;
use tare_model::traits::Traits;
use tare_model::units::Span;

use super::Able;
use crate::file::{self, MAX_GUESTS};
use crate::language::shape::Or;
use crate::language::table::Field;

/// The search that a case asks for, if it does.
pub(super) fn of_case(case: &file::Case<'_>, able: Able<'_>) -> Option<DensitySpec> {
    let tile = able.traits.first().map(Traits::tile).unwrap_or_default();
    if let (Some(name), false, false) = (able.workload, tile.is_empty(), case.density.is_there()) {
        let what = format!("is `{name}`, of which tiles are added, and the case does not say how many");
        case.workload.wrong(&what, "write `density = { guests = [1, 2, 4] }`: it counts tiles");
    }
    let density = case.density.value.as_ref()?;
    let what = "adds guests under load, which {} cannot do";
    able.check(&case.density, |traits| traits.density, what, "it can be had with");
    let most = MAX_GUESTS / u32::try_from(tile.len()).unwrap_or(MAX_GUESTS).clamp(1, MAX_GUESTS);
    Some(DensitySpec {
        guests: series(density, most).unwrap_or(GuestSeries::Search { from: 1, most: 1 }),
        tile,
        reserve: density.reserve.value,
        settle: density.settle.or(Span::from_secs(120)),
        rest: density.rest.or(Span::ZERO),
        pressure: density.pressure.or(0.4),
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

/// A list of numbers, or a search; none is more than `most`.
fn series(density: &file::Density<'_>, most: u32) -> Option<GuestSeries> {
    match density.guests.value.as_ref()? {
        Or::Plain(numbers) => listed(numbers, most),
        Or::Table(guests) => search(guests.search.value.as_ref()?, most),
    }
}

fn listed(items: &[Field<'_, u32>], most: u32) -> Option<GuestSeries> {
    let mut numbers: Vec<u32> = Vec::with_capacity(items.len());
    for item in items {
        let number = item.at_most(most)?;
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

fn search(search: &file::Search<'_>, can: u32) -> Option<GuestSeries> {
    let from = if search.from.is_there() { search.from.at_most(can) } else { Some(1) };
    let (from, most) = (from?, search.most.at_most(can)?);
    if most < from {
        let what = format!("is {most}, less than the {from} that the search begins with");
        search.most.wrong(&what, "write a larger number");
        return None;
    }
    Some(GuestSeries::Search { from, most })
}
