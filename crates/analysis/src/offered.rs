//! The load that a trial was offered.

use tare_model::capacity::{LoadShare, metric};
use tare_model::count;
use tare_model::study::{Case, CaseLoad};
use tare_model::trial::{Measurement, TrialRecord};

use crate::distribution::completed;
use crate::run::Run;

/// The load of a guest, of all its drivers, in a case whose trials all have the same: clients, or arrivals a second. A share of another case's capacity is that of
/// the median over the baseline's completed trials, as the controller takes it. `None` where trials look for their load themselves.
pub(crate) fn fixed(run: &Run<'_>, case: &Case) -> Option<f64> {
    let (share, drivers) = match &case.load {
        CaseLoad::Fixed { load, guests } => return Some(load.number() * f64::from(guests.drivers.max(1))),
        CaseLoad::ShareOf { share, guests } => (share, guests.drivers),
        CaseLoad::Density { .. } | CaseLoad::Capacity(_) | CaseLoad::CpuTarget { .. } => return None,
    };
    let capacity = |record: &TrialRecord| completed(record)?.metrics.get(metric::CAPACITY).copied();
    let own =
        |record: &&TrialRecord| record.planned.case == share.case && record.planned.arm == run.plan.study.baseline;
    shared(share, drivers, run.trials.iter().filter(own).filter_map(capacity).collect())
}

/// The load of all drivers that is a share of the median of these capacities; `None` where none of them held anything.
pub(crate) fn shared(share: &LoadShare, drivers: u32, mut capacities: Vec<f64>) -> Option<f64> {
    capacities.retain(|held| held.is_finite() && *held > 0.0);
    capacities.sort_by(f64::total_cmp);
    let n = capacities.len();
    let median = f64::midpoint(*capacities.get(n.checked_sub(1)? / 2)?, *capacities.get(n / 2)?);
    let drivers = f64::from(drivers.max(1));
    Some(share.kind.at(median * share.share / drivers).number() * drivers)
}

/// The load of a guest that the figures of a trial are of: that which held, where it searched; else what it was offered.
pub(crate) fn of_trial(measurement: &Measurement, fixed: Option<f64>) -> Option<f64> {
    let found = measurement.search.as_ref().map(|search| search.held);
    let counted = || measurement.counts.get(count::OFFERED_LOAD_MAX).map(|load| *load as f64);
    found.or_else(counted).or(fixed)
}
