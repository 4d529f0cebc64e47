//! What a reader must know about a trial when trusting it, as far as its record tells.

use tare_model::Span;
use tare_model::count;
use tare_model::trial::{Flag, TrialRecord};

use crate::distribution::completed;
use crate::series;
use crate::steady;

/// Share of the SUT's CPU time that may be stolen unsaid.
pub(crate) const STEAL_MAX: f64 = 0.01;
/// Sample intervals between two looks at the host from which samples count as lost.
pub(crate) const GAP_INTERVALS_MAX: f64 = 3.0;

/// Flags of a completed trial: those that it was stored with, and those that follow from its record.
/// A kind that it was stored with is not added once more.
pub(crate) fn of_trial(record: &TrialRecord, sample_interval: Span) -> Vec<Flag> {
    let mut flags = record.flags.clone();
    let found =
        [steal(record), lost_samples(record, sample_interval), not_steady(record), parity(record), adrift(record)];
    // A search is stored with the flags of its last iteration; the figures rest on the others at that load as well.
    let search = completed(record).and_then(|measurement| measurement.search.as_ref());
    let iterations = search.into_iter().flat_map(|search| search.iterations()).flat_map(|probe| probe.flags.clone());
    for flag in found.into_iter().flatten().chain(dropped(record)).chain(iterations) {
        if !record.flags.iter().any(|known| known.kind == flag.kind) {
            flags.push(flag);
        }
    }
    flags
}

fn flag(kind: &str, detail: String) -> Option<Flag> {
    Some(Flag { kind: kind.to_owned(), detail })
}

/// CPU time that the machine underneath took.
pub(crate) fn steal(record: &TrialRecord) -> Option<Flag> {
    let cpu = record.cpu?;
    let share = cpu.steal_s / (cpu.window_s * f64::from(cpu.cpus));
    if !share.is_finite() || share <= STEAL_MAX {
        return None;
    }
    let (share, limit) = (share * 100.0, STEAL_MAX * 100.0);
    flag("steal", format!("{share:.1} % of the SUT's CPU time was taken by the machine under it (limit {limit:.0} %)"))
}

fn lost_samples(record: &TrialRecord, sample_interval: Span) -> Option<Flag> {
    let limit = sample_interval.as_secs_f64() * GAP_INTERVALS_MAX;
    let gap = series::longest_gap_s(record).filter(|&gap| limit > 0.0 && gap > limit)?;
    flag("lost-samples", format!("no sample of the host for {gap:.2} s (limit {limit:.2} s)"))
}

fn not_steady(record: &TrialRecord) -> Option<Flag> {
    let rate = steady::unsteady(&series::rate_in_window(record)).map(|what| format!("the driver's rate {what}"));
    // An open loop, and users who think, hold the rate whatever the server does.
    let response = || steady::unsteady(&series::response_in_window(record));
    flag("not-steady", rate.or_else(|| Some(format!("the response time {}", response()?)))?)
}

/// CPUs that were held busy to a share on average, and drifted through it.
fn adrift(record: &TrialRecord) -> Option<Flag> {
    let what = steady::unsteady(&completed(record)?.cpu_search.as_ref()?.course)?;
    flag("cpu-adrift", format!("the held share of the guest's CPUs {what}"))
}

fn parity(record: &TrialRecord) -> Option<Flag> {
    let unequal: Vec<_> = record
        .parity
        .iter()
        .filter(|row| !row.equal)
        .map(|row| {
            let granted = row.granted.as_deref().unwrap_or("nothing");
            format!("{}: asked {}, granted {granted}", row.resource, row.asked)
        })
        .collect();
    if unequal.is_empty() { None } else { flag("parity", unequal.join("; ")) }
}

