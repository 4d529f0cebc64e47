//! Whether arms were measured under the same conditions, whether the instrument limited them, and whether they were repeated.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::audit::{AuditCheck, AuditEntry, AuditOutcome};
use tare_model::study::{Arm, Case};
use tare_model::trial::{Measurement, TrialRecord};
use tare_model::{count, flag};

use super::tables::Table;
use super::{Run, entry, figure, listed, with};

/// Largest share of its CPUs that the driver may have used.
const DRIVER_MAX: f64 = 0.9;
/// Relative difference up to which numbers of sessions are the same load.
const SESSIONS_APART_MAX: f64 = 0.01;
/// What follows where they are not.
const DIFFERENT_LOADS: &str = "The arms were offered different loads: their figures cannot be compared.";

/// What follows where some arms have large pages, or some of their trials.
const PAGES: &str = "What is measured may be the pages, not the arm: give all arms large pages or none.";

/// What follows where the instrument may have been the limit.
const INSTRUMENT: &str = "The result may show the delay or the limit of the instrument, not of the arm.";

/// Conditions, instrument and repeats.
pub(super) fn check(run: &Run<'_>) -> Vec<AuditEntry> {
    let mut found = Vec::new();
    if run.published().is_some() && !run.tables.is_empty() {
        let detail = "the files do not state how busy the clients and the back end were".to_owned();
        found.push(entry(AuditCheck::Instrument, AuditOutcome::Unknown, "", &[], detail));
    }
    for case in &run.study.cases {
        found.extend(guests_and_drivers(run, case));
        found.extend(sessions(run, case));
        found.extend(large_pages(run, case));
        found.extend(instrument(run, case));
    }
    found.extend(limited(run));
    found.extend(repeated(run));
    found
}

/// Guests and drivers as they worked, where trials tell them apart. Where guests are added their number is what is measured.
fn guests_and_drivers(run: &Run<'_>, case: &Case) -> Vec<AuditEntry> {
    if case.load.is_density() {
        return Vec::new();
    }
    let of = |arm: &Arm| -> BTreeSet<(usize, usize)> {
        run.completed(&case.id, &arm.id).filter_map(|(_, measurement)| numbers(measurement)).collect()
    };
    let (Some(base), others) = run.compared() else { return Vec::new() };
    let beside = of(base);
    let judged = others.filter_map(|arm| {
        let own = of(arm);
        if own.is_empty() || beside.is_empty() {
            return None;
        }
        Some(judged(case, [base, arm], own == beside, [words(&beside), words(&own)], DIFFERENT_LOADS))
    });
    judged.collect()
}

/// One entry: whether what holds of the baseline holds of another arm, in words of each; `follows` where it does not.
fn judged(case: &Case, arms: [&Arm; 2], same: bool, [beside, own]: [String; 2], follows: &str) -> AuditEntry {
    let ([base, arm], ids) = (arms.map(|arm| &arm.label), arms.map(|arm| arm.id.as_str()));
    let of = |outcome, detail| entry(AuditCheck::Conditions, outcome, &case.id, &ids, detail);
    if same {
        return of(AuditOutcome::Holds, format!("{own} on {base} and on {arm}"));
    }
    with(of(AuditOutcome::Broken, format!("{beside} on {base}, and {own} on {arm}")), follows)
}

/// Sessions that were offered at one time, where the case has one load for all arms.
fn sessions(run: &Run<'_>, case: &Case) -> Vec<AuditEntry> {
    let (Some(base), others) = run.compared() else { return Vec::new() };
    if case.load.is_capacity() || case.load.is_density() {
        return Vec::new();
    }
    let of = |arm: &Arm| -> Option<(u64, u64)> {
        let each = || run.completed(&case.id, &arm.id).filter_map(|(_, own)| own.counts.get(count::SESSIONS).copied());
        Some((each().min()?, each().max()?))
    };
    let words = |(least, most): (u64, u64)| {
        let (low, high) = (figure(least as f64, 0), figure(most as f64, 0));
        if least == most { format!("{low} sessions") } else { format!("{low} to {high} sessions") }
    };
    let judged = others.filter_map(|arm| {
        let (own, beside) = (of(arm)?, of(base)?);
        let (least, most) = (own.0.min(beside.0), own.1.max(beside.1));
        let same = most as f64 <= least as f64 * (1.0 + SESSIONS_APART_MAX);
        let own = if same { (least, most) } else { own };
        Some(judged(case, [base, arm], same, [words(beside), words(own)], DIFFERENT_LOADS))
    });
    judged.collect()
}

