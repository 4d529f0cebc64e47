//! The trials of one case, by arm: its metrics, its comparisons, and all else that is found in it.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::cpu_target::CpuSearch;
use tare_model::findings::{
    ArmCapacity, ArmEstimate, ArmObjective, ArmParts, ArmRequests, ArmResources, ArmSteps, CaseFindings, Comparison,
    DensityFindings, DriverLimited, MetricFindings, OverAll, PrecisionLimits, ReplacedBlock,
};
use tare_model::flag;
use tare_model::kvm;
use tare_model::metric::{MetricSpec, Unit, common};
use tare_model::plan::Plan;
use tare_model::precision::CaseBlocks;
use tare_model::study::{Arm, Case, CaseLoad};
use tare_model::trial::TrialRecord;

use crate::comparison::{Paired, Subject};
use crate::distribution::{self, completed};
use crate::run::Run;
use crate::spare::Blocks;
use crate::{
    account, capacity, cpu, density, estimate, groups, incomplete, limits, marked, missing, objective, offered, parts,
    requests, resources, series, steps,
};

/// Why metrics of a scale-up are missing whose first number of guests already did not hold.
const NONE_HELD: &str = " (no number of guests held)";
/// Most metrics that are named one by one where all are missing for that.
const NAMED: usize = 3;

/// Trials by arm, in order of blocks.
type ByArm<'a> = BTreeMap<&'a str, Vec<&'a TrialRecord>>;

fn by_arm<'a>(trials: impl Iterator<Item = &'a TrialRecord>) -> ByArm<'a> {
    let mut found = ByArm::new();
    for record in trials {
        found.entry(record.planned.arm.as_str()).or_default().push(record);
    }
    found.values_mut().for_each(|records| records.sort_by_key(|record| record.planned.block));
    found
}

/// The trials of one case by arm, in order of blocks.
pub(crate) struct CaseTrials<'a> {
    plan: &'a Plan,
    case: &'a Case,
    redacted: bool,
    by_arm: ByArm<'a>,
    /// The same with the blocks that do not count.
    all: ByArm<'a>,
    replaced: Vec<ReplacedBlock>,
    /// The load that all trials have, where they do not look for it themselves.
    load: Option<f64>,
    /// The blocks that it took, where that followed from its intervals and is decided.
    ended: Option<&'a CaseBlocks>,
    /// Its scale-ups, where guests are added.
    density: Option<DensityFindings>,
    /// Its searches, where a load is looked for.
    searches: Vec<ArmCapacity>,
}

impl<'a> CaseTrials<'a> {
    pub(crate) fn of(run: &Run<'a>, case: &'a Case) -> Self {
        let own = || run.trials.iter().filter(|record| record.planned.case == case.id);
        let blocks = Blocks::of(run.plan, own());
        let replaced =
            if run.plan.study.spare_blocks > 0 { blocks.replaced(run.plan.study.blocks) } else { BTreeSet::new() };
        let counts = |record: &&TrialRecord| !replaced.contains(&run.plan.study_block(&record.planned));
        let ended = run.facts.ended.iter().find(|ended| ended.case == case.id);
        let why =
            |block: u32| blocks.why(block).map_or_else(String::new, |flag| format!("{}: {}", flag.kind, flag.detail));
        let mut own = Self {
            plan: run.plan,
            case,
            redacted: run.environment.redacted,
            by_arm: by_arm(own().filter(counts)),
            all: by_arm(own()),
            replaced: replaced.iter().map(|&block| ReplacedBlock { block, why: why(block) }).collect(),
            load: offered::fixed(run, case),
            ended,
            density: None,
            searches: Vec::new(),
        };
        own.density = density::of_case(own.plan, own.case, own.arms());
        own.searches = capacity::of_case(own.plan, own.case, own.arms());
        own
    }

