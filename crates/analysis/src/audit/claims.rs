//! Whether what a report says of its figures follows from them.

use tare_model::audit::{AuditCheck, AuditEntry, AuditOutcome, said};
use tare_model::density::metric;
use tare_model::metric::Better;
use tare_model::published::{Claim, ClaimKind};

use super::{Run, entry, figure, listed, stated, with};

/// Half of the last digit of a score that is printed without a point.
const SCORE_ROUNDING: f64 = 0.5;
/// Half of the last digit of a rate that is printed without a point.
const RATE_ROUNDING: f64 = 0.5;

/// One entry a claim, and one for a score that rests on what cannot be compared. `found` is what the other checks came to.
pub(super) fn check(run: &Run<'_>, found: &[AuditEntry]) -> Vec<AuditEntry> {
    let claims = run.published().map(|published| &published.claims[..]).unwrap_or_default();
    let mut entries: Vec<AuditEntry> = claims.iter().flat_map(|claim| judged(run, claim)).collect();
    entries.extend(score_rests_on(run, found));
    entries
}

/// One entry; of what is claimed to be the same one a case in which it is not.
fn judged(run: &Run<'_>, claim: &Claim) -> Vec<AuditEntry> {
    let said = said(claim);
    match figures(run, &said, &claim.kind) {
        Some(entry) => vec![entry],
        None => stated::judged(run, &said, &claim.kind),
    }
}

/// The entry of a claim that is judged by figures.
fn figures(run: &Run<'_>, said: &str, kind: &ClaimKind) -> Option<AuditEntry> {
    Some(match kind {
        ClaimKind::Percent { case, arm, than, percent, rounding } => {
            let arms = [than.as_str(), arm.as_str()];
            let (outcome, detail, follows) = match value(run, case, arm).zip(value(run, case, than)) {
                Some(values) => percent_of(values, (run.label(arm), run.label(than)), (*percent, *rounding)),
                None => (AuditOutcome::Unknown, "the figures for this claim are missing".to_owned(), String::new()),
            };
            let detail = format!("{said}{detail}");
            with(entry(AuditCheck::Base, outcome, case, &arms, detail), follows)
        }
        ClaimKind::Rate { case, arm, guests, per_s } => {
            let (outcome, detail, follows) = rate(run, case, arm, (*guests, *per_s));
            with(entry(AuditCheck::PerRun, outcome, case, &[arm], format!("{said}{detail}")), follows)
        }
        ClaimKind::Score { arm, score } => {
            let (outcome, detail) = match value(run, "", arm) {
                Some(own) if (own - score).abs() <= SCORE_ROUNDING => {
                    (AuditOutcome::Holds, format!("it recomputes to {}", figure(own, 1)))
                }
                Some(own) => (AuditOutcome::Broken, format!("it recomputes to {}", figure(own, 1))),
                None => (AuditOutcome::Unknown, "a capacity that it is computed from is missing".to_owned()),
            };
            entry(AuditCheck::Score, outcome, "", &[arm], format!("{said}{detail}"))
        }
        ClaimKind::Times { case, arm, than, times, rounding } => {
            times_of(run, said, (case, arm, than), (*times, *rounding))
        }
        ClaimKind::Best { case, arm } => best(run, said, case, arm),
        ClaimKind::Same { .. } | ClaimKind::Product { .. } | ClaimKind::Share { .. } => {
            return None;
        }
    })
}

