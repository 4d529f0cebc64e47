//! Whether the mix of request types is that of the tables and the same on every arm, whether there are enough of each, and
//! whether few enough answers were wrong.

use std::collections::BTreeMap;

use tare_model::audit::{AuditCheck, AuditEntry, AuditOutcome, limit as own};
use tare_model::count;
use tare_model::study::{Arm, Case};

use super::tables::{Sum, Table};
use super::{Run, entry, figure, listed, with};

/// Points (0 to 1) by which the share of a type may miss its target, unless the case says how far, or another arm's. The
/// published runs miss by 0.13 of a hundredth at most.
const APART_MAX: f64 = 0.01;
/// Requests of one session follow each other: as many independent ones tell as much as this many of them.
const TOGETHER: f64 = 3.0;
/// Standard errors that chance may make.
const ERRORS: f64 = 3.0;
/// Fewest requests of a type in an iteration, unless the case says how many.
const ENOUGH: u64 = 100;
/// Largest share of requests with a wrong answer, or none, unless the case says which.
const WRONG_MAX: f64 = 0.005;

/// A limit that a case sets by a parameter of this name; `usual` where it does not.
fn limit(case: &Case, name: &str, usual: f64) -> f64 {
    case.parameters.get(name).and_then(|own| own.as_f64()).filter(|own| *own >= 0.0).unwrap_or(usual)
}
/// Types that are named.
const NAMED_MAX: usize = 4;

/// Mix, numbers and validity, by case.
pub(super) fn check(run: &Run<'_>) -> Vec<AuditEntry> {
    let mut found = Vec::new();
    let (base, others) = run.compared();
    let others: Vec<&Arm> = others.collect();
    let states =
        |table: &Table<'_>| table.iterations.iter().all(|own| own.counts.contains_key(count::VALIDATION_ERRORS));
    // A published table has no column of them, and none stated is not none.
    let knows = |table: &Table<'_>| run.published().is_none() || states(table);
    if !run.tables.iter().all(knows) {
        let detail = "the files do not state how many answers were wrong".to_owned();
        found.push(entry(AuditCheck::Validation, AuditOutcome::Unknown, "", &[], detail));
    }
    for case in &run.study.cases {
        for arm in &run.study.arms {
            if let Some(table) = run.table(case, arm) {
                found.extend(against_targets(case, arm, table));
                found.push(enough(case, arm, table));
                found.extend(knows(table).then(|| validation(case, arm, table)));
            }
        }
        for arm in &others {
            if let Some(base) = base
                && let (Some(own), Some(beside)) = (run.table(case, arm), run.table(case, base))
            {
                found.push(between(case, (arm, own), (base, beside)));
            }
        }
    }
    found
}

fn all(sums: &BTreeMap<&str, Sum>) -> f64 {
    sums.values().map(|sum| sum.requests).sum()
}

/// What chance may make of a share.
fn chance(share: f64, per_request: f64) -> f64 {
    ERRORS * (share * (1.0 - share) * TOGETHER * per_request).max(0.0).sqrt()
}

/// One type's share beside what it should be.
struct Miss<'a> {
    name: &'a str,
    apart: f64,
    shares: (f64, f64),
}

/// Those that miss by more than they may, the worst first; and by how much the worst of all does.
fn missed<'a>(each: impl Iterator<Item = (&'a str, f64, f64, f64)>) -> (Vec<Miss<'a>>, f64) {
    let (mut missed, mut worst) = (Vec::new(), 0.0f64);
    for (name, share, should, allowed) in each {
        let apart = (share - should).abs();
        worst = worst.max(apart);
        if apart > allowed {
            missed.push(Miss { name, apart, shares: (share, should) });
        }
    }
    missed.sort_by(|a, b| b.apart.total_cmp(&a.apart));
    (missed, worst)
}

