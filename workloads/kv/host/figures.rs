//! The figures of a trial, made the same way from one driver, from several, and from several guests.

use tare_model::drive::DriveResult;
use tare_model::metric::{Better, MetricSpec, Unit};

use super::spec::KvDone;
use crate::operations::{self, VerdictOn};
use crate::yields::from_result;
use crate::{Driven, UnitOfWork};

const GETS: &str = "gets";
const MISSES: &str = "misses";
const HIT_SHARE: &str = "hit_share";

/// All metrics, the one that the verdict is about first.
pub(super) fn specs(verdict: VerdictOn) -> Vec<MetricSpec> {
    let own = MetricSpec::new(HIT_SHARE, "share of GETs with a value", Unit::Share, Better::Higher);
    operations::specs(verdict, [own])
}

/// What the drivers of a guest came to, whose results are merged. `depth` requests were sent together.
pub(super) fn yields(result: DriveResult, done: &KvDone, depth: u32, eviction: bool) -> Driven {
    let (late, failed) = (operations::late(&result), operations::failed(&result));
    let mut driven = from_result(result, UnitOfWork::Operation);
    let steady = &done.steady;
    let counts = [
        (GETS, steady.gets),
        ("hits", steady.gets - steady.misses.min(steady.gets)),
        (MISSES, steady.misses),
        ("sets", steady.sets),
        ("requests in all phases", done.all.gets + done.all.sets),
        ("requests in doubt", done.in_doubt.0 + done.in_doubt.1),
        ("refused", done.refused),
        ("wrong answers", done.wrong),
    ];
    driven.measurement.counts.extend(counts.map(|(name, count)| (name.to_owned(), count)));
    if let Some(late) = late {
        driven.measurement.counts.insert(operations::LATE.to_owned(), late * u64::from(depth));
    }
    driven.invalid = wrong(done, eviction).or(failed);
    driven
}

/// Why figures must not be used in which answers were wrong.
fn wrong(done: &KvDone, eviction: bool) -> Option<String> {
    if done.wrong > 0 {
        return Some(format!("{} answers were wrong; the first: {}", done.wrong, done.first_wrong));
    }
    let misses = done.all.misses;
    (misses > 0 && !eviction)
        .then(|| format!("{misses} GETs found no value, although all keys were set and the server may drop none"))
}

/// The trial's figures from those of its guests.
pub(super) fn combine(guests: Vec<Driven>, verdict: VerdictOn) -> Option<Driven> {
    operations::combine(guests, verdict, |figures, measured| {
        let count = |name: &str| measured.counts.get(name).map_or(0.0, |count| *count as f64);
        figures.add(HIT_SHARE, Some(1.0 - count(MISSES) / count(GETS)));
    })
}

#[cfg(test)]
#[path = "../tests/figures.rs"]
mod tests;