/// Operations that are not among the figures though they were due.
fn dropped(record: &TrialRecord) -> Vec<Flag> {
    let Some(measurement) = completed(record) else { return Vec::new() };
    let count = |name: &str| measurement.counts.get(name).copied().unwrap_or(0);
    let mut flags = Vec::new();
    let unfinished = count(count::UNFINISHED);
    if unfinished > 0 {
        let detail = format!("{unfinished} operations due in the window were not done when the load stopped");
        flags.extend(flag("unfinished", detail));
    }
    let lost = count(count::LOST);
    if lost > 0 {
        flags.extend(flag("lost", format!("{lost} exchanges were lost")));
    }
    let errors: Vec<_> = measurement
        .counts
        .iter()
        .filter(|(name, n)| **n > 0 && (count::reason(name).is_some() || *name == count::ERRORS))
        .map(|(name, n)| format!("{n} {}", count::reason(name).unwrap_or(name)))
        .collect();
    if !errors.is_empty() {
        flags.extend(flag("errors", format!("operations failed: {}", errors.join("; "))));
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::metric::common;
    use tare_model::sample::{Sample, Source};
    use tare_model::trial::Outcome;
    use tare_record::testing;

    fn kinds(change: impl FnOnce(&mut TrialRecord)) -> Vec<String> {
        let plan = testing::plan(1);
        let mut record = testing::trial(&plan, 0);
        change(&mut record);
        of_trial(&record, plan.study.lab.sample_interval).into_iter().map(|flag| flag.kind).collect()
    }

    fn count(record: &mut TrialRecord, name: &str, n: u64) {
        if let Outcome::Completed(m) = &mut record.outcome {
            m.counts.insert(name.to_owned(), n);
        }
    }

    #[test]
    fn each_fault_raises_its_flag_and_a_clean_trial_none() {
        assert!(kinds(|_| {}).is_empty());
        assert_eq!(kinds(|r| r.cpu.as_mut().unwrap().steal_s = 0.09), ["steal"]);
        assert!(kinds(|r| r.cpu.as_mut().unwrap().steal_s = 0.07).is_empty(), "0.9 % is within the limit");
        assert_eq!(kinds(|r| r.parity[0].equal = false), ["parity"]);
        assert_eq!(kinds(|r| count(r, "lost", 3)), ["lost"]);
        assert_eq!(kinds(|r| count(r, "unfinished", 1)), ["unfinished"]);
        assert_eq!(kinds(|r| count(r, "errors: reset", 2)), ["errors"]);
        let window = 103_000_000_000..104_000_000_000u64;
        assert_eq!(
            kinds(|r| r.samples.retain(|s| s.source != Source::Host || !window.contains(&s.at_ns))),
            ["lost-samples"]
        );
        let slow = |r: &mut TrialRecord| {
            r.samples
                .iter_mut()
                .filter(|s| s.source == Source::Client && s.at_ns > 105_000_000_000)
                .for_each(|s| s.value *= 0.8);
        };
        assert_eq!(kinds(slow), ["not-steady"]);
    }

    #[test]
    fn a_response_time_that_drifts_at_a_rate_that_is_held_is_not_steady() {
        let plan = testing::plan(1);
        let flags = |grows: f64| {
            let mut record = testing::trial(&plan, 0);
            let (start, end) = record.window_ns.unwrap();
            let busy = |sample: &Sample| {
                let along = sample.at_ns.saturating_sub(start) as f64 / (end - start) as f64;
                let value = sample.value * 1e-3 * (1.0 + grows * along);
                Sample { series: common::RESPONSE_SUM.to_owned(), value, ..sample.clone() }
            };
            let client = record.samples.iter().filter(|sample| sample.source == Source::Client);
            let sums: Vec<Sample> = client.map(busy).collect();
            record.samples.extend(sums);
            of_trial(&record, plan.study.lab.sample_interval)
        };
        assert_eq!(flags(0.03), [], "3 % is within what is allowed");
        let drifted = flags(0.5);
        assert_eq!(drifted[0].kind, "not-steady");
        assert!(drifted[0].detail.starts_with("the response time drifted by +"), "{}", drifted[0].detail);
    }

    #[test]
    fn a_trial_in_turns_is_judged_turn_by_turn() {
        let plan = testing::turns_plan(1);
        let kinds = |change: fn(&mut tare_model::turns::TurnsDone)| -> Vec<String> {
            let mut record = testing::turns_trial(&plan, 0);
            // Between its turns an arm does nothing.
            let client = record.samples.iter_mut().filter(|sample| sample.source == Source::Client).enumerate();
            client.for_each(|(at, sample)| sample.value *= if at < 20 { 1.0 } else { 0.2 });
            change(&mut record.turns.as_mut().unwrap().done);
            of_trial(&record, plan.study.lab.sample_interval).into_iter().map(|flag| flag.kind).collect()
        };
        assert!(kinds(|_| {}).is_empty());
        let slower = kinds(|done| done.counts.iter_mut().skip(250).for_each(|count| count.operations /= 2));
        assert_eq!(slower, ["not-steady"]);
        let longer = kinds(|done| {
            done.counts.iter_mut().for_each(|count| count.response_ns = count.operations * 1_000_000);
            done.counts.iter_mut().skip(250).for_each(|count| count.response_ns *= 2);
        });
        assert_eq!(longer, ["not-steady"], "the rate is held, and what is done takes twice as long");
    }

    #[test]
    fn flags_of_every_iteration_at_the_load_that_held_are_listed_and_those_of_others_are_not() {
        let plan = testing::plan(1);
        let mut record = testing::capacity_trial(&plan, 0);
        let drops = |n: u32| Flag { kind: "drops".to_owned(), detail: format!("{n} packets were dropped") };
        let Outcome::Completed(m) = &mut record.outcome else { panic!("completed") };
        let probes = &mut m.search.as_mut().unwrap().probes;
        let held = probes.iter().position(|probe| (probe.load - 12.0).abs() < 1e-9).unwrap();
        probes.iter_mut().for_each(|probe| probe.flags.clear());
        probes[1].flags = vec![Flag { kind: "swap".to_owned(), detail: "of a load that did not hold".to_owned() }];
        probes[held].flags = vec![drops(3)];
        let found = of_trial(&record, plan.study.lab.sample_interval);
        assert_eq!(found, [drops(3)]);
    }

    #[test]
    fn a_flag_that_is_stored_is_not_raised_twice() {
        let stored = Flag { kind: "steal".to_owned(), detail: "as the probe saw it".to_owned() };
        let both = kinds(|r| {
            r.cpu.as_mut().unwrap().steal_s = 1.0;
            r.flags.push(stored);
        });
        assert_eq!(both, ["steal"]);
    }
}
