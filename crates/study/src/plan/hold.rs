//! What it takes to look for the load that keeps the guests' CPUs busy to a share, and how that is told.

use tare_model::load::LoadModel;
use tare_model::study::{Case, Study};
use tare_model::units::{Rate, Span};

use super::density;

/// Time under load, beside the measurement, of a trial of this case that searches as long as is likely.
pub(super) fn searching(case: &Case) -> Span {
    case.cpu_target.map_or(Span::ZERO, |target| target.searching(&case.phases, target.steps_likely()))
}

/// What measuring takes more if each search takes all its steps; `None` where none is asked.
pub(super) fn further_at_most(study: &Study) -> Option<Span> {
    let more = |case: &Case| {
        let target = case.cpu_target?;
        Some(target.searching(&case.phases, target.steps).ns.saturating_sub(searching(case).ns))
    };
    let each: Vec<u64> = study.cases.iter().filter_map(more).collect();
    let trials = (study.arms.len() as u64).saturating_mul(u64::from(study.blocks));
    let all = each.iter().copied().fold(0_u64, u64::saturating_add).saturating_mul(trials);
    (!each.is_empty()).then_some(Span { ns: all })
}

/// What is to be held, how well, and in how many steps it is looked for.
pub(super) fn words(study: &Study) -> Vec<String> {
    let told = density::by_case(study, |case| {
        let target = case.cpu_target?;
        let (from, most) = match case.load {
            LoadModel::Closed { .. } => (target.from.to_string(), format!("{} clients", target.most)),
            LoadModel::Open { .. } => (Rate(target.from).to_string(), Rate(target.most).to_string()),
        };
        let percent = |share: f64| (share * 1e5).round() / 1e3;
        let (share, points) = (percent(target.share), percent(target.tolerance));
        let what = format!(
            "the load at which {share} % of the guests' CPUs are busy, within {points} points, from {from}, at most {most}"
        );
        let (likely, steps, step) = (target.steps_likely(), target.steps, target.step);
        Some((
            what,
            format!(
                "likely {likely} steps of {step} a trial, at most {steps}, all in the guests that are then measured"
            ),
        ))
    });
    let mut lines = Vec::new();
    for (n, (cases, (what, steps))) in told.iter().enumerate() {
        lines.push(format!("{cases}: {what}"));
        // Once for all that follow one another with the same.
        if told.get(n + 1).is_none_or(|(_, (_, next))| next != steps) {
            lines.push(steps.clone());
        }
    }
    lines
}
