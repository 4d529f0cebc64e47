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
use crate::grouped::means_by_block;
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
    let values: BTreeMap<&str, Values<'_>> =
        study.arms.iter().map(|arm| (arm.id.as_str(), values(trials, &arm.id, &spec.id))).collect();
    let none = Values::new();
    let of = |arm: &Arm| values.get(arm.id.as_str()).unwrap_or(&none);
    let arms = study.arms.iter().filter_map(|arm| {
        let blocks = by_block(plan, of(arm), of(arm));
        let estimate = estimate::of_values(&blocks.iter().map(|(_, value)| *value).collect::<Vec<_>>())?;
        Some(ArmEstimate { arm: arm.id.clone(), estimate, blocks })
    });
    let arms = arms.collect();
    let Some(baseline) = study.arms.iter().find(|arm| arm.id == study.baseline) else {
        return MetricFindings { spec: spec.clone(), arms, comparisons: Vec::new(), incomplete: Vec::new() };
    };
    let compare = |arm: &Arm, floor: Option<f64>| -> Comparison {
        let (own, beside) = (by_block(plan, of(arm), of(baseline)), by_block(plan, of(baseline), of(arm)));
        let pairs = own.into_iter().zip(beside).map(|((block, value), (_, beside))| (block, value, beside));
        let paired = Paired {
            spec,
            arm: (&arm.id, &arm.label),
            baseline: (&baseline.id, &baseline.label),
            pairs: pairs.collect(),
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
    MetricFindings { spec: spec.clone(), arms, comparisons, incomplete: Vec::new() }
}

/// Finite values of the completed trials of an arm, by case and block of the case: in one order, which sums of floating point depend on.
type Values<'a> = BTreeMap<(&'a str, u32), f64>;

fn values<'a>(trials: &'a [TrialRecord], arm: &str, metric: &str) -> Values<'a> {
    let value = |record: &'a TrialRecord| {
        let planned = &record.planned;
        let value = *completed(record)?.metrics.get(metric).filter(|value| value.is_finite())?;
        (planned.arm == arm).then_some(((planned.case.as_str(), planned.block), value))
    };
    trials.iter().filter_map(value).collect()
}

/// (block of the study, mean over its cases) of what is there `beside` others, too: two arms are compared over the same cases.
fn by_block(plan: &Plan, values: &Values<'_>, beside: &Values<'_>) -> Vec<(u32, f64)> {
    let both = values.iter().filter(|(of, _)| beside.contains_key(*of));
    means_by_block(both.map(|((case, block), value)| (block / plan.pairs(case), *value)))
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
        let arm = other.planned.arm.clone();
        let of = |trials: &[TrialRecord], arm: &str| values(trials, arm, common::IDLE_MEMORY).len();
        assert_eq!((of(&two, &arm), of(&two, "nobody")), (1, 0));
        let mean = |trials: &[TrialRecord]| {
            let own = values(trials, &arm, common::IDLE_MEMORY);
            by_block(&plan, &own, &own)[0].1
        };
        let first = mean(&two);
        two.push(other);
        assert!((mean(&two) - f64::midpoint(first, 3e6)).abs() < 1e-6);
        // The others did not run that case: it has no part in comparisons with them.
        let (own, all) =
            (values(&two, &arm, common::IDLE_MEMORY), values(&two[1..2], &two[1].planned.arm, common::IDLE_MEMORY));
        assert_eq!(by_block(&plan, &own, &all), [(0, first)]);
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
