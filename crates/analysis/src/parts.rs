//! The metric that adds up, by guest and driver, where a trial has several of them.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::findings::{ArmParts, PartEstimate};
use tare_model::metric::{MetricSpec, Unit};
use tare_model::trial::{Measurement, Part, TrialRecord};

use crate::distribution::completed;
use crate::estimate;

/// Share of a trial's value by which the sum over its guests may miss it and still count as adding up.
const SUM_MISS_MAX: f64 = 0.01;

/// What one guest of one trial contributed.
#[derive(Debug, Default)]
struct Guest {
    whole: Option<f64>,
    drivers: BTreeMap<u32, f64>,
    instances: BTreeMap<u32, f64>,
}

impl Guest {
    /// The figure of the whole guest where it was reported, else the sum over its drivers, or over its instances.
    fn value(&self) -> f64 {
        let parts = if self.drivers.is_empty() { &self.instances } else { &self.drivers };
        self.whole.unwrap_or_else(|| parts.values().sum())
    }
}

/// The guests of a trial; empty where the metric was not reported by guest, or where a value of it is not a number.
fn guests(measurement: &Measurement, metric: &str) -> BTreeMap<u32, Guest> {
    let mut guests: BTreeMap<u32, Guest> = BTreeMap::new();
    for part in &measurement.parts {
        let Some(&value) = part.metrics.get(metric) else { continue };
        if !value.is_finite() {
            return BTreeMap::new();
        }
        let guest = guests.entry(part.guest).or_default();
        match (part.driver, part.instance) {
            (None, None) => guest.whole = Some(value),
            (Some(driver), None) => {
                guest.drivers.insert(driver, value);
            }
            // An instance's share of what several drivers did is that of all of them.
            (_, Some(instance)) => *guest.instances.entry(instance).or_default() += value,
        }
    }
    guests
}

/// The completed trials that tell the metric apart.
fn by_guest<'a>(trials: &[&'a TrialRecord], metric: &str) -> Vec<(&'a Measurement, BTreeMap<u32, Guest>)> {
    let reported = trials.iter().filter_map(|record| completed(record)).map(|m| (m, guests(m, metric)));
    reported.filter(|(_, guests)| !guests.is_empty()).collect()
}

/// Whether a trial tells any metric apart by guest or driver; instances of one guest are neither.
pub(crate) fn any_in(trials: &[&TrialRecord]) -> bool {
    let apart = |part: &Part| part.instance.is_none() || part.driver.is_some() || part.guest > 1;
    trials.iter().filter_map(|record| completed(record)).any(|m| m.parts.iter().any(apart))
}

/// Whether the metric of each trial that tells it apart is the sum over its guests, which a response time, for one, is
/// not. True of trials that tell nothing apart.
pub(crate) fn add_up(trials: &[&TrialRecord], spec: &MetricSpec) -> bool {
    let is_rate = matches!(spec.unit, Unit::OperationsPerSecond | Unit::BitsPerSecond | Unit::Other(_));
    let reported = by_guest(trials, &spec.id);
    let sums = || {
        reported.iter().all(|(measurement, guests)| {
            let (sum, all) = (sum(guests), measurement.metrics.get(&spec.id).copied().unwrap_or(f64::NAN));
            (sum - all).abs() <= SUM_MISS_MAX * all.abs()
        })
    };
    reported.is_empty() || (is_rate && sums())
}

fn sum(guests: &BTreeMap<u32, Guest>) -> f64 {
    guests.values().map(Guest::value).sum()
}

/// The parts of an arm; `None` where its trials have but one guest of one driver, or tell nothing apart. The metric must
/// [`add_up`].
///
/// Each figure is the median over the trials of what that guest or driver did in them. The total is the median over the
/// trials of each trial's own sum: the sum of medians would be that of a trial that never was.
pub(crate) fn of_arm(arm: &str, trials: &[&TrialRecord], spec: &MetricSpec) -> Option<ArmParts> {
    let reported = by_guest(trials, &spec.id);
    let keys: BTreeSet<(u32, Option<u32>)> = reported.iter().flat_map(|(_, guests)| keys(guests)).collect();
    let drivers = keys.iter().filter(|(_, driver)| driver.is_some()).count();
    let guests = keys.iter().filter(|(_, driver)| driver.is_none()).count();
    if guests < 2 && drivers < 2 {
        return None;
    }
    let mut parts = Vec::new();
    for (guest, driver) in in_order(keys) {
        let of = |(_, guests): &(&Measurement, BTreeMap<u32, Guest>)| {
            let found = guests.get(&guest)?;
            driver.map_or_else(|| Some(found.value()), |driver| found.drivers.get(&driver).copied())
        };
        let values: Vec<f64> = reported.iter().filter_map(of).collect();
        parts.push(PartEstimate { guest, driver, estimate: estimate::median(&values)? });
    }
    let sums: Vec<f64> = reported.iter().map(|(_, guests)| sum(guests)).collect();
    let total = estimate::median(&sums)?;
    Some(ArmParts { arm: arm.to_owned(), metric: spec.id.clone(), parts, total })
}

/// Each guest and each of its drivers.
fn keys(guests: &BTreeMap<u32, Guest>) -> Vec<(u32, Option<u32>)> {
    let of = |(guest, found): (&u32, &Guest)| {
        let guest = *guest;
        let drivers: Vec<_> = found.drivers.keys().map(|driver| (guest, Some(*driver))).collect();
        std::iter::once((guest, None)).chain(drivers)
    };
    guests.iter().flat_map(of).collect()
}

