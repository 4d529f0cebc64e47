//! What must be the same in runs that are set against each other.

use std::collections::BTreeSet;

use serde::Serialize;
use tare_model::Span;
use tare_model::study::{Arm, Case, CaseSchedule, LabSpec, Study};

use super::{CompareError, Side};

/// Refuses runs whose figures are of different measurements.
///
/// # Errors
/// Which, and what differs.
pub(super) fn check(before: &Side<'_>, after: &Side<'_>) -> Result<(), CompareError> {
    let (mut all, mut seen) = (before.named().chain(after.named()), BTreeSet::new());
    let again = all.find(|(_, run)| !seen.insert((&run.run.id, &run.run.root_hash)));
    // One run on each side has no verdict, so that a run may be set beside itself.
    if let Some((name, _)) = again.filter(|_| before.runs.len() + after.runs.len() > 2) {
        return Err(CompareError::Twice { run: name.to_owned() });
    }
    for side in [before, after] {
        let mut runs = side.named();
        let Some((name, first)) = runs.next() else { continue };
        for (other_name, other) in runs {
            let (a, b) = (&first.plan.study, &other.plan.study);
            if let Some(what) = differs(a, b).or_else(|| differs_within_a_side(a, b)) {
                let [first, other] = [name, other_name].map(str::to_owned);
                return Err(CompareError::Mixed { what, first, other, side: side.label.to_owned() });
            }
        }
    }
    let (Some(a), Some(b)) = (before.runs.first(), after.runs.first()) else { return Ok(()) };
    differs(&a.plan.study, &b.plan.study).map_or(Ok(()), |what| {
        let [before, after] = [before, after].map(|side| side.label.to_owned());
        Err(CompareError::OtherPlan { what, before, after })
    })
}

/// What differs between two studies so that their figures are of different measurements.
pub(crate) fn differs(a: &Study, b: &Study) -> Option<String> {
    if a.scale != b.scale {
        return Some(format!("The scale of the phases is not the same ({} and {})", a.scale, b.scale));
    }
    if a.baseline != b.baseline {
        return Some(format!("The baseline is not the same ({} and {})", a.baseline, b.baseline));
    }
    let baseline = |study: &Study| study.arms.iter().find(|arm| arm.id == study.baseline).map(measured);
    if baseline(a) != baseline(b) {
        return Some(format!("The baseline {} has not the same platform and options in the plans", a.baseline));
    }
    if lab(a) != lab(b) || (&a.hosts, &a.roles) != (&b.hosts, &b.roles) {
        let what = if lab(a) == lab(b) { "source of the load" } else { "lab" };
        return Some(format!("The plans have not the same {what}"));
    }
    a.cases.iter().find_map(|case| {
        let parts = case_differs(case, b.cases.iter().find(|other| other.id == case.id)?);
        (!parts.is_empty()).then(|| format!("The case {} has not the same {} in the plans", case.id, parts.join(", ")))
    })
}

/// All on which the effects of a case depend, or where there is none those over all cases: two studies that [`differs`] finds alike have the
/// same.
pub(crate) fn depends_on<'a>(study: &'a Study, case: Option<&str>) -> impl Serialize + use<'a> {
    let baseline = study.arms.iter().find(|arm| arm.id == study.baseline).map(measured);
    let cases = study.cases.iter().filter(|own| case.is_none_or(|id| own.id == id));
    let cases: Vec<_> = cases
        .map(|own| {
            let work = (&own.id, &own.workload, &own.parameters, &own.load, &own.phases, schedule(own));
            let guests = (&own.guest, own.seccomp, own.instances, &own.neighbours, own.busy_target, &own.qos);
            (work, guests)
        })
        .collect();
    let hosts = (&study.hosts, &study.roles);
    (study.scale, &study.baseline, baseline, lab(study), hosts, cases)
}

/// What figures depend on of the link between driver and guests and of their places.
fn lab(study: &Study) -> LabSpec {
    LabSpec { sample_interval: Span::default(), ..study.lab.clone() }
}

/// The parts of a case in which it differs from another.
fn case_differs(a: &Case, b: &Case) -> Vec<&'static str> {
    let parts = [
        ("workload", a.workload == b.workload),
        ("parameters", a.parameters == b.parameters),
        ("load", a.load == b.load),
        ("phases", a.phases == b.phases),
        ("turns", schedule(a) == schedule(b)),
        ("guest", a.guest == b.guest),
        ("filter of system calls", a.seccomp == b.seccomp),
        ("number of instances", a.instances == b.instances),
        ("neighbours", a.neighbours == b.neighbours && a.busy_target == b.busy_target),
        ("objectives", a.qos == b.qos),
    ];
    parts.into_iter().filter(|(_, same)| !same).map(|(part, _)| part).collect()
}

/// How arms share the time, without what follows from their number and from what was free on the host at the time.
fn schedule(case: &Case) -> CaseSchedule {
    let mut schedule = case.schedule.clone();
    match &mut schedule {
        CaseSchedule::Pairs { why, pairs, .. } => {
            why.clear();
            *pairs = 0;
        }
        CaseSchedule::Trials { why } => why.clear(),
        CaseSchedule::Turns(_) | CaseSchedule::Conditions(_) => {}
    }
    schedule
}

/// What else must be the same in the runs of one side, which repeat one study.
fn differs_within_a_side(a: &Study, b: &Study) -> Option<String> {
    let arms = |study: &Study| study.arms.iter().map(|arm| (arm.id.clone(), measured(arm))).collect::<Vec<_>>();
    let cases = |study: &Study| study.cases.iter().map(|case| case.id.clone()).collect::<Vec<_>>();
    let parts = [("arms", arms(a) == arms(b)), ("cases", cases(a) == cases(b))];
    let (what, _) = parts.into_iter().find(|(_, same)| !same)?;
    Some(format!("The plans have not the same {what}"))
}

/// An arm without its name for people, which says what was found of it, too.
pub(crate) fn measured(arm: &Arm) -> Arm {
    Arm { label: String::new(), ..arm.clone() }
}
