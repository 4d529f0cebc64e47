//! Metrics of the guest and not of its work, over the trials of all cases: start time, and memory when idle.

use std::collections::BTreeMap;

use tare_model::findings::{ArmEstimate, Comparison, MetricFindings};
use tare_model::metric::{MetricSpec, common};
use tare_model::plan::Plan;
use tare_model::study::Arm;
use tare_model::trial::TrialRecord;

use crate::comparison::{Paired, floor_of};
use crate::distribution::completed;
use crate::estimate;
use crate::marked::role;

/// The metrics that do not depend on what the guest is asked to do.
const GUESTS: [&str; 5] =
    [common::START_TIME, common::START_FIRMWARE, common::START_KERNEL, common::START_AGENT, common::IDLE_MEMORY];

/// Each of these metrics that a trial has: what it is on every arm, and against the baseline.
pub(crate) fn of_run(plan: &Plan, trials: &[TrialRecord]) -> Vec<MetricFindings> {
    let spec = |id: &&str| trials.iter().flat_map(|record| &record.metrics).find(|spec| spec.id == **id);
    GUESTS.iter().filter_map(spec).map(|spec| metric(plan, trials, spec)).filter(|m| !m.arms.is_empty()).collect()
}

fn metric(plan: &Plan, trials: &[TrialRecord], spec: &MetricSpec) -> MetricFindings {
    let study = &plan.study;
    let values: BTreeMap<&str, Vec<(u32, f64)>> =
        study.arms.iter().map(|arm| (arm.id.as_str(), by_block(trials, &arm.id, &spec.id))).collect();
    let of = |arm: &Arm| values.get(arm.id.as_str()).map_or(&[][..], Vec::as_slice);
    let arms = study.arms.iter().filter_map(|arm| {
        let blocks = of(arm).to_vec();
        let estimate = estimate::of_values(&blocks.iter().map(|(_, value)| *value).collect::<Vec<_>>())?;
        Some(ArmEstimate { arm: arm.id.clone(), estimate, blocks })
    });
    let arms = arms.collect();
    let Some(baseline) = study.arms.iter().find(|arm| arm.id == study.baseline) else {
        return MetricFindings { spec: spec.clone(), arms, comparisons: Vec::new() };
    };
    let compare = |arm: &Arm, floor: Option<f64>| -> Comparison {
        let beside: BTreeMap<u32, f64> = of(baseline).iter().copied().collect();
        let both = |&(block, value): &(u32, f64)| beside.get(&block).map(|&beside| (block, value, beside));
        let paired = Paired {
            spec,
            arm: (&arm.id, &arm.label),
            baseline: (&baseline.id, &baseline.label),
            pairs: of(arm).iter().filter_map(both).collect(),
            blocks_planned: study.blocks,
            by_width: study.precision.is_some(),
            floor,
            role: role(&study.baseline, arm, trials.iter()),
        };
        paired.compare()
    };
    let others = || study.arms.iter().filter(|arm| arm.id != baseline.id && !of(arm).is_empty());
    let replica = others().find(|arm| arm.replica_of.as_deref() == Some(&baseline.id));
    let floor = replica.and_then(|arm| floor_of(&compare(arm, None).ratio));
    let comparisons = others().filter(|_| !of(baseline).is_empty()).map(|arm| compare(arm, floor)).collect();
    MetricFindings { spec: spec.clone(), arms, comparisons }
}

