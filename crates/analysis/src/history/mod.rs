//! Effects over runs: what a history keeps of a run, and the series, with their change points, that it makes of all runs.
//!
//! Series are of effects, an arm over the baseline of its own run: what moves the whole host cancels. What is compared with what is argued in
//! `docs/adr/0040-history.md`.

mod change_points;
mod host;
mod points;
mod series;

pub use series::history;

#[cfg(test)]
pub(crate) use {
    change_points::{ChangeRule, change_points},
    points::{EQUAL_SERIES_WITH_CHANGE, FEWEST_RUNS, size},
};

use std::collections::BTreeMap;

use tare_model::findings::{CaseFindings, Comparison, Estimate, Findings, MetricFindings, Standing, Verdict};
use tare_model::history::{Effect, RunEffects};
use tare_model::metric::{MetricSpec, common};
use tare_record::digest_of;

use crate::across::GUESTS;
use crate::marked::is_apart;
use crate::runs::fault;
use crate::runs::likeness::{depends_on, measured};

/// What a history keeps of a run. Effects that must not be compared, and those of figures that are not above zero, are left out.
pub fn run_effects(findings: &Findings) -> RunEffects {
    let (host, notes) = host::facts(&findings.environment);
    let (run, study) = (&findings.run, &findings.plan.study);
    let cases = findings.cases.iter().map(|case| Some(case.id.as_str()));
    let digests = Digests {
        plans: cases.chain([None]).map(|case| (case, digest_of(&depends_on(study, case)))).collect(),
        arms: study.arms.iter().map(|arm| (arm.id.as_str(), digest_of(&measured(arm)))).collect(),
    };
    RunEffects {
        run: run.id.clone(),
        root_hash: run.root_hash.clone(),
        study: study.name.clone(),
        started_at: run.started_at.clone(),
        tare_version: run.tare_version.clone(),
        host,
        notes,
        effects: effects(findings, &digests),
    }
}

/// Digests of the plan's parts.
struct Digests<'a> {
    /// What the effects of each case, and those over all cases, depend on.
    plans: BTreeMap<Option<&'a str>, String>,
    arms: BTreeMap<&'a str, String>,
}

fn effects(findings: &Findings, digests: &Digests<'_>) -> Vec<Effect> {
    let over_all = findings.across.iter().map(|metric| (None, metric));
    let of_cases = findings.cases.iter().flat_map(|case| case.metrics.iter().map(move |metric| (Some(case), metric)));
    let all = over_all.chain(of_cases).filter(|(case, metric)| {
        // What is the guest's own is one figure over all cases.
        case.is_none() || metric.spec.primary || !GUESTS.contains(&metric.spec.id.as_str())
    });
    let effects = all.flat_map(|(case, metric)| {
        let own = metric.comparisons.iter().filter(|own| is_effect(findings, own));
        own.filter_map(move |own| effect(findings, case, metric, own, digests))
    });
    effects.collect()
}

/// Whether a comparison is of an arm that may be compared, and has a ratio.
fn is_effect(findings: &Findings, own: &Comparison) -> bool {
    let apart = own.verdict == Verdict::NotComparable || is_apart(findings, &own.arm);
    let ratio = &own.ratio;
    own.standing != Standing::Replica && !apart && ratio.n > 0 && ratio.value.is_finite() && ratio.value > 0.0
}

fn effect(
    findings: &Findings,
    case: Option<&CaseFindings>,
    metric: &MetricFindings,
    own: &Comparison,
    digests: &Digests<'_>,
) -> Option<Effect> {
    let arm = findings.plan.study.arms.iter().find(|arm| arm.id == own.arm)?;
    let spec = &metric.spec;
    let answers = spec.primary || case.is_none() && common::OF_THE_GUEST.contains(&spec.id.as_str());
    let id = case.map(|case| case.id.as_str());
    let finite = |end: Option<f64>| end.filter(|end| end.is_finite());
    Some(Effect {
        case: id.map(str::to_owned),
        case_label: case.map_or_else(|| "all cases".to_owned(), |case| case.label.clone()),
        arm: arm.id.clone(),
        arm_label: arm.label.clone(),
        baseline: findings.plan.study.baseline.clone(),
        metric: MetricSpec { primary: answers, ..spec.clone() },
        plan: digests.plans.get(&id)?.clone(),
        arm_plan: digests.arms.get(own.arm.as_str())?.clone(),
        ratio: Estimate { low: finite(own.ratio.low), high: finite(own.ratio.high), ..own.ratio.clone() },
        fault: fault(own),
    })
}
