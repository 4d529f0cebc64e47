//! The figures of all tiles together.
//!
//! Every metric of a member is the worst of the tiles, so that an objective holds only where it holds in every tile.

use std::collections::BTreeMap;

use tare_model::count;
use tare_model::density::metric;
use tare_model::metric::{Better, MetricSpec, Unit};
use tare_model::trial::{Flag, Incomplete, Measurement, Part};

use super::Member;
use crate::figures::Figures;
use crate::together::add_samples;
use crate::{Driven, UnitOfWork};

/// Counts that are worth their sum over members too, as they are the same of every driver.
const SUMMED: [&str; 6] =
    [count::OPERATIONS, count::BYTES, count::LOST, count::UNFINISHED, count::DRIVER_CPU_NS, count::DRIVER_RUN_DELAY_NS];
/// The primary metric. The search that adds tiles reports it.
const HELD: &str = metric::TILES_HELD;

/// All metrics: tiles, then each member's.
pub(super) fn specs(members: &[Member]) -> Vec<MetricSpec> {
    let mut all = vec![MetricSpec::new(HELD, "tiles held", Unit::Count, Better::Higher).primary()];
    for member in members {
        let name = &member.name;
        all.extend(member.workload.metrics().into_iter().map(|spec| MetricSpec {
            id: metric::member(name, &spec.id),
            label: format!("{name}: {}", spec.label),
            primary: false,
            ..spec
        }));
        let (unit, what) = match member.workload.unit_of_work() {
            UnitOfWork::Operation => (Unit::OperationsPerSecond, "operations"),
            UnitOfWork::Byte => (Unit::Other("B/s".to_owned()), "bytes"),
        };
        let label = format!("{name}: {what} of a guest, mean of the tiles");
        all.push(MetricSpec::new(&metric::member(name, metric::MEMBER_WORK), &label, unit, Better::Higher));
        let label = format!("{name}: {what} of a guest, share of those with one tile");
        all.push(MetricSpec::new(&metric::member(name, metric::MEMBER_SHARE), &label, Unit::Share, Better::Higher));
    }
    all
}

/// The figures of all guests, each with its number from 1: guest `i` is the member at `i` modulo their number.
pub(super) fn combine(members: &[Member], guests: Vec<Driven>) -> Option<Driven> {
    let mut apart: Vec<Vec<(u32, Driven)>> = members.iter().map(|_| Vec::new()).collect();
    for (number, driven) in (1..).zip(guests) {
        let place = (number as usize - 1).checked_rem(members.len())?;
        apart.get_mut(place)?.push((number, driven));
    }
    let by_member = members.iter().zip(apart).map(|(member, guests)| of_member(member, guests));
    let mut all = by_member.collect::<Option<Vec<Driven>>>()?.into_iter().reduce(add)?;
    all.measurement.parts.sort_by_key(|part| part.guest);
    Some(all)
}

/// The figures of one member in all tiles, under its name; `None` without a guest.
fn of_member(member: &Member, guests: Vec<(u32, Driven)>) -> Option<Driven> {
    let mut alone: Vec<(u32, Figures)> = Vec::new();
    for (number, guest) in &guests {
        let Measurement { metrics, incomplete, .. } = member.workload.combine(vec![guest.clone()])?.measurement;
        alone.push((*number, Figures { metrics, incomplete }));
    }
    let per_s: Vec<f64> = guests.iter().map(|(_, guest)| guest.work / guest.measured_s()).collect();
    let mut driven = member.workload.combine(guests.into_iter().map(|(_, guest)| guest).collect())?;
    let name = &member.name;
    let specs = member.workload.metrics();
    let worst = specs.iter().filter_map(|spec| Some((metric::member(name, &spec.id), worst(spec, &alone)?)));
    let mut metrics: BTreeMap<String, f64> = worst.collect();
    let mean = per_s.iter().sum::<f64>() / per_s.len() as f64;
    if mean.is_finite() {
        metrics.insert(metric::member(name, metric::MEMBER_WORK), mean);
    }
    let left_out = specs.iter().filter_map(|spec| Some((metric::member(name, &spec.id), left_out(spec, &alone)?)));
    let incomplete = left_out.collect();
    let parts = alone.into_iter().map(|(guest, figures)| {
        let metrics = figures.metrics.into_iter().map(|(id, value)| (metric::member(name, &id), value)).collect();
        Part { guest, driver: None, metrics, instance: None }
    });
    driven.measurement = named(name, std::mem::take(&mut driven.measurement));
    (driven.measurement.metrics, driven.measurement.incomplete) = (metrics, incomplete);
    driven.measurement.parts = parts.collect();
    driven.facts =
        std::mem::take(&mut driven.facts).into_iter().map(|(what, is)| (format!("{name}: {what}"), is)).collect();
    driven.flags.iter_mut().for_each(|flag| flag.detail = format!("{name}: {}", flag.detail));
    driven.deviations.iter_mut().for_each(|own| own.what = format!("{name}: {}", own.what));
    driven.invalid = driven.invalid.map(|why| format!("{name}: {why}"));
    Some(driven)
}

