//! What it takes to look for the largest load, and how the plan describes that and what depends on it.

use tare_model::load::LoadKind;
use tare_model::study::{Case, CaseLoad, Study};
use tare_model::units::{Rate, Span};

use super::density;

/// Instances in which a trial of this case offers load: likely, and at most. Without a search it is one.
pub(super) fn tries(case: &Case) -> (u64, u64) {
    match &case.load {
        CaseLoad::Capacity(spec) => (spec.tries_likely().into(), spec.tries_at_most().into()),
        _ => (1, 1),
    }
}

/// Time of measuring if each search takes all the tries that it may; `None` where nothing is searched.
pub(super) fn measuring_at_most(study: &Study) -> Option<Span> {
    if !study.cases.iter().any(|case| case.load.is_capacity()) {
        return None;
    }
    let each = study.cases.iter().map(|case| {
        let instances = density::levels(case).saturating_mul(tries(case).1);
        case.phases.total().ns.saturating_mul(instances)
    });
    let trials = (study.arms.len() as u64).saturating_mul(u64::from(study.blocks));
    Some(Span { ns: each.fold(0_u64, u64::saturating_add).saturating_mul(trials) })
}

/// What is searched, how finely, and in how many tries.
pub(super) fn words(study: &Study) -> Vec<String> {
    let groups = density::by_case(study, |case| {
        let CaseLoad::Capacity(spec) = case.load else { return None };
        let (from, most) = match spec.kind {
            LoadKind::Closed { .. } => (spec.from.to_string(), format!("{} clients", spec.most)),
            LoadKind::Open { .. } => (Rate(spec.from).to_string(), Rate(spec.most).to_string()),
        };
        let percent = (spec.precision * 1e5).round() / 1e3;
        let (likely, most_tries) = tries(case);
        let iterations = spec.iterations;
        let what =
            format!("the largest load that holds {iterations} times, to {percent} %, from {from}, at most {most}");
        Some((what, format!("likely {likely} tries a search, at most {most_tries}, each in a fresh instance")))
    });
    groups.into_iter().flat_map(|(cases, (what, tries))| [format!("{cases}: {what}"), tries]).collect()
}

/// Cases that are offered a share of what others find, and what they wait for.
pub(super) fn waits(study: &Study) -> Vec<String> {
    let one = |case: &Case| {
        let CaseLoad::ShareOf { share: from, .. } = &case.load else { return None };
        let (share, baseline) = (from.share, &study.baseline);
        let what = format!("`{}` is offered {share} times the capacity of `{baseline}` in `{}`", case.id, from.case);
        Some(format!("{what}, the median over its blocks"))
    };
    let mut all: Vec<String> = study.cases.iter().filter_map(one).collect();
    if !all.is_empty() {
        all.push("these cases run after all blocks of the others".to_owned());
    }
    all
}

/// What the study's one figure is made of.
pub(super) fn score(study: &Study) -> Vec<String> {
    let Some(score) = &study.score else { return Vec::new() };
    let references: Vec<String> = score.references.iter().map(|(case, of)| format!("`{case}` {of}")).collect();
    vec![format!("100 times the geometric mean of capacity over reference: {}", references.join(", "))]
}