/// By guest, its drivers first and the whole of it after them.
fn in_order(keys: BTreeSet<(u32, Option<u32>)>) -> Vec<(u32, Option<u32>)> {
    let mut keys: Vec<_> = keys.into_iter().collect();
    keys.sort_by_key(|(guest, driver)| (*guest, driver.is_none(), *driver));
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::metric::Better;
    use tare_model::trial::Outcome;
    use tare_record::testing;

    fn spec() -> MetricSpec {
        MetricSpec::new("opm", "orders a minute", Unit::Other("orders/min".into()), Better::Higher).primary()
    }

    /// A trial of two guests with two drivers each, and no figure of a whole guest.
    fn trial(index: u32, values: [f64; 4]) -> TrialRecord {
        let mut record = testing::trial(&testing::plan(3), index);
        if let Outcome::Completed(m) = &mut record.outcome {
            m.metrics.insert("opm".to_owned(), values.iter().sum());
            let part = |(n, value): (u32, f64)| Part {
                guest: n / 2 + 1,
                driver: Some(n % 2 + 1),
                metrics: BTreeMap::from([("opm".to_owned(), value)]),
                instance: None,
            };
            m.parts = (0..).zip(values).map(part).collect();
        }
        record
    }

    #[test]
    fn the_total_is_the_median_of_sums_and_not_the_sum_of_medians() {
        let records = [
            trial(0, [10.0, 20.0, 30.0, 40.0]),
            trial(1, [30.0, 10.0, 20.0, 10.0]),
            trial(2, [20.0, 30.0, 10.0, 20.0]),
        ];
        let trials: Vec<_> = records.iter().collect();
        assert!(add_up(&trials, &spec()));
        let found = of_arm("native", &trials, &spec()).unwrap();
        let of = |part: &PartEstimate| (part.guest, part.driver, part.estimate.value);
        let expected = [
            (1, Some(1), 20.0),
            (1, Some(2), 20.0),
            (1, None, 40.0),
            (2, Some(1), 20.0),
            (2, Some(2), 20.0),
            (2, None, 30.0),
        ];
        assert_eq!(found.parts.iter().map(of).collect::<Vec<_>>(), expected);
        assert_eq!((found.total.value, found.total.n, found.total.low), (80.0, 3, None), "sums of 100, 70 and 80");
    }

    #[test]
    fn what_does_not_add_up_is_detected_and_one_guest_of_one_driver_has_no_parts() {
        let mut record = trial(0, [1.0, 2.0, 3.0, 4.0]);
        let slow = MetricSpec::new("opm", "time", Unit::Seconds, Better::Lower);
        assert!(!add_up(&[&record], &slow), "times do not add up whatever their figures");
        if let Outcome::Completed(m) = &mut record.outcome {
            m.metrics.insert("opm".to_owned(), 11.0);
        }
        assert!(!add_up(&[&record], &spec()));
        if let Outcome::Completed(m) = &mut record.outcome {
            m.parts.truncate(1);
        }
        assert_eq!(of_arm("native", &[&record], &spec()), None);
        if let Outcome::Completed(m) = &mut record.outcome {
            m.parts = vec![Part {
                guest: 1,
                driver: None,
                metrics: BTreeMap::from([("opm".to_owned(), f64::NAN)]),
                instance: None,
            }];
        }
        assert!(add_up(&[&record], &spec()) && of_arm("native", &[&record], &spec()).is_none());
    }

    #[test]
    fn instances_of_a_guest_are_parts_of_it_and_no_guests() {
        let part = |guest, instance, value| Part {
            guest,
            driver: None,
            instance,
            metrics: BTreeMap::from([("opm".to_owned(), value)]),
        };
        let with = |parts: Vec<Part>, all: f64| {
            let mut record = testing::trial(&testing::plan(1), 0);
            let Outcome::Completed(m) = &mut record.outcome else { panic!("completed") };
            m.metrics.insert("opm".to_owned(), all);
            m.parts = parts;
            record
        };
        let one = with(vec![part(1, Some(1), 10.0), part(1, Some(2), 20.0)], 30.0);
        assert!(add_up(&[&one], &spec()), "a guest does what its instances do");
        assert!(!any_in(&[&one]) && of_arm("native", &[&one], &spec()).is_none(), "there is but one guest");
        // Where the whole guest has a figure of its own, its instances change nothing, in whatever order they stand.
        for turned in [false, true] {
            let mut parts =
                vec![part(1, None, 30.0), part(1, Some(1), 10.0), part(1, Some(2), 20.0), part(2, Some(1), 5.0)];
            if turned {
                parts.reverse();
            }
            let two = with(parts, 35.0);
            assert!(add_up(&[&two], &spec()) && any_in(&[&two]));
            let found = of_arm("native", &[&two], &spec()).unwrap();
            let of = |part: &PartEstimate| (part.guest, part.driver, part.estimate.value);
            assert_eq!(found.parts.iter().map(of).collect::<Vec<_>>(), [(1, None, 30.0), (2, None, 5.0)]);
            assert_eq!(found.total.value, 35.0);
        }
    }

    #[test]
    fn a_guest_that_is_missing_in_one_trial_is_estimated_from_the_others() {
        let mut records = [trial(0, [10.0; 4]), trial(1, [20.0; 4]), trial(2, [30.0; 4])];
        if let Outcome::Completed(m) = &mut records[2].outcome {
            m.parts.retain(|part| part.guest == 1);
            m.metrics.insert("opm".to_owned(), 60.0);
        }
        let found = of_arm("native", &records.iter().collect::<Vec<_>>(), &spec()).unwrap();
        let second = found.parts.iter().find(|part| part.guest == 2 && part.driver.is_none()).unwrap();
        assert_eq!((second.estimate.value, second.estimate.n), (30.0, 2));
    }
}
