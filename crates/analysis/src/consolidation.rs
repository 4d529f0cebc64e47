//! Several instances of an application in one guest: response time, throughput and CPU against their number.

mod instances;

use std::collections::{BTreeMap, BTreeSet};

use tare_model::findings::{
    ArmConsolidation, ArmObjective, ConsolidationFindings, InstancePoint, InstanceSeries, LoadPoint, LoadSeries,
};
use tare_model::study::{Arm, Case, CaseLoad};
use tare_model::trial::TrialRecord;

use crate::estimate;
use crate::grouped::{Figures, groups};

/// Groups of cases that put several instances into one guest, in the order of the study.
pub(crate) fn of_run(figures: &Figures<'_>, trials: &[TrialRecord]) -> Vec<ConsolidationFindings> {
    let closed = |group: &Vec<&Case>| group[0].load.kind().is_closed();
    let several = |group: &Vec<&Case>| group.iter().any(|case| case.instances > 1);
    let groups = groups(&figures.plan.study.cases).into_iter().filter(closed).filter(several);
    groups.map(|group| of_group(figures, &group, trials)).filter(|found| !found.arms.is_empty()).collect()
}

fn of_group(figures: &Figures<'_>, group: &[&Case], trials: &[TrialRecord]) -> ConsolidationFindings {
    let response = figures.primary_time(group).map(|spec| (spec.id.clone(), spec.label.clone()));
    let throughput = figures.throughput(group).map_or("", |spec| &spec.id);
    let (targets, fixed): (Vec<&Case>, Vec<&Case>) =
        group.iter().partition(|case| matches!(case.load, CaseLoad::CpuTarget { .. }));
    let arms = figures.plan.study.arms.iter().map(|arm| {
        let own = Own { figures, arm, response: response.as_ref().map(|(id, _)| id.as_str()), throughput };
        let side_by_side = instances::of_arm(&own, group, trials);
        let alone = ArmConsolidation { arm: arm.id.clone(), side_by_side, ..ArmConsolidation::default() };
        // A single case has its instances side by side, and no other number of them to be compared with.
        if group.len() < 2 {
            return alone;
        }
        ArmConsolidation { by_load: own.by_load(&fixed), lost: own.lost(&targets), gained: own.gained(&fixed), ..alone }
    });
    ConsolidationFindings {
        workload: group[0].workload.clone(),
        guest: group[0].guest,
        cases: group.iter().map(|case| case.id.clone()).collect(),
        arms: arms.filter(has_findings).collect(),
        response,
    }
}

/// Whether there is anything about an arm.
fn has_findings(arm: &ArmConsolidation) -> bool {
    let series = !(arm.by_load.is_empty() && arm.lost.is_empty() && arm.gained.is_empty());
    series || !arm.side_by_side.is_empty()
}

/// One arm in one group.
struct Own<'a> {
    figures: &'a Figures<'a>,
    arm: &'a Arm,
    response: Option<&'a str>,
    throughput: &'a str,
}

impl Own<'_> {
    fn blocks(&self, case: &Case, id: &str) -> BTreeMap<u32, f64> {
        self.figures.blocks(&case.id, &self.arm.id, id)
    }

    /// Clients of a case whose trials all have the same.
    fn clients(&self, case: &Case) -> Option<f64> {
        self.figures.loads(case, &self.arm.id, &[0]).into_values().next()
    }

    fn by_load(&self, cases: &[&Case]) -> Vec<LoadSeries> {
        let mut series: Vec<LoadSeries> = Vec::new();
        for case in cases {
            let Some(point) = self.load_point(case) else { continue };
            let each = point.clients / f64::from(case.instances.max(1));
            match series.iter_mut().find(|own| same(own.clients_per_instance, each)) {
                Some(own) => own.points.push(point),
                None => series.push(LoadSeries { clients_per_instance: each, points: vec![point] }),
            }
        }
        series.iter_mut().for_each(|own| own.points.sort_by(|a, b| a.clients.total_cmp(&b.clients)));
        series.sort_by(|a, b| a.clients_per_instance.total_cmp(&b.clients_per_instance));
        series
    }

    fn load_point(&self, case: &Case) -> Option<LoadPoint> {
        let of = |blocks: BTreeMap<u32, f64>| estimate::of_values(&blocks.into_values().collect::<Vec<_>>());
        let point = LoadPoint {
            case: case.id.clone(),
            instances: case.instances,
            clients: self.clients(case)?,
            response: self.response.and_then(|id| of(self.blocks(case, id))),
            cpu: of(self.figures.cpu(&case.id, &self.arm.id)),
            throughput: of(self.blocks(case, self.throughput)),
            met: self.met(case),
        };
        (point.response.is_some() || point.cpu.is_some() || point.throughput.is_some()).then_some(point)
    }

    /// Share of the planned blocks in which every objective was met.
    fn met(&self, case: &Case) -> Option<f64> {
        let judged = self.figures.case(&case.id)?.objectives.iter().filter(|own| own.arm == self.arm.id);
        let judged: Vec<_> = judged.collect();
        let planned = judged.iter().map(|own| own.planned).max().filter(|planned| *planned > 0)?;
        let met = |own: &&ArmObjective| -> BTreeSet<u32> {
            own.blocks.iter().filter(|(.., met)| *met).map(|(block, ..)| *block).collect()
        };
        let all = judged.iter().map(met).reduce(|a, b| a.intersection(&b).copied().collect())?;
        Some(all.len() as f64 / f64::from(planned))
    }

    /// Throughput at a share of the guest's CPUs, one series a share.
    fn lost(&self, cases: &[&Case]) -> Vec<InstanceSeries> {
        let share = |case: &Case| match &case.load {
            CaseLoad::CpuTarget { target, .. } => Some(target.share),
            _ => None,
        };
        let held = |case: &Case| -> BTreeMap<u32, f64> {
            let searches =
                self.figures.cpu_searches(case, &self.arm.id).into_iter().map(|(block, search)| (block, search.share));
            searches.filter(|(_, share)| share.is_finite() && *share > 0.0).collect()
        };
        let one = |fixed: f64, own: Vec<&Case>| {
            let step = |case: &Case| {
                let (values, held) = (self.blocks(case, self.throughput), held(case));
                // As it would have been at the share that was asked: a point of CPU is a point of throughput to the first order, and to
                // hold a share to 2 points would else drown an effect of as many per cent.
                let to_share =
                    |(block, x): (&u32, &f64)| (*block, held.get(block).map_or(*x, |share| x * fixed / share));
                let compared = values.iter().map(to_share).collect();
                Some(Step { case: case.id.clone(), instances: case.instances, compared, values, held })
            };
            series(fixed, &own, step, |from, to, fewest| (from - to) / fewest * 100.0)
        };
        by_fixed(cases, share).into_iter().filter_map(|(fixed, own)| one(fixed, own)).collect()
    }

    /// Share of the guest's CPUs at a load, one series a load.
    fn gained(&self, cases: &[&Case]) -> Vec<InstanceSeries> {
        let one = |fixed: f64, own: Vec<&Case>| {
            let step = |case: &Case| {
                let values = self.figures.cpu(&case.id, &self.arm.id);
                let (case, instances) = (case.id.clone(), case.instances);
                Some(Step { case, instances, compared: values.clone(), values, held: BTreeMap::new() })
            };
            series(fixed, &own, step, |from, to, _| (to - from) * 100.0)
        };
        by_fixed(cases, |case| self.clients(case)).into_iter().filter_map(|(fixed, own)| one(fixed, own)).collect()
    }
}