/// Whether one arm's figure is so many times another's.
fn times_of(
    run: &Run<'_>,
    said: &str,
    (case, arm, than): (&str, &str, &str),
    (times, rounding): (f64, f64),
) -> AuditEntry {
    let of = |outcome, detail: String| entry(AuditCheck::Base, outcome, case, &[than, arm], format!("{said}{detail}"));
    let (own, base) = (value(run, case, arm), value(run, case, than));
    let (Some(own), Some(base)) = (own, base) else {
        let missing = listed(
            &[(arm, own), (than, base)]
                .iter()
                .filter(|(_, value)| value.is_none())
                .map(|(arm, _)| run.label(arm))
                .collect::<Vec<_>>(),
        );
        return of(AuditOutcome::Unknown, format!("the report prints no figure of {missing}"));
    };
    if !(own > 0.0 && base > 0.0) {
        return of(AuditOutcome::Unknown, "a figure for this claim is zero".to_owned());
    }
    let ratio = own / base;
    let detail = format!("{} against {} is {ratio:.2} times", figure(own, places(own)), figure(base, places(base)));
    let near = |value: f64| (value - times).abs() <= rounding * (1.0 + 1e-9) + 1e-9;
    if near(ratio) {
        return of(AuditOutcome::Holds, detail);
    }
    if near(ratio - 1.0) {
        let follows = format!("Read {ratio:.2} times as much where {times} times more is printed.");
        return with(
            of(AuditOutcome::Reservation, format!("{detail}; {:.2} times is what it is more", ratio - 1.0)),
            follows,
        );
    }
    let broken = of(AuditOutcome::Broken, format!("{detail}, not {times}"));
    with(broken, "The sentence does not follow from the table: one of them is wrong.")
}

/// Whether no other arm has a better figure.
fn best(run: &Run<'_>, said: &str, case: &str, arm: &str) -> AuditEntry {
    let known = run.study.cases.iter().any(|own| own.id == case);
    let of = |outcome, detail: String| {
        entry(AuditCheck::Claims, outcome, if known { case } else { "" }, &[arm], format!("{said}{detail}"))
    };
    let without: Vec<&str> =
        run.study.arms.iter().filter(|own| value(run, case, &own.id).is_none()).map(|own| own.label.as_str()).collect();
    let (Some(own), true) = (value(run, case, arm), without.is_empty()) else {
        return of(AuditOutcome::Unknown, format!("the report prints no figure of {}", listed(&without)));
    };
    let lower = run
        .completed(case, arm)
        .flat_map(|(record, _)| &record.metrics)
        .any(|spec| spec.primary && spec.better == Better::Lower);
    let better = |other: f64| if lower { other < own } else { other > own };
    let others = run.study.arms.iter().filter(|own| own.id != arm);
    match others.filter_map(|other| Some((other, value(run, case, &other.id)?))).find(|(_, value)| better(*value)) {
        None => of(AuditOutcome::Holds, format!("no other arm is better than {}", figure(own, places(own)))),
        Some((other, value)) => {
            let figures = format!("{} against {}", figure(value, places(value)), figure(own, places(own)));
            let broken = of(AuditOutcome::Broken, format!("{} is better: {figures}", other.label));
            with(broken, "The sentence does not follow from the table: one of them is wrong.")
        }
    }
}

