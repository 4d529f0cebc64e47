//! What qualifies the figures of an arm: counts, lateness, rates, facts.

use std::collections::BTreeMap;

use tare_model::findings::ArmAccount;
use tare_model::study::Case;
use tare_model::trial::{Measurement, TrialRecord};
use tare_model::{Histogram, count, histogram};

use crate::distribution::{self, completed};
use crate::{estimate, offered, student};

/// The end of the name of a fact that names a machine.
const NAMES_A_MACHINE: &str = "host name";

/// The account of an arm's completed trials; `None` when there is none. `redacted`: without names of machines (a native
/// guest has the host's own).
/// `fixed`: the load of a guest, where all trials of the case have the same.
pub(crate) fn of_arm(
    arm: &str,
    trials: &[&TrialRecord],
    case: &Case,
    fixed: Option<f64>,
    redacted: bool,
) -> Option<ArmAccount> {
    let done: Vec<(&TrialRecord, &Measurement)> =
        trials.iter().filter_map(|record| Some((*record, completed(record)?))).collect();
    let (first, _) = done.first()?;
    let late: Vec<&Histogram> =
        done.iter().filter_map(|(_, m)| m.histograms.get(histogram::LATENESS)).filter(|h| !h.is_empty()).collect();
    let offered_per_s = offered(case, fixed, done.iter().map(|(_, m)| *m));
    let rates: Vec<f64> = done.iter().filter_map(|(record, m)| rate(record, m, offered_per_s.is_some())).collect();
    Some(ArmAccount {
        arm: arm.to_owned(),
        trials: done.len() as u32,
        counts: counts(done.iter().map(|(_, m)| *m)),
        lateness: if offered_per_s.is_some() { distribution::quantiles(&late).0 } else { Vec::new() },
        offered_per_s,
        achieved_per_s: estimate::of_values(&rates),
        facts: first
            .facts
            .iter()
            .filter(|(name, _)| !(redacted && name.ends_with(NAMES_A_MACHINE)))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    })
}

/// Operations a second that were to be started by all drivers of all guests together. Where guests are added: at the largest
/// number that held, which is where the other figures are from, mean over the trials in which one did. Where a load is looked for: the same of that.
fn offered<'a>(case: &Case, fixed: Option<f64>, measurements: impl Iterator<Item = &'a Measurement>) -> Option<f64> {
    if case.load.is_density() {
        let held = measurements.filter_map(|m| {
            let scale_up = m.scale_up.as_ref().filter(|scale_up| scale_up.held() > 0)?;
            Some(scale_up.offered_per_guest_per_s? * f64::from(scale_up.held()))
        });
        return student::mean(&held.collect::<Vec<f64>>());
    }
    if case.load.kind().is_closed() {
        return None;
    }
    let found: Vec<f64> = measurements.filter_map(|m| offered::of_trial(m, fixed)).collect();
    Some(student::mean(&found)? * f64::from(case.load.guests().count.max(1)))
}

/// Operations a second of the measured time; `None` where no operations are counted. In an open loop whose arrivals are sessions
/// of many operations each: sessions a second, to stand beside what was offered.
fn rate(record: &TrialRecord, measurement: &Measurement, open: bool) -> Option<f64> {
    let seconds = record.measured_s().filter(|seconds| *seconds > 0.0)?;
    let sessions = measurement.counts.get(count::SESSIONS_BEGAN).filter(|_| open);
    let began = *sessions.or_else(|| measurement.counts.get(count::OPERATIONS)).filter(|n| **n > 0)?;
    Some(began as f64 / seconds)
}

