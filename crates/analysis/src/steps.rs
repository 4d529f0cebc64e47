//! Where the time of an operation goes, step by step.

use tare_model::Histogram;
use tare_model::findings::{ArmSteps, StepFindings};
use tare_model::trial::{Measurement, Step, TrialRecord};
use tare_model::{count, histogram};

use crate::distribution::{self, completed};
use crate::estimate;

/// Percentiles of a step that are reported, where enough times lie beyond.
const QUANTILES: [f64; 4] = [0.50, 0.90, 0.99, 0.999];

/// Share by which the steps may exceed the operation that they are parts of: operations at the edges of the window have
/// steps inside it and others outside.
const OVERRUN_MAX: f64 = 0.02;

const SECONDS: f64 = 1e-9;

/// The steps of an arm's completed trials; `None` where they time none, or counted no operation.
///
/// Of each trial: the time that all its operations spent in a step, over their number. A step that a trial never had
/// counts as no time there.
pub(crate) fn of_arm(arm: &str, trials: &[&TrialRecord]) -> Option<ArmSteps> {
    let timed: Vec<(&Measurement, f64)> = trials
        .iter()
        .filter_map(|record| completed(record))
        .filter(|m| !m.steps.is_empty())
        .filter_map(|m| Some((m, operations(m)?)))
        .collect();
    let steps: Vec<StepFindings> = heads(&timed).into_iter().filter_map(|head| step(head, &timed)).collect();
    if steps.is_empty() {
        return None;
    }
    let wholes: Vec<f64> = timed.iter().filter_map(|(m, _)| whole(m)?.mean().map(|ns| ns * SECONDS)).collect();
    let operation_s = estimate::of_values(&wholes);
    let within: f64 = steps.iter().filter(|step| step.within).map(|step| step.of_operation_s.value).sum();
    // Estimates of parts need not add up to that of the whole to the last digit, and no time is less than none.
    let fits = |whole: f64| within <= whole * (1.0 + OVERRUN_MAX);
    let rest_s = operation_s.as_ref().filter(|whole| fits(whole.value)).map(|whole| (whole.value - within).max(0.0));
    Some(ArmSteps { arm: arm.to_owned(), steps, operation_s, rest_s })
}

/// Whether the steps exceed the operation that they are parts of.
pub(crate) const fn overrun(steps: &ArmSteps) -> bool {
    steps.operation_s.is_some() && steps.rest_s.is_none()
}

/// The time of whole operations: from their actual start, because what waited to be started was in no step.
fn whole(measurement: &Measurement) -> Option<&Histogram> {
    let named = |name: &str| measurement.histograms.get(name).filter(|times| !times.is_empty());
    named(histogram::SERVICE).or_else(|| named(histogram::RESPONSE))
}

/// Operations whose steps were timed. In a closed loop, whose service times are the response times, those that the end of the run cut off
/// are among both, and in no count of what was done.
fn operations(measurement: &Measurement) -> Option<f64> {
    let counted = measurement.counts.get(count::OPERATIONS).copied().filter(|n| *n > 0);
    let closed = measurement.histograms.get(histogram::SERVICE) == measurement.histograms.get(histogram::RESPONSE);
    let timed = whole(measurement).map(|times| times.count() + times.given_up).filter(|n| *n > 0);
    counted.filter(|_| !closed).or(timed).or(counted).map(|n| n as f64)
}

/// Each step by its name, in the order of the first trial that has it.
fn heads<'a>(timed: &[(&'a Measurement, f64)]) -> Vec<&'a Step> {
    let mut heads: Vec<&Step> = Vec::new();
    for step in timed.iter().flat_map(|(m, _)| &m.steps) {
        if !heads.iter().any(|known| known.name == step.name) {
            heads.push(step);
        }
    }
    heads
}