/// Whether as many instances had large pages on each arm: with them a guest of its own kernel misses its translations less often.
fn large_pages(run: &Run<'_>, case: &Case) -> Vec<AuditEntry> {
    let (Some(base), others) = run.compared() else { return Vec::new() };
    if case.load.is_density() {
        return Vec::new();
    }
    let of = |arm: &Arm| -> BTreeSet<u64> {
        let counts = run.completed(&case.id, &arm.id).filter_map(|(_, own)| own.counts.get(count::ON_LARGE_PAGES));
        counts.copied().collect()
    };
    let words = |numbers: &BTreeSet<u64>| match (numbers.first(), numbers.last()) {
        (Some(0), Some(0)) => "no instance with large pages".to_owned(),
        (Some(least), Some(most)) if least != most => format!("{least} to {most} with large pages"),
        (_, most) => format!("{} with large pages", most.unwrap_or(&0)),
    };
    let beside = of(base);
    let judged = others.filter_map(|arm| {
        let own = of(arm);
        let same = own == beside && own.len() == 1;
        if own.is_empty() || beside.is_empty() || (same && own.contains(&0)) {
            return None;
        }
        Some(judged(case, [base, arm], same, [words(&beside), words(&own)], PAGES))
    });
    judged.collect()
}

/// (guests, drivers) of a trial that tells them apart.
fn numbers(measurement: &Measurement) -> Option<(usize, usize)> {
    let guests: BTreeSet<u32> = measurement.parts.iter().map(|part| part.guest).collect();
    let drivers = measurement.parts.iter().filter(|part| part.driver.is_some()).count();
    (!guests.is_empty()).then_some((guests.len(), drivers))
}

fn words(numbers: &BTreeSet<(usize, usize)>) -> String {
    let one = |(guests, drivers): &(usize, usize)| {
        let plural = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
        match drivers {
            0 => plural(*guests, "guest"),
            _ => format!("{} with {}", plural(*guests, "guest"), plural(*drivers, "driver")),
        }
    };
    numbers.iter().map(one).collect::<Vec<_>>().join(" or ")
}

fn instrument(run: &Run<'_>, case: &Case) -> Vec<AuditEntry> {
    let mut found = Vec::new();
    for arm in &run.study.arms {
        let table = run.table(case, arm);
        let limited = run.completed(&case.id, &arm.id).any(|trial| !limits(trial).is_empty());
        let busy = table.and_then(|table| busy(run, table));
        let of = |outcome, detail| entry(AuditCheck::Instrument, outcome, &case.id, &[&arm.id], detail);
        let over = busy.filter(|share| *share > DRIVER_MAX);
        if let Some(share) = over {
            let detail = format!("on {}: the driver used {:.0} % of its CPUs", arm.label, share * 100.0);
            found.push(with(of(AuditOutcome::Reservation, detail), INSTRUMENT));
        }
        if limited || over.is_some() || table.is_none() || run.published().is_some() {
            continue;
        }
        found.push(match busy {
            Some(share) => {
                let used = format!("the driver used {:.0} % of its CPUs on {}", share * 100.0, arm.label);
                of(AuditOutcome::Holds, format!("{used}, and no trial reports that it limited the load"))
            }
            None => {
                of(AuditOutcome::Unknown, format!("it is unknown how busy the driver's CPUs were on {}", arm.label))
            }
        });
    }
    found
}

/// What trials say limited them: each kind once, with how many trials of all, the case that has most of them, and the first of its details.
fn limited(run: &Run<'_>) -> Vec<AuditEntry> {
    let mut kinds: BTreeMap<&str, Vec<(&Case, &Arm, &str)>> = BTreeMap::new();
    let mut all = 0;
    for (case, arm) in run.study.cases.iter().flat_map(|case| run.study.arms.iter().map(move |arm| (case, arm))) {
        for trial in run.completed(&case.id, &arm.id) {
            all += 1;
            for (kind, detail) in limits(trial) {
                kinds.entry(kind).or_default().push((case, arm, detail));
            }
        }
    }
    let reserve = |(kind, seen): (&str, Vec<(&Case, &Arm, &str)>)| {
        let of = |own: &Case| seen.iter().filter(|(case, ..)| case.id == own.id).count();
        // The first of those with most: later ones must have more.
        let most = run.study.cases.iter().rev().max_by_key(|case| of(case));
        let place = match most.map(|most| (most, of(most))).filter(|_| run.study.cases.len() > 1) {
            Some((most, n)) if n == seen.len() => format!(", all in {}", most.label),
            Some((most, n)) => format!(", most in {} ({n})", most.label),
            None => String::new(),
        };
        let arms: Vec<&str> = run.study.arms.iter().map(|arm| arm.id.as_str()).collect();
        let arms: Vec<&str> = arms.into_iter().filter(|id| seen.iter().any(|(_, arm, _)| arm.id == *id)).collect();
        let first = seen.first().map_or("", |(.., detail)| detail.trim_end_matches('.'));
        let detail = format!("{kind} in {} of {all} trials{place}, such as: {first}", seen.len());
        with(entry(AuditCheck::Instrument, AuditOutcome::Reservation, "", &arms, detail), INSTRUMENT)
    };
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, seen)| std::cmp::Reverse(seen.len()));
    kinds.into_iter().map(reserve).collect()
}