fn counts<'a>(measurements: impl Iterator<Item = &'a Measurement>) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<String, u64> = count::MISSING.iter().map(|name| ((*name).to_owned(), 0)).collect();
    for (name, n) in measurements.flat_map(|m| &m.counts) {
        let known = counts.entry(name.clone()).or_default();
        *known = if count::is_largest(name) { (*known).max(*n) } else { known.saturating_add(*n) };
        if count::reason(name).is_some() {
            let all = counts.entry(count::ERRORS.to_owned()).or_default();
            *all = all.saturating_add(*n);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::load::{Arrivals, LoadModel};
    use tare_model::study::{CaseLoad, Guests};
    use tare_model::trial::Outcome;
    use tare_model::{Rate, Span};
    use tare_record::testing;

    #[test]
    fn counts_add_up_over_blocks_maxima_do_not_and_nothing_lost_is_reported_as_zero() {
        let plan = testing::plan(2);
        let mut trials: Vec<_> = (0..3).map(|index| testing::trial(&plan, index)).collect();
        for (record, backlog) in trials.iter_mut().zip([3, 9, 1000]) {
            if let Outcome::Completed(m) = &mut record.outcome {
                m.counts = BTreeMap::from([
                    ("operations".to_owned(), 800),
                    ("errors: reset".to_owned(), 2),
                    ("backlog_max".to_owned(), backlog),
                ]);
                m.histograms.insert("lateness".to_owned(), m.histograms["response"].clone());
            }
        }
        trials[0].facts.insert("guest host name".to_owned(), "secret".to_owned());
        trials[2].outcome = Outcome::Invalid { reason: "x".to_owned() };
        let trials: Vec<_> = trials.iter().collect();
        let mut case = plan.study.cases[0].clone();
        case.load = LoadModel::Closed { clients: 1, think_time: Span::ZERO }.into();
        let account = of_arm("native", &trials, &case, None, true).unwrap();
        let count = |name: &str| account.counts[name];
        assert_eq!((count("operations"), count("errors: reset"), count("errors")), (1600, 4, 4));
        assert_eq!((count("backlog_max"), count("lost"), count("unfinished"), account.trials), (9, 0, 0, 2));
        assert!(account.lateness.is_empty() && account.offered_per_s.is_none());
        assert!((account.achieved_per_s.unwrap().value - 100.0).abs() < 1e-9, "800 in 8 s");
        let mut in_turns = trials[0].clone();
        let taken = testing::turns_trial(&testing::turns_plan(1), 0).turns;
        in_turns.turns = taken.map(|mut taken| {
            taken.done.measured_ns = 2_000_000_000;
            taken
        });
        let own = of_arm("native", &[&in_turns], &case, None, true).unwrap();
        assert!((own.achieved_per_s.unwrap().value - 400.0).abs() < 1e-9, "800 in 2 s of its own");
        assert_eq!(account.facts["congestion control"], "cubic");
        assert!(!account.facts.contains_key("guest host name"), "redacted");
        let load = LoadModel::Open { rate: Rate(100.0), arrivals: Arrivals::Poisson, connections: 1 };
        case.load = load.into();
        let mut sessions = trials[0].clone();
        if let Outcome::Completed(m) = &mut sessions.outcome {
            m.counts.insert("sessions_began".to_owned(), 80);
        }
        let achieved = of_arm("native", &[&sessions], &case, Some(100.0), false).unwrap().achieved_per_s.unwrap();
        assert!((achieved.value - 10.0).abs() < 1e-9, "80 sessions in 8 s, of ten operations each");
        let account = of_arm("native", &trials, &case, Some(100.0), false).unwrap();
        assert_eq!((account.offered_per_s, account.facts.len()), (Some(100.0), 2));
        assert!(account.lateness.iter().any(|(q, _)| *q == 0.5));
        assert_eq!(of_arm("native", &trials[2..], &case, None, false), None);
        case.load = CaseLoad::Fixed { load, guests: Guests { count: 3, drivers: 2 } };
        let several = of_arm("native", &trials, &case, Some(200.0), false).unwrap();
        assert_eq!(several.offered_per_s, Some(600.0), "each guest has the rate of all its drivers");
    }
}
