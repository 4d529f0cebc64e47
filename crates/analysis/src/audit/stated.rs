//! Claims that are judged by the conditions that a report discloses, not by its figures.

use tare_model::audit::{AuditCheck, AuditEntry, AuditOutcome};
use tare_model::published::{ClaimKind, Condition, ConditionName};

use super::disclosure::{Group, groups};
use super::{Run, entry, figure, listed, with};

/// What follows where arms differ that are claimed to be the same.
const NOT_THE_SAME: &str =
    "The arms differ in more than their platform: which part of the difference is the platform's is unknown.";
/// What follows where a whole is not what its parts come to.
const NOT_THE_WHOLE: &str = "One of the figures is not that of what was measured: which is unknown.";

/// The entries of a claim that is judged by conditions; none of another.
pub(super) fn judged(run: &Run<'_>, said: &str, kind: &ClaimKind) -> Vec<AuditEntry> {
    match kind {
        ClaimKind::Same { subjects } => same(run, said, subjects),
        ClaimKind::Product { factors, whole, more } => vec![product(run, said, factors, (whole, *more))],
        ClaimKind::Share { part, than, percent, rounding } => {
            vec![share(run, said, (part, than), (*percent, *rounding))]
        }
        _ => Vec::new(),
    }
}

/// One entry a case in which subjects that are claimed to be the same differ; one in all where they do not.
fn same(run: &Run<'_>, said: &str, subjects: &[String]) -> Vec<AuditEntry> {
    let Some(published) = run.published() else { return Vec::new() };
    let all: Vec<Group<'_>> = groups(published);
    let own: Vec<&Group<'_>> = all.iter().filter(|group| subjects.contains(&group.first().subject)).collect();
    // Two arms at least disclose something, else nothing can differ.
    let compared =
        run.study.arms.iter().filter(|arm| own.iter().flat_map(|group| &group.rows).any(|row| row.arm == arm.id));
    if compared.count() < 2 {
        let detail = format!("{said}the report does not disclose these conditions arm by arm");
        return vec![entry(AuditCheck::Claims, AuditOutcome::Unknown, "", &[], detail)];
    }
    let mut cases: Vec<(&str, Vec<String>)> = Vec::new();
    for group in &own {
        let (first, missing) = (group.first(), group.missing(run.study));
        let differs = match (group.agrees(), missing.is_empty()) {
            (true, true) => continue,
            (_, false) => format!("{}; none on {}", group.words(run), listed(&missing)),
            (false, true) => group.words(run),
        };
        let sentence = format!("{} {}: {differs}", first.subject, first.what);
        match cases.iter_mut().find(|(case, _)| *case == first.case) {
            Some((_, known)) => known.push(sentence),
            None => cases.push((&first.case, vec![sentence])),
        }
    }
    if cases.is_empty() {
        let conditions =
            if own.len() == 1 { "1 condition is".to_owned() } else { format!("{} conditions are", own.len()) };
        let detail = format!("{said}{conditions} disclosed for every arm, the same on all");
        return vec![entry(AuditCheck::Claims, AuditOutcome::Holds, "", &[], detail)];
    }
    let reserve = |(case, differences): (&str, Vec<String>)| {
        let number = differences.len();
        let detail = format!(
            "{said}{number} {} disclosed: {}",
            if number == 1 { "difference is" } else { "differences are" },
            differences.join(". ")
        );
        with(entry(AuditCheck::Claims, AuditOutcome::Reservation, case, &[], detail), NOT_THE_SAME)
    };
    cases.into_iter().map(reserve).collect()
}

/// The condition of a name, the first where there are several.
fn find<'a>(run: &Run<'a>, name: &ConditionName) -> Option<&'a Condition> {
    run.published()?.conditions.iter().find(|own| name.is_of(own))
}

/// A quantity with what it is and where it is printed: `32 GB (host, memory, line 7)`.
fn quantity(run: &Run<'_>, name: &ConditionName) -> Option<(f64, String)> {
    let own = find(run, name)?;
    Some((own.quantity()?, format!("{} ({}, {}, {})", own.printed(), own.subject, own.what, own.source)))
}

fn unknown(said: &str, name: &ConditionName) -> AuditEntry {
    let detail = format!("{said}no quantity of {}, {} is disclosed", name.subject, name.what);
    entry(AuditCheck::Claims, AuditOutcome::Unknown, &name.case, &[], detail)
}

/// Whether a whole is what its factors come to, or more where it may be.
fn product(run: &Run<'_>, said: &str, factors: &[ConditionName], (whole, more): (&ConditionName, bool)) -> AuditEntry {
    let (mut all, mut words) = (1.0, Vec::new());
    for name in factors {
        let Some((value, text)) = quantity(run, name) else { return unknown(said, name) };
        all *= value;
        words.push(text);
    }
    let (Some((of_whole, text)), Some(printed)) = (quantity(run, whole), find(run, whole)) else {
        return unknown(said, whole);
    };
    // In the unit that the whole is printed in.
    let factor = of_whole / printed.value.replace(',', "").parse::<f64>().unwrap_or(of_whole);
    let in_unit = Condition { value: figure(all / factor, 0), ..printed.clone() }.printed();
    let near = (all - of_whole).abs() <= 1e-9 * all.max(of_whole);
    let holds = near || (more && all < of_whole);
    let relation = match (holds, more) {
        (true, true) => "not more than",
        (true, false) => "as many as",
        (false, true) => "more than",
        (false, false) => "not",
    };
    let detail = format!("{said}{} come to {in_unit}, {relation} {text}", words.join(" times "));
    let arms: Vec<&str> = [whole.arm.as_str()].into_iter().filter(|arm| !arm.is_empty()).collect();
    if holds {
        return entry(AuditCheck::Claims, AuditOutcome::Holds, &whole.case, &arms, detail);
    }
    with(entry(AuditCheck::Claims, AuditOutcome::Reservation, &whole.case, &arms, detail), NOT_THE_WHOLE)
}

/// Whether one condition is so many percent of another, or the other of it.
fn share(
    run: &Run<'_>,
    said: &str,
    (part, than): (&ConditionName, &ConditionName),
    (claimed, rounding): (f64, f64),
) -> AuditEntry {
    let (Some((own, of_part)), Some((whole, of_whole))) = (quantity(run, part), quantity(run, than)) else {
        let missing = if quantity(run, part).is_none() { part } else { than };
        return AuditEntry { check: AuditCheck::Base, ..unknown(said, missing) };
    };
    if !(own > 0.0 && whole > 0.0) {
        let detail = format!("{said}a figure for this claim is zero");
        return entry(AuditCheck::Base, AuditOutcome::Unknown, &part.case, &[], detail);
    }
    let percent = 100.0 * own / whole;
    let near = |value: f64| (value - claimed).abs() <= rounding * (1.0 + 1e-9) + 1e-9;
    let detail = format!("{said}{of_part} is {percent:.2} % of {of_whole}");
    if near(percent) {
        return entry(AuditCheck::Base, AuditOutcome::Holds, &part.case, &[], detail);
    }
    let follows = format!("Read {percent:.2} % where {claimed} % is printed.");
    with(entry(AuditCheck::Base, AuditOutcome::Reservation, &part.case, &[], detail), follows)
}