fn named(missed: &[Miss<'_>]) -> String {
    let percent = |share: f64| format!("{:.2}", share * 100.0);
    let each: Vec<String> = missed
        .iter()
        .take(NAMED_MAX)
        .map(|own| format!("{} ({} % and {} %)", own.name, percent(own.shares.0), percent(own.shares.1)))
        .collect();
    let more =
        if missed.len() > NAMED_MAX { format!(", and {} more", missed.len() - NAMED_MAX) } else { String::new() };
    format!("{}{more}", listed(&each.iter().map(String::as_str).collect::<Vec<_>>()))
}

fn points(share: f64) -> String {
    format!("{:.2} points", share * 100.0)
}

/// A share in percent, in at most two places and without noughts at the end.
fn percent(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn against_targets(case: &Case, arm: &Arm, table: &Table<'_>) -> Option<AuditEntry> {
    let sums = table.sums();
    let all = all(&sums);
    if all <= 0.0 || sums.values().all(|sum| sum.target.is_none()) {
        return None;
    }
    let apart_max = limit(case, own::MIX_DEVIATION_MAX, APART_MAX);
    let each = sums.iter().filter_map(|(name, sum)| {
        let target = sum.target?;
        Some((*name, sum.requests / all, target, apart_max + chance(target, 1.0 / all)))
    });
    let (missed, worst) = missed(each);
    let of = |outcome, detail| entry(AuditCheck::Mix, outcome, &case.id, &[&arm.id], detail);
    if missed.is_empty() {
        let detail = format!("every type on {} is within {} of its target", arm.label, points(worst));
        return Some(of(AuditOutcome::Holds, detail));
    }
    let detail = format!("types on {} miss the target of the tables: {}", arm.label, named(&missed));
    Some(with(of(AuditOutcome::Reservation, detail), "The work does not match the mix that the site describes."))
}

fn between(case: &Case, (arm, own): (&Arm, &Table<'_>), (base, beside): (&Arm, &Table<'_>)) -> AuditEntry {
    let (own, beside) = (own.sums(), beside.sums());
    let (all_own, all_beside) = (all(&own), all(&beside));
    let share = |sums: &BTreeMap<&str, Sum>, name: &str, all: f64| {
        sums.get(name).map_or(0.0, |sum| if all > 0.0 { sum.requests / all } else { 0.0 })
    };
    let names: std::collections::BTreeSet<&str> = own.keys().chain(beside.keys()).copied().collect();
    let each = names.into_iter().map(|name| {
        let (a, b) = (share(&own, name, all_own), share(&beside, name, all_beside));
        (name, b, a, APART_MAX + chance(f64::midpoint(a, b), 1.0 / all_own.max(1.0) + 1.0 / all_beside.max(1.0)))
    });
    let (missed, worst) = missed(each);
    let arms = [base.id.as_str(), arm.id.as_str()];
    if missed.is_empty() {
        let detail = format!("shares of types on {} and {} are within {}", base.label, arm.label, points(worst));
        return entry(AuditCheck::Mix, AuditOutcome::Holds, &case.id, &arms, detail);
    }
    let detail = format!("the mix on {} differs from that on {}: {}", base.label, arm.label, named(&missed));
    let broken = entry(AuditCheck::Mix, AuditOutcome::Broken, &case.id, &arms, detail);
    with(broken, "The arms did not do the same work: their figures cannot be compared.")
}

fn enough(case: &Case, arm: &Arm, table: &Table<'_>) -> AuditEntry {
    let mut least: BTreeMap<&str, u64> = BTreeMap::new();
    for own in table.iterations.iter().flat_map(|iteration| iteration.types) {
        let known = least.entry(&own.name).or_insert(own.requests);
        *known = own.requests.min(*known);
    }
    let enough = limit(case, own::LEAST_REQUESTS, ENOUGH as f64);
    let few: Vec<String> =
        least.iter().filter(|(_, n)| (**n as f64) < enough).map(|(name, n)| format!("{name} ({n})")).collect();
    let of = |outcome, detail| entry(AuditCheck::Enough, outcome, &case.id, &[&arm.id], detail);
    if few.is_empty() {
        let fewest = least
            .iter()
            .min_by_key(|(_, n)| **n)
            .map_or_else(String::new, |(name, n)| format!(", the fewest {name} with {}", figure(*n as f64, 0)));
        let detail =
            format!("at least {} requests of each type in every iteration on {}{fewest}", figure(enough, 0), arm.label);
        return of(AuditOutcome::Holds, detail);
    }
    let shown: Vec<&str> = few.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = if few.len() > NAMED_MAX { format!(" and {} more", few.len() - NAMED_MAX) } else { String::new() };
    let detail = format!(
        "fewer than {} requests in some iteration on {}: {}{more}",
        figure(enough, 0),
        arm.label,
        if more.is_empty() { listed(&shown) } else { shown.join(", ") }
    );
    with(of(AuditOutcome::Reservation, detail), "Figures of these types rest on few requests.")
}

fn validation(case: &Case, arm: &Arm, table: &Table<'_>) -> AuditEntry {
    let of = |outcome, detail| entry(AuditCheck::Validation, outcome, &case.id, &[&arm.id], detail);
    // Each iteration by itself, for each has to be valid.
    let worst = table.iterations.iter().map(|iteration| {
        let sum = |of: fn(&tare_model::trial::RequestType) -> u64| iteration.types.iter().map(of).sum::<u64>() as f64;
        let wrong = iteration.counts.get(count::VALIDATION_ERRORS).map(|wrong| *wrong as f64);
        (wrong.unwrap_or_else(|| sum(|own| own.validation_errors)), sum(|own| own.requests))
    });
    let share = |(wrong, all): &(f64, f64)| if *all > 0.0 { wrong / all } else { 0.0 };
    let (wrong, all) = worst.max_by(|a, b| share(a).total_cmp(&share(b))).unwrap_or((0.0, 0.0));
    let (wrong_text, all_text) = (figure(wrong, 0), figure(all, 0));
    let wrong_max = limit(case, own::VALIDATION_ERRORS_MAX, WRONG_MAX);
    let source =
        if wrong_max > WRONG_MAX { format!("; the study allows {} %", percent(wrong_max)) } else { String::new() };
    if share(&(wrong, all)) <= wrong_max {
        let detail = if wrong > 0.0 {
            format!("at most {wrong_text} of {all_text} answers of an iteration on {} were wrong{source}", arm.label)
        } else {
            format!("no answer on {} was wrong", arm.label)
        };
        return of(AuditOutcome::Holds, detail);
    }
    let detail = format!(
        "{wrong_text} of {all_text} answers of an iteration on {} were wrong, {:.2} %, where {} % are allowed",
        arm.label,
        100.0 * wrong / all,
        percent(wrong_max)
    );
    with(of(AuditOutcome::Broken, detail), "Wrong answers do not count as work: the iteration does not count.")
}