/// (block, mean over the cases of the block) of the completed trials of an arm.
fn by_block(trials: &[TrialRecord], arm: &str, metric: &str) -> Vec<(u32, f64)> {
    let mut found: BTreeMap<u32, Vec<(&str, f64)>> = BTreeMap::new();
    for record in trials.iter().filter(|record| record.planned.arm == arm) {
        let value = completed(record).and_then(|m| m.metrics.get(metric).copied());
        if let Some(value) = value.filter(|value| value.is_finite()) {
            found.entry(record.planned.block).or_default().push((&record.planned.case, value));
        }
    }
    let mean = |mut values: Vec<(&str, f64)>| {
        // Sums of floating point depend on their order, and findings must not.
        values.sort_by(|a, b| a.0.cmp(b.0));
        values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64
    };
    found.into_iter().map(|(block, values)| (block, mean(values))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::findings::Verdict;
    use tare_model::metric::{Better, Unit};
    use tare_model::trial::{Flag, Outcome};
    use tare_record::testing;

    /// Six blocks of the made-up study, whose container takes three times the memory.
    fn trials(plan: &Plan) -> Vec<TrialRecord> {
        let mut trials: Vec<TrialRecord> =
            (0..plan.trials.len() as u32).map(|index| testing::trial(plan, index)).collect();
        for record in &mut trials {
            let factor = if record.planned.arm == "container" { 3.0 } else { 1.0 };
            let spec = MetricSpec::new(common::IDLE_MEMORY, "memory", Unit::Bytes, Better::Lower);
            record.metrics.push(spec);
            let Outcome::Completed(m) = &mut record.outcome else { panic!("it completed") };
            m.metrics.insert(common::IDLE_MEMORY.into(), factor * (1e6 + f64::from(record.planned.index) * 1e3));
        }
        trials
    }

    #[test]
    fn a_guests_own_metrics_are_compared_over_all_cases() {
        let plan = testing::plan(6);
        let found = of_run(&plan, &trials(&plan));
        let memory = found.iter().find(|m| m.spec.id == common::IDLE_MEMORY).unwrap();
        let container = memory.comparisons.iter().find(|c| c.arm == "container").unwrap();
        assert_eq!((container.verdict, container.ratio.n), (Verdict::Worse, 6));
        assert!((container.ratio.value - 3.0).abs() < 0.05, "{container:?}");
        let replica = memory.comparisons.iter().find(|c| c.arm == testing::ARMS[2]).unwrap();
        assert_eq!(replica.verdict, Verdict::NoiseFloor);
    }

    #[test]
    fn the_parts_of_a_start_are_found_on_the_arms_that_have_them() {
        let plan = testing::plan(6);
        let mut trials = trials(&plan);
        for record in &mut trials {
            let part = MetricSpec::new(common::START_KERNEL, "guest start, kernel", Unit::Seconds, Better::Lower);
            record.metrics.push(part);
            let is_machine = record.planned.arm == "container";
            let Outcome::Completed(m) = &mut record.outcome else { panic!("it completed") };
            if is_machine {
                m.metrics.insert(common::START_KERNEL.into(), 2.5);
            }
        }
        let found = of_run(&plan, &trials);
        let kernel = found.iter().find(|m| m.spec.id == common::START_KERNEL).unwrap();
        assert_eq!(kernel.arms.len(), 1);
        assert_eq!((kernel.arms[0].arm.as_str(), kernel.arms[0].estimate.n), ("container", 6));
        assert!(kernel.comparisons.is_empty(), "the baseline has no kernel of its own: {:?}", kernel.comparisons);
        assert!(found.iter().all(|m| m.spec.id != common::START_AGENT), "nobody has it");
    }

    #[test]
    fn a_blocks_value_is_the_mean_over_its_cases() {
        let plan = testing::plan(1);
        let mut two = trials(&plan);
        let mut other = two[0].clone();
        other.planned.case = "busy".to_owned();
        let Outcome::Completed(m) = &mut other.outcome else { panic!("it completed") };
        m.metrics.insert(common::IDLE_MEMORY.into(), 3e6);
        let first = by_block(&two, &other.planned.arm, common::IDLE_MEMORY)[0].1;
        let arm = other.planned.arm.clone();
        two.push(other);
        assert!((by_block(&two, &arm, common::IDLE_MEMORY)[0].1 - f64::midpoint(first, 3e6)).abs() < 1e-6);
    }

    #[test]
    fn an_arm_that_must_not_be_compared_has_figures_and_no_ratio() {
        let plan = testing::plan(6);
        let mut trials = trials(&plan);
        for record in trials.iter_mut().filter(|record| record.planned.arm == "container") {
            record.flags.push(Flag { kind: "not-comparable".into(), detail: "emulated: no KVM here".into() });
        }
        let memory = of_run(&plan, &trials).into_iter().find(|m| m.spec.id == common::IDLE_MEMORY).unwrap();
        assert!(memory.arms.iter().any(|arm| arm.arm == "container"));
        let container = memory.comparisons.iter().find(|c| c.arm == "container").unwrap();
        assert_eq!((container.verdict, container.ratio.n), (Verdict::NotComparable, 0));
        assert!(container.blocks.is_empty() && container.sentence.contains("no KVM here"), "{container:?}");
    }
}