/// The cases by what is fixed in them, ascending; of several with as many instances, the first.
fn by_fixed<'a>(cases: &[&'a Case], fixed: impl Fn(&Case) -> Option<f64>) -> Vec<(f64, Vec<&'a Case>)> {
    let mut series: Vec<(f64, Vec<&Case>)> = Vec::new();
    for case in cases {
        let Some(value) = fixed(case) else { continue };
        match series.iter_mut().find(|(own, _)| same(*own, value)) {
            Some((_, own)) if own.iter().any(|other| other.instances == case.instances) => {}
            Some((_, own)) => own.push(case),
            None => series.push((value, vec![case])),
        }
    }
    series.iter_mut().for_each(|(_, own)| own.sort_by_key(|case| case.instances));
    series.sort_by(|a, b| a.0.total_cmp(&b.0));
    series
}

/// One number of instances: figures by block as they were measured, and as they are compared.
struct Step {
    case: String,
    instances: u32,
    values: BTreeMap<u32, f64>,
    compared: BTreeMap<u32, f64>,
    held: BTreeMap<u32, f64>,
}

/// What each added instance costs by `change` (from, to, fewest); `None` with fewer than two numbers of instances.
fn series(
    fixed: f64,
    cases: &[&Case],
    step: impl Fn(&Case) -> Option<Step>,
    change: impl Fn(f64, f64, f64) -> f64,
) -> Option<InstanceSeries> {
    let steps: Vec<Step> = cases.iter().filter_map(|case| step(case)).filter(|own| !own.values.is_empty()).collect();
    let fewest = steps.first().filter(|_| steps.len() > 1)?;
    let between = |from: &Step, to: &Step| {
        let added = f64::from(to.instances - from.instances);
        let one = |(block, value): (&u32, &f64)| {
            Some(change(*from.compared.get(block)?, *value, *fewest.compared.get(block)?) / added)
        };
        estimate::of_differences(&to.compared.iter().filter_map(one).collect::<Vec<f64>>())
    };
    let of = |values: &BTreeMap<u32, f64>| estimate::of_values(&values.values().copied().collect::<Vec<f64>>());
    let point = |(at, own): (usize, &Step)| {
        let before = at.checked_sub(1).and_then(|before| steps.get(before));
        Some(InstancePoint {
            case: own.case.clone(),
            instances: own.instances,
            value: of(&own.values)?,
            per_instance: before.and_then(|_| between(fewest, own)),
            step: before.and_then(|before| between(before, own)),
            held: of(&own.held),
        })
    };
    Some(InstanceSeries { fixed, points: steps.iter().enumerate().filter_map(point).collect() })
}

/// Whether two loads or shares are the same but for rounding.
fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// What is said of the method where several instances share a guest.
pub(crate) fn method(found: &[ConsolidationFindings]) -> Vec<String> {
    if found.is_empty() {
        return Vec::new();
    }
    vec![
        "Several instances in one guest: clients are divided evenly among the instances, and figures are of all \
         instances together. The cost of an instance is the difference within a block between a number of instances \
         and the fewest of the series, divided by the number of instances between them. Its interval comes from the \
         differences of the blocks, on the values themselves. At a fixed share of the guest's CPUs the cost is in per \
         cent of the throughput of the fewest. Throughput is first scaled in proportion to the requested share, \
         because an excess of CPU would look like a saving; it is shown as measured, beside the share that was held. \
         At a fixed load the cost is in points of CPU. The guest's CPU is that of its control group on the host; for a \
         virtual machine this includes its emulator. Instances side by side: in each block the response time of the \
         slowest instance divided by that of the fastest, and the most operations divided by the fewest, estimated \
         over the blocks. Such a ratio lies somewhat above 1 even where instances are served alike, and the more so \
         the fewer operations each has."
            .to_owned(),
    ]
}