/// The worst of the guests; `None` where one of them has no such figure, for it might be the worst.
fn worst(spec: &MetricSpec, guests: &[(u32, Figures)]) -> Option<f64> {
    let all = guests.iter().map(|(_, guest)| guest.metrics.get(&spec.id).copied()).collect::<Option<Vec<f64>>>()?;
    worst_of(spec, all)
}

fn worst_of(spec: &MetricSpec, values: Vec<f64>) -> Option<f64> {
    values.into_iter().reduce(|one, other| match spec.better {
        Better::Lower => one.max(other),
        Better::Higher => one.min(other),
    })
}

/// What the worst of the guests leaves out: most of any of them.
fn left_out(spec: &MetricSpec, guests: &[(u32, Figures)]) -> Option<Incomplete> {
    let found = guests.iter().filter_map(|(_, guest)| guest.incomplete.get(&spec.id));
    let missing = found.map(|one| one.missing).reduce(f64::max)?;
    let completed = guests.iter().map(|(_, guest)| match guest.incomplete.get(&spec.id) {
        Some(one) => one.completed_only,
        None => guest.metrics.get(&spec.id).copied(),
    });
    Some(Incomplete { missing, completed_only: completed.collect::<Option<_>>().and_then(|all| worst_of(spec, all)) })
}

/// Counts, times, steps and request types under the member's name.
fn named(name: &str, plain: Measurement) -> Measurement {
    let mut counts = BTreeMap::new();
    for (what, n) in plain.counts {
        if SUMMED.contains(&what.as_str()) {
            counts.insert(what.clone(), n);
        }
        counts.insert(count::error_of(name, &what).unwrap_or_else(|| format!("{name}: {what}")), n);
    }
    let mut measurement = Measurement { counts, ..Measurement::default() };
    let histograms = plain.histograms.into_iter();
    measurement.histograms = histograms.map(|(what, times)| (metric::member(name, &what), times)).collect();
    measurement.steps = plain.steps;
    measurement.steps.iter_mut().for_each(|step| step.name = format!("{name}: {}", step.name));
    measurement.requests = plain.requests;
    for one in &mut measurement.requests {
        one.name = format!("{name}: {}", one.name);
        // It is a share of the requests of one member, and those of all stand beside it.
        one.target = None;
    }
    measurement
}

/// Adds a member's figures to those before it.
fn add(mut all: Driven, member: Driven) -> Driven {
    all.window_ns = (all.window_ns.0.min(member.window_ns.0), all.window_ns.1.max(member.window_ns.1));
    all.work += member.work;
    all.invalid = all.invalid.or(member.invalid);
    let (sums, own) = (&mut all.measurement, member.measurement);
    sums.metrics.extend(own.metrics);
    sums.incomplete.extend(own.incomplete);
    sums.histograms.extend(own.histograms);
    for (what, count) in own.counts {
        *sums.counts.entry(what).or_default() += count;
    }
    sums.parts.extend(own.parts);
    sums.steps.extend(own.steps);
    sums.requests.extend(own.requests);
    add_samples(&mut all.samples, member.samples);
    all.facts.extend(member.facts);
    let new: Vec<Flag> = member.flags.into_iter().filter(|flag| !all.flags.contains(flag)).collect();
    all.flags.extend(new);
    all.deviations.extend(member.deviations);
    all
}
