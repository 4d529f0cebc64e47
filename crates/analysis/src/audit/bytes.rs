//! Whether a request is the same work on every arm, by its bytes.
//!
//! The mean bytes of a request over a common mix of types, so that a difference in the mix, which is a check of its own, is not
//! taken for one in the requests.

use tare_model::audit::{AuditCheck, AuditEntry, AuditOutcome};
use tare_model::study::{Arm, Case};

use super::tables::{Sum, Table};
use super::{Run, entry, figure, listed, with};

/// Relative difference up to which requests are the same work. Of the published pairs that served the same pages no type differs
/// by more than 1.1 % (product pages with other products on them); the pair of which one served every embedded file and
/// the other what had changed differs by 20 %. Twice the first is far from both, and less than the 5 % to which loads are found.
const SAME_MAX: f64 = 0.02;
/// Standard deviation of the bytes of requests of one type over their mean, at most: that of downloads, whose sizes from 0.1 to 38 MB
/// differ more than those of any page (sqrt(E[x^2] / E[x]^2 - 1) of the sizes and probabilities of the download set).
const SPREAD: f64 = 1.6;
/// Standard errors that chance may make.
const ERRORS: f64 = 3.0;
/// Where chance may make more than this, the difference cannot be judged.
const CHANCE_MAX: f64 = 0.10;
/// Types that are named.
const NAMED_MAX: usize = 3;

/// What two arms' requests come to.
struct Compared<'a> {
    /// Bytes a request over the common mix: the arm's, the baseline's.
    bytes: (f64, f64),
    /// Relative difference that chance may make.
    chance: f64,
    /// Types that differ by more than they may: (name, the arm's bytes, the baseline's), the largest difference first.
    types: Vec<(&'a str, f64, f64)>,
    /// Types that both have.
    of: usize,
}

/// One entry for each arm that is compared, in each case with request types.
pub(super) fn check(run: &Run<'_>) -> Vec<AuditEntry> {
    let (Some(base), others) = run.compared() else { return Vec::new() };
    let others: Vec<&Arm> = others.collect();
    let mut found = Vec::new();
    for case in &run.study.cases {
        for arm in &others {
            if let (Some(own), Some(beside)) = (run.table(case, arm), run.table(case, base))
                && let Some(compared) = compare(own, beside)
            {
                found.push(judged(case, (arm, base), &compared));
            }
        }
    }
    let known = found.clone();
    for case in run.study.cases.iter().filter(|case| run.tables.iter().all(|table| table.case != case.id)) {
        found.extend(others.iter().filter_map(|arm| unreported(run, case, (arm, base), &known)));
    }
    found
}

fn compare<'a>(arm: &Table<'a>, base: &Table<'a>) -> Option<Compared<'a>> {
    let (own, beside) = (arm.sums(), base.sums());
    let both = || {
        own.iter().filter_map(|(name, own)| {
            let beside = beside.get(name)?;
            Some((*name, own, beside, own.bytes_each()?, beside.bytes_each()?))
        })
    };
    let all: f64 = both().map(|(_, own, beside, ..)| own.requests + beside.requests).sum();
    let (mut bytes, mut variance, mut types, mut of) = ((0.0, 0.0), 0.0, Vec::new(), 0);
    for (name, own_sum, beside_sum, own, beside) in both() {
        let share = (own_sum.requests + beside_sum.requests) / all;
        bytes.0 += share * own;
        bytes.1 += share * beside;
        let error = SPREAD * f64::midpoint(own, beside) * few(own_sum, beside_sum).sqrt();
        variance += (share * error).powi(2);
        of += 1;
        let chance = ERRORS * SPREAD * few(own_sum, beside_sum).sqrt();
        if relative(own, beside) > SAME_MAX + chance {
            types.push((name, own, beside));
        }
    }
    types.sort_by(|a, b| relative(b.1, b.2).total_cmp(&relative(a.1, a.2)));
    let chance = ERRORS * variance.sqrt() / f64::midpoint(bytes.0, bytes.1);
    (bytes.0 > 0.0 && bytes.1 > 0.0).then_some(Compared { bytes, chance, types, of })
}