fn step(head: &Step, timed: &[(&Measurement, f64)]) -> Option<StepFindings> {
    let of = |m: &&Measurement| m.steps.iter().find(|step| step.name == head.name).map(|step| step.times.clone());
    let times: Vec<(Histogram, f64)> = timed.iter().map(|(m, n)| (of(m).unwrap_or_default(), *n)).collect();
    let seconds: Vec<f64> = times.iter().map(|(times, n)| times.sum as f64 * SECONDS / n).collect();
    let often: f64 = times.iter().map(|(times, n)| times.count() as f64 / n).sum();
    let blocks: Vec<&Histogram> = times.iter().map(|(times, _)| times).filter(|times| !times.is_empty()).collect();
    let supported = distribution::quantiles(&blocks).0.into_iter();
    Some(StepFindings {
        name: head.name.clone(),
        within: head.within,
        per_operation: often / times.len() as f64,
        of_operation_s: estimate::of_values(&seconds)?,
        quantiles: supported.filter(|(q, _)| QUANTILES.contains(q)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::histogram::Bin;
    use tare_model::trial::Outcome;
    use tare_record::testing;

    fn times(us: u64, count: u64) -> Histogram {
        let ns = us * 1000;
        Histogram {
            bins: vec![Bin { low: ns, high: ns, count }],
            min: ns,
            max: ns,
            sum: u128::from(ns * count),
            ..Histogram::default()
        }
    }

    /// 1,000 orders of 10 ms: one login of 2 ms in four of five, three browses of 1.5 ms, and prices outside.
    fn record(index: u32, browse_us: u64) -> TrialRecord {
        let mut record = testing::trial(&testing::plan(3), index);
        if let Outcome::Completed(m) = &mut record.outcome {
            m.counts.insert("operations".to_owned(), 1000);
            m.histograms.insert("service".to_owned(), times(10_000, 1000));
            let step = |name: &str, within, times| Step { name: name.to_owned(), within, times };
            m.steps = vec![
                step("log in", true, times(2000, 800)),
                step("browse", true, times(browse_us, 3000)),
                step("read prices", false, times(400, 1000)),
            ];
        }
        record
    }

    #[test]
    fn the_steps_and_the_rest_make_up_an_operation() {
        let records: Vec<_> = (0..6).map(|index| record(index, 1500)).collect();
        let found = of_arm("native", &records.iter().collect::<Vec<_>>()).unwrap();
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        let of = |n: usize| &found.steps[n];
        near(of(0).of_operation_s.value, 1.6e-3);
        near(of(0).per_operation, 0.8);
        near(of(1).of_operation_s.value, 4.5e-3);
        near(of(1).per_operation, 3.0);
        assert!(of(1).of_operation_s.low.is_some(), "six trials make an interval");
        near(found.operation_s.as_ref().unwrap().value, 10e-3);
        near(found.rest_s.unwrap(), 3.9e-3);
        assert!(!of(2).within, "prices are read outside the timer, and are no part of the rest either");
        let reported: Vec<f64> = of(0).quantiles.iter().map(|(q, _)| *q).collect();
        assert_eq!(reported, [0.5, 0.9, 0.99], "480 of 4,800 beyond p90, 48 beyond p99, not 10 beyond p99.9");
        near(of(1).quantiles[0].1.value, 1.5e-3);
    }

    #[test]
    fn operations_that_the_end_cut_off_are_parts_of_the_mean_and_of_its_steps() {
        let cut = |index: u32| {
            let mut record = record(index, 1500);
            if let Outcome::Completed(m) = &mut record.outcome {
                // A hundred more, of 20 ms each so far.
                let mut all = times(10_000, 1000);
                all.merge(&times(20_000, 100));
                m.histograms.insert("response".to_owned(), all.clone());
                m.histograms.insert("service".to_owned(), all);
                m.steps.push(Step { name: "cut off".to_owned(), within: true, times: times(20_000, 100) });
            }
            record
        };
        let records: Vec<_> = (0..3).map(cut).collect();
        let found = of_arm("native", &records.iter().collect::<Vec<_>>()).unwrap();
        let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        near(found.operation_s.as_ref().unwrap().value, 12.0 / 1100.0);
        let last = found.steps.last().unwrap();
        near(last.of_operation_s.value, 2.0 / 1100.0);
        near(last.per_operation, 100.0 / 1100.0);
        near(found.rest_s.unwrap(), 3.9 / 1100.0);
    }

    #[test]
    fn a_step_that_a_trial_never_had_took_no_time_there_and_rounding_makes_no_negative_rest() {
        let mut records: Vec<_> = (0..2).map(|index| record(index, 2800)).collect();
        if let Outcome::Completed(m) = &mut records[1].outcome {
            m.steps.truncate(2);
        }
        let found = of_arm("native", &records.iter().collect::<Vec<_>>()).unwrap();
        assert!((found.steps[2].of_operation_s.value - 0.2e-3).abs() < 1e-12, "{:?}", found.steps[2]);
        assert!((found.steps[2].per_operation - 0.5).abs() < 1e-12);
        assert!(found.rest_s.is_some_and(|rest| (0.0..1e-12).contains(&rest)), "1.6 and 8.4 ms are all of it");
        let beyond = of_arm("native", &[&record(0, 3500)]).unwrap();
        assert_eq!((beyond.rest_s, beyond.operation_s.is_some()), (None, true), "12.1 ms are no parts of 10");
        assert_eq!(of_arm("native", &[&testing::trial(&testing::plan(1), 0)]), None);
    }
}