/// The figure of an arm that a claim is about: the primary metric in a case, mean over its trials; without a case, the score.
fn value(run: &Run<'_>, case: &str, arm: &str) -> Option<f64> {
    if case.is_empty() {
        let score = run.study.score.as_ref()?;
        let capacities: Option<Vec<f64>> = score.references.iter().map(|(case, _)| value(run, case, arm)).collect();
        return score.of(&capacities?);
    }
    let primary = |record: &tare_model::trial::TrialRecord| {
        record.metrics.iter().find(|spec| spec.primary).map(|spec| spec.id.clone())
    };
    let values: Vec<f64> =
        run.completed(case, arm).filter_map(|(record, own)| own.metrics.get(&primary(record)?).copied()).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Whether a percentage is of the base that it names, or of the other figure.
fn percent_of(
    (own, base): (f64, f64),
    (arm, than): (&str, &str),
    (claimed, rounding): (f64, f64),
) -> (AuditOutcome, String, String) {
    if !(own > 0.0 && base > 0.0) {
        return (AuditOutcome::Unknown, "a figure for this claim is zero".to_owned(), String::new());
    }
    let (of_base, of_own) = (100.0 * (own / base - 1.0), 100.0 * (1.0 - base / own));
    let near = |value: f64| (value - claimed).abs() <= rounding * (1.0 + 1e-9) + 1e-9;
    let figures = format!("{} against {}", figure(own, places(own)), figure(base, places(base)));
    let true_one = format!("{figures} is {} than {than}", more(of_base));
    if near(of_base) {
        return (AuditOutcome::Holds, true_one, String::new());
    }
    if near(of_own) {
        let detail = format!("{true_one}; {:.2} % is of {arm} itself, which was taken as the base", of_own.abs());
        return (AuditOutcome::Reservation, detail, format!("Read {of_base:+.2} % where {claimed:+} % is printed."));
    }
    let detail = format!("{true_one}, and {:.2} % of {arm}: neither is {claimed:+} %", of_own.abs());
    (AuditOutcome::Broken, detail, "The sentence does not follow from the table: one of them is wrong.".to_owned())
}

/// `4.78 % more`.
fn more(percent: f64) -> String {
    format!("{:.2} % {}", percent.abs(), if percent < 0.0 { "less" } else { "more" })
}

/// Whole numbers without a point, others with one place.
const fn places(value: f64) -> usize {
    if value.fract().abs() < 1e-9 { 0 } else { 1 }
}

/// Whether a rate in a second is what the table, of a whole run, comes to at this number of guests.
fn rate(run: &Run<'_>, case: &str, arm: &str, (guests, per_s): (u32, f64)) -> (AuditOutcome, String, String) {
    // (guests, operations a second, operations of the run, length of the run)
    let levels: Vec<(u32, f64, f64, f64)> = run
        .completed(case, arm)
        .filter_map(|(_, measurement)| measurement.scale_up.as_ref())
        .flat_map(|scale_up| &scale_up.levels)
        .filter_map(|level| {
            let rate = *level.metrics.get(metric::OPERATIONS)?;
            let length = level.window_ns.1.saturating_sub(level.window_ns.0) as f64 / 1e9;
            Some((level.guests, rate, rate * length, length))
        })
        .collect();
    let words = |(guests, rate, whole, length): (u32, f64, f64, f64)| {
        let (whole, length) = (figure(whole, 0), figure(length, 0));
        format!("the table's {whole} of {guests} guests are of a run of {length} s, {} in a second", figure(rate, 1))
    };
    let own = levels.iter().find(|level| level.0 == guests);
    let near = |level: &&(u32, f64, f64, f64)| (level.1 - per_s).abs() <= RATE_ROUNDING + 1e-9;
    if let Some(level) = own.filter(|level| near(level)) {
        return (AuditOutcome::Holds, words(*level), String::new());
    }
    let there = match own {
        Some(level) => words(*level),
        None => {
            let numbers: Vec<String> = levels.iter().map(|level| level.0.to_string()).collect();
            let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
            format!("the table has no figure of {guests} guests, only of {}", listed(&numbers))
        }
    };
    match levels.iter().find(near) {
        Some(level) => {
            let (other, rate, whole, _) = *level;
            let detail = format!("{there}; its {} of {other} guests are {}", figure(whole, 0), figure(rate, 1));
            let follows = format!("The text's figure is that of {other} guests, not of {guests}.");
            (AuditOutcome::Reservation, detail, follows)
        }
        None if levels.is_empty() => (AuditOutcome::Unknown, "the table has no figure".to_owned(), String::new()),
        None => {
            let detail = format!("{there}, and no other number of guests comes to {} either", figure(per_s, 0));
            (AuditOutcome::Broken, detail, "Text and table disagree: one of them is wrong.".to_owned())
        }
    }
}

/// A score over cases of which one cannot be compared.
fn score_rests_on(run: &Run<'_>, found: &[AuditEntry]) -> Option<AuditEntry> {
    let score = run.study.score.as_ref()?;
    let broken: Vec<&str> = score
        .references
        .iter()
        .map(|(case, _)| case.as_str())
        .filter(|case| found.iter().any(|entry| entry.outcome == AuditOutcome::Broken && entry.case == *case))
        .collect();
    if broken.is_empty() {
        return None;
    }
    let detail = format!("the score includes {}, where a check does not hold", listed(&broken));
    let entry = entry(AuditCheck::Score, AuditOutcome::Reservation, "", &[], detail);
    Some(with(entry, "Scores of arms are no more comparable than the worst of their parts."))
}