/// Sum of the reciprocals of the numbers of requests: the squared standard error of a difference of two means, over the
/// squared spread of one request.
fn few(own: &Sum, beside: &Sum) -> f64 {
    1.0 / own.requests + 1.0 / beside.requests
}

/// How far apart two figures are, whichever is larger.
fn relative(a: f64, b: f64) -> f64 {
    let (low, high) = (a.min(b), a.max(b));
    if low > 0.0 { high / low - 1.0 } else { f64::INFINITY }
}

fn judged(case: &Case, (arm, base): (&Arm, &Arm), found: &Compared<'_>) -> AuditEntry {
    const CHECK: AuditCheck = AuditCheck::BytesARequest;
    let arms = [base.id.as_str(), arm.id.as_str()];
    let apart = relative(found.bytes.0, found.bytes.1);
    let kilo = |bytes: f64| figure(bytes / 1000.0, 1);
    let allowed = format!(
        "{} % apart, where {} % and {} % for chance are allowed",
        percent(apart),
        percent(SAME_MAX),
        percent(found.chance)
    );
    let detail = format!(
        "a request of the same mix is {} kB on {} and {} kB on {}: {allowed}",
        kilo(found.bytes.1),
        base.label,
        kilo(found.bytes.0),
        arm.label
    );
    if found.chance > CHANCE_MAX {
        let few = format!("{detail}: too few requests to decide whether they are the same work");
        return entry(CHECK, AuditOutcome::Unknown, &case.id, &arms, few);
    }
    let types = types(found);
    if apart > SAME_MAX + found.chance {
        let broken = entry(CHECK, AuditOutcome::Broken, &case.id, &arms, format!("{detail}{types}"));
        return with(
            broken,
            "A request was not the same work on both: loads, rates and response times cannot be compared.",
        );
    }
    if found.types.is_empty() {
        return entry(CHECK, AuditOutcome::Holds, &case.id, &arms, detail);
    }
    let reserved = entry(CHECK, AuditOutcome::Reservation, &case.id, &arms, format!("{detail}{types}"));
    with(reserved, "The totals are comparable; these types are not.")
}

/// `; of 16 types 15 differ by more, most login: 50,023 and 34,825 bytes`, the baseline's first.
fn types(found: &Compared<'_>) -> String {
    if found.types.is_empty() {
        return "; no single type differs by more than is allowed".to_owned();
    }
    let named: Vec<String> = found
        .types
        .iter()
        .take(NAMED_MAX)
        .map(|(name, own, beside)| format!("{name} ({} and {} bytes)", figure(*beside, 0), figure(*own, 0)))
        .collect();
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    let most = if found.types.len() > named.len() { ", most of all " } else { ": " };
    let differ = if found.types.len() == 1 { "differs" } else { "differ" };
    format!("; of {} types {} {differ} by more than is allowed{most}{}", found.of, found.types.len(), listed(&named))
}

fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// Of a case without request types, whose workload has them elsewhere in the study and is not the same work there.
fn unreported(run: &Run<'_>, case: &Case, (arm, base): (&Arm, &Arm), known: &[AuditEntry]) -> Option<AuditEntry> {
    let other = known.iter().find(|entry| {
        entry.outcome == AuditOutcome::Broken
            && entry.arms.contains(&arm.id)
            && run.study.cases.iter().any(|own| own.id == entry.case && own.workload == case.workload)
    })?;
    let arms = [base.id.as_str(), arm.id.as_str()];
    let detail =
        format!("bytes a request are not reported here, and they differ in {} with the same workload", other.case);
    let entry = entry(AuditCheck::BytesARequest, AuditOutcome::Reservation, &case.id, &arms, detail);
    Some(with(entry, "It is unknown whether the arms did the same work here."))
}
