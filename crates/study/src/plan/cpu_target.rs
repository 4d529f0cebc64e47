//! What it takes to look for the load that keeps the guests' CPUs busy to a share, and how the plan describes it.

use tare_model::cpu_target::CpuTarget;
use tare_model::load::LoadKind;
use tare_model::study::{Case, CaseLoad, Study};
use tare_model::units::{Rate, Span};

/// Time under load, beside the measurement, of a trial of this case that searches as long as is likely.
pub(super) fn searching(case: &Case) -> Span {
    match &case.load {
        CaseLoad::CpuTarget { target, .. } => target.searching(&case.phases, target.steps_likely()),
        _ => Span::ZERO,
    }
}

/// What measuring takes more if each search takes all its steps; `None` where none is asked.
pub(super) fn further_at_most(study: &Study) -> Option<Span> {
    let more = |case: &Case| {
        let CaseLoad::CpuTarget { target, .. } = &case.load else { return None };
        Some(target.searching(&case.phases, target.steps).ns.saturating_sub(searching(case).ns))
    };
    let each: Vec<u64> = study.cases.iter().filter_map(more).collect();
    let trials = (study.arms.len() as u64).saturating_mul(u64::from(study.blocks));
    let all = each.iter().copied().fold(0_u64, u64::saturating_add).saturating_mul(trials);
    (!each.is_empty()).then_some(Span { ns: all })
}

/// What is to be held, how well, and in how many steps it is looked for: cases that ask for the same stand together, each with the loads that
/// may be tried in it.
pub(super) fn words(study: &Study) -> Vec<String> {
    let mut groups: Vec<(String, String, Vec<String>)> = Vec::new();
    for case in &study.cases {
        let CaseLoad::CpuTarget { target, .. } = &case.load else { continue };
        let percent = |share: f64| (share * 1e5).round() / 1e3;
        let (share, points) = (percent(target.share), percent(target.tolerance));
        let what = format!("the load at which {share} % of the guests' CPUs are busy, within {points} points");
        let (likely, steps, step) = (target.steps_likely(), target.steps, target.step);
        let how = format!(
            "likely {likely} steps of {step} a trial, at most {steps}, all in the guests that are then measured"
        );
        let loads = format!("`{}` ({})", case.id, loads(target));
        match groups.iter_mut().find(|(other, others, _)| (other, others) == (&what, &how)) {
            Some((_, _, cases)) => cases.push(loads),
            None => groups.push((what, how, vec![loads])),
        }
    }
    let mut lines = Vec::new();
    for (n, (what, how, cases)) in groups.iter().enumerate() {
        lines.push(format!("{what}: {}", cases.join(", ")));
        // Once for all that follow one another with the same.
        if groups.get(n + 1).is_none_or(|(_, next, _)| next != how) {
            lines.push(how.clone());
        }
    }
    lines
}

/// The first load that is tried, and the most.
fn loads(target: &CpuTarget) -> String {
    let CpuTarget { kind, from, most, .. } = *target;
    match kind {
        LoadKind::Closed { .. } => format!("from {from}, at most {most} clients"),
        LoadKind::Open { .. } => format!("from {}, at most {}", Rate(from), Rate(most)),
    }
}
