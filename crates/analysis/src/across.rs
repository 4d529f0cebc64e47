//! Metrics of the guest and not of its work, over the trials of all cases: start time, and memory when idle.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::findings::{ArmEstimate, Comparison, DriverLimited, MetricFindings};
use tare_model::metric::{MetricSpec, common};
use tare_model::plan::Plan;
use tare_model::study::Arm;
use tare_model::trial::TrialRecord;

use crate::comparison::{Paired, Subject};
use crate::estimate;
use crate::marked::role;
use crate::{missing, student};

/// The metrics that do not depend on what the guest is asked to do.
pub(crate) const GUESTS: [&str; 5] =
    [common::START_TIME, common::START_FIRMWARE, common::START_KERNEL, common::START_AGENT, common::IDLE_MEMORY];

/// The trials of a run that count, and how many blocks they were to be.
pub(crate) struct Counted<'a> {
    pub plan: &'a Plan,
    pub trials: Vec<&'a TrialRecord>,
    pub blocks: u32,
}

/// Each of these metrics that a trial has: what it is on every arm, and against the baseline.
pub(crate) fn of_run(run: &Counted<'_>) -> Vec<MetricFindings> {
    let spec = |id: &&str| run.trials.iter().flat_map(|record| &record.metrics).find(|spec| spec.id == **id);
    GUESTS.iter().filter_map(spec).map(|spec| metric(run, spec)).filter(|m| !m.arms.is_empty()).collect()
}

fn metric(run: &Counted<'_>, spec: &MetricSpec) -> MetricFindings {
    let (plan, trials) = (run.plan, &run.trials[..]);
    let study = &plan.study;
    let asked = common::OF_THE_GUEST.contains(&spec.id.as_str());
    let cases = cases(plan, trials, &spec.id);
    let of_arm = |arm: &Arm| (arm.id.clone(), Guests::of(plan, trials, &arm.id, &spec.id, &cases));
    let all: BTreeMap<String, Guests<'_>> = study.arms.iter().map(of_arm).collect();
    let none = Guests::default();
    let of = |id: &str| all.get(id).unwrap_or(&none);
    let arms = study.arms.iter().filter_map(|arm| {
        let blocks = of(&arm.id).by_block(of(&arm.id));
        let estimate = estimate::of_values(&blocks.iter().map(|(_, value)| *value).collect::<Vec<_>>())?;
        Some(ArmEstimate { case: None, metric: String::new(), arm: arm.id.clone(), estimate, blocks })
    });
    let arms = arms.collect();
    let Some(baseline) = study.arms.iter().find(|arm| arm.id == study.baseline) else {
        return MetricFindings { spec: spec.clone(), arms, comparisons: Vec::new(), incomplete: Vec::new() };
    };
    let base = of(&baseline.id);
    let compare = |arm: &Arm, replica: Option<&Comparison>| -> Comparison {
        let own = of(&arm.id);
        let pairs = own.by_block(base).into_iter().zip(base.by_block(own));
        let paired = Paired {
            of: Subject { spec, arm: &arm.label, baseline: &baseline.label },
            ids: (&arm.id, &baseline.id),
            pairs: pairs.map(|((block, value), (_, beside))| (block, value, beside)).collect(),
            missing: own.ran.iter().filter(|block| own.lost.contains(*block) || base.lost.contains(*block)).count()
                as u32,
            planned: run.blocks,
            by_width: study.precision.is_some(),
            replica,
            margin: study.margin.filter(|_| asked),
            driver_limited: DriverLimited::default(),
            role: role(&study.baseline, arm, trials.iter().copied()),
        };
        paired.compare()
    };
    // What the study asks about is compared although every block is lost: the comparison then says so, and counts.
    let has = |guests: &Guests<'_>| !guests.values.is_empty() || (asked && !guests.lost.is_empty());
    let others = || study.arms.iter().filter(|arm| arm.id != baseline.id && has(of(&arm.id)));
    let replica = others().find(|arm| arm.replica_of.as_deref() == Some(&study.baseline));
    let replica = replica.map(|arm| compare(arm, None));
    let comparisons = others().filter(|_| has(base)).map(|arm| compare(arm, replica.as_ref())).collect();
    MetricFindings { spec: spec.clone(), arms, comparisons, incomplete: Vec::new() }
}

/// A metric of an arm's guests, by block of the study.
#[derive(Debug, Default)]
struct Guests<'a> {
    /// By case and block of the case, where every case that ran in the block has it: a mean over the cases that happened to complete would
    /// be one of other cases on each arm.
    values: BTreeMap<u32, BTreeMap<(&'a str, u32), f64>>,
    /// Blocks of which a trial ran.
    ran: BTreeSet<u32>,
    /// Blocks of which a trial is lost.
    lost: BTreeSet<u32>,
}

