//! The figures of all guests of a trial together, for workloads that have several.

use tare_model::deviation::Deviation;
use tare_model::sample::Sample;
use tare_model::trial::Flag;
use tare_model::turns::TurnsDone;
use tare_model::{count, fact, flag};

use crate::Driven;
use crate::requests::add_types;
use crate::yields::merge_steps;

/// What all guests came to: work, counts, turns, requests, histograms and samples are added, parts and facts are kept under the guest's
/// number. Metrics are left as the first guest's: the workload makes them anew. `None` without a guest.
pub fn together(guests: Vec<Driven>) -> Option<Driven> {
    let several = guests.len() > 1;
    // They all have their turns at the same moments.
    let turns: Vec<TurnsDone> = guests.iter().filter_map(|guest| guest.turns.clone()).collect();
    let all = (1..).zip(guests).map(|(number, guest)| numbered(guest, number, several)).reduce(add)?;
    Some(Driven { turns: TurnsDone::together(&turns), ..all })
}

/// A guest's figures under its number, from 1.
fn numbered(mut guest: Driven, number: u32, several: bool) -> Driven {
    guest.measurement.parts.iter_mut().for_each(|part| part.guest = number);
    if several {
        guest.invalid = guest.invalid.map(|why| format!("guest {number}: {why}"));
        guest.flags.iter_mut().filter(|flag| flag.kind != flag::UNSAFE).for_each(|flag| {
            flag.detail = format!("guest {number}: {}", flag.detail);
        });
    }
    if number > 1 {
        let facts = std::mem::take(&mut guest.facts);
        guest.facts = facts.into_iter().map(|(name, value)| (fact::of_guest(number, &name), value)).collect();
    }
    guest
}

/// Adds a guest's figures to those before it.
fn add(mut all: Driven, guest: Driven) -> Driven {
    all.window_ns = (all.window_ns.0.min(guest.window_ns.0), all.window_ns.1.max(guest.window_ns.1));
    all.work += guest.work;
    all.invalid = all.invalid.or(guest.invalid);
    for (name, count) in guest.measurement.counts {
        let largest = count::is_largest(&name);
        let sum = all.measurement.counts.entry(name).or_default();
        *sum = if largest { count.max(*sum) } else { *sum + count };
    }
    for (name, histogram) in guest.measurement.histograms {
        all.measurement.histograms.entry(name).or_default().merge(&histogram);
    }
    merge_steps(&mut all.measurement.steps, guest.measurement.steps);
    add_types(&mut all.measurement.requests, guest.measurement.requests);
    all.measurement.parts.extend(guest.measurement.parts);
    add_samples(&mut all.samples, guest.samples);
    // A fact that is the same in both is kept once.
    let differs =
        |name: &str, value: &String| fact::plain(name).1.is_none() || all.facts.get(fact::plain(name).0) != Some(value);
    let facts: Vec<(String, String)> = guest.facts.into_iter().filter(|(name, value)| differs(name, value)).collect();
    all.facts.extend(facts);
    let new: Vec<Flag> = guest.flags.into_iter().filter(|flag| !all.flags.contains(flag)).collect();
    all.flags.extend(new);
    let new: Vec<Deviation> = guest.deviations.into_iter().filter(|own| !all.deviations.contains(own)).collect();
    all.deviations.extend(new);
    all
}

/// Adds the rates of a guest's drivers to those of the others at the same moments; what has no partner stays by itself.
pub fn add_samples(all: &mut Vec<Sample>, guest: Vec<Sample>) {
    // Moments of one schedule differ by the clocks' uncertainty at most.
    const SAME_NS: u64 = 1_000_000;
    for sample in guest {
        let partner = all.iter_mut().find(|known| {
            known.series == sample.series
                && known.source == sample.source
                && known.at_ns.abs_diff(sample.at_ns) <= SAME_NS
        });
        match partner {
            Some(known) => known.value += sample.value,
            None => all.push(sample),
        }
    }
}