/// What a trial says limited it, iterations at the load that held included: each kind once, with the first of its details.
fn limits<'a>((record, measurement): (&'a TrialRecord, &'a Measurement)) -> BTreeMap<&'a str, &'a str> {
    let probes = measurement.search.iter().flat_map(|search| search.iterations()).flat_map(|probe| &probe.flags);
    let mut kinds = BTreeMap::new();
    for flag in record.flags.iter().chain(probes).filter(|flag| flag::LIMITED.contains(&flag.kind.as_str())) {
        kinds.entry(flag.kind.as_str()).or_insert(flag.detail.as_str());
    }
    kinds
}

/// Largest share of its CPUs that the driver used in an iteration; `None` where it is unknown, or the driver may run on any CPU.
fn busy(run: &Run<'_>, table: &Table<'_>) -> Option<f64> {
    let cpus = run.plan.cpus.client.len();
    let of = |own: &super::tables::Iteration<'_>| {
        let used = *own.counts.get(count::DRIVER_CPU_NS)? as f64 / 1e9;
        (cpus > 0 && own.window_s > 0.0).then(|| used / (own.window_s * cpus as f64))
    };
    table.iterations.iter().filter_map(of).reduce(f64::max)
}

/// How many of the trials that ran completed, where every arm has at least two in every case.
fn of_blocks(run: &Run<'_>, pairs: Vec<(&Case, &Arm)>) -> Vec<AuditEntry> {
    let count = |case: &Case, arm: &Arm| run.completed(&case.id, &arm.id).count();
    let ran = |case: &Case, arm: &Arm| {
        run.trials.iter().filter(|own| own.planned.case == case.id && own.planned.arm == arm.id).count()
    };
    let lossy = pairs.iter().filter(|(case, arm)| count(case, arm) < ran(case, arm));
    let entries: Vec<AuditEntry> = lossy
        .map(|(case, arm)| {
            let detail = format!("{} of {} trials of {} completed", count(case, arm), ran(case, arm), arm.label);
            let found = entry(AuditCheck::Repeated, AuditOutcome::Reservation, &case.id, &[&arm.id], detail);
            with(found, "The others count as the worst that they may have been: intervals are wider for it.")
        })
        .collect();
    if !entries.is_empty() {
        return entries;
    }
    let least = pairs.iter().map(|(case, arm)| count(case, arm)).min();
    let holds = |least| {
        let detail = format!("every trial completed: at least {least} blocks of every arm in every case");
        entry(AuditCheck::Repeated, AuditOutcome::Holds, "", &[], detail)
    };
    least.map(holds).into_iter().collect()
}

/// Whether every arm completed two blocks in every case, and all that it began.
fn repeated(run: &Run<'_>) -> Vec<AuditEntry> {
    let planned =
        |case: &Case, arm: &Arm| run.plan.trials.iter().any(|trial| trial.case == case.id && trial.arm == arm.id);
    let count = |case: &Case, arm: &Arm| run.completed(&case.id, &arm.id).count();
    let pairs = || {
        let cases = run.study.cases.iter();
        cases
            .flat_map(|case| run.study.arms.iter().map(move |arm| (case, arm)))
            .filter(|(case, arm)| planned(case, arm))
    };
    let once: Vec<(&Case, &Arm)> = pairs().filter(|(case, arm)| count(case, arm) < 2).collect();
    let of = |outcome, case: &str, arms: &[&str], detail| entry(AuditCheck::Repeated, outcome, case, arms, detail);
    if once.is_empty() {
        return of_blocks(run, pairs().collect());
    }
    let iterated = run.study.cases.iter().any(|case| case.load.is_capacity() || case.load.is_density());
    let consequence = if iterated {
        "Iterations of one search or scale-up are not independent: there is no interval, and no verdict on the \
         difference."
    } else {
        "One figure, of one trial or the median of several, cannot separate chance from the effect of the arm: there is no \
         interval, and no verdict on the difference."
    };
    if once.len() == pairs().count() {
        let what = if run.published().is_some() {
            "the report prints one figure"
        } else {
            "there is at most one completed trial"
        };
        let detail = format!("{what} of every arm in every case, which is no sample of instances");
        return vec![with(of(AuditOutcome::Reservation, "", &[], detail), consequence)];
    }
    let by_case = run.study.cases.iter().filter_map(|case| {
        let arms: Vec<&Arm> = once.iter().filter(|(own, _)| own.id == case.id).map(|(_, arm)| *arm).collect();
        let labels: Vec<&str> = arms.iter().map(|arm| arm.label.as_str()).collect();
        let ids: Vec<&str> = arms.iter().map(|arm| arm.id.as_str()).collect();
        let detail = format!("fewer than two completed trials of {}", listed(&labels));
        (!ids.is_empty()).then(|| with(of(AuditOutcome::Reservation, &case.id, &ids, detail), consequence))
    });
    by_case.collect()
}