impl<'a> Guests<'a> {
    /// `cases`: those in which some arm has the metric and that ran, by block.
    fn of(
        plan: &Plan,
        trials: &[&'a TrialRecord],
        arm: &str,
        metric: &str,
        cases: &BTreeMap<u32, BTreeSet<&str>>,
    ) -> Self {
        let mut found = Self::default();
        for &record in trials.iter().filter(|own| own.planned.arm == arm) {
            let block = plan.study_block(&record.planned);
            if !cases.get(&block).is_some_and(|cases| cases.contains(record.planned.case.as_str())) {
                continue;
            }
            found.ran.insert(block);
            if let Some(value) = missing::value(record, metric) {
                let key = (record.planned.case.as_str(), record.planned.block);
                found.values.entry(block).or_default().insert(key, value);
            } else if missing::is_lost(record, metric) {
                found.lost.insert(block);
            }
        }
        let whole = |block: &u32, own: &BTreeMap<(&str, u32), f64>| {
            cases.get(block).is_some_and(|cases| cases.iter().all(|case| own.keys().any(|(own, _)| own == case)))
        };
        found.values.retain(|block, own| whole(block, own));
        found
    }

    /// (block, mean over its cases), of what is there `beside` others, too.
    fn by_block(&self, beside: &Self) -> Vec<(u32, f64)> {
        let of_block = |(block, own): (&u32, &BTreeMap<(&str, u32), f64>)| {
            let others = beside.values.get(block)?;
            let both: Vec<f64> =
                own.iter().filter(|(of, _)| others.contains_key(*of)).map(|(_, value)| *value).collect();
            Some((*block, student::mean(&both)?))
        };
        self.values.iter().filter_map(of_block).collect()
    }
}

/// The cases in which some arm has a metric, by the blocks of the study in which a trial of theirs ran.
fn cases<'a>(plan: &Plan, trials: &[&'a TrialRecord], metric: &str) -> BTreeMap<u32, BTreeSet<&'a str>> {
    let with = trials.iter().filter(|own| missing::value(own, metric).is_some());
    let having: BTreeSet<&str> = with.map(|own| own.planned.case.as_str()).collect();
    let mut found: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
    for &own in trials.iter().filter(|own| having.contains(own.planned.case.as_str())) {
        found.entry(plan.study_block(&own.planned)).or_default().insert(&own.planned.case);
    }
    found
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

    fn compared(plan: &Plan, trials: &[TrialRecord]) -> Vec<MetricFindings> {
        of_run(&Counted { plan, trials: trials.iter().collect(), blocks: plan.study.blocks })
    }

    #[test]
    fn an_arm_that_lost_every_block_is_compared_all_the_same() {
        let plan = testing::plan(6);
        let mut trials = trials(&plan);
        for record in trials.iter_mut().filter(|record| record.planned.arm == "container") {
            record.outcome = Outcome::Invalid { reason: "it fell over".to_owned() };
        }
        let memory = compared(&plan, &trials).into_iter().find(|m| m.spec.id == common::IDLE_MEMORY).unwrap();
        let container = memory.comparisons.iter().find(|c| c.arm == "container").unwrap();
        assert_eq!((container.verdict, container.missing, container.ratio.n), (Verdict::CannotSay, 6, 0));
    }

    #[test]
    fn a_guests_own_metrics_are_compared_over_all_cases() {
        let plan = testing::plan(6);
        let found = compared(&plan, &trials(&plan));
        let memory = found.iter().find(|m| m.spec.id == common::IDLE_MEMORY).unwrap();
        let container = memory.comparisons.iter().find(|c| c.arm == "container").unwrap();
        assert_eq!((container.verdict, container.ratio.n), (Verdict::Lead, 6));
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
        let found = compared(&plan, &trials);
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
        let of = |trials: &[TrialRecord], arm: &str| -> Vec<f64> {
            let found =
                compared(&plan, trials).into_iter().find(|metric| metric.spec.id == common::IDLE_MEMORY).unwrap();
            let own = found.arms.iter().filter(|own| own.arm == arm);
            own.flat_map(|own| &own.blocks).map(|(_, value)| *value).collect()
        };
        let first = of(&two, &arm)[0];
        assert!(of(&two, "nobody").is_empty());
        two.push(other);
        assert!((of(&two, &arm)[0] - f64::midpoint(first, 3e6)).abs() < 1e-6);
        let other = of(&two, &two[1].planned.arm);
        assert!(other.is_empty(), "the others did not run that case: theirs would be a mean of other cases");
    }

    #[test]
    fn a_case_that_fails_on_one_arm_makes_it_neither_better_nor_worse() {
        let plan = testing::plan(12);
        let mut trials = trials(&plan);
        for record in trials.clone() {
            let mut large = record;
            large.planned.case = "large".to_owned();
            let Outcome::Completed(m) = &mut large.outcome else { panic!("it completed") };
            m.metrics.insert(common::IDLE_MEMORY.into(), 3e6);
            if large.planned.arm == "container" && large.planned.block > 1 {
                large.outcome = Outcome::Invalid { reason: "it fell over".to_owned() };
            }
            trials.push(large);
        }
        let memory = compared(&plan, &trials).into_iter().find(|m| m.spec.id == common::IDLE_MEMORY).unwrap();
        let container = memory.comparisons.iter().find(|c| c.arm == "container").unwrap();
        assert_eq!((container.verdict, container.missing, container.ratio.n), (Verdict::CannotSay, 11, 1));
        let own = memory.arms.iter().find(|own| own.arm == "container").unwrap();
        assert_eq!(own.estimate.n, 1, "no mean over the case that is left");
    }

    #[test]
    fn an_arm_that_must_not_be_compared_has_figures_and_no_ratio() {
        let plan = testing::plan(6);
        let mut trials = trials(&plan);
        for record in trials.iter_mut().filter(|record| record.planned.arm == "container") {
            record.flags.push(Flag { kind: "not-comparable".into(), detail: "emulated: no KVM here".into() });
        }
        let memory = compared(&plan, &trials).into_iter().find(|m| m.spec.id == common::IDLE_MEMORY).unwrap();
        assert!(memory.arms.iter().any(|arm| arm.arm == "container"));
        let container = memory.comparisons.iter().find(|c| c.arm == "container").unwrap();
        assert_eq!((container.verdict, container.ratio.n), (Verdict::NotComparable, 0));
        assert!(container.blocks.is_empty() && container.sentence.contains("no KVM here"), "{container:?}");
    }
}
