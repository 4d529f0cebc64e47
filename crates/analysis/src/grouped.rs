//! Cases that differ in load and number of instances alone, and their figures by block.

use std::collections::BTreeMap;

use tare_model::capacity::metric;
use tare_model::cpu_target::CpuSearch;
use tare_model::findings::{ArmEstimate, CaseFindings};
use tare_model::load::LoadKind;
use tare_model::metric::{Better, MetricSpec, Unit, common};
use tare_model::plan::Plan;
use tare_model::study::{Case, CaseLoad};

use crate::offered;

/// Id that most workloads give their operations a second.
pub(crate) const OPERATIONS: &str = common::OPERATIONS;

/// The cases of a study that offer load to one guest, in groups of those that differ in load and instances (and phases) alone; in the
/// order of the study. Searches for a capacity and scale-ups are of no group: their load is another in each trial.
pub(crate) fn groups(cases: &[Case]) -> Vec<Vec<&Case>> {
    let mut groups: Vec<Vec<&Case>> = Vec::new();
    let one_guest = |case: &&Case| case.load.guests().count == 1 && !case.load.is_density() && !case.load.is_capacity();
    // What neighbours do differs between conditions, and no load.
    let is_own = |case: &&Case| case.schedule.condition().is_none();
    for case in cases.iter().filter(one_guest).filter(is_own) {
        match groups.iter_mut().find(|group| alike(group[0], case)) {
            Some(group) => group.push(case),
            None => groups.push(vec![case]),
        }
    }
    groups
}

fn alike(a: &Case, b: &Case) -> bool {
    let kind = match (a.load.kind(), b.load.kind()) {
        (LoadKind::Closed { think_time: a }, LoadKind::Closed { think_time: b }) => a == b,
        (LoadKind::Open { arrivals: a, .. }, LoadKind::Open { arrivals: b, .. }) => a == b,
        _ => false,
    };
    kind && a.workload == b.workload
        && a.guest == b.guest
        && a.parameters == b.parameters
        && a.load.guests() == b.load.guests()
        && (a.neighbours, a.busy_target) == (b.neighbours, b.busy_target)
}

/// The figures of a run, by case, arm and block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) cases: &'a [CaseFindings],
}

impl<'a> Figures<'a> {
    pub(crate) fn case(&self, id: &str) -> Option<&'a CaseFindings> {
        self.cases.iter().find(|case| case.id == id)
    }

    /// A metric of a case on an arm.
    pub(crate) fn metric(&self, case: &str, arm: &str, id: &str) -> Option<&'a ArmEstimate> {
        let metric = self.case(case)?.metrics.iter().find(|metric| metric.spec.id == id)?;
        metric.arms.iter().find(|own| own.arm == arm)
    }

    /// Its values by block of the study, finite ones alone. Of a baseline in pairs, which has several, the mean.
    pub(crate) fn blocks(&self, case: &str, arm: &str, id: &str) -> BTreeMap<u32, f64> {
        let found = self.metric(case, arm, id).map_or(&[][..], |own| &own.blocks);
        let (pairs, finite) = (self.plan.pairs(case), found.iter().filter(|(_, value)| value.is_finite()));
        means_by_block(finite.map(|&(block, value)| (block / pairs, value))).into_iter().collect()
    }

    /// Metrics that the cases of a group have, as the first that has each tells them: primary ones first.
    pub(crate) fn specs(&self, group: &[&Case]) -> Vec<&'a MetricSpec> {
        let mut specs: Vec<&MetricSpec> = Vec::new();
        for metric in group.iter().filter_map(|case| self.case(&case.id)).flat_map(|case| &case.metrics) {
            if !specs.iter().any(|known| known.id == metric.spec.id) {
                specs.push(&metric.spec);
            }
        }
        specs.sort_by_key(|spec| !spec.primary);
        specs
    }

    /// The metric that counts operations a second: the usual one, or the first of that unit.
    pub(crate) fn throughput(&self, group: &[&Case]) -> Option<&'a MetricSpec> {
        let specs = self.specs(group);
        let rate = |spec: &&&MetricSpec| spec.unit == Unit::OperationsPerSecond && spec.better == Better::Higher;
        specs.iter().find(|spec| spec.id == OPERATIONS).or_else(|| specs.iter().find(rate)).copied()
    }

    /// The primary metric of a group where it is a time of which less is better.
    pub(crate) fn primary_time(&self, group: &[&Case]) -> Option<&'a MetricSpec> {
        self.specs(group).into_iter().find(|spec| spec.primary && is_time(spec))
    }

    /// The load that a case offered to the guest on an arm, by block: that which was found where it was looked for.
    pub(crate) fn loads(&self, case: &Case, arm: &str, blocks: &[u32]) -> BTreeMap<u32, f64> {
        let drivers = f64::from(case.load.guests().drivers);
        let fixed = match &case.load {
            CaseLoad::CpuTarget { .. } => {
                let usable = |(_, search): &(u32, &CpuSearch)| search.load.is_finite() && search.load > 0.0;
                let searches = self.cpu_searches(case, arm).into_iter().filter(usable);
                return searches.map(|(block, search)| (block, search.load * drivers)).collect();
            }
            CaseLoad::ShareOf { share, guests } => {
                let capacities = self.blocks(&share.case, &self.plan.study.baseline, metric::CAPACITY);
                offered::shared(share, guests.drivers, capacities.into_values().collect())
            }
            CaseLoad::Fixed { load, .. } | CaseLoad::Density { load, .. } => Some(load.number() * drivers),
            CaseLoad::Capacity(_) => None,
        };
        fixed.map_or_else(BTreeMap::new, |load| blocks.iter().map(|block| (*block, load)).collect())
    }

    /// What was seen while the guests' CPUs were held busy to a share, by block.
    pub(crate) fn cpu_searches(&self, case: &Case, arm: &str) -> Vec<(u32, &'a CpuSearch)> {
        let searches = self.case(&case.id).map_or(&[][..], |found| &found.cpu_searches);
        let own = searches.iter().filter(|(id, _)| id == arm).flat_map(|(_, blocks)| blocks);
        own.map(|(block, search)| (*block, search)).collect()
    }

    /// Shares of the guest's CPUs by block.
    pub(crate) fn cpu(&self, case: &str, arm: &str) -> BTreeMap<u32, f64> {
        self.blocks(case, arm, common::GUEST_CPU)
    }
}

/// The mean of the values of each block, in the order of blocks.
pub(crate) fn means_by_block(values: impl Iterator<Item = (u32, f64)>) -> Vec<(u32, f64)> {
    let mut found: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    values.for_each(|(block, value)| found.entry(block).or_default().push(value));
    found.into_iter().map(|(block, own)| (block, own.iter().sum::<f64>() / own.len() as f64)).collect()
}

/// Whether a metric is a time of which less is better.
pub(crate) fn is_time(spec: &MetricSpec) -> bool {
    spec.unit == Unit::Seconds && spec.better == Better::Lower
}