    /// Its trials in the blocks that count.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &'a TrialRecord> {
        self.by_arm.values().flatten().copied()
    }

    /// The blocks of the study that count, or were to: as many as an arm beside the baseline has.
    pub(crate) fn blocks(&self) -> u32 {
        self.ended.map_or(self.plan.study.blocks, |ended| ended.blocks.min(self.plan.study.blocks))
    }

    /// The ratios of the primary metric over all blocks, where some do not count.
    fn over_all(&self, metrics: &[MetricFindings]) -> Vec<OverAll> {
        let Some(primary) = metrics.iter().find(|metric| metric.spec.primary).filter(|_| !self.replaced.is_empty())
        else {
            return Vec::new();
        };
        let (all, replaced, searches) = (BTreeMap::new(), Vec::new(), Vec::new());
        let everything = Self { by_arm: self.all.clone(), all, replaced, density: None, searches, ..*self };
        let ratio = |own: Comparison| OverAll { arm: own.arm, ratio: own.ratio };
        everything.comparisons(&primary.spec).into_iter().map(ratio).collect()
    }

    fn arm(&self, id: &str) -> &[&'a TrialRecord] {
        self.by_arm.get(id).map_or(&[], Vec::as_slice)
    }

    fn arms(&self) -> impl Iterator<Item = (&'a Arm, &[&'a TrialRecord])> {
        self.plan.study.arms.iter().map(|arm| (arm, self.arm(&arm.id)))
    }

    /// Every metric on every arm, and against the baseline.
    pub(crate) fn metrics(&self) -> Vec<MetricFindings> {
        let mut metrics: Vec<MetricFindings> = self.measured().0.into_iter().map(|spec| self.metric(spec)).collect();
        if self.case.schedule.condition().is_some() {
            // Arms were measured one after another; what counts is within each guest.
            metrics.iter_mut().for_each(|metric| metric.comparisons.clear());
        }
        if let Some(primary) = metrics.first_mut() {
            if let Some(density) = &self.density {
                density::put_in(density, primary);
            } else if primary.spec.id == capacity::COMPARED {
                capacity::put_in(&self.searches, primary);
            }
        }
        metrics
    }

    pub(crate) fn findings(&self, mut metrics: Vec<MetricFindings>) -> CaseFindings {
        let (specs, mut not_measured) = self.measured();
        let parts = self.parts(&specs);
        if !self.case.load.is_density() && parts.is_empty() && self.arms().any(|(_, trials)| parts::any_in(trials)) {
            not_measured.push("Not given by guest and driver: no metric is the sum over them.".to_owned());
        }
        let primary = specs.first().map_or("", |spec| spec.id.as_str());
        let steps: Vec<ArmSteps> = self.arms().filter_map(|(arm, trials)| steps::of_arm(&arm.id, trials)).collect();
        for (arm, _) in self.arms().filter(|(arm, _)| steps.iter().any(|own| own.arm == arm.id && steps::overrun(own)))
        {
            not_measured
                .push(format!("On {} the steps add up to more than the whole operation: rely on neither.", arm.label));
        }
        let offset = self.case.phases.steady_offset_ns();
        if let (Some(density), Some(primary)) = (&self.density, metrics.first_mut()) {
            density::qualify(self.plan, density, primary);
        }
        let requests: Vec<ArmRequests> =
            self.arms().filter_map(|(arm, trials)| requests::of_arm(&arm.id, trials, self.case, self.load)).collect();
        not_measured.extend(self.capacities(&mut metrics, !requests.is_empty()));
        CaseFindings {
            id: self.case.id.clone(),
            label: self.case.label.clone(),
            blocks: self.ended.cloned(),
            over_all: self.over_all(&metrics),
            replaced: self.replaced.clone(),
            groups: groups::of_primary(&metrics),
            distributions: self.arms().flat_map(|(arm, trials)| distribution::of_arm(&arm.id, trials)).collect(),
            cpu: self.arms().filter_map(|(arm, trials)| cpu::of_arm(&arm.id, trials)).collect(),
            timelines: self
                .arms()
                .filter_map(|(arm, trials)| series::timeline(&arm.id, trials, primary, offset))
                .collect(),
            accounts: self
                .arms()
                .filter_map(|(arm, trials)| account::of_arm(&arm.id, trials, self.case, self.load, self.redacted))
                .collect(),
            objectives: self.objectives(),
            not_measured,
            parts,
            steps,
            limits: self.limits(&metrics),
            density: self.density.clone(),
            operation: if requests.is_empty() { "operation" } else { "request" }.to_owned(),
            sections: Vec::new(),
            resources: self.resources(!requests.is_empty()),
            capacity: self.searches.clone(),
            requests,
            cpu_searches: self.cpu_searches(),
            metrics,
        }
    }

    /// What limits the precision of the primary metric, where arms took turns.
    fn limits(&self, metrics: &[MetricFindings]) -> Vec<PrecisionLimits> {
        let primary = metrics.iter().find(|metric| metric.spec.primary);
        let of = |metric: &MetricFindings| {
            let (baseline, pairs) = (self.plan.study.baseline.as_str(), self.case.schedule.pairs());
            limits::of_case(&self.by_arm, (baseline, pairs), (&metric.spec, &metric.comparisons))
        };
        primary.map(of).unwrap_or_default()
    }

    /// Says of the primary metric of a search how many sessions that are. Returns a sentence where other metrics are not compared.
    fn capacities(&self, metrics: &mut [MetricFindings], sessions: bool) -> Option<String> {
        let primary = metrics.first_mut().filter(|metric| metric.spec.id == capacity::COMPARED)?;
        capacity::qualify(self.plan, self.case, &self.searches, primary, sessions);
        let (compared, others) = (primary.comparisons.len(), metrics.get(1..)?);
        others
            .iter()
            .any(|metric| metric.comparisons.len() < compared)
            .then(|| capacity::not_compared(self.plan, self.case))
    }

    /// How well the guests' CPUs were held busy to a share, by arm and block, where the case asks for that.
    fn cpu_searches(&self) -> Vec<(String, Vec<(u32, CpuSearch)>)> {
        let of = |record: &&TrialRecord| Some((record.planned.block, completed(record)?.cpu_search.clone()?));
        let arms = self.arms().map(|(arm, trials)| (arm.id.clone(), trials.iter().filter_map(of).collect::<Vec<_>>()));
        arms.filter(|(_, blocks)| !blocks.is_empty()).collect()
    }

    /// What was used at the load that was found, given or derived, where such a load is what the case is about.
    fn resources(&self, has_requests: bool) -> Vec<ArmResources> {
        let published = self.plan.study.published.is_some();
        if !has_requests && !published && !matches!(self.case.load, CaseLoad::Capacity(_) | CaseLoad::ShareOf { .. }) {
            return Vec::new();
        }
        self.arms().filter_map(|(arm, trials)| resources::of_arm(&arm.id, trials, self.load)).collect()
    }

    /// The primary metric by guest and driver or, where that is no sum over them (a response time), the first that is.
    /// Not where guests are added: the number of them is another in each trial, and the levels tell what is theirs.
    fn parts(&self, specs: &[&MetricSpec]) -> Vec<ArmParts> {
        if self.case.load.is_density() {
            return Vec::new();
        }
        let adds_up = |spec: &&&MetricSpec| self.arms().all(|(_, trials)| parts::add_up(trials, spec));
        let of = |spec: &MetricSpec| -> Vec<ArmParts> {
            self.arms().filter_map(|(arm, trials)| parts::of_arm(&arm.id, trials, spec)).collect()
        };
        specs.iter().filter(adds_up).map(|spec| of(spec)).find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// Every metric that a trial of the case knows, primary first, then in the order of the trials.
    fn specs(&self) -> Vec<&'a MetricSpec> {
        let mut specs: Vec<&MetricSpec> = Vec::new();
        for spec in self.arms().flat_map(|(_, trials)| trials.iter().copied()).flat_map(|record| &record.metrics) {
            if !specs.iter().any(|known| known.id == spec.id) {
                specs.push(spec);
            }
        }
        specs.sort_by_key(|spec| !spec.primary);
        specs
    }

    /// The metrics that there is something to say about, and a sentence for each that completed trials withheld.
    fn measured(&self) -> (Vec<&'a MetricSpec>, Vec<String>) {
        let mut kept = Vec::new();
        // (arms without the metric and the reason, labels of the metrics)
        let mut groups: Vec<(String, &str, Vec<&str>)> = Vec::new();
        let mut tell = |arms: String, why: &'static str, label: &'a str| match groups
            .iter_mut()
            .find(|(own, reason, _)| *own == arms && *reason == why)
        {
            Some((.., labels)) => labels.push(label),
            None => groups.push((arms, why, vec![label])),
        };
        for spec in self.specs() {
            let without: Vec<&Arm> =
                self.plan.study.arms.iter().filter(|arm| self.withheld(&arm.id, &spec.id)).collect();
            let some = self.arms().any(|(arm, _)| !self.values(&arm.id, &spec.id).is_empty());
            let why = self.why_withheld(spec, &without);
            // Only machines have these: where there are none, none is missing.
            let by_nature = common::START_PARTS.contains(&spec.id.as_str()) || kvm::is_count(&spec.id);
            if by_nature && !some {
                continue;
            }
            if without.is_empty() || spec.primary || by_nature {
                kept.push(spec);
            } else if some {
                kept.push(spec);
                let arms: Vec<&str> = without.iter().map(|arm| arm.label.as_str()).collect();
                tell(format!(" on {}", arms.join(", ")), why, &spec.label);
            } else {
                tell(String::new(), why, &spec.label);
            }
        }
        let sentence = |(arms, why, labels): (String, &str, Vec<&str>)| match labels.len() {
            // They are of the largest number that held: that there is none is one fact and not dozens.
            n if n > NAMED && why == NONE_HELD => {
                format!(
                    "Not measured here{arms}: {n} metrics of the largest number of guests that held, because no number \
                     held."
                )
            }
            _ => format!("Not measured here{arms}: {}{why}.", labels.join("; ")),
        };
        (kept, groups.into_iter().map(sentence).collect())
    }

    /// Whether trials of the arm completed and none of them has the metric.
    fn withheld(&self, arm: &str, metric: &str) -> bool {
        self.arm(arm).iter().any(|record| completed(record).is_some()) && self.values(arm, metric).is_empty()
    }

    fn why_withheld(&self, spec: &MetricSpec, without: &[&Arm]) -> &'static str {
        let held_none =
            |arm: &&Arm| self.values(&arm.id, tare_model::density::metric::HELD).iter().all(|(_, held)| *held == 0.0);
        if self.case.load.is_density() && without.iter().all(held_none) {
            NONE_HELD
        } else if spec.id == common::SERVICE_DEMAND && self.case.busy_target {
            " (busy loops in the measured guest use CPU, too)"
        } else if spec.id == common::SERVICE_DEMAND && !self.plan.cpus.are_separate() {
            " (driver and guests share CPUs)"
        } else if spec.id == common::IDLE_MEMORY {
            " (no control group counts it)"
        } else if without.iter().any(|arm| incomplete::of_arm(&arm.id, self.arm(&arm.id), spec).is_some()) {
            " (not reached: too many operations did not complete)"
        } else if spec.unit == Unit::Seconds {
            " (too few operations)"
        } else {
            ""
        }
    }

    fn objectives(&self) -> Vec<ArmObjective> {
        if self.case.load.is_capacity() {
            // The load that is found meets them all: that is what it was looked for by.
            return Vec::new();
        }
        let specs = self.specs();
        let mut judged = Vec::new();
        for objective in &self.case.qos {
            let Some(spec) = specs.iter().find(|spec| spec.id == objective.metric) else { continue };
            for (arm, trials) in self.arms().filter(|(_, trials)| !trials.is_empty()) {
                let values = self.values(&arm.id, &objective.metric);
                // In pairs the baseline runs in the blocks of all others.
                let times = if arm.id == self.plan.study.baseline { self.case.schedule.pairs() } else { 1 };
                let planned = self.blocks().saturating_mul(times).max(trials.len() as u32);
                let beyond = incomplete::of_arm(&arm.id, trials, spec).map_or(0, |one| one.not_reached.len());
                judged.push(objective::judge((&arm.id, &arm.label), spec, objective, &values, (planned, beyond)));
            }
        }
        judged
    }

    /// (block, value) of the completed trials of an arm that have a finite value.
    fn values(&self, arm: &str, metric: &str) -> Vec<(u32, f64)> {
        let value = |record: &&TrialRecord| Some((record.planned.block, missing::value(record, metric)?));
        self.arm(arm).iter().filter_map(value).collect()
    }

    fn metric(&self, spec: &MetricSpec) -> MetricFindings {
        let arms = self.plan.study.arms.iter().filter_map(|arm| {
            let blocks = self.values(&arm.id, &spec.id);
            let values: Vec<f64> = blocks.iter().map(|(_, value)| *value).collect();
            let estimate = estimate::of_values(&values)?;
            Some(ArmEstimate { case: None, metric: String::new(), arm: arm.id.clone(), estimate, blocks })
        });
        let incomplete = self.arms().filter_map(|(arm, trials)| incomplete::of_arm(&arm.id, trials, spec)).collect();
        MetricFindings { spec: spec.clone(), arms: arms.collect(), comparisons: self.comparisons(spec), incomplete }
    }

    fn comparisons(&self, spec: &MetricSpec) -> Vec<Comparison> {
        if self.case.load.is_density() && !density::COMPARED.contains(&spec.id.as_str()) {
            return Vec::new();
        }
        let study = &self.plan.study;
        let others = || study.arms.iter().filter(|arm| arm.id != study.baseline);
        let replica = others().find(|arm| arm.replica_of.as_deref() == Some(&study.baseline));
        let replica = replica.map(|arm| self.paired(spec, arm, None).compare());
        let said = |arm: &&Arm| !self.withheld(&arm.id, &spec.id) && !self.withheld(&study.baseline, &spec.id);
        // What a search yields beside the capacity is of the load that was found.
        let alike = |arm: &&Arm| {
            !self.case.load.is_capacity()
                || spec.id == capacity::COMPARED
                || capacity::same_load(self.arm(&arm.id), self.arm(&study.baseline))
        };
        others()
            .filter(alike)
            .filter(|arm| spec.primary || said(arm))
            .map(|arm| self.paired(spec, arm, replica.as_ref()).compare())
            .collect()
    }

    /// Blocks in which the driver was at its limit with an arm and with the baseline, where that bounds the metric.
    fn driver_limited(&self, spec: &MetricSpec, arm: &str) -> DriverLimited {
        let bounds = matches!(spec.unit, Unit::Seconds | Unit::OperationsPerSecond | Unit::BitsPerSecond);
        // In pairs the baseline runs in the blocks of all others.
        let blocks: BTreeSet<u32> = self.arm(arm).iter().map(|record| record.planned.block).collect();
        let limited = |record: &&&TrialRecord| {
            let at_limit = record.flags.iter().any(|flag| flag.kind == flag::DRIVER_SATURATED);
            bounds && at_limit && completed(record).is_some() && blocks.contains(&record.planned.block)
        };
        let count = |arm: &str| self.arm(arm).iter().filter(limited).count() as u32;
        DriverLimited { arm: count(arm), baseline: count(&self.plan.study.baseline) }
    }

    fn paired<'b>(&'b self, spec: &'b MetricSpec, arm: &'b Arm, replica: Option<&'b Comparison>) -> Paired<'b> {
        let study = &self.plan.study;
        let label = study.arms.iter().find(|other| other.id == study.baseline).map_or("", |other| other.label.as_str());
        let base: BTreeMap<u32, f64> = self.values(&study.baseline, &spec.id).into_iter().collect();
        let both = |(block, value): (u32, f64)| base.get(&block).map(|&beside| (block, value, beside));
        Paired {
            of: Subject { spec, arm: &arm.label, baseline: label },
            ids: (&arm.id, &study.baseline),
            pairs: self.values(&arm.id, &spec.id).into_iter().filter_map(both).collect(),
            missing: missing::blocks(self.arm(&arm.id), self.arm(&study.baseline), &spec.id),
            planned: self.blocks(),
            by_width: study.precision.is_some(),
            replica,
            margin: study.margin.filter(|_| spec.primary),
            driver_limited: self.driver_limited(spec, &arm.id),
            role: marked::role(&study.baseline, arm, self.by_arm.values().flatten().copied()),
        }
    }
}
