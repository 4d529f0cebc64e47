//! One figure over several cases, where a study asks for it.

use std::collections::BTreeMap;

use tare_model::capacity::metric;
use tare_model::findings::{CaseFindings, ScoreFindings};
use tare_model::plan::Plan;

use crate::{estimate, paired};

/// The score of each arm over the blocks in which every case of it has a capacity, and its ratio to the baseline's within those blocks.
/// `None` where the study asks for none.
pub(crate) fn of_run(plan: &Plan, cases: &[CaseFindings]) -> Option<ScoreFindings> {
    let spec = plan.study.score.as_ref()?;
    let by_block = |arm: &str| -> BTreeMap<u32, f64> {
        let of_case = |case: &str| capacities(cases, case, arm);
        let all: Vec<BTreeMap<u32, f64>> = spec.references.iter().map(|(case, _)| of_case(case)).collect();
        let blocks = all.first().map_or_else(Vec::new, |first| first.keys().copied().collect());
        let score = |block: u32| {
            let capacities: Option<Vec<f64>> = all.iter().map(|own| own.get(&block).copied()).collect();
            Some((block, spec.of(&capacities?)?))
        };
        blocks.into_iter().filter_map(score).collect()
    };
    let base = by_block(&plan.study.baseline);
    let (mut arms, mut ratios) = (Vec::new(), Vec::new());
    for arm in &plan.study.arms {
        let own = by_block(&arm.id);
        let Some(estimate) = estimate::of_values(&own.values().copied().collect::<Vec<f64>>()) else { continue };
        arms.push((arm.id.clone(), estimate));
        let pairs: Vec<(f64, f64)> =
            own.iter().filter_map(|(block, score)| Some((*score, *base.get(block)?))).collect();
        if arm.id != plan.study.baseline {
            ratios.extend(paired::paired_ratio(&pairs).map(|ratio| (arm.id.clone(), ratio)));
        }
    }
    Some(ScoreFindings { references: spec.references.clone(), arms, ratios })
}

/// (block, capacity) of an arm in a case.
fn capacities(cases: &[CaseFindings], case: &str, arm: &str) -> BTreeMap<u32, f64> {
    let metric = cases
        .iter()
        .find(|found| found.id == case)
        .and_then(|found| found.metrics.iter().find(|own| own.spec.id == metric::CAPACITY));
    let own = metric.and_then(|found| found.arms.iter().find(|own| own.arm == arm));
    own.map_or_else(BTreeMap::new, |own| own.blocks.iter().copied().collect())
}
